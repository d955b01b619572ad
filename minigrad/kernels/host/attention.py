"""Attention in place, and of several heads where they lie.

The heads lie side by side in the features of a token: (B, T, D) is read as (B, T, H, D/H). The products take each head
where it lies, a row being D features long of which D/H are its own, and write their results side by side again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minigrad.engine.node import Saved
from minigrad.engine.operands import sum_to
from minigrad.functional.attention import attention as attention_definition
from minigrad.functional.attention import attention_of_heads as attention_of_heads_definition
from minigrad.functional.attention import split_heads
from minigrad.kernels.bodies import faster_body, on_host
from minigrad.kernels.host.softmax import exponentials
from minigrad.kernels.host.sums import row_dot


@faster_body(attention_definition, on_host, fresh=True)
def attention(query, key, value, mask, dropped, p, scale, bias=None):
    return attend(query, key, value, mask, dropped, p, scale, bias)


@attention.joint_gradient("query", "key", "value", "bias")
def attention_gradient(g, query, key, value, dropped, p, scale, bias_shape, saved, needs):
    return attend_backward(g, query, key, value, dropped, p, scale, bias_shape, saved.weights, needs)


@faster_body(attention_of_heads_definition, on_host, fresh=True)
def attention_of_heads(query, key, value, mask, dropped, p, scale, num_heads, bias=None):
    return where_they_lie(attend, query, key, value, mask, dropped, p, scale, num_heads, bias)


@attention_of_heads.joint_gradient("query", "key", "value", "bias")
def attention_of_heads_gradient(g, query, key, value, dropped, p, scale, num_heads, bias_shape, saved, needs):
    return backward_where_they_lie(attend_backward, g, query, key, value, dropped, p, scale, num_heads, bias_shape,
                                   saved, needs)


def where_they_lie(attend, query, key, value, mask, dropped, p, scale, num_heads, bias):
    """Let `attend` write the output of each head to its features of the output."""
    out = np.empty((*query.shape[:-1], value.shape[-1]), query.dtype)
    query, key, value = (split_heads(x, num_heads) for x in (query, key, value))
    _, saved = attend(query, key, value, mask, dropped, p, scale, bias, split_heads(out, num_heads))
    return out, saved


def backward_where_they_lie(attend_backward, g, query, key, value, dropped, p, scale, num_heads, bias_shape, saved,
                            needs):
    """Let `attend_backward` write the gradients of each head to its features of the gradients."""
    gradients = [np.empty(x.shape, g.dtype) if needed else None
                 for x, needed in zip((query, key, value), needs, strict=False)]
    places = [None if gradient is None else split_heads(gradient, num_heads) for gradient in gradients]
    g, query, key, value = (split_heads(x, num_heads) for x in (g, query, key, value))
    *_, grad_bias = attend_backward(g, query, key, value, dropped, p, scale, bias_shape, saved.weights, needs, places)
    return *gradients, grad_bias


def attend(query: Any, key: Any, value: Any, mask: Any, dropped: Any, p: float, scale: float, bias: Any,
           out: Any = None) -> tuple[Any, Saved]:
    """The forward on (…, T, d), (…, S, d), (…, S, v), into `out` (…, T, v) if it is given."""
    scaled = query * scale  # smaller than the scores

    def scores() -> Any:
        product = scaled @ key.mT
        if bias is not None:
            product += bias
        return product

    weights = scores()  # S; from here on, in place
    if weights.size:
        weights, total, _ = exponentials(weights, mask, scores)
        weights /= total
    if dropped is None:
        out = product(weights, value, out)
    else:
        out = product(weights * dropped, value, out)  # A' V, without the factor 1/(1 - p) of dropout
        out *= 1 / (1 - p)
    return out, Saved(weights=weights)


def attend_backward(g: Any, query: Any, key: Any, value: Any, dropped: Any, p: float, scale: float,
                    bias_shape: tuple[int, ...], weights: Any, needs: Any,
                    out: Sequence[Any] = (None, None, None)) -> tuple[Any, Any, Any, Any]:
    """The gradients of query, key, value and bias, None where not needed; the first three in `out` if it is given."""
    out_query, out_key, out_value = out
    kept = weights
    if dropped is not None:  # A' = A ∘ M / (1 - p): the factor, of all that follows, goes to dO, which is smaller
        kept, g = weights * dropped, g * (1 / (1 - p))
    grad_value = product(kept.mT, g, out_value) if needs.value else None
    if not (needs.query or needs.key or needs.bias):
        return None, None, grad_value, None
    grad_weights = g @ value.mT
    if dropped is not None:
        grad_weights *= dropped
    grad_weights -= row_dot(weights, grad_weights)
    grad_weights *= weights  # dS
    grad_query = product(grad_weights, key, out_query) if needs.query else None
    grad_key = product(grad_weights.mT, query, out_key) if needs.key else None
    for gradient in (grad_query, grad_key):
        if gradient is not None:
            gradient *= scale
    return grad_query, grad_key, grad_value, sum_to(grad_weights, bias_shape) if needs.bias else None


def product(x: Any, y: Any, out: Any) -> Any:
    """``x @ y``, into `out` if it is given."""
    return x @ y if out is None else np.matmul(x, y, out=out)
