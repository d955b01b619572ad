"""Who may attend to whom.

A mask is boolean, **True = may attend**, and broadcastable to (batch, heads, queries, keys); join masks with ``&``.
"""

from __future__ import annotations

from typing import Any

from minigrad.device import is_host, module_for, on_device, on_device_of


def padding_mask(ids: Any, pad_id: int = 0) -> Any:
    """Every query may attend to the real tokens: ids (B, S), a raw array → (B, 1, 1, S), True where not `pad_id`."""
    if ids.ndim != 2:
        raise ValueError(f"padding_mask: ids of shape (batch, length) expected, got {tuple(ids.shape)}")
    with on_device_of(ids):
        return (ids != pad_id)[:, None, None, :]


def causal_mask(queries: int, keys: int | None = None, device: str = "cpu") -> Any:
    """No token may attend to a later one: (queries, keys) on `device`, True on and below the diagonal.

    With more keys than queries, the queries are the last ones: they follow ``keys - queries`` cached tokens.
    """
    keys = queries if keys is None else keys
    if keys < queries:
        raise ValueError(f"causal_mask: {queries} queries cannot be the last of {keys} keys")
    with on_device(device):
        return module_for(device).tri(queries, keys, keys - queries, dtype=bool)


def join(*masks: Any) -> Any:
    """All masks joined with ``&``; None allows everything, and is what no mask at all gives."""
    given = [mask for mask in masks if mask is not None]
    joined = given[0] if given else None
    for mask in given[1:]:
        with on_device_of(joined):
            joined = joined & mask
    return joined


def is_all_real(ids: Any, pad_id: int = 0) -> bool:
    """Whether host ids hold no padding, so that no padding mask is needed. Ids on a GPU are not read back: False."""
    return is_host(ids) and bool((ids != pad_id).all())
