"""Hooks on tensors: how one is registered, and removed. `minigrad.engine.backward.run_hooks` calls them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from minigrad.engine.node import TensorBase

Hook = Callable[[Any], Any]

_next_id = itertools.count().__next__


class RemovableHandle:
    """What registering a hook returns: ``remove()`` takes the hook away; as a context manager, so does its end."""

    def __init__(self, hooks: dict[int, Callable[..., Any]], hook: Callable[..., Any]) -> None:
        if not callable(hook):
            raise TypeError(f"a hook must be a function, got {hook!r}")
        self._hooks, self._id = hooks, _next_id()
        hooks[self._id] = hook

    def remove(self) -> None:
        """Take the hook away; nothing happens if it is gone already."""
        self._hooks.pop(self._id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()


def add_hook(tensor: TensorBase, hook: Hook) -> RemovableHandle:
    """Register `hook` on the gradient of `tensor`: at its node, or on the tensor itself if it is a leaf."""
    holder: Any = tensor if tensor._node is None else tensor._node
    if getattr(holder, "_hooks", None) is None:
        holder._hooks = {}
    return RemovableHandle(holder._hooks, hook)
