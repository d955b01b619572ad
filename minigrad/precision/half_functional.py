"""Bodies of `minigrad.functional` for float16 arrays, in host memory and on a GPU.

Sums are taken in float32 and rounded once, matrix products of the host go through float32 and its BLAS, and a softmax
is computed in float32 between two float16 products.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minigrad.device import xp
from minigrad.device.sums import sum_over
from minigrad.engine.node import Saved
from minigrad.functional.attention import attention, attention_of_heads, join_heads, split_heads
from minigrad.functional.linear import check_shapes as check_shapes_of_linear
from minigrad.functional.linear import linear
from minigrad.functional.more.rms_norm import _rms_norm
from minigrad.functional.normalization import check_shapes, layer_norm
from minigrad.functional.softmax import log_softmax, maximum, softmax
from minigrad.kernels.bodies import add_body
from minigrad.kernels.host.softmax import exponentials, shifted_exponentials
from minigrad.ops.shape import rows
from minigrad.precision.half import HALF, SINGLE, is_half_anywhere, product, takes_halves

# --------------------------------------------------------------------------- softmax


def softmax_forward(x, axis=-1):
    if not (x.size and x.ndim):
        return softmax.forward(x, axis)
    wide = x.astype(SINGLE)
    if type(wide) is not np.ndarray:
        out = xp(x).exp(wide - maximum(wide, axis))
        sums = out.sum(axis=axis, keepdims=True)
        sums += sums == 0
    elif axis in (-1, x.ndim - 1):
        out, sums, _ = exponentials(wide, None, lambda: x.astype(SINGLE), least=1e-2)
    else:
        out, sums, _ = shifted_exponentials(wide, axis)
    out /= sums
    return out.astype(HALF)


def log_softmax_forward(x, axis=-1):
    return log_softmax.forward(x.astype(SINGLE), axis).astype(HALF)


# --------------------------------------------------------------------------- linear


def suits_linear(input, weight, bias):
    """It takes float16 arrays."""
    return is_half_anywhere(input) and is_half_anywhere(weight)


def linear_forward(input, weight, bias=None):
    check_shapes_of_linear(input, weight, bias)
    out = product(rows(input), weight.mT)
    if bias is not None:
        out += bias
    return out.reshape(*input.shape[:-1], weight.shape[0])


LINEAR_RULES: dict[str, Any] = {
    "input": lambda g, weight: product(rows(g), weight).reshape((*g.shape[:-1], weight.shape[1])),
    "weight": lambda g, input: product(rows(g).mT, rows(input)),
    "bias": lambda g: sum_over(rows(g), 0),
}


# --------------------------------------------------------------------------- attention


def attention_forward(query, key, value, mask, dropped, p, scale):
    weights = weights_of(query * scale, key, mask)
    if dropped is None:
        return product(weights, value), Saved(weights=weights)
    out = product(weights * dropped, value)  # A' V, without the factor 1/(1 - p) of dropout
    out *= 1 / (1 - p)
    return out, Saved(weights=weights)


def weights_of(scaled: Any, key: Any, mask: Any) -> Any:
    """The softmax, computed in float32, of the float16 scores ``Q Kᵀ``, the queries being scaled already."""
    wide = product(scaled, key.mT).astype(SINGLE)
    if type(wide) is not np.ndarray:
        scores = wide if mask is None else xp(wide).where(mask, wide, wide.dtype.type(-math.inf))
        return softmax.forward(scores, -1).astype(HALF)
    if wide.size:
        wide, sums, _ = exponentials(wide, mask, lambda: product(scaled, key.mT).astype(SINGLE))
        wide /= sums
    return wide.astype(HALF)


def attention_gradient(g, query, key, value, dropped, p, scale, saved):
    # The steps are those of the definition; the factor of dropout, of all that follows, goes to dO, which is smaller.
    weights = kept = saved.weights
    if dropped is not None:
        kept, g = weights * dropped, g * (1 / (1 - p))
    grad_value = product(kept.mT, g)
    grad_scores = product(g, value.mT)
    if dropped is not None:
        grad_scores *= dropped
    grad_scores -= row_dot(weights, grad_scores)
    grad_scores *= weights
    grad_query, grad_key = product(grad_scores, key), product(grad_scores.mT, query)
    grad_query *= scale
    grad_key *= scale
    return grad_query, grad_key, grad_value


def row_dot(x: Any, y: Any) -> Any:
    """``Σ_d x[…, d] y[…, d]`` in float32, with the last axis kept: (…, 1)."""
    return xp(x).einsum("...d,...d->...", x, y, dtype=np.float32)[..., None]


def heads_forward(query, key, value, mask, dropped, p, scale, num_heads):
    query, key, value = (split_heads(x, num_heads) for x in (query, key, value))
    out, saved = attention_forward(query, key, value, mask, dropped, p, scale)
    return join_heads(out), saved


def heads_gradient(g, query, key, value, dropped, p, scale, num_heads, saved):
    g, query, key, value = (split_heads(x, num_heads) for x in (g, query, key, value))
    return [join_heads(x) for x in attention_gradient(g, query, key, value, dropped, p, scale, saved)]


# --------------------------------------------------------------------------- normalization


def layer_norm_forward(input, weight=None, bias=None, eps=1e-5):
    check_shapes("layer_norm", input, weight, bias)
    mean = input.mean(axis=-1, keepdims=True)
    out = input - mean
    rstd = 1 / xp(input).sqrt(row_dot(out, out) / input.shape[-1] + eps)  # float32
    out *= rstd  # x̂
    if weight is not None:
        out *= weight
    if bias is not None:
        out += bias
    return out, Saved(mean=mean, rstd=rstd)


def layer_norm_gradient(g, input, weight, saved):
    normalized = input - saved.mean
    normalized *= saved.rstd
    along = g * normalized
    grad_bias, grad_weight = sum_over(rows(g), 0), sum_over(rows(along), 0)
    grad_input = g.copy() if weight is None else g * weight
    grad_input -= grad_input.mean(axis=-1, keepdims=True)
    normalized *= (along if weight is None else along * weight).mean(axis=-1, keepdims=True)
    grad_input -= normalized
    grad_input *= saved.rstd
    return grad_input, grad_weight, grad_bias


def rms_norm_forward(input, weight, eps):
    check_shapes("rms_norm", input, weight)
    scale = 1 / xp(input).sqrt(row_dot(input, input) / input.shape[-1] + eps)  # float32
    out = (input * scale).astype(HALF)  # x̂
    if weight is not None:
        out *= weight
    return out, Saved(scale=scale)


def rms_norm_gradient(g, input, weight, saved):
    normalized = input * saved.scale
    grad_weight = sum_over(rows(g * normalized), 0)
    grad_normalized = g if weight is None else g * weight
    normalized *= row_dot(grad_normalized, normalized) / input.shape[-1]
    grad_input = grad_normalized - normalized
    grad_input *= saved.scale
    return grad_input, grad_weight


def install() -> None:
    """Register the bodies."""
    add_body(softmax, takes_halves, softmax_forward, "precise")
    add_body(log_softmax, takes_halves, log_softmax_forward, "precise")
    add_body(linear, suits_linear, linear_forward, "precise", **LINEAR_RULES)
    joint: tuple[Any, ...] = (
        (attention, attention_forward, attention_gradient),
        (attention_of_heads, heads_forward, heads_gradient),
        (layer_norm, layer_norm_forward, layer_norm_gradient),
        (_rms_norm, rms_norm_forward, rms_norm_gradient),
    )
    for primitive, forward, rule in joint:
        add_body(primitive, takes_halves, forward, "precise").joint_gradient(*primitive.inputs)(rule)
