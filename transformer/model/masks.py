"""Who may attend to whom (Vaswani et al. 2017, section 3.2.3).

A mask is boolean, **True = may attend**, and broadcastable to (batch, heads, queries, keys); join masks with ``&``.
None stands for a mask that is True everywhere. Ids are a raw array, a Tensor or nested lists; their masks are raw
arrays on their device.
"""

from __future__ import annotations

from typing import Any

from minigrad import Tensor
from minigrad.device import device_of, is_array, is_host, module_for, on_device, on_device_of


def padding_mask(ids: Any, pad_id: int = 0) -> Any:
    """Every query may attend to the real tokens: ids (B, S) → (B, 1, 1, S), True where not `pad_id`."""
    ids = ids if is_array(ids) else Tensor(ids).data
    if ids.ndim != 2:
        raise ValueError(f"padding_mask: ids of shape (batch, length) expected, got {tuple(ids.shape)}")
    with on_device_of(ids):
        return (ids != pad_id)[:, None, None, :]


def causal_mask(queries: int, keys: int | None = None, device: str = "cpu") -> Any:
    """No token may attend to a later one: (queries, keys) on `device`, True on and below the diagonal.

    With more keys than queries, the queries are the last ones: they follow ``keys - queries`` earlier tokens.
    """
    keys = queries if keys is None else keys
    if keys < queries:
        raise ValueError(f"causal_mask: {queries} queries cannot be the last of {keys} keys")
    with on_device(device):
        return module_for(device).tri(queries, keys, keys - queries, dtype=bool)


def source_mask(ids: Any, pad_id: int = 0) -> Any:
    """The `padding_mask` of ids (B, S); None if they are a raw array in host memory and hold no padding.

    Ids on a GPU are not read back to look for padding: there the mask is never None.
    """
    return None if is_host(ids) and (ids != pad_id).all() else padding_mask(ids, pad_id)


def target_mask(ids: Any, pad_id: int = 0, past: int = 0) -> Any:
    """The `causal_mask` of ids (B, T), joined with their `source_mask`: a row for each after the first `past`.

    None for a single such token without padding.
    """
    real, queries = source_mask(ids, pad_id), ids.shape[1] - past
    causal = causal_mask(queries, ids.shape[1], device_of(ids)) if queries > 1 else None
    if causal is None or real is None:
        return real if causal is None else causal
    with on_device_of(ids):
        return causal & real  # (T, T) & (B, 1, 1, T) -> (B, 1, T, T)
