"""The numbers and choices that define a Transformer."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Self

_CHOICES = {
    "norm": ("pre", "post"),
    "activation": ("relu", "gelu", "gelu_tanh"),
    "positions": ("sinusoidal", "learned"),
    "sinusoid_layout": ("interleaved", "halves"),
}
_KINDS = {"int": int, "float": int | float, "bool": bool, "bool | None": bool | None, "str": str}  # by annotation


@dataclass(frozen=True)
class TransformerConfig:
    """Everything `Transformer` needs to be built; saved with every checkpoint.

    Attributes:
        source_vocab_size, target_vocab_size: numbers of token ids, the special ones included.
        d_model: features of every token between the layers; a multiple of `num_heads`.
        num_heads: attention heads, each with d_model / num_heads features.
        num_encoder_layers, num_decoder_layers: depth of the two stacks.
        d_ff: inner features of the feed-forward layers.
        dropout: probability of dropping, on embeddings, attention weights, feed-forward activations and residuals.
        norm: "pre" normalises the input of each sublayer, "post" (the paper's) the sum after it.
        final_norm: normalise the output of each stack; None: yes with pre-norm, no with post-norm.
        activation: of the feed-forward layers; "gelu" is exact, "gelu_tanh" the approximation.
        positions: "sinusoidal" (fixed) or "learned".
        sinusoid_layout: sine and cosine "interleaved" (the paper) or in two "halves".
        first_position: the number of the first position, 0 or 1, in the sinusoid.
        max_length: the longest source or target, in tokens, that has positions.
        bias: whether the projections of attention and feed-forward have biases.
        norm_bias: whether the layer norms have one; False with bias=False is PyTorch's bias=False.
        output_bias: whether the final projection to the vocabulary has one (never when it is tied).
        tie_output: the final projection uses the target embedding's weights.
        share_embeddings: source and target use one table (one shared vocabulary).
        layer_norm_eps: added to the variance in every layer norm.
        pad_id, bos_id, eos_id: the special token ids.

    Raises:
        TypeError: a value of another type.
        ValueError: a value out of range, or two that exclude each other.
    """

    source_vocab_size: int
    target_vocab_size: int
    d_model: int = 256
    num_heads: int = 8
    num_encoder_layers: int = 3
    num_decoder_layers: int = 3
    d_ff: int = 1024
    dropout: float = 0.1
    norm: str = "pre"
    final_norm: bool | None = None
    activation: str = "relu"
    positions: str = "sinusoidal"
    sinusoid_layout: str = "interleaved"
    first_position: int = 0
    max_length: int = 256
    bias: bool = True
    norm_bias: bool = True
    output_bias: bool = False
    tie_output: bool = False
    share_embeddings: bool = False
    layer_norm_eps: float = 1e-5
    pad_id: int = 0
    bos_id: int = 1
    eos_id: int = 2

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            kind = str(field.type)
            if not isinstance(value, _KINDS[kind]) or (isinstance(value, bool) and "bool" not in kind):
                raise TypeError(f"{field.name} must be of type {kind}, got {value!r}")
        for name in ("source_vocab_size", "target_vocab_size", "d_model", "num_heads", "d_ff", "max_length"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        for name in ("num_encoder_layers", "num_decoder_layers"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must not be negative, got {getattr(self, name)}")
        if self.d_model % self.num_heads:
            raise ValueError(f"d_model ({self.d_model}) must be a multiple of num_heads ({self.num_heads})")
        if self.positions == "sinusoidal" and self.d_model % 2:
            raise ValueError(f"sinusoidal positions need an even d_model, got {self.d_model}")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout must be in [0, 1), got {self.dropout}")
        if not 0 < self.layer_norm_eps < float("inf"):
            raise ValueError(f"layer_norm_eps must be positive, got {self.layer_norm_eps}")
        for name, allowed in _CHOICES.items():
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} must be one of {', '.join(allowed)}, got {getattr(self, name)!r}")
        if self.first_position not in (0, 1):
            raise ValueError(f"first_position must be 0 or 1, got {self.first_position}")
        if self.share_embeddings and self.source_vocab_size != self.target_vocab_size:
            raise ValueError("share_embeddings needs one vocabulary for both sides, got sizes "
                             f"{self.source_vocab_size} and {self.target_vocab_size}")
        for name, size in (("pad_id", min(self.source_vocab_size, self.target_vocab_size)),
                           ("bos_id", self.target_vocab_size), ("eos_id", self.target_vocab_size)):
            if not 0 <= getattr(self, name) < size:
                raise ValueError(f"{name} must be an id below the vocabulary's size {size}, got {getattr(self, name)}")
        if self.tie_output and self.output_bias:
            raise ValueError("a tied output projection has no bias of its own: "
                             "tie_output and output_bias exclude each other")

    @property
    def has_final_norm(self) -> bool:
        """Whether each stack ends in a layer norm."""
        return self.norm == "pre" if self.final_norm is None else self.final_norm

    @classmethod
    def tiny(cls, source_vocab_size: int, target_vocab_size: int, **changes: Any) -> Self:
        """2+2 layers of 64 features: learns the generated tasks in a minute or two."""
        return replace(cls(source_vocab_size, target_vocab_size, d_model=64, num_heads=4, num_encoder_layers=2,
                           num_decoder_layers=2, d_ff=256), **changes)

    @classmethod
    def small(cls, source_vocab_size: int, target_vocab_size: int, **changes: Any) -> Self:
        """3+3 layers of 256 features: a first translation model."""
        return replace(cls(source_vocab_size, target_vocab_size), **changes)

    @classmethod
    def base(cls, source_vocab_size: int, target_vocab_size: int, **changes: Any) -> Self:
        """The base model of "Attention is all you need" (Vaswani et al. 2017, table 3), three-way tied."""
        return replace(cls(source_vocab_size, target_vocab_size, d_model=512, num_heads=8, num_encoder_layers=6,
                           num_decoder_layers=6, d_ff=2048, dropout=0.1, norm="post", max_length=512, tie_output=True,
                           share_embeddings=True), **changes)

    def to_json(self) -> dict[str, Any]:
        """A dictionary of JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Self:
        """The inverse of `to_json`; ValueError names entries that are missing or unknown."""
        known = {f.name for f in fields(cls)}
        unknown = sorted(set(values) - known)
        missing = sorted({"source_vocab_size", "target_vocab_size"} - set(values))
        if unknown or missing:
            raise ValueError(f"the model's configuration has unknown entries {unknown} and lacks {missing}")
        return cls(**values)
