"""Attention of heads where they lie, in three launches; its gradient in five.

The heads lie side by side in the features of a token, as `minigrad.kernels.attention` says. cuBLAS would need copies of
them; the kernel `product` takes strides.
"""

from __future__ import annotations

from typing import Any

from minigrad.device import xp
from minigrad.device.sums import sum_to
from minigrad.engine.node import Saved
from minigrad.functional import attention as definitions
from minigrad.kernels.attention import INPUTS, serve_one_head, split
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


def four(x: Any, num_heads: int | None) -> Any:
    """x with an axis for the heads; of one head with four axes, the missing ones in front."""
    x = split(x, num_heads)
    return x[(None,) * (4 - x.ndim)]


@definitions.attention_of_heads.faster("cupy")
def attention_of_heads(query, key, value, mask, dropped, p, scale, num_heads, bias=None):
    """The output, and the weights."""
    if query.ndim > 4:
        return definitions.attention.forward(query, key, value, mask, dropped, p, scale, bias)
    namespace = xp(query)
    out = namespace.empty((*query.shape[:-1], value.shape[-1]), query.dtype)
    query, key, value, place = (four(x, num_heads) for x in (query, key, value, out))
    weights = namespace.empty((*query.shape[:3], key.shape[2]), query.dtype)
    product(query, key.mT, weights, scale)
    if bias is not None:
        weights += bias
    if mask is not None:
        mask = namespace.broadcast_to(mask, weights.shape)
    dropped, kept = after_dropout(dropped, weights)
    launch_rows("softmax", weights, weights, mask, *((0,) * 4 if mask is None else mask.strides), *weights.shape[1:],
                dropped, 1 / (1 - p), kept)
    product(kept, value, place)
    return out, Saved(weights=weights)


@attention_of_heads.joint_gradient(*INPUTS)
def attention_gradient(g, query, key, value, dropped, p, scale, num_heads, bias_shape, saved, needs):
    """The gradients of query, key, value and bias."""
    if query.ndim > 4:
        return definitions.attention_gradient(g, query, key, value, dropped, p, scale, bias_shape, needs, saved)
    weights = saved.weights
    out = [xp(g).empty(x.shape, g.dtype) for x in (query, key, value)]
    g, query, key, value, *places = (four(x, num_heads) for x in (g, query, key, value, *out))
    grad_scores = xp(g).empty_like(weights)
    dropped, kept = after_dropout(dropped, weights)
    product(g, value.mT, grad_scores)  # dA'
    launch_rows("softmax_gradient", weights, grad_scores, weights, weights.shape[3], dropped, 1 / (1 - p), kept)
    product(grad_scores, key, places[0], scale)
    product(grad_scores.mT, query, places[1], scale)
    product(kept.mT, g, places[2])
    return *out, sum_to(grad_scores, bias_shape) if needs.bias else None


serve_one_head("cupy", attention_of_heads, attention_gradient)
