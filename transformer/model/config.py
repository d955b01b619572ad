"""The numbers and choices that define a Transformer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Self

from minigrad import Tensor

Activation = Callable[[Tensor], Tensor]

_LEAST = dict.fromkeys(("source_vocab_size", "target_vocab_size", "d_model", "num_heads", "d_ff", "max_length"), 1)
_LEAST |= {"num_encoder_layers": 0, "num_decoder_layers": 0}
_CHOICES = {
    "norm": ("pre", "post"),
    "activation": ("relu", "gelu", "gelu_tanh", "silu"),
    "positions": ("sinusoidal", "learned"),
    "sinusoid_layout": ("interleaved", "halves"),
    "first_position": (0, 1),
}
_KINDS: dict[str, Any] = {"int": int, "float": int | float, "bool": bool, "bool | None": bool | None, "str": str,
          "str | Activation": str | Callable}  # by annotation


@dataclass(frozen=True)
class TransformerConfig:
    """Everything `Transformer` needs to be built; its ``vars`` are JSON values, and saved with every checkpoint.

    Attributes:
        source_vocab_size, target_vocab_size: numbers of token ids, the special ones included.
        d_model: features of every token between the layers; a multiple of `num_heads`.
        num_heads: attention heads, each with d_model / num_heads features.
        num_encoder_layers, num_decoder_layers: depth of the two stacks.
        d_ff: inner features of the feed-forward layers.
        dropout: probability of dropping, on embeddings, attention weights, feed-forward activations and residuals.
        norm: "pre" normalises the input of each sublayer, "post" (the paper's) the sum after it.
        final_norm: normalise the output of each stack; None: yes with pre-norm, no with post-norm.
        activation: of the feed-forward layers; "gelu" is exact, "gelu_tanh" its approximation, "silu" is x σ(x).
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
        _check_fields(self)
        if self.positions == "sinusoidal" and self.d_model % 2:
            raise ValueError(f"sinusoidal positions need an even d_model, got {self.d_model}")
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
        preset = {"d_model": 64, "num_heads": 4, "num_encoder_layers": 2, "num_decoder_layers": 2, "d_ff": 256}
        return cls(source_vocab_size, target_vocab_size, **preset | changes)

    @classmethod
    def small(cls, source_vocab_size: int, target_vocab_size: int, **changes: Any) -> Self:
        """3+3 layers of 256 features: a first translation model."""
        return cls(source_vocab_size, target_vocab_size, **changes)

    @classmethod
    def base(cls, source_vocab_size: int, target_vocab_size: int, **changes: Any) -> Self:
        """The base model of "Attention is all you need" (Vaswani et al. 2017, table 3), three-way tied."""
        preset: dict[str, Any] = {"d_model": 512, "num_encoder_layers": 6, "num_decoder_layers": 6, "d_ff": 2048,
                                  "max_length": 512, "norm": "post", "tie_output": True, "share_embeddings": True}
        return cls(source_vocab_size, target_vocab_size, **preset | changes)


@dataclass(frozen=True, kw_only=True)
class LayerConfig:
    """Everything an `EncoderLayer` or a `DecoderLayer` needs to be built without a `Transformer` around it.

    The attributes are those of `TransformerConfig` by their names, with the same defaults; the sizes have none.

    Attributes:
        d_model, num_heads, d_ff: the sizes.
        dropout, norm, bias, norm_bias, layer_norm_eps: as there.
        activation: a name, as there; or a function or a module, (…, d_ff) → (…, d_ff).

    Raises:
        TypeError: a size is missing, or a value of another type.
        ValueError: a value out of range.
    """

    d_model: int
    num_heads: int
    d_ff: int
    dropout: float = 0.1
    norm: str = "pre"
    activation: str | Activation = "relu"
    bias: bool = True
    norm_bias: bool = True
    layer_norm_eps: float = 1e-5

    def __post_init__(self) -> None:
        _check_fields(self)


Config = TransformerConfig | LayerConfig


def config_of(layer: object, config: Config | None, given: dict[str, Any], *options: str) -> Config:
    """The configuration that `layer` is made from: `config`, or in its place one of the values `given` by name.

    Args:
        layer: named in errors.
        options: the fields of `LayerConfig` that the layer reads; by default all.

    Raises:
        TypeError: an unknown or a missing name; a configuration and a field of it; a `config` that is none.
    """
    name, options = type(layer).__name__, options or tuple(field.name for field in fields(LayerConfig))
    unknown = sorted(given.keys() - {*options})
    if unknown:
        raise TypeError(f"{name}: there is no option {', '.join(unknown)}; the options are {', '.join(options)}")
    if config is None:
        return LayerConfig(**{size: 1 for size in ("d_model", "num_heads", "d_ff") if size not in options} | given)
    if given or not isinstance(config, Config):
        raise TypeError(f"{name}: give a TransformerConfig or a LayerConfig, or options by name, such as d_model=64")
    return config


def _check_fields(config: Config) -> None:
    """The type and the range of each field, whichever of the two classes has it; TypeError or ValueError names it."""
    for field in fields(config):
        name, value, kind = field.name, getattr(config, field.name), str(field.type)
        if not isinstance(value, _KINDS[kind]) or isinstance(value, type) or (
                isinstance(value, bool) and "bool" not in kind):
            raise TypeError(f"{name} must be of type {kind}, got {value!r}")
        if name in _LEAST and value < _LEAST[name]:
            raise ValueError(f"{name} must be at least {_LEAST[name]}, got {value}")
        if name in _CHOICES and not callable(value) and value not in _CHOICES[name]:
            raise ValueError(f"{name} must be one of {', '.join(map(str, _CHOICES[name]))}, got {value!r}")
    if config.d_model % config.num_heads:
        raise ValueError(f"d_model ({config.d_model}) must be a multiple of num_heads ({config.num_heads})")
    if not 0 <= config.dropout < 1:
        raise ValueError(f"dropout must be in [0, 1), got {config.dropout}")
    if not 0 < config.layer_norm_eps < float("inf"):
        raise ValueError(f"layer_norm_eps must be positive, got {config.layer_norm_eps}")
