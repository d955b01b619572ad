"""Attention of heads where they lie, in three launches; its gradient in five.

The heads lie side by side in the features of a token, as `minigrad.kernels.attention` says. cuBLAS would have to copy
them first, and its batched products of CuPy transposed matrices, too; `product` takes strides.
"""

from __future__ import annotations

import math
from typing import Any

from minigrad.device import xp
from minigrad.engine.node import Saved
from minigrad.engine.operands import sum_to
from minigrad.functional.attention import attention as attention_definition
from minigrad.functional.attention import attention_of_heads as attention_of_heads_definition
from minigrad.functional.attention import split_heads
from minigrad.kernels.cuda.launching import for_rows, launch

TILE = 64  # as in matrices.cu


def product(a: Any, b: Any, out: Any, alpha: float = 1.0) -> None:
    """``out = alpha · a @ b`` for (B, H, M, K) and (B, H, K, N) of any strides; rows of `out` are contiguous."""
    batch, heads, rows, terms = a.shape
    columns = b.shape[-1]
    of_a, of_b, of_out = ([stride // a.itemsize for stride in x.strides] for x in (a, b, out))
    launch("matrices.cu", "product", a, (batch * heads, -(-rows // TILE), -(-columns // TILE)), (16, 16),
           a, *of_a, b, *of_b, out, *of_out[:3], heads, rows, terms, columns, float(alpha))


def attend(query: Any, key: Any, value: Any, mask: Any, dropped: Any, p: float, scale: float, bias: Any,
           out: Any) -> Any:
    """The weights; the output goes to `out`. All have four axes."""
    namespace, cells = xp(query), (*query.shape[:3], key.shape[2])
    weights = namespace.empty(cells, query.dtype)
    product(query, key.mT, weights, scale)
    if bias is not None:
        weights += bias
    strides = (0,) * 4
    if mask is not None:
        mask = namespace.broadcast_to(mask, cells)
        strides = mask.strides
    dropped, kept = dropped_of(dropped, weights)
    launch("rows.cu", "softmax", weights, *for_rows(math.prod(cells[:3]), cells[3]), weights, mask, *strides,
           *cells[1:], dropped, 1 / (1 - p), kept)
    product(kept, value, out)
    return weights


def gradients(g: Any, query: Any, key: Any, value: Any, dropped: Any, p: float, scale: float, weights: Any, needs: Any,
              out: Any) -> Any:
    """The gradient of the scores; those of query, key and value go to `out`. All have four axes."""
    grad_scores = xp(g).empty_like(weights)
    dropped, kept = dropped_of(dropped, weights)
    product(g, value.mT, grad_scores)  # dA'
    launch("rows.cu", "softmax_gradient", weights, *for_rows(math.prod(weights.shape[:3]), weights.shape[3]),
           grad_scores, weights, weights.shape[3], dropped, 1 / (1 - p), kept)
    if needs.value:
        product(kept.mT, g, out[2])
    if needs.query:
        product(grad_scores, key, out[0], scale)
    if needs.key:
        product(grad_scores.mT, query, out[1], scale)
    return grad_scores


def dropped_of(dropped: Any, weights: Any) -> tuple[Any, Any]:
    """The mask of dropout for each weight, or None; and where the weights after dropout are, or will be."""
    namespace = xp(weights)
    if dropped is None:
        return None, weights
    whole = namespace.broadcast_to(dropped, weights.shape)
    return namespace.ascontiguousarray(whole), namespace.empty_like(weights)


def four(x: Any) -> Any:
    """x with four axes, the missing ones in front: attention of one head is that of heads side by side."""
    return x[(None,) * (4 - x.ndim)]


@attention_definition.faster("cupy")
def attention(query, key, value, mask, dropped, p, scale, bias=None):
    if query.ndim > 4:
        return attention_definition.forward(query, key, value, mask, dropped, p, scale, bias)
    out = xp(query).empty((*query.shape[:-1], value.shape[-1]), query.dtype)
    weights = attend(*map(four, (query, key, value)), mask, dropped, p, scale, bias, four(out))
    return out, Saved(weights=weights.reshape((*query.shape[:-1], key.shape[-2])))


@attention.joint_gradient("query", "key", "value", "bias")
def attention_gradient(g, query, key, value, dropped, p, scale, bias_shape, saved, needs):
    if query.ndim > 4:
        return attention_definition.joint(g, query, key, value, dropped, p, scale, bias_shape, needs, saved)
    out = [xp(g).empty(x.shape, g.dtype) for x in (query, key, value)]
    grad_scores = gradients(*map(four, (g, query, key, value)), dropped, p, scale, four(saved.weights), needs,
                            [four(x) for x in out])
    return *out, bias_gradient(grad_scores, saved.weights.shape, bias_shape, needs)


@attention_of_heads_definition.faster("cupy")
def attention_of_heads(query, key, value, mask, dropped, p, scale, num_heads, bias=None):
    out = xp(query).empty((*query.shape[:-1], value.shape[-1]), query.dtype)
    heads = [split_heads(x, num_heads) for x in (query, key, value, out)]
    return out, Saved(weights=attend(*heads[:3], mask, dropped, p, scale, bias, heads[3]))


@attention_of_heads.joint_gradient("query", "key", "value", "bias")
def attention_of_heads_gradient(g, query, key, value, dropped, p, scale, num_heads, bias_shape, saved, needs):
    out = [xp(g).empty(x.shape, g.dtype) for x in (query, key, value)]
    heads = [split_heads(x, num_heads) for x in (g, query, key, value, *out)]
    grad_scores = gradients(*heads[:4], dropped, p, scale, saved.weights, needs, heads[4:])
    return *out, bias_gradient(grad_scores, saved.weights.shape, bias_shape, needs)


def bias_gradient(grad_scores: Any, cells: tuple[int, ...], bias_shape: Any, needs: Any) -> Any:
    """dB = dS, summed over the axes along which the bias was broadcast; None if it is not needed."""
    return sum_to(grad_scores.reshape(cells), bias_shape) if needs.bias else None
