"""Attention in place, and of several heads where they lie.

The heads lie side by side in the features of a token: (B, T, D) is read as (B, T, H, D/H). The products take each head
where it lies, a row being D features long of which D/H are its own, and write their results side by side again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minigrad.device.sums import sum_to
from minigrad.engine.node import Saved
from minigrad.engine.rules import Body
from minigrad.functional import attention as definitions
from minigrad.kernels.exponentials import exponentials
from minigrad.kernels.sums import row_dot

INPUTS = "query", "key", "value", "bias"


def split(x: Any, num_heads: int | None) -> Any:
    """Give each head an axis of its own; None: there is one."""
    return x if num_heads is None else definitions.split_heads(x, num_heads)


@definitions.attention_of_heads.faster("numpy")
def attention_of_heads(query, key, value, mask, dropped, p, scale, num_heads, bias=None):
    """The output, and the weights."""
    out = np.empty((*query.shape[:-1], value.shape[-1]), query.dtype)
    query, key, value, place = (split(x, num_heads) for x in (query, key, value, out))
    scaled = query * scale  # smaller than the scores

    def scores():
        product = scaled @ key.mT
        if bias is not None:
            product += bias
        return product

    weights, total = exponentials(scores, mask)
    weights /= total
    np.matmul(weights if dropped is None else weights * dropped, value, out=place)
    if dropped is not None:
        place *= 1 / (1 - p)  # A' V is smaller than A'
    return out, Saved(weights=weights)


@attention_of_heads.joint_gradient(*INPUTS)
def attention_gradient(g, query, key, value, dropped, p, scale, num_heads, bias_shape, saved, needs):
    """The gradients of query, key, value and bias; what is not needed is not filled."""
    out, grad_bias = [np.empty(x.shape, g.dtype) for x in (query, key, value)], None
    g, query, key, value, *places = (split(x, num_heads) for x in (g, query, key, value, *out))
    kept = weights = saved.weights
    if dropped is not None:  # A' = A ∘ M / (1 - p): the factor, of all that follows, goes to dO, which is smaller
        kept, g = weights * dropped, g * (1 / (1 - p))
    if needs.value:
        np.matmul(kept.mT, g, out=places[2])
    if needs.query or needs.key or needs.bias:
        grad_scores = g @ value.mT  # dA'; from here on, in place
        if dropped is not None:
            grad_scores *= dropped
        grad_scores -= row_dot(weights, grad_scores)
        grad_scores *= weights
        if needs.bias:
            grad_bias = sum_to(grad_scores, bias_shape).copy()
        grad_scores *= scale
        if needs.query:
            np.matmul(grad_scores, key, out=places[0])
        if needs.key:
            np.matmul(grad_scores.mT, query, out=places[1])
    return *out, grad_bias


def serve_one_head(module: str, body: Body, gradients: Callable[..., Any]) -> None:
    """Let a body of `attention_of_heads` be one of `attention`, too: its number of heads is None."""
    @definitions.attention.faster(module)
    def attention(*args):
        *given, bias = args
        return body.forward(*given, None, bias)

    @attention.joint_gradient(*INPUTS)
    def attention_gradient(g, query, key, value, dropped, p, scale, bias_shape, saved, needs):
        return gradients(g, query, key, value, dropped, p, scale, None, bias_shape, saved, needs)


serve_one_head("numpy", attention_of_heads, attention_gradient)
