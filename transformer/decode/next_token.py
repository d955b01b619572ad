"""The logits of the next token of each hypothesis, which every step of decoding computes.

`OnArrays` computes the decoder's forward from its parameters, on plain arrays and with a KV cache: a step has little to
compute, and Tensors and modules would take a large part of its time. `AsWritten` calls the model's own methods on all
tokens so far at every step; it serves models that were changed and models that somebody watches. `decoder_of`
chooses between them. `Continuation` serves decoder-only models.

The K hypotheses of a sentence are adjacent, (B, K).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minigrad import Tensor, nn
from minigrad.device import asarray_on, on_device_of, xp
from minigrad.engine.primitive import Primitive
from minigrad.engine.watch import watchers
from minigrad.functional.attention import attention, split_heads
from minigrad.functional.compositions import composing
from minigrad.functional.normalization import layer_norm
from minigrad.tensor import as_tensor

from transformer.decode.kv_cache import DecoderCache, LayerCache, Rows
from transformer.decode.model_cache import KeyValueCache, projections
from transformer.known import is_known
from transformer.model import DecoderLayer, MultiHeadAttention, Residual, Transformer

COLLECT_AFTER = 8  # the fewest steps between two collections of cache entries that no hypothesis reads


def decoder_of(model: Transformer, memory: Tensor, memory_mask: Any) -> AsWritten | OnArrays:
    """`OnArrays` where it computes the same as `model`, else `AsWritten`.

    `AsWritten` serves models with parts that `transformer.model` does not define (see `transformer.known`), models
    that is being watched (by a profile, say), and ``fused(False)``, for its compositions.

    Args:
        model: a model in evaluation mode, under ``no_grad``.
        memory: the encoder's output, (B, S, D).
        memory_mask: which source tokens may be attended to, (B, 1, 1, S), or None.
    """
    if watchers() or composing() or not is_known(model, ("decoder", "projection")) or _is_unusual(model):
        return AsWritten(model, memory, memory_mask)
    return OnArrays(model, memory, memory_mask)


def _is_unusual(model: Transformer) -> bool:
    """Whether a model of known classes was changed after it was made, in a way that `OnArrays` does not provide for."""
    config, decoder = model.config, model.decoder
    if config.bos_id == config.pad_id or type(decoder.embedding.scale) is not float:  # attention masks padding
        return True
    for module in decoder.modules():
        if isinstance(module, nn.LayerNorm) and module.weight is None:
            return True
        if isinstance(module, MultiHeadAttention) and len({(tuple(part.weight.shape), part.bias is None) for part in (
                module.query, module.key, module.value)}) > 1:
            return True
    return len({parameter.dtype for parameter in model.parameters()}) > 1


class _Prefixes:
    """All tokens so far of each hypothesis.

    Attributes:
        prefix: (B, K, length), on the host.
    """

    def __init__(self, prefix: NDArray[np.int64]) -> None:
        self.prefix = prefix

    def extend(self, tokens: NDArray[np.int64], parents: NDArray[np.int64] | None) -> NDArray[np.int64]:
        """Add a token to each hypothesis; the arguments are those of ``AsWritten.__call__``. Returns ids (B · K, T)."""
        before = self.prefix if parents is None else np.take_along_axis(self.prefix, parents[:, :, None], axis=1)
        self.prefix = np.concatenate([before, tokens[:, :, None]], axis=2)
        return self.prefix.reshape(-1, self.prefix.shape[2])

    def select(self, rows: NDArray[np.int64]) -> None:
        """Make these sentences, in this order, the batch; a sentence may occur several times."""
        self.prefix = self.prefix[rows]


class AsWritten(_Prefixes):
    """The next token by ``model.decode`` on all tokens so far: right for any model, and slow for long sentences.

    The arguments are those of `decoder_of`.
    """

    def __init__(self, model: Transformer, memory: Tensor, memory_mask: Any) -> None:
        super().__init__(np.empty((len(memory), 1, 0), np.int64))
        self.model, self.memory, self.memory_mask = model, memory, memory_mask

    def __call__(self, tokens: NDArray[np.int64], parents: NDArray[np.int64] | None = None) -> Any:
        """The logits of the token after each of `tokens`.

        Args:
            tokens: a host array (B, K): the last token of each hypothesis.
            parents: the number of the earlier hypothesis that each one extends, (B, K); None: its own number.

        Returns:
            A raw array (B · K, target_vocab_size), valid until the next call.
        """
        ids = self.extend(tokens, parents)
        memory, mask = self._rows(np.repeat(np.arange(len(tokens)), tokens.shape[1]))
        logits = self.model.decode(ids, memory, mask)  # (B·K, length, V)
        return logits.data[:, -1].copy()

    def select(self, rows: NDArray[np.int64]) -> None:
        """Make these sentences, in this order, the batch; a sentence may occur several times."""
        super().select(rows)
        self.memory, self.memory_mask = self._rows(rows)

    def _rows(self, rows: NDArray[np.int64]) -> tuple[Tensor, Any]:
        with on_device_of(self.memory.data):
            index = asarray_on(self.model.device, rows)
            mask = None if self.memory_mask is None else self.memory_mask[index]
            return as_tensor(self.memory.data[index]), mask


class Continuation(_Prefixes):
    """The next token of a decoder-only model, ``model(ids)`` → logits (B, T, V); a call is as that of `AsWritten`.

    A model that takes ``past``, and that a `KeyValueCache` can serve, reads each token once. Any other reads all tokens
    so far at every step.

    Args:
        model: a model in evaluation mode.
        prompt: ids (B, T); the first call of this object gets the last of them.
        never: tokens that no text contains.
        end: the token that ends a text, or None; the vocabulary must have both.
        memory: (B, S, D), for a model with cross-attention, ``model(ids, memory=memory)``; None: there is none.
    """

    def __init__(self, model: nn.Module, prompt: NDArray[np.int64], never: Sequence[int], end: int | None,
                 memory: Any = None) -> None:
        super().__init__(prompt[:, None, :-1])
        self.model, self.never, self.end, self.memory = model, set(never), end, memory
        self.cache = KeyValueCache(model) if projections(model) else None

    def __call__(self, tokens: NDArray[np.int64], parents: NDArray[np.int64] | None = None) -> Any:
        """The logits of the token after each of `tokens`, see `AsWritten`."""
        hypotheses = self.prefix.shape[1]
        ids = self.extend(tokens, parents)
        more = {} if self.memory is None else {"memory": self._memory_of(*tokens.shape)}
        if self.cache is None:
            return self.last(self.model(ids, **more), ids)
        if parents is not None and self.cache.length:
            self.cache.select((np.arange(len(parents))[:, None] * hypotheses + parents).ravel())
        ids = ids[:, self.cache.length:]
        return self.last(self.cache(ids, **more), ids)

    def _memory_of(self, batch: int, hypotheses: int) -> Any:
        """The memory of each hypothesis, (B · K, S, D)."""
        return self.memory if hypotheses == 1 else self.memory[np.repeat(np.arange(batch), hypotheses)]

    def last(self, logits: Tensor, ids: NDArray[np.int64]) -> Any:
        """The logits of the last token, a raw array (rows, V), from (rows, T, V); an error for anything else."""
        shape = tuple(getattr(logits, "shape", ()))
        if len(shape) != 3 or shape[:2] != ids.shape:
            raise ValueError("generate: the model must return logits alone, of shape (batch, length, vocabulary), got "
                             f"a {type(logits).__name__} {shape} for ids of shape {ids.shape}")
        special = self.never if self.end is None else {*self.never, self.end}
        unknown = [token for token in special if not 0 <= token < logits.shape[2]]
        if unknown:
            raise IndexError(f"generate: the token {unknown[0]} of end_id and never is outside the vocabulary of "
                             f"{logits.shape[2]}")
        return logits.data[:, -1].copy()

    def select(self, rows: NDArray[np.int64]) -> None:
        """Make these prompts, in this order, the batch; a prompt may occur several times."""
        hypotheses = self.prefix.shape[1]
        super().select(rows)
        self.memory = None if self.memory is None else self.memory[rows]
        if self.cache is not None and self.cache.length:
            self.cache.select((rows[:, None] * hypotheses + np.arange(hypotheses)).ravel())


class OnArrays:
    """The next token on plain arrays; arguments and methods are those of `AsWritten`.

    Attention treats the hypotheses of a sentence like tokens of one sequence, (B, K, D): they share the cached keys and
    values of the memory, and a mask says which target tokens each may read. A choice of hypotheses therefore moves no
    keys and values: all extensions of a hypothesis read the entries that it wrote.

    Attributes:
        cache: the KV cache of all layers.
    """

    def __init__(self, model: Transformer, memory: Tensor, memory_mask: Any) -> None:
        layers: Any = model.decoder.layers
        self.model, self.memory_mask = model, memory_mask
        self.cache = DecoderCache(len(layers))
        self.layers = [_LayerOnArrays(layer, kept, memory)
                       for layer, kept in zip(layers, self.cache.layers, strict=True)]
        self._position = 0
        self._seen: NDArray[np.bool_] | None = None  # which tokens each hypothesis may read, (B, K, tokens); None: all
        self._collect_at = 0
        self._logits: Any = None  # (R at first, V): the largest array of a step, which every step reuses

    def __call__(self, tokens: NDArray[np.int64], parents: NDArray[np.int64] | None = None) -> Any:
        """The logits of the token after each of `tokens`, see `AsWritten`."""
        mask = self._mask(tokens.shape, parents)
        ids = asarray_on(self.model.device, tokens)
        decoder, embedding = self.model.decoder, self.model.decoder.embedding
        x = embedding.table.weight.data[ids.reshape(-1)] * embedding.scale
        positions: Any = embedding.positions
        x += positions.table.data[self._position]  # (R, D), R = B · K
        for layer in self.layers:
            x = layer(x, tokens.shape, mask, self.memory_mask)
        self.cache.length += tokens.shape[1]
        self._position += 1
        if decoder.norm is not None:
            x = _norm(decoder.norm, x)
        return self.logits(x)

    def logits(self, x: Any) -> Any:
        """(R, D) → (R, V), written to a buffer that every step reuses."""
        projection = self.model.projection
        weight = (self.model.decoder.embedding.table if projection is None else projection).weight.data
        if self._logits is None or len(self._logits) < len(x):
            self._logits = xp(x).empty((len(x), len(weight)), x.dtype)
        logits = xp(x).matmul(x, weight.T, out=self._logits[:len(x)])
        if projection is not None and projection.bias is not None:
            logits += projection.bias.data
        return logits

    def select(self, rows: NDArray[np.int64]) -> None:
        """Make these sentences, in this order, the batch; a sentence may occur several times."""
        sent = Rows(rows)
        self.cache.select(sent)
        if self._seen is not None:
            self._seen = self._seen[rows]
        if self.memory_mask is not None:
            with on_device_of(self.memory_mask):
                self.memory_mask = self.memory_mask[sent.on(self.model.device)[0]]

    def _mask(self, shape: tuple[int, int], parents: NDArray[np.int64] | None) -> Any:
        """Which target tokens each hypothesis may attend to, (B, 1, K, those in the cache + K); None: all."""
        batch, hypotheses = shape
        if parents is not None and parents.size and (self._seen is not None or hypotheses > 1):
            seen = np.ones((batch, 1, self.cache.length), bool) if self._seen is None else self._seen
            self._seen = np.take_along_axis(seen, parents[:, :, None], axis=1)
            if self._seen.shape[2] >= self._collect_at:
                self._seen = self._collect(self._seen)
                self._collect_at = 2 * self._seen.shape[2] + COLLECT_AFTER * hypotheses
        if self._seen is None:
            return None
        itself = np.broadcast_to(np.eye(hypotheses, dtype=bool), (batch, hypotheses, hypotheses))
        self._seen = np.concatenate([self._seen, itself], axis=2)  # (B, K, tokens + K)
        return asarray_on(self.model.device, self._seen[:, None])

    def _collect(self, seen: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Drop the keys and values of hypotheses without descendants, which no mask shows; returns the new `_seen`."""
        used = seen.any(axis=1)  # (B, tokens)
        tokens = np.argsort(~used, axis=1, kind="stable")[:, :used.sum(axis=1).max()]  # those in use first, in order
        self.cache.keep(asarray_on(self.model.device, tokens))
        return np.take_along_axis(seen, tokens[:, None], axis=2)


class _LayerOnArrays:
    """A `DecoderLayer` on one token of each hypothesis. The rows of its matrices are hypotheses, R = B · K of them."""

    def __init__(self, layer: DecoderLayer, kept: LayerCache, memory: Tensor) -> None:
        self.layer, self.kept, self.heads = layer, kept, layer.self_attention.num_heads
        cross, rows = layer.cross_attention, memory.data.reshape(-1, memory.shape[-1])  # (B · S, D)
        kept.keep_memory(*(split_heads(_linear(part, rows).reshape(*memory.shape[:-1], -1), cross.num_heads)
                           for part in (cross.key, cross.value)))
        parts: list[Any] = [layer.self_attention.query, layer.self_attention.key, layer.self_attention.value]
        namespace = xp(parts[0].weight.data)
        self.weight = namespace.concatenate([part.weight.data for part in parts])  # (3D, D): one product for all three
        self.bias = None if parts[0].bias is None else namespace.concatenate([part.bias.data for part in parts])

    def __call__(self, x: Any, shape: tuple[int, int], mask: Any, memory_mask: Any) -> Any:
        """x, (R, D), with R rows for the hypotheses of `shape` (B, K) → (R, D)."""
        layer = self.layer
        x = _residual(layer.self_attention_residual, x, lambda y: self.to_itself(y, shape, mask))
        x = _residual(layer.cross_attention_residual, x, lambda y: self.to_memory(y, shape, memory_mask))
        return _residual(layer.feed_forward_residual, x, self.feed_forward)

    def to_itself(self, y: Any, shape: tuple[int, int], mask: Any) -> Any:
        """Self-attention: the new tokens' keys and values join those in the cache, and the queries attend to all."""
        projected = _affine(y, self.weight, self.bias).reshape(*shape, 3, self.heads, -1)  # (B, K, 3, H, D/H)
        queries, keys, values = projected.transpose(2, 0, 3, 1, 4)  # (B, H, K, D/H) each
        return self.attend(self.layer.self_attention, queries, *self.kept.append(keys, values), mask)

    def to_memory(self, y: Any, shape: tuple[int, int], mask: Any) -> Any:
        """Cross-attention: only the queries are new."""
        module = self.layer.cross_attention
        queries = _linear(module.query, y).reshape(*shape, module.num_heads, -1).swapaxes(1, 2)  # (B, H, K, D/H)
        memory: Any = self.kept.memory
        return self.attend(module, queries, memory[0], memory[1], mask)

    def attend(self, module: MultiHeadAttention, queries: Any, keys: Any, values: Any, mask: Any) -> Any:
        """Attention of all heads, (B, H, K, D/H), joined and projected: (R, D)."""
        context = _fused(attention, queries, keys, values, mask, None, 0.0, queries.shape[-1] ** -0.5)
        return _linear(module.output, context.swapaxes(1, 2).reshape(-1, module.output.in_features))

    def feed_forward(self, y: Any) -> Any:
        """As `FeedForward`: (R, D) → (R, D)."""
        module = self.layer.feed_forward
        return _linear(module.outer, module.activation(_linear(module.inner, y)))


def _residual(module: Residual, x: Any, sublayer: Callable[[Any], Any]) -> Any:
    if module.pre:
        return x + sublayer(_norm(module.norm, x))
    return _norm(module.norm, x + sublayer(x))


def _norm(module: Any, x: Any) -> Any:
    return _fused(layer_norm, x, module.weight.data, None if module.bias is None else module.bias.data, module.eps)


def _fused(operation: Primitive, *arrays: Any) -> Any:
    """The forward of a fused operation on arrays, without what it saves for a backward."""
    return operation.body_for(arrays).forward(*arrays)[0]


def _linear(module: nn.Linear, x: Any) -> Any:
    return _affine(x, module.weight.data, None if module.bias is None else module.bias.data)


def _affine(x: Any, weight: Any, bias: Any) -> Any:
    out = x @ weight.T
    if bias is not None:
        out += bias
    return out
