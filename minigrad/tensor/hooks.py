"""Hooks on tensors: functions that see a gradient once it is complete, and may put another in its place."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from minigrad.device.local import no_grad
from minigrad.engine.node import TensorBase, wrap
from minigrad.tensor.gradients import copy

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


class Hooks(dict[int, Hook]):
    """The hooks of a tensor, which a backward pass runs on its complete gradient, in the order of registration."""

    def run(self, gradient: Any) -> Any:
        """The gradient after all hooks.

        In an ordinary backward a hook gets a copy, so that nothing it does can reach memory that others see.
        """
        recorded = isinstance(gradient, TensorBase)
        for hook in list(self.values()):
            if recorded:
                result = hook(gradient)
            else:
                with no_grad():
                    result = hook(wrap(copy(gradient)))
            if result is None:
                continue
            shape, dtype = tuple(gradient.shape), gradient.dtype
            if not isinstance(result, TensorBase) or tuple(result._data.shape) != shape:
                got = f"shape {tuple(result._data.shape)}" if isinstance(result, TensorBase) else type(result).__name__
                raise TypeError(f"tensor hook {getattr(hook, '__name__', hook)!r}: it must return None or a Tensor of "
                                f"the gradient's shape {shape}, got {got}")
            gradient = result if recorded else result._data
            gradient = gradient if gradient.dtype == dtype else gradient.astype(dtype)
        return gradient


def add_hook(tensor: TensorBase, hook: Hook) -> RemovableHandle:
    """Register `hook` on the gradient of `tensor`: at its node, or on the tensor itself if it is a leaf."""
    holder: Any = tensor if tensor._node is None else tensor._node
    if holder._hooks is None:
        holder._hooks = Hooks()
    return RemovableHandle(holder._hooks, hook)
