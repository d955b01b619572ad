"""Grouped-query attention (Ainslie et al. 2023, arXiv:2305.13245): several heads of queries share a head of keys.

Head h of H heads of queries attends to head ``h // G`` of the keys, as if each of these stood G times in a row. Nothing
is repeated: a key does not depend on which head a query is from, so G heads of T queries are G·T queries of one head,
and attention to them is ordinary. The gradients of keys and values sum over the group.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minigrad import ops
from minigrad.device import on_device_of
from minigrad.engine.node import TensorBase
from minigrad.functional.compositions import note


def of_groups(attend: Callable[..., Any], group: int) -> Callable[..., Any]:
    """The attention of G heads of queries to each head of keys, by `attend`, the operation for as many of both."""
    def attend_to_shared(query: Any, key: Any, value: Any, mask: Any, dropped: Any, p: float, scale: float,
                         bias: Any) -> Any:
        mask, dropped, bias = (fold_mask(m, group, query.shape[-2]) for m in (mask, dropped, bias))
        out = attend(fold(query, group), key, value, mask, dropped, p, scale, bias)
        return tuple(unfold(x, group) for x in out) if isinstance(out, tuple) else unfold(out, group)

    return attend_to_shared


def fold(queries: Any, group: int) -> Any:
    """The G heads of queries that share a head of keys and values, as G·T queries of one head."""
    *lead, heads, length, width = queries.shape
    return queries.reshape((*lead, heads // group, group * length, width))  # (…, H, T, n) -> (…, H/G, G·T, n)


def unfold(queries: Any, group: int) -> Any:
    """What `fold` did, undone."""
    note(group=group)
    *lead, shared, length, width = queries.shape
    return queries.reshape((*lead, shared * group, length // group, width))  # (…, H/G, G·T, n) -> (…, H, T, n)


def fold_mask(mask: Any, group: int, length: int) -> Any:
    """A mask that broadcasts to (…, H, T, S) as one that broadcasts to (…, H/G, G·T, S), for queries of `length` T."""
    if mask is None or mask.ndim < 2:
        return mask
    lead, heads = (mask.shape[:-3], mask.shape[-3]) if mask.ndim > 2 else ((), 1)
    rows, keys = mask.shape[-2:]
    if heads == rows == 1:
        return mask  # it looks at the keys alone
    with on_device_of(mask._data if isinstance(mask, TensorBase) else mask):
        split = (heads // group, group, rows, keys) if heads > 1 else (1, 1, rows, keys)
        full = (*lead, split[0], group, length, keys)
        whole = ops.broadcast_to(ops.reshape(mask, (*lead, *split)), full)
        return whole.reshape((*lead, split[0], group * length, keys))  # (…, H/G, G, T, S) -> (…, H/G, G·T, S)


def group_size(query: Any, key: Any, value: Any) -> int:
    """G, the heads of queries (…, H, T, d) to each head of keys and values (…, H/G, S, d).

    Raises ValueError unless the keys have as many heads as the values, and the queries a multiple of that.
    """
    shapes = f"got {tuple(query.shape)}, {tuple(key.shape)} and {tuple(value.shape)}"
    if min(query.ndim, key.ndim, value.ndim) < 3:
        raise ValueError("scaled_dot_product_attention: enable_gqa needs an axis of heads, query (…, H, T, d) and key "
                         f"and value (…, H/G, S, d), {shapes}")
    heads, shared = query.shape[-3], key.shape[-3]
    if value.shape[-3] != shared:
        raise ValueError(f"scaled_dot_product_attention: key has {shared} heads and value {value.shape[-3]}; they need "
                         f"as many, {shapes}")
    if not shared or heads % shared:
        raise ValueError(f"scaled_dot_product_attention: the {heads} heads of the query cannot share the {shared} "
                         f"heads of key and value; enable_gqa needs a multiple, {shapes}")
    return int(heads // shared)
