"""Nested tuples, lists and dictionaries of tensors: what the transforms of functions take and return."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


def tree_map(function: Callable[[Any], Any], tree: Any) -> Any:
    """`tree`, nested tuples, lists and dictionaries, with `function` applied to its leaves."""
    if isinstance(tree, dict):
        return {key: tree_map(function, value) for key, value in tree.items()}
    if isinstance(tree, (tuple, list)):
        values = [tree_map(function, value) for value in tree]
        return type(tree)(*values) if hasattr(tree, "_fields") else type(tree)(values)
    return function(tree)


def tree_leaves(tree: Any) -> list[Any]:
    """The leaves of `tree`, in order."""
    found = list[Any]()
    tree_map(found.append, tree)
    return found


def tree_like(tree: Any, values: Iterable[Any]) -> Any:
    """`tree` with its leaves replaced by `values`, in order."""
    given = iter(values)
    return tree_map(lambda leaf: next(given), tree)


def leaves_like(tree: Any, other: Any, what: str) -> list[Any]:
    """The leaves of `other` in the order of those of `tree`: of dictionaries by their keys.

    ValueError, which says `what` `other` is, unless both are nested alike.
    """
    keys = keys_of(tree)
    if keys != keys_of(other):
        raise ValueError(f"{what}: must be nested as {tree!r:.80}, got {other!r:.80}")
    if keys is None:
        return [other]
    return [leaf for key in keys for leaf in leaves_like(tree[key], other[key], what)]


def keys_of(tree: Any) -> Any:
    """The keys of a dictionary, the positions in a tuple or a list; None for a leaf."""
    if isinstance(tree, (tuple, list)):
        return range(len(tree))
    return tree.keys() if isinstance(tree, dict) else None
