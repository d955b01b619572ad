"""Attention of heads where they lie, in three launches; its gradient in five.

The heads lie side by side in the features of a token, as `minigrad.kernels.attention` says. cuBLAS would need copies of
them; the kernel `product` takes strides.
"""

from __future__ import annotations

from typing import Any

from minigrad.device import xp
from minigrad.device.sums import sum_to
from minigrad.engine.node import Saved
from minigrad.functional.attention import attention as attention_definition
from minigrad.kernels.attention import register
from minigrad.kernels.cuda.launching import TILE, dense, launch, launch_rows


def product(a: Any, b: Any, out: Any, alpha: float = 1.0) -> None:
    """``out = alpha · a @ b`` for (B, H, M, K) and (B, H, K, N) of any strides; rows of `out` are contiguous."""
    (batch, heads, rows, terms), columns = a.shape, b.shape[-1]
    of_a, of_b, of_out = ([stride // a.itemsize for stride in x.strides] for x in (a, b, out))
    launch("matrices.cu", "product", a, (batch * heads, -(-rows // TILE), -(-columns // TILE)), (16, 16),
           a, *of_a, b, *of_b, out, *of_out[:3], heads, rows, terms, columns, float(alpha))


def after_dropout(dropped: Any, weights: Any) -> tuple[Any, Any]:
    """The mask of dropout for each weight, or None; and where the weights after dropout are, or will be."""
    if dropped is None:
        return None, weights
    return dense(xp(weights).broadcast_to(dropped, weights.shape)), xp(weights).empty_like(weights)


def four(x: Any) -> Any:
    """x with four axes, the missing ones in front: attention of one head is that of heads side by side."""
    return x[(None,) * (4 - x.ndim)]


def attention(query, key, value, mask, dropped, p, scale, bias, heads):
    """The output, and the weights; `heads` gives any array four axes."""
    if query.ndim > 4:
        return attention_definition.forward(query, key, value, mask, dropped, p, scale, bias)
    namespace = xp(query)
    out = namespace.empty((*query.shape[:-1], value.shape[-1]), query.dtype)
    query, key, value = map(heads, (query, key, value))
    weights = namespace.empty((*query.shape[:3], key.shape[2]), query.dtype)
    product(query, key.mT, weights, scale)
    if bias is not None:
        weights += bias
    if mask is not None:
        mask = namespace.broadcast_to(mask, weights.shape)
    dropped, kept = after_dropout(dropped, weights)
    launch_rows("softmax", weights, weights, mask, *((0,) * 4 if mask is None else mask.strides), *weights.shape[1:],
                dropped, 1 / (1 - p), kept)
    product(kept, value, heads(out))
    return out, Saved(weights=weights)


def attention_gradient(g, query, key, value, dropped, p, scale, bias_shape, saved, needs, heads):
    """The gradients of query, key, value and bias."""
    if query.ndim > 4:
        return attention_definition.joint(g, query, key, value, dropped, p, scale, bias_shape, needs, saved)
    weights = saved.weights
    out = [xp(g).empty(x.shape, g.dtype) for x in (query, key, value)]
    g, query, key, value, *places = map(heads, (g, query, key, value, *out))
    grad_scores = xp(g).empty_like(weights)
    dropped, kept = after_dropout(dropped, weights)
    product(g, value.mT, grad_scores)  # dA'
    launch_rows("softmax_gradient", weights, grad_scores, weights, weights.shape[3], dropped, 1 / (1 - p), kept)
    product(grad_scores, key, places[0], scale)
    product(grad_scores.mT, query, places[1], scale)
    product(kept.mT, g, places[2])
    return *out, sum_to(grad_scores, bias_shape) if needs.bias else None


register("cupy", attention, attention_gradient, four)
