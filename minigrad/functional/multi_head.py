"""Attention of several heads at once (Vaswani et al. 2017, section 3.2.2), between the projections in and out.

The heads lie side by side in the features of a token: (B, T, D) is read as (B, T, H, D/H), and each head attends by
itself. The fused form never moves them apart: the products take the heads where they lie, a row being D features long
of which D/H are theirs, and write their results side by side again.
"""

from __future__ import annotations

import math
from typing import Any

from minigrad.arguments import public, whole_number
from minigrad.device import xp
from minigrad.engine.primitive import primitive
from minigrad.functional.attention import (
    attend,
    attend_backward,
    attention_by_steps,
    check_mask,
    scaled_dot_product_attention,
)
from minigrad.functional.compositions import tap
from minigrad.functional.dropout import check_probability, dropout_mask


def split_heads(x: Any, num_heads: int) -> Any:
    """Give each head its share of the features: (B, T, D) → (B, H, T, D/H)."""
    batch, length, features = x.shape
    x = x.reshape((batch, length, num_heads, features // num_heads))  # (B, T, H, D/H)
    return x.swapaxes(1, 2)  # (B, H, T, D/H)


def join_heads(x: Any) -> Any:
    """The inverse of `split_heads`: (B, H, T, D/H) → (B, T, D)."""
    batch, heads, length, features = x.shape
    return x.swapaxes(1, 2).reshape((batch, length, heads * features))


def heads_by_steps(query: Any, key: Any, value: Any, mask: Any, dropped: Any, p: float, scale: float,
                   num_heads: int) -> Any:
    """attention_of_heads as a composition: split, attend, join."""
    return tap("concatenated", join_heads(attention_by_steps(*tapped_heads(query, key, value, num_heads), mask, dropped,
                                                             p, scale)))


def tapped_heads(query: Any, key: Any, value: Any, num_heads: int) -> tuple[Any, Any, Any]:
    """All three split into heads, and shown to who taps."""
    return (tap("queries", split_heads(query, num_heads)), tap("keys", split_heads(key, num_heads)),
            tap("values", split_heads(value, num_heads)))


@primitive(floating=True, composition=heads_by_steps, precision="float16")
def attention_of_heads(query, key, value, mask, dropped, p, scale, num_heads):
    """`attention` of each head, side by side: (B, T, D), (B, S, D) and (B, S, V) → (B, T, V)."""
    out = xp(query).empty((*query.shape[:-1], value.shape[-1]), query.dtype)
    query, key, value = (split_heads(x, num_heads) for x in (query, key, value))
    _, saved = attend(query, key, value, mask, dropped, p, scale, out=split_heads(out, num_heads))
    return out, saved


attention_of_heads.name = "attention"  # where time and memory are told by operations, it is one with the other form


@attention_of_heads.joint_gradient("query", "key", "value")
def attention_of_heads_gradient(g, query, key, value, dropped, p, scale, num_heads, saved, needs):
    # forward: split, attend, join          so here: split, the gradients of attention, join
    gradients = [xp(g).empty(x.shape, g.dtype) if needed else None
                 for x, needed in zip((query, key, value), needs, strict=True)]
    places = [None if gradient is None else split_heads(gradient, num_heads) for gradient in gradients]
    g, query, key, value = (split_heads(x, num_heads) for x in (g, query, key, value))
    attend_backward(g, query, key, value, dropped, p, scale, saved.weights, needs, places)
    return gradients


@public
def multi_head_attention(query: Any, key: Any, value: Any, num_heads: int, attn_mask: Any = None,
                         dropout_p: float = 0.0, *, dropped: Any = None, return_weights: bool = False) -> Any:
    """``Concat(head₁, …, head_H)`` with ``headᵢ = softmax(Qᵢ Kᵢᵀ / √(D/H)) Vᵢ``, of projected queries, keys and values.

    Args:
        query: (B, T, D); features i·D/H to (i + 1)·D/H are head i's.
        key: (B, S, D)
        value: (B, S, V)
        num_heads: H, a divisor of D and of V.
        attn_mask: boolean, True = may attend, broadcastable to (B, H, T, S).
        dropout_p, dropped: as for `scaled_dot_product_attention`; `dropped` broadcasts to (B, H, T, S).
        return_weights: also return the weights before dropout, (B, H, T, S); gradients flow through them too.

    Returns:
        (B, T, V), or that and the weights.

    Raises:
        TypeError: a mask that is not boolean.
        ValueError: shapes that do not fit, a probability outside [0, 1).
    """
    num_heads = whole_number(num_heads, "num_heads", "multi_head_attention", least=1)
    shapes = [tuple(x.shape) for x in (query, key, value)]
    query_fits = [len(shape) for shape in shapes] == [3, 3, 3] and shapes[0][::2] == shapes[1][::2]
    if not query_fits or shapes[1][:2] != shapes[2][:2] or query.shape[-1] % num_heads or value.shape[-1] % num_heads:
        raise ValueError("multi_head_attention: query (B, T, D), key (B, S, D) and value (B, S, V) expected, D and V "
                         f"multiples of the {num_heads} heads, got {', '.join(map(str, shapes))}")
    check_probability(dropout_p, "multi_head_attention")
    if return_weights:
        heads = tapped_heads(query, key, value, num_heads)
        context, weights = scaled_dot_product_attention(*heads, attn_mask, dropout_p, dropped=dropped,
                                                        return_weights=True)
        return tap("concatenated", join_heads(context)), weights
    batch, length, features = query.shape
    shape = (batch, num_heads, length, key.shape[-2])
    mask = check_mask(attn_mask, query, shape, "multi_head_attention")
    if dropped is not None:
        dropped = check_mask(dropped, query, shape, "multi_head_attention (dropped)")
    elif dropout_p > 0:
        dropped = dropout_mask(shape, dropout_p, query.device)
    scale = 1 / math.sqrt(max(1, features // num_heads))  # without features all scores are 0
    return attention_of_heads(query, key, value, mask, dropped, dropout_p, scale, num_heads)
