"""The decoder on one new token of each hypothesis, with the cache: what every step of decoding computes.

`ThroughModules` runs the modules of the model, as training does. `OnArrays` computes the same from their parameters, on
plain arrays: a step has little to compute, and a large part of its time would be the Tensors' and modules' own. It is
the one that is used unless someone watches the modules, or has put another in their place; see `cached_decoder`.

Both take several hypotheses of one sentence as if they were several tokens of it, (B, K, D): they share what is cached
of the memory, and a mask says which of the sentence's tokens are their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minigrad import Tensor, jit, nn
from minigrad.device import on_device_of, xp
from minigrad.engine.interpreters import interpreters
from minigrad.engine.primitive import Primitive
from minigrad.functional.attention import attention
from minigrad.functional.normalization import layer_norm
from minigrad.tensor import as_tensor

from transformer.attention import MultiHeadAttention
from transformer.cache import LayerCache, Rows
from transformer.layers import DecoderLayer, Residual
from transformer.model import Transformer, is_plain


class CachedDecoder:
    """Goes one token further, again and again; base of `ThroughModules` and `OnArrays`.

    Args:
        model: in evaluation mode.
        memory: the encoder's output, (B, S, D).
        memory_mask: who may attend to it, (B, 1, 1, S), or None.

    Attributes:
        cache: with what has been computed.
    """

    def __init__(self, model: Transformer, memory: Tensor, memory_mask: Any) -> None:
        self.model, self.memory_mask = model, memory_mask
        self.cache = model.new_cache()

    def __call__(self, tokens: Any, position: int, mask: Any) -> Any:
        """The logits of the token after each of `tokens`.

        Args:
            tokens: ids on the model's device, (B, K); their keys and values are added to the cache.
            position: where they stand.
            mask: who may attend to which target token, (B, 1, K, those in the cache + K), or None.

        Returns:
            A raw array (B · K, target_vocab_size), good until the next call.
        """
        raise NotImplementedError

    def select(self, rows: NDArray[np.int64]) -> None:
        """Let these sentences, in this order, be the batch; any number of times each."""
        self._select(Rows(rows))

    def _select(self, rows: Rows) -> None:
        self.cache.select(rows)
        if self.memory_mask is not None:
            with on_device_of(self.memory_mask):
                self.memory_mask = self.memory_mask[rows.on(self.model.device)[0]]


def cached_decoder(model: Transformer, memory: Tensor, memory_mask: Any) -> CachedDecoder:
    """`OnArrays`, or `ThroughModules` where the former could not know what the modules do.

    That is where something watches modules and operations (a profile, say), where compositions are asked for by
    ``fused(False)``, where a module has hooks, and where one is of a class that `OnArrays` does not know.
    """
    parts = [model.decoder] + ([] if model.projection is None else [model.projection])
    plain = type(model) is Transformer and not model.has_hooks and is_plain(*parts)
    kind = OnArrays if plain and not interpreters() else ThroughModules
    return kind(model, memory, memory_mask)


class ThroughModules(CachedDecoder):
    """One token further by the modules of the model."""

    def __init__(self, model: Transformer, memory: Tensor, memory_mask: Any) -> None:
        super().__init__(model, memory, memory_mask)
        self.memory = memory

    def __call__(self, tokens: Any, position: int, mask: Any) -> Any:
        """The logits of the token after each of `tokens`, see `CachedDecoder`."""
        decoder, embedding = self.model.decoder, self.model.decoder.embedding
        x = embedding.table(tokens) * embedding.scale + embedding.positions(1, position)  # (B, K, D)
        hidden = decoder.transform(x, self.memory, mask, self.memory_mask, self.cache)
        return self.model.logits(hidden).data.reshape(tokens.size, -1)

    def _select(self, rows: Rows) -> None:
        super()._select(rows)
        with on_device_of(self.memory.data):
            self.memory = as_tensor(self.memory.data[rows.on(self.model.device)[0]])


class OnArrays(CachedDecoder):
    """One token further on plain arrays.

    Layer by layer it is what `DecoderLayer` does. The rows of all matrices are hypotheses, R = B · K of them.
    """

    def __init__(self, model: Transformer, memory: Tensor, memory_mask: Any) -> None:
        super().__init__(model, memory, memory_mask)
        layers: Any = model.decoder.layers
        self.layers = [_LayerOnArrays(layer, kept, memory)
                       for layer, kept in zip(layers, self.cache.layers, strict=True)]
        self._logits: Any = None  # (R at first, V): the largest array of a step, and the same in each

    def __call__(self, tokens: Any, position: int, mask: Any) -> Any:
        """The logits of the token after each of `tokens`, see `CachedDecoder`."""
        decoder, embedding = self.model.decoder, self.model.decoder.embedding
        x = embedding.table.weight.data[tokens.reshape(-1)] * embedding.scale
        positions: Any = embedding.positions
        x += positions.table.data[position]  # (R, D)
        for layer in self.layers:
            x = layer(x, tokens.shape, mask, self.memory_mask)
        self.cache.length += tokens.shape[1]
        if decoder.norm is not None:
            x = _norm(decoder.norm, x)
        return self.logits(x)

    def logits(self, x: Any) -> Any:
        """(R, D) → (R, V), into the same memory every time."""
        projection = self.model.projection
        weight = (self.model.decoder.embedding.table if projection is None else projection).weight.data
        if self._logits is None or len(self._logits) < len(x):
            self._logits = xp(x).empty((len(x), len(weight)), x.dtype)
        logits = xp(x).matmul(x, weight.T, out=self._logits[:len(x)])
        if projection is not None and projection.bias is not None:
            logits += projection.bias.data
        return logits


class _LayerOnArrays:
    """A `DecoderLayer` on one token of each hypothesis."""

    def __init__(self, layer: DecoderLayer, kept: LayerCache, memory: Tensor) -> None:
        self.layer, self.kept, self.heads = layer, kept, layer.self_attention.num_heads
        kept.of_memory(lambda: layer.cross_attention.keys_and_values(memory, memory))
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
        queries = _linear(module.query, y).reshape(*shape, self.heads, -1).swapaxes(1, 2)  # (B, H, K, D/H)
        keys, values = self.kept.memory
        return self.attend(module, queries, keys, values, mask)

    def attend(self, module: MultiHeadAttention, queries: Any, keys: Any, values: Any, mask: Any) -> Any:
        """Of all heads, (B, H, K, D/H), and joined: (R, D)."""
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
    with jit(False):  # a step is too small for compiled bodies
        return operation.body_for(arrays).forward(*arrays)[0]


def _linear(module: nn.Linear, x: Any) -> Any:
    return _affine(x, module.weight.data, None if module.bias is None else module.bias.data)


def _affine(x: Any, weight: Any, bias: Any) -> Any:
    out = x @ weight.T
    if bias is not None:
        out += bias
    return out
