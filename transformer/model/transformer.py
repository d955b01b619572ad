"""Encoder, decoder, and the sequence-to-sequence Transformer (Vaswani et al. 2017, figure 1)."""

from __future__ import annotations

import math
from typing import Any

from minigrad import Tensor, nn
from minigrad import functional as F
from minigrad.device import on_device_of, to_device, xp
from minigrad.functional.embedding import integer_ids
from minigrad.nn import init

from transformer.model.attention import source_mask, target_mask, xavier
from transformer.model.config import TransformerConfig
from transformer.model.layers import DecoderLayer, EncoderLayer, given
from transformer.model.positions import LearnedPositions, SinusoidalPositions


class TokenEmbedding(nn.Module):
    """``√d_model · table[ids] + positions``, then dropout (section 3.4; the one place where embeddings are scaled).

    The `config` says which positions, and how much dropout.
    """

    def __init__(self, config: TransformerConfig, table: nn.Embedding) -> None:
        super().__init__()
        self.table = table
        self.scale = math.sqrt(config.d_model)
        self.positions: nn.Module = (
            LearnedPositions(config.max_length, config.d_model) if config.positions == "learned" else
            SinusoidalPositions(config.max_length, config.d_model, config.sinusoid_layout, config.first_position))
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, ids: Any, past: Any = 0) -> Tensor:
        """ids (B, T), after `past` others → (B, T, D)."""
        return self.dropout(self.table(ids) * self.scale + self.positions(ids.shape[1], past))


class _Stack(nn.Module):
    """What encoder and decoder share: the embedding, the layers, the final norm."""

    def __init__(self, config: TransformerConfig, table: nn.Embedding, layers: list[nn.Module]) -> None:
        super().__init__()
        self.embedding = TokenEmbedding(config, table)
        self.layers = nn.ModuleList(layers)
        self.norm = (nn.LayerNorm(config.d_model, config.layer_norm_eps, bias=config.norm_bias)
                     if config.has_final_norm else None)

    def transform(self, x: Tensor, *beside: Any, cache: Any = None) -> Tensor:
        """The layers and the final norm, on what is embedded already: (B, T, D) → (B, T, D).

        `beside` has the other arguments of a layer: for the encoder a mask, for the decoder the memory and two masks.
        """
        for number, layer in enumerate(self.layers):
            x = layer(x, *beside, **given(cache and cache[number]))
        return x if self.norm is None else self.norm(x)


class Encoder(_Stack):
    """Source ids (B, S) → memory (B, S, D), as `config` says; `table` holds the embeddings."""

    def __init__(self, config: TransformerConfig, table: nn.Embedding) -> None:
        super().__init__(config, table, [EncoderLayer(config) for _ in range(config.num_encoder_layers)])

    def forward(self, source: Any, mask: Any = None) -> Tensor:
        """Encode ids (B, S); `mask`, broadcastable to (B, H, S, S), says who may attend to whom."""
        return self.transform(self.embedding(source), mask)


class Decoder(_Stack):
    """Target ids (B, T) and memory (B, S, D) → (B, T, D), as `config` says; `table` holds the embeddings."""

    def __init__(self, config: TransformerConfig, table: nn.Embedding) -> None:
        super().__init__(config, table, [DecoderLayer(config) for _ in range(config.num_decoder_layers)])

    def forward(self, target: Any, memory: Tensor, mask: Any = None, memory_mask: Any = None, cache: Any = None
                ) -> Tensor:
        """Decode ids (B, T), the new ones if there is a `cache`; the other arguments are those of `DecoderLayer`."""
        past = 0 if cache is None else cache.past
        return self.transform(self.embedding(target, past), memory, mask, memory_mask, cache=cache)


class Transformer(nn.Module):
    """The sequence-to-sequence Transformer.

    Args:
        config: sizes and options.

    Parameters are drawn from `minigrad.random`: Xavier-uniform projections, embeddings from N(0, 1/d_model).
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        source = token_table(config.source_vocab_size, config.d_model)
        target = source if config.share_embeddings else token_table(config.target_vocab_size, config.d_model)
        self.encoder = Encoder(config, source)
        self.decoder = Decoder(config, target)
        self.projection: nn.Linear | None = None  # tied: the target embedding's table serves
        if not config.tie_output:
            self.projection = nn.Linear(config.d_model, config.target_vocab_size, config.output_bias)
            xavier(self.projection)

    def forward(self, source: Any, target: Any) -> Tensor:
        """The logits of the token after each token of `target`, given all of `source`.

        Args:
            source: ids (B, S), padded: a tensor, an array or nested lists.
            target: ids (B, T), begin-of-sentence first, padded.

        Returns:
            (B, T, target_vocab_size)
        """
        source = self.source_ids(source)
        if len(source) != len(target):
            raise ValueError(f"source and target must be of the same batch, got {len(source)} and {len(target)} "
                             "sentences")
        mask = source_mask(source, self.config.pad_id)
        return self.decode(target, self.encode(source, mask), mask)  # the memory is (B, S, D)

    def encode(self, source: Any, mask: Any = None) -> Tensor:
        """Source ids (B, S) → memory (B, S, D); `mask`: that of `memory_mask`, if it is made already."""
        source = self.source_ids(source)
        return self.encoder(source, source_mask(source, self.config.pad_id) if mask is None else mask)

    def decode(self, target: Any, memory: Tensor, memory_mask: Any = None, cache: Any = None) -> Tensor:
        """Target ids (B, T), begin-of-sentence first, and the encoder's output → logits (B, T, V).

        Args:
            target: ids (B, T)
            memory: (B, S, D), from `encode`.
            memory_mask: which source tokens may be attended to, from `memory_mask`.
            cache: a `transformer.decode.Cache`: the logits are those of the tokens that it does not have yet.
        """
        target = self.target_ids(target)
        past = 0 if cache is None else cache.begin(target)
        mask = target_mask(target, self.config.pad_id, past)
        return self.logits(self.decoder(target[:, past:], memory, mask, memory_mask, **given(cache)))  # of (B, T, D)

    def logits(self, hidden: Tensor) -> Tensor:
        """The decoder's output (…, D) → logits (…, target_vocab_size)."""
        if self.projection is not None:
            return self.projection(hidden)
        return F.linear(hidden, self.decoder.embedding.table.weight)

    def loss(self, source: Any, labels: Any, label_smoothing: float = 0.0, reduction: str = "mean") -> Tensor:
        """The label-smoothed cross-entropy of `labels`, divided by the number of real target tokens (section 5.4).

        Args:
            source: ids (B, S), padded.
            labels: target ids (B, T) ending in end-of-sentence, padded, without begin-of-sentence.
            label_smoothing: ε of `minigrad.functional.cross_entropy`.
            reduction: "mean" over the real tokens, or their "sum".
        """
        labels = self.target_ids(labels)
        logits = self(source, shift_right(labels, self.config.bos_id))
        return F.cross_entropy(logits, labels, self.config.pad_id, reduction, label_smoothing)

    def memory_mask(self, source: Any) -> Any:
        """The padding mask of the source ids (B, S): (B, 1, 1, S), or None where there is no padding."""
        return source_mask(self.source_ids(source), self.config.pad_id)

    def source_ids(self, ids: Any) -> Any:
        """Source ids, a tensor, array or nested lists, as a raw integer array (B, S) on the model's device.

        Raises:
            TypeError: ids that are not integers.
            ValueError: another shape than (batch, length).
            IndexError: an id outside the vocabulary; ids that are on a GPU already are not read back to check them.
        """
        return ids_on(self.device, ids, self.config.source_vocab_size, "source")

    def target_ids(self, ids: Any) -> Any:
        """Target ids as a raw integer array (B, T) on the model's device; errors as in `source_ids`."""
        return ids_on(self.device, ids, self.config.target_vocab_size, "target")

    @property
    def device(self) -> str:
        """Where the parameters are."""
        return self.encoder.embedding.table.weight.device


def shift_right(labels: Any, bos_id: int) -> Any:
    """The decoder's input for `labels`, a raw array (B, T): each token's predecessor, and `bos_id` first."""
    with on_device_of(labels):
        return xp(labels).pad(labels, ((0, 0), (1, 0)), constant_values=bos_id)[:, :-1]


def ids_on(device: str, ids: Any, vocab_size: int, side: str) -> Any:
    """`ids` as a raw array on `device`, checked before they leave the host: on a GPU, what is out of range wraps."""
    raw = integer_ids(ids, f"{side} ids", vocab_size)
    if raw.ndim != 2:
        raise ValueError(f"{side} ids must have shape (batch, length), got {tuple(raw.shape)}")
    return to_device(raw, device)


def token_table(vocab_size: int, d_model: int) -> nn.Embedding:
    """An embedding table with rows from N(0, 1/d_model): of length about 1 before the scaling by √d_model."""
    table = nn.Embedding(vocab_size, d_model)
    init.normal_(table.weight, std=d_model ** -0.5)
    return table
