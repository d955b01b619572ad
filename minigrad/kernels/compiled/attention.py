"""Attention: all that happens to a row of scores, in one pass between the matrix products, which stay NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.engine.node import Saved
from minigrad.functional.attention import attention as attention_in_numpy
from minigrad.functional.attention import attention_of_heads as attention_of_heads_in_numpy
from minigrad.kernels.compiled.kernel import HeadBooleans, Heads, Number, OutHeads, helper, kernel
from minigrad.kernels.compiled.math import exp, greatest, minus
from minigrad.kernels.compiled.operands import are_floating, compiled_body, dense
from minigrad.kernels.host.attention import backward_where_they_lie, where_they_lie

AT_ONCE = 4096  # scores: a block of rows that stays in the nearest cache


@helper
def exponentials(flat):
    """``eˣ`` of a whole block: short rows would each leave a remainder that does not fill a vector register."""
    for i in range(flat.size):
        flat[i] = exp(flat[i])


@kernel
def weights_of_scores(scores: OutHeads, scale: Number, mask: HeadBooleans, dropped: HeadBooleans, factor: Number,
                      kept: OutHeads):
    # S = scale · Q Kᵀ, -inf where masked; A = softmax(S), in place of the scores; A' = A ∘ dropped · factor
    zero, none = scale - scale, np.float32(-np.inf)
    batch, heads, queries, keys = scores.shape
    step = max(1, AT_ONCE // keys)
    for b in range(batch):
        for h in range(heads):
            masks = mask[b % mask.shape[0], h % mask.shape[1]]
            for start in range(0, queries, step):
                block = scores[b, h, start:start + step]
                for i in range(block.shape[0]):
                    row, allowed = block[i], masks[(start + i) % masks.shape[0]]
                    for j in range(keys):
                        row[j] = row[j] * scale if allowed[j] else none
                    top = greatest(row)
                    if top != none:
                        for j in range(keys):
                            row[j] = minus(row[j], top)
                exponentials(block.reshape(-1))
                for i in range(block.shape[0]):
                    row, total = block[i], zero
                    for j in range(keys):
                        total += row[j]
                    inverse = zero if total == 0 else 1 / total
                    for j in range(keys):
                        row[j] *= inverse
                    if dropped.size:
                        keep, result = dropped[b, h, start + i], kept[b, h, start + i]
                        for j in range(keys):
                            result[j] = row[j] * (factor if keep[j] else zero)


@kernel
def gradient_of_scores(weights: Heads, scale: Number, dropped: HeadBooleans, factor: Number, grad: OutHeads,
                       kept: OutHeads):
    # forward: A' = A ∘ dropped · factor       so here: dA = dA' ∘ dropped · factor, and A' once more, for dV
    # forward: A = softmax(S), row by row      so here: dS = A ∘ (dA - Σⱼ A dA)
    # forward: S = scale · Q Kᵀ                so here: scale · dS, in place of dA'
    zero = scale - scale
    batch, heads, queries, keys = weights.shape
    for b in range(batch):
        for h in range(heads):
            for i in range(queries):
                row, slope = weights[b, h, i], grad[b, h, i]
                if dropped.size:
                    keep, result = dropped[b, h, i], kept[b, h, i]
                    for j in range(keys):
                        scaled = factor if keep[j] else zero
                        slope[j] *= scaled
                        result[j] = row[j] * scaled
                total = zero
                for j in range(keys):
                    total += row[j] * slope[j]
                for j in range(keys):
                    slope[j] = scale * (row[j] * (slope[j] - total))


NOTHING = np.zeros((0, 0, 0, 0), bool)  # in place of a dropout mask


def four_axes(mask: Any, keys: int) -> Any:
    """A boolean array whose last axis is as long as the keys, and whose others, 1 or of full length, are three."""
    if mask is None:
        return np.ones((1, 1, 1, keys), bool)
    mask = np.broadcast_to(mask, (*mask.shape[:-1], keys))
    return dense(mask.reshape((1,) * (4 - mask.ndim) + mask.shape))


def attend(query: Any, key: Any, value: Any, mask: Any, dropped: Any, p: float, scale: float, out: Any = None) -> Any:
    """The forward on (B, H, T, d), (B, H, S, d) and (B, H, S, v)."""
    weights = dense(query @ key.mT)
    kept = weights if dropped is None else np.empty_like(weights)
    drop = NOTHING if dropped is None else dense(np.broadcast_to(dropped, weights.shape))
    weights_of_scores(weights, scale, four_axes(mask, weights.shape[-1]), drop, 1 / (1 - p), kept)
    return np.matmul(kept, value, out=out), Saved(weights=weights)


def attend_backward(g: Any, query: Any, key: Any, value: Any, dropped: Any, p: float, scale: float, weights: Any,
                    needs: Any, out: Any = (None, None, None)) -> Any:
    """The gradients of query, key and value, into the arrays of `out` if they are given."""
    slopes = dense(g @ value.mT)  # dA'; the kernel makes it scale · dS
    kept = weights if dropped is None else np.empty_like(weights)
    drop = NOTHING if dropped is None else dense(np.broadcast_to(dropped, weights.shape))
    gradient_of_scores(weights, scale, drop, 1 / (1 - p), slopes, kept)
    return (np.matmul(slopes, key, out=out[0]) if needs.query else None,
            np.matmul(slopes.mT, query, out=out[1]) if needs.key else None,
            np.matmul(kept.mT, g, out=out[2]) if needs.value else None)


def suits(query: Any, key: Any, value: Any, mask: Any, dropped: Any, *numbers: float) -> bool:
    """It takes float32 and float64 arrays in host memory, not empty, and boolean masks of at most four axes."""
    boolean = all(m is None or (type(m) is np.ndarray and m.dtype.kind == "b" and 0 < m.ndim <= 4)
                  for m in (mask, dropped))
    return are_floating(query, key, value) and boolean


def suits_split(query: Any, key: Any, value: Any, mask: Any, dropped: Any, p: float, scale: float) -> bool:
    """It takes float32 and float64 arrays of four axes in host memory, not empty, and boolean masks."""
    return query.ndim == 4 and suits(query, key, value, mask, dropped, p, scale)


@compiled_body(attention_in_numpy, suits_split)
def attention(query, key, value, mask, dropped, p, scale):
    return attend(query, key, value, mask, dropped, p, scale)


@attention.joint_gradient("query", "key", "value")
def attention_gradient(g, query, key, value, dropped, p, scale, saved, needs):
    return attend_backward(g, query, key, value, dropped, p, scale, saved.weights, needs)


@compiled_body(attention_of_heads_in_numpy, suits)
def attention_of_heads(query, key, value, mask, dropped, p, scale, num_heads):
    return where_they_lie(attend, query, key, value, mask, dropped, p, scale, num_heads)


@attention_of_heads.joint_gradient("query", "key", "value")
def attention_of_heads_gradient(g, query, key, value, dropped, p, scale, num_heads, saved, needs):
    return backward_where_they_lie(attend_backward, g, query, key, value, dropped, p, scale, num_heads, saved, needs)
