"""Attention in place, and of several heads where they lie.

The heads lie side by side in the features of a token: (B, T, D) is read as (B, T, H, D/H). The products take each head
where it lies, a row being D features long of which D/H are its own, and write their results side by side again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from minigrad.device.sums import sum_to
from minigrad.engine.node import Saved
from minigrad.functional import attention as definitions
from minigrad.kernels.exponentials import exponentials
from minigrad.kernels.sums import row_dot


def register(module: str, forward: Callable[..., Any], gradients: Callable[..., Any], alone: Any) -> None:
    """Let `forward` and `gradients` be bodies of both forms of attention, for the arrays of this module.

    Their last argument gives the heads of an array an axis of their own: `split_heads`, or of one head `alone`.
    """
    inputs, split = ("query", "key", "value", "bias"), definitions.split_heads

    @definitions.attention.faster(module)
    def attention(query, key, value, mask, dropped, p, scale, bias=None):
        return forward(query, key, value, mask, dropped, p, scale, bias, alone)

    @attention.joint_gradient(*inputs)
    def of_one(g, query, key, value, dropped, p, scale, bias_shape, saved, needs):
        return gradients(g, query, key, value, dropped, p, scale, bias_shape, saved, needs, alone)

    @definitions.attention_of_heads.faster(module)
    def of_heads(query, key, value, mask, dropped, p, scale, num_heads, bias=None):
        return forward(query, key, value, mask, dropped, p, scale, bias, partial(split, num_heads=num_heads))

    @of_heads.joint_gradient(*inputs)
    def of_several(g, query, key, value, dropped, p, scale, num_heads, bias_shape, saved, needs):
        heads = partial(split, num_heads=num_heads)
        return gradients(g, query, key, value, dropped, p, scale, bias_shape, saved, needs, heads)


def attention(query, key, value, mask, dropped, p, scale, bias, heads):
    """The output, and the weights."""
    out = np.empty((*query.shape[:-1], value.shape[-1]), query.dtype)
    query, key, value, place = map(heads, (query, key, value, out))
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


def attention_gradient(g, query, key, value, dropped, p, scale, bias_shape, saved, needs, heads):
    """The gradients of query, key, value and bias; what is not needed is not filled."""
    out, grad_bias = [np.empty(x.shape, g.dtype) for x in (query, key, value)], None
    g, query, key, value, *places = map(heads, (g, query, key, value, *out))
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


register("numpy", attention, attention_gradient, lambda x: x)
