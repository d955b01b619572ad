"""Encoder, decoder, and the sequence-to-sequence Transformer (Vaswani et al. 2017, figure 1)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minigrad import Tensor, nn
from minigrad import functional as F
from minigrad.device import is_array, is_host, on_device_of, to_device, xp
from minigrad.engine.node import TensorBase
from minigrad.functional.embedding import check_ids
from minigrad.nn import init

from transformer.attention import MultiHeadAttention
from transformer.cache import DecoderCache
from transformer.config import TransformerConfig
from transformer.layers import DecoderLayer, EncoderLayer, FeedForward, Residual
from transformer.masks import causal_mask, is_all_real, join, padding_mask
from transformer.positions import LearnedPositions, SinusoidalPositions
from transformer.real_tokens import Dropout, RealTokens, given, needed_by, real_tokens


def shift_right(labels: Any, bos_id: int) -> Any:
    """The decoder's input for `labels`, a raw array (B, T): each token's predecessor, and `bos_id` first."""
    if labels.ndim != 2:
        raise ValueError(f"shift_right: labels of shape (batch, length) expected, got {tuple(labels.shape)}")
    with on_device_of(labels):
        shifted = xp(labels).empty_like(labels)
        shifted[:, :1] = bos_id
        shifted[:, 1:] = labels[:, :-1]
    return shifted


class TokenEmbedding(nn.Module):
    """``√d_model · table[ids] + positions``, then dropout (section 3.4; the one place where embeddings are scaled)."""

    def __init__(self, config: TransformerConfig, table: nn.Embedding) -> None:
        super().__init__()
        self.table = table
        self.scale = math.sqrt(config.d_model)
        self.positions: nn.Module = (
            LearnedPositions(config.max_length, config.d_model) if config.positions == "learned" else
            SinusoidalPositions(config.max_length, config.d_model, config.sinusoid_layout, config.first_position))
        self.dropout = Dropout(config.dropout)

    def forward(self, ids: Any, offset: int = 0, tokens: RealTokens | None = None) -> Tensor:
        """ids (B, T), the first of which stands at position `offset` → (B, T, D); with `tokens` (N, D), those alone."""
        positions = self.positions(ids.shape[1], offset)
        if tokens is not None:
            ids, positions = tokens.pack(ids), F.embedding(tokens.places % ids.shape[1], positions)
        return self.dropout(self.table(ids) * self.scale + positions, *given(tokens))


class _Stack(nn.Module):
    """What encoder and decoder share: the embedding, the layers, the final norm."""

    def __init__(self, config: TransformerConfig, table: nn.Embedding, layers: list[nn.Module]) -> None:
        super().__init__()
        self.embedding = TokenEmbedding(config, table)
        self.layers = nn.ModuleList(layers)
        self.norm = (nn.LayerNorm(config.d_model, config.layer_norm_eps, bias=config.norm_bias)
                     if config.has_final_norm else None)

    def finish(self, x: Tensor) -> Tensor:
        return x if self.norm is None else self.norm(x)


class Encoder(_Stack):
    """Source ids (B, S) → memory (B, S, D), as `config` says; `table` holds the embeddings."""

    def __init__(self, config: TransformerConfig, table: nn.Embedding) -> None:
        super().__init__(config, table, [EncoderLayer(config) for _ in range(config.num_encoder_layers)])

    def forward(self, source: Any, mask: Any = None, tokens: RealTokens | None = None) -> Tensor:
        """Encode `source`; `mask`, broadcastable to (B, H, S, S), says who may attend to whom.

        With `tokens` the memory is (N, D), the real tokens alone.
        """
        return self.transform(self.embedding(source, tokens=tokens), mask, tokens)

    def transform(self, x: Tensor, mask: Any = None, tokens: RealTokens | None = None) -> Tensor:
        """The layers and the final norm, on what is embedded already: (B, S, D) → (B, S, D)."""
        for layer in self.layers:
            x = layer(x, mask, *given(tokens))
        return self.finish(x)


class Decoder(_Stack):
    """Target ids (B, T) and memory (B, S, D) → (B, T, D), as `config` says; `table` holds the embeddings."""

    def __init__(self, config: TransformerConfig, table: nn.Embedding) -> None:
        super().__init__(config, table, [DecoderLayer(config) for _ in range(config.num_decoder_layers)])

    def forward(self, target: Any, memory: Tensor, mask: Any = None, memory_mask: Any = None,
                cache: DecoderCache | None = None, tokens: RealTokens | None = None,
                memory_tokens: RealTokens | None = None) -> Tensor:
        """Decode `target`, or, with a cache, its new tokens; the other arguments are as in `DecoderLayer`."""
        x = self.embedding(target, 0 if cache is None else cache.length, tokens)
        return self.transform(x, memory, mask, memory_mask, cache, tokens, memory_tokens)

    def transform(self, x: Tensor, memory: Tensor, mask: Any = None, memory_mask: Any = None,
                  cache: DecoderCache | None = None, tokens: RealTokens | None = None,
                  memory_tokens: RealTokens | None = None) -> Tensor:
        """The layers and the final norm, on what is embedded already: (B, T, D) → (B, T, D)."""
        caches = [None] * len(self.layers) if cache is None else cache.layers
        packed = tokens is not None or memory_tokens is not None
        lengths = {"tokens": tokens, "memory_tokens": memory_tokens} if packed else {}
        for layer, layer_cache in zip(self.layers, caches, strict=True):
            x = layer(x, memory, mask, memory_mask, layer_cache, **lengths)
        if cache is not None:
            cache.length += x.shape[1]
        return self.finish(x)


class Projection(nn.Linear):
    """The decoder's output (…, D) → logits (…, target_vocab_size); or, given labels, their cross-entropy."""

    def forward(self, x: Tensor, labels: Any = None, **options: Any) -> Tensor:
        """The logits; with labels (…), `minigrad.functional.linear_cross_entropy` with these options."""
        if labels is None:
            return super().forward(x)
        return F.linear_cross_entropy(x, self.weight, labels, self.bias, **options)


class Transformer(nn.Module):
    """The sequence-to-sequence Transformer.

    Args:
        config: sizes and options.

    Parameters are drawn from `minigrad.random`: Xavier-uniform projections, embeddings from N(0, 1/d_model).
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        source = _table(config.source_vocab_size, config)
        target = source if config.share_embeddings else _table(config.target_vocab_size, config)
        self.encoder = Encoder(config, source)
        self.decoder = Decoder(config, target)
        self.projection: Projection | None = None  # tied: the target embedding's table serves
        if not config.tie_output:
            self.projection = Projection(config.d_model, config.target_vocab_size, config.output_bias)
            init.xavier_uniform_(self.projection.weight)
            if self.projection.bias is not None:
                init.zeros_(self.projection.bias)

    @property
    def device(self) -> str:
        """Where the parameters are."""
        return self.encoder.embedding.table.weight.device

    def source_ids(self, ids: Any) -> Any:
        """Source ids, a tensor, array or nested lists, as a raw integer array (B, S) on the model's device.

        Raises:
            TypeError: ids that are not integers.
            ValueError: another shape than (batch, length).
            IndexError: an id outside the vocabulary; ids that are on a GPU already are not read back to check them.
        """
        return _ids_on(self.device, ids, self.config.source_vocab_size, "source")

    def target_ids(self, ids: Any) -> Any:
        """Target ids as a raw integer array (B, T) on the model's device; errors as in `source_ids`."""
        return _ids_on(self.device, ids, self.config.target_vocab_size, "target")

    def memory_mask(self, source: Any) -> Any:
        """The padding mask of the source ids (B, S): (B, 1, 1, S), or None where there is no padding."""
        source = self.source_ids(source)
        return None if is_all_real(source, self.config.pad_id) else padding_mask(source, self.config.pad_id)

    def encode(self, source: Any) -> Tensor:
        """Source ids (B, S) → memory (B, S, D)."""
        source = self.source_ids(source)
        return self.encoder(source, self.memory_mask(source))

    def decode(self, target: Any, memory: Tensor, memory_mask: Any = None, cache: DecoderCache | None = None) -> Tensor:
        """Logits of the token after each token of `target`.

        Args:
            target: ids (B, T), begin-of-sentence first; with a cache, only those not decoded yet.
            memory: (B, S, D), from `encode`.
            memory_mask: from `memory_mask`.
            cache: see `DecoderCache`; it must have been used with this memory only.

        Returns:
            (B, T, target_vocab_size)
        """
        return self.logits(self._decode(self.target_ids(target), memory, memory_mask, cache))

    def _decode(self, target: Any, memory: Tensor, memory_mask: Any, cache: DecoderCache | None = None,
                tokens: RealTokens | None = None, memory_tokens: RealTokens | None = None) -> Tensor:
        """The decoder's output, (B, T, D) or, of the real `tokens` alone, (N, D)."""
        before = 0 if cache is None else cache.length
        mask = causal_mask(target.shape[1], before + target.shape[1], self.device) if target.shape[1] > 1 else None
        if cache is None and not is_all_real(target, self.config.pad_id):
            mask = join(mask, padding_mask(target, self.config.pad_id))
        return self.decoder(target, memory, mask, memory_mask, cache, tokens, memory_tokens)

    def logits(self, hidden: Tensor) -> Tensor:
        """The decoder's output (…, D) → logits (…, target_vocab_size)."""
        if self.projection is not None:
            return self.projection(hidden)
        return F.linear(hidden, self.decoder.embedding.table.weight)

    def forward(self, source: Any, target: Any, labels: Any = None, label_smoothing: float = 0.0,
                reduction: str = "mean") -> Tensor:
        """Source ids (B, S) and target ids (B, T), begin-of-sentence first → logits (B, T, target_vocab_size).

        With `labels`, ids (B, T), it is the loss instead: see `loss`, whose other arguments these are.
        """
        source, target = self.source_ids(source), self.target_ids(target)
        if source.shape[0] != target.shape[0]:
            raise ValueError(f"source and target must be of the same batch, got ids of shapes "
                             f"{tuple(source.shape)} and {tuple(target.shape)}")
        mask, pad_id = self.memory_mask(source), self.config.pad_id
        if labels is None:
            return self.decode(target, self.encode(source), mask)
        labels = self.target_ids(labels)
        if labels.shape != target.shape:
            raise ValueError(f"labels and target must be of the same shape, got {tuple(labels.shape)} and "
                             f"{tuple(target.shape)}")
        options: dict[str, Any] = {"ignore_index": pad_id, "reduction": reduction, "label_smoothing": label_smoothing}
        if not is_plain(self):
            return F.cross_entropy(self.decode(target, self.encode(source), mask), labels, **options)
        tokens = source_tokens = None
        if is_host(labels):
            tokens, source_tokens = real_tokens(needed_by(labels, target, pad_id)), real_tokens(source != pad_id)
        memory = self.encoder(source, mask, source_tokens)
        hidden = self._decode(target, memory, mask, None, tokens, source_tokens)
        if tokens is not None:
            labels = tokens.pack(labels)
        if self.projection is not None:
            return self.projection(hidden, labels, **options)
        return F.linear_cross_entropy(hidden, self.decoder.embedding.table.weight, labels, **options)

    def loss(self, source: Any, labels: Any, label_smoothing: float = 0.0, reduction: str = "mean") -> Tensor:
        """The label-smoothed cross-entropy of `labels`, divided by the number of real target tokens.

        Of the model as it is made here, padding is left out of what is computed token by token, and the last layer and
        the loss are one operation. Where a module has hooks, or is another than those made here, every tensor has its
        padding, and the logits are there.

        Args:
            source: ids (B, S), padded.
            labels: target ids (B, T) ending in end-of-sentence, padded, without begin-of-sentence.
            label_smoothing: ε of `minigrad.functional.cross_entropy`.
            reduction: "mean" over the real tokens, or their "sum".
        """
        labels = self.target_ids(labels)
        target = shift_right(labels, self.config.bos_id)
        if self.has_hooks or type(self).forward is not Transformer.forward:
            return F.cross_entropy(self(source, target), labels, None, self.config.pad_id, reduction, label_smoothing)
        return self(source, target, labels, label_smoothing, reduction)

    def new_cache(self) -> DecoderCache:
        """An empty cache for decoding one batch."""
        return DecoderCache(self.config.num_decoder_layers)


PLAIN = frozenset({
    Transformer, Encoder, Decoder, Projection, TokenEmbedding, SinusoidalPositions, LearnedPositions, EncoderLayer,
    DecoderLayer, Residual, MultiHeadAttention, FeedForward, Dropout,
    nn.Embedding, nn.LayerNorm, nn.Linear, nn.ModuleList,
})


def is_plain(*modules: nn.Module) -> bool:
    """Whether all modules in these are of the classes made here, none with a hook: then nobody sees a shortcut."""
    unseen = list(modules)  # walked over at every step: without the names and the generators of `modules()`
    while unseen:
        module = unseen.pop()
        if type(module) not in PLAIN or module.has_hooks:
            return False
        unseen += [part for part in vars(module).values() if isinstance(part, nn.Module)]
    return True


def _ids_on(device: str, ids: Any, vocab_size: int, side: str) -> Any:
    """`ids` as a raw array on `device`, checked before they leave the host: on a GPU, what is out of range wraps."""
    raw = ids._data if isinstance(ids, TensorBase) else ids
    raw = raw if is_array(raw) else np.asarray(raw)
    if raw.dtype.kind not in "iu":
        raise TypeError(f"{side} ids must be integers, got {raw.dtype}")
    if raw.ndim != 2:
        raise ValueError(f"{side} ids must have shape (batch, length), got {tuple(raw.shape)}")
    check_ids(raw, vocab_size, f"{side} ids")
    return to_device(raw, device)


def _table(vocab_size: int, config: TransformerConfig) -> nn.Embedding:
    """An embedding table with rows from N(0, 1/d_model): of length about 1 before the scaling by √d_model."""
    table = nn.Embedding(vocab_size, config.d_model)
    init.normal_(table.weight, std=config.d_model ** -0.5)
    return table
