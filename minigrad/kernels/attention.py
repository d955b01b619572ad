"""Attention in place, and of several heads where they lie.

The heads lie side by side in the features of a token: (B, T, D) is read as (B, T, H, D/H). The products take each head
where it lies, a row being D features long of which D/H are its own, and write their results side by side again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.engine.node import Saved
from minigrad.engine.operands import sum_to
from minigrad.functional.attention import attention as attention_definition
from minigrad.functional.attention import attention_of_heads as attention_of_heads_definition
from minigrad.functional.attention import split_heads
from minigrad.kernels.exponentials import exponentials
from minigrad.kernels.sums import row_dot


@attention_definition.faster("numpy")
def attention(query, key, value, mask, dropped, p, scale, bias=None, out=None):
    """As the definition, into `out` (…, T, v) if it is given."""
    scaled = query * scale  # smaller than the scores

    def scores() -> Any:
        product = scaled @ key.mT
        if bias is not None:
            product += bias
        return product

    weights, total = exponentials(scores, mask)
    weights /= total
    if dropped is None:
        return np.matmul(weights, value, out=out), Saved(weights=weights)
    out = np.matmul(weights * dropped, value, out=out)  # A' V, without the factor 1/(1 - p) of dropout
    out *= 1 / (1 - p)
    return out, Saved(weights=weights)


@attention.joint_gradient("query", "key", "value", "bias")
def attention_gradient(g, query, key, value, dropped, p, scale, bias_shape, saved, needs):
    return gradients(g, query, key, value, dropped, p, scale, bias_shape, saved, needs, (None, None, None))


def gradients(g: Any, query: Any, key: Any, value: Any, dropped: Any, p: float, scale: float, bias_shape: Any,
              saved: Any, needs: Any, out: Any) -> tuple[Any, Any, Any, Any]:
    """The gradients of query, key, value and bias, None where not needed; the first three in `out` if given."""
    kept = weights = saved.weights
    if dropped is not None:  # A' = A ∘ M / (1 - p): the factor, of all that follows, goes to dO, which is smaller
        kept, g = weights * dropped, g * (1 / (1 - p))
    grad_value = np.matmul(kept.mT, g, out=out[2]) if needs.value else None
    if not (needs.query or needs.key or needs.bias):
        return None, None, grad_value, None
    grad_scores = g @ value.mT  # dA'; from here on, in place
    if dropped is not None:
        grad_scores *= dropped
    grad_scores -= row_dot(weights, grad_scores)
    grad_scores *= weights
    grad_bias = sum_to(grad_scores, bias_shape).copy() if needs.bias else None
    grad_scores *= scale
    grad_query = np.matmul(grad_scores, key, out=out[0]) if needs.query else None
    grad_key = np.matmul(grad_scores.mT, query, out=out[1]) if needs.key else None
    return grad_query, grad_key, grad_value, grad_bias


@attention_of_heads_definition.faster("numpy")
def attention_of_heads(query, key, value, mask, dropped, p, scale, num_heads, bias=None):
    out = np.empty((*query.shape[:-1], value.shape[-1]), query.dtype)
    heads = [split_heads(x, num_heads) for x in (query, key, value, out)]
    _, saved = attention.forward(*heads[:3], mask, dropped, p, scale, bias, heads[3])
    return out, saved


@attention_of_heads.joint_gradient("query", "key", "value", "bias")
def attention_of_heads_gradient(g, query, key, value, dropped, p, scale, num_heads, bias_shape, saved, needs):
    out = [np.empty(x.shape, g.dtype) for x in (query, key, value)]
    g, query, key, value, *places = (split_heads(x, num_heads) for x in (g, query, key, value, *out))
    *_, grad_bias = gradients(g, query, key, value, dropped, p, scale, bias_shape, saved, needs, places)
    return *out, grad_bias
