"""Nested tuples, lists and dictionaries of tensors: what the transforms of functions take and return."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    found: list[Any] = []
    tree_map(found.append, tree)
    return found


def leaves_like(tree: Any, other: Any, what: str, place: str = "") -> list[Any]:
    """The leaves of `other` in the order of those of `tree`: dictionaries by their keys, whatever their order.

    ValueError, naming the place, unless both are nested alike.
    """
    if isinstance(tree, dict):
        if not isinstance(other, dict) or other.keys() != tree.keys():
            got = sorted(map(str, other)) if isinstance(other, dict) else type(other).__name__
            raise ValueError(f"{what}{place}: expected a dictionary with the keys {sorted(map(str, tree))}, got {got}")
        parts = [(f"{place}[{key!r}]", value, other[key]) for key, value in tree.items()]
    elif isinstance(tree, (tuple, list)):
        if not isinstance(other, (tuple, list)) or len(other) != len(tree):
            got = f"{len(other)}" if isinstance(other, (tuple, list)) else f"a {type(other).__name__}"
            raise ValueError(f"{what}{place}: expected a tuple or list of {len(tree)}, got {got}")
        parts = [(f"{place}[{i}]", value, other[i]) for i, value in enumerate(tree)]
    else:
        if isinstance(other, (dict, tuple, list)):
            raise ValueError(f"{what}{place}: expected a tensor, got a {type(other).__name__}")
        return [other]
    return [leaf for place, mine, theirs in parts for leaf in leaves_like(mine, theirs, what, place)]


def tree_like(tree: Any, values: Sequence[Any]) -> Any:
    """`tree` with its leaves replaced by `values`, in order."""
    given = iter(values)
    return tree_map(lambda leaf: next(given), tree)
