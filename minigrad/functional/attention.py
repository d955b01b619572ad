"""Scaled dot-product attention (Vaswani et al. 2017, arXiv:1706.03762, equation 1).

One convention for masks: boolean, **True = may attend**, broadcastable to (batch, heads, queries, keys). A query that
may attend to nothing has zero weights, zero output and zero gradient.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from minigrad import ops
from minigrad.arguments import public
from minigrad.device import device_of, is_array, on_device_of, to_device, xp
from minigrad.engine.node import TensorBase
from minigrad.engine.primitive import Saved, primitive
from minigrad.functional.compositions import note, tap
from minigrad.functional.dropout import check_probability, dropout_mask, dropout_with_mask
from minigrad.functional.grouped_query import fold, fold_mask, group_size, unfold
from minigrad.functional.softmax import exponentials, softmax
from minigrad.functional.sums import row_dot
from minigrad.precision.half import as_narrow, product, widened


def attention_weights(query: Any, key: Any, mask: Any, scale: float) -> Any:
    """``softmax(Q Kᵀ · scale)`` under the mask, in small steps: (…, queries, keys)."""
    scores = tap("scores", ops.matmul(query, key.mT))  # (B, H, T, D/H) @ (B, H, D/H, S) -> (B, H, T, S)
    scaled = tap("scaled", scores * scale)
    if mask is None:
        return tap("weights", softmax(scaled, axis=-1))
    note("mask", mask)
    return tap("weights", softmax(tap("masked", ops.where(mask, scaled, -math.inf)), axis=-1))


def attention_by_steps(query: Any, key: Any, value: Any, mask: Any, dropped: Any, p: float, scale: float) -> Any:
    """attention as a composition of small operations."""
    weights = attention_weights(query, key, mask, scale)
    return tap("context", ops.matmul(drop(weights, dropped, p), value))


def drop(weights: Any, dropped: Any, p: float) -> Any:
    """The weights after dropout with the mask `dropped`, True = kept (None: unchanged)."""
    if dropped is None:
        return weights
    note("dropped", dropped)
    return tap("dropped_weights", dropout_with_mask(weights, dropped, p))


@primitive(floating=True, composition=attention_by_steps, precision="float16")
def attention(query, key, value, mask, dropped, p, scale):
    """``A V`` with ``A = softmax(Q Kᵀ · scale)``; keeps the weights A for the backward pass."""
    return attend(query, key, value, mask, dropped, p, scale)


def attend(query: Any, key: Any, value: Any, mask: Any, dropped: Any, p: float, scale: float,
           out: Any = None) -> tuple[Any, Saved]:
    """The forward on arrays (…, T, d), (…, S, d), (…, S, v), into `out` (…, T, v) if it is given."""
    scaled = query * scale
    weights = widened(product(scaled, key.mT))  # S = scale · Q Kᵀ, as softmax wants it; from here on, in place
    if weights.size:
        weights, total, _ = exponentials(weights, mask, lambda: widened(product(scaled, key.mT)))
        weights /= total
    weights = as_narrow(weights, query)
    if dropped is None:
        out = product(weights, value, out)
    else:
        out = product(weights * dropped, value, out)  # A' V, without the factor 1/(1 - p) of dropout
        out *= 1 / (1 - p)
    return out, Saved(weights=weights)


@attention.joint_gradient("query", "key", "value")
def attention_gradient(g, query, key, value, dropped, p, scale, saved, needs):
    return attend_backward(g, query, key, value, dropped, p, scale, saved.weights, needs)


def attend_backward(g: Any, query: Any, key: Any, value: Any, dropped: Any, p: float, scale: float, weights: Any,
                    needs: Any, out: Sequence[Any] = (None, None, None)) -> tuple[Any, Any, Any]:
    """The gradients of query, key and value, None where not needed, written into the arrays of `out` if given."""
    # Capital letters as in the paper: A the weights, A' the weights after dropout, S the scaled scores.
    out_query, out_key, out_value = out
    kept = weights
    if dropped is not None:  # A' = A ∘ M / (1 - p): the factor, of all that follows, goes to dO, which is smaller
        kept, g = weights * dropped, g * (1 / (1 - p))
    # forward: O = A' V                     so here: dV = A'ᵀ dO,  dA' = dO Vᵀ      (…, S, v) and (…, T, S)
    grad_value = product(kept.mT, g, out_value) if needs.value else None
    if not (needs.query or needs.key):
        return None, None, grad_value
    grad_weights = product(g, value.mT)
    # forward: A' = A ∘ M / (1 - p)         so here: dA = dA' ∘ M / (1 - p), whose factor is in dO
    if dropped is not None:
        grad_weights *= dropped
    # forward: A = softmax(S), row by row   so here: dS = A ∘ (dA - Σⱼ A dA); 0 wherever A is: in masked cells too
    grad_weights -= row_dot(weights, grad_weights)
    grad_weights *= weights
    # forward: S = scale · Q Kᵀ             so here: dQ = scale · dS K,  dK = scale · dSᵀ Q      (…, T, d) and (…, S, d)
    grad_query = product(grad_weights, key, out_query) if needs.query else None
    grad_key = product(grad_weights.mT, query, out_key) if needs.key else None
    for gradient in (grad_query, grad_key):
        if gradient is not None:
            gradient *= scale
    return grad_query, grad_key, grad_value


def check_mask(mask: Any, query: Any, shape: tuple[int, ...], operation: str) -> Any:
    """The mask where the query is, having checked that it is boolean and broadcasts to `shape`; None stays None."""
    if mask is None:
        return None
    raw = mask._data if isinstance(mask, TensorBase) else mask
    if not is_array(raw) or raw.dtype.kind != "b":
        raise TypeError(f"{operation}: the mask must be a boolean array or tensor, True where a query may attend to a "
                        f"key; got {getattr(raw, 'dtype', type(raw).__name__)}")
    fits = len(raw.shape) <= len(shape) and all(
        m in (1, n) for m, n in zip(raw.shape[::-1], shape[::-1], strict=False))
    if not fits:
        raise ValueError(f"{operation}: the mask has shape {tuple(raw.shape)}, which does not broadcast to "
                         f"(…, queries, keys) = {tuple(shape)}")
    device = device_of(query._data if isinstance(query, TensorBase) else query)
    if not isinstance(mask, TensorBase):
        return to_device(mask, device)
    if device_of(raw) != device:
        raise ValueError(f"{operation}: operands on {device} and {device_of(raw)}; move one with .to(device)")
    return mask


@public
def scaled_dot_product_attention(query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0,
                                 is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False, *,
                                 dropped: Any = None, return_weights: bool = False) -> Any:
    """``softmax(Q Kᵀ / √d) V``.

    Args:
        query: (…, T, d)
        key: (…, S, d)
        value: (…, S, d_v)
        attn_mask: boolean, True = may attend, broadcastable to (…, T, S); a NumPy array is sent to where the query is.
        dropout_p: probability of zeroing a weight; applied whenever it is not 0, as in PyTorch.
        is_causal: query t may attend to keys 0 … t only (joined with `attn_mask` by ``&``).
        scale: in place of ``1/√d``.
        enable_gqa: query (…, H, T, d) may have more heads than key and value, (…, H/G, S, ·); each G in a row share one
            (`minigrad.functional.grouped_query`).
        dropped: a boolean array (…, T, S), True = kept, in place of a dropout mask drawn here (to freeze it).
        return_weights: also return the weights before dropout, (…, T, S); gradients flow through them too.

    Returns:
        (…, T, d_v), or that and the weights.

    Raises:
        TypeError: a mask that is not boolean.
        ValueError: shapes that do not fit, a probability outside [0, 1).
    """
    ranks_fit = query.ndim >= 2 and key.ndim >= 2 and value.ndim >= 2
    if not ranks_fit or query.shape[-1] != key.shape[-1] or key.shape[-2] != value.shape[-2]:
        raise ValueError("scaled_dot_product_attention: query (…, T, d), key (…, S, d) and value (…, S, d_v) expected, "
                         f"got {tuple(query.shape)}, {tuple(key.shape)} and {tuple(value.shape)}")
    check_probability(dropout_p, "scaled_dot_product_attention")
    group = group_size(query, key, value) if enable_gqa else 1
    shape = (*common_lead(query, key, value, group), query.shape[-2], key.shape[-2])
    mask = check_mask(attn_mask, query, shape, "scaled_dot_product_attention")
    if is_causal:
        raw = query._data if isinstance(query, TensorBase) else query
        with on_device_of(raw):
            namespace = xp(raw)
            causal = namespace.tril(namespace.ones(shape[-2:], dtype=bool))
            mask = causal if mask is None else mask & causal
    if dropped is None and dropout_p > 0:
        dropped = dropout_mask(shape, dropout_p, query.device)
    elif dropped is not None:
        dropped = check_mask(dropped, query, shape, "scaled_dot_product_attention (dropped)")
    scale = 1 / math.sqrt(max(1, query.shape[-1])) if scale is None else scale  # without features all scores are 0
    if group > 1:
        mask, dropped = (fold_mask(m, group, query.shape[-2]) for m in (mask, dropped))
        query = fold(query, group)
    if return_weights:
        weights = attention_weights(query, key, mask, scale)
        out = tap("context", ops.matmul(drop(weights, dropped, dropout_p), value))
        return (out, weights) if group == 1 else (unfold(out, group), unfold(weights, group))
    same_lead = query.shape[:-2] == key.shape[:-2] == value.shape[:-2]
    form = attention if same_lead else attention_by_steps  # the fused twin has no broadcasting of its own
    out = form(query, key, value, mask, dropped, dropout_p, scale)
    return out if group == 1 else unfold(out, group)


def common_lead(query: Any, key: Any, value: Any, group: int) -> tuple[int, ...]:
    """What the leading axes broadcast to, with each head of keys and values standing for `group` heads of queries."""
    shared = [x.shape[:-2] if group == 1 else (*x.shape[:-3], x.shape[-3] * group) for x in (key, value)]
    try:
        return np.broadcast_shapes(query.shape[:-2], *shared)
    except ValueError:
        raise ValueError("scaled_dot_product_attention: the leading axes of query, key and value must broadcast, got "
                         f"{tuple(query.shape)}, {tuple(key.shape)} and {tuple(value.shape)}; with enable_gqa=True, "
                         "several heads of queries share a head of keys and values") from None
