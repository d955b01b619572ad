"""Locks on arguments: a function that is differentiated, or computed again, may not write to what it is given.

Every change in place advances a version before it writes (`minigrad.Tensor.bump_tick`). So a version that refuses to
advance refuses the change, of the tensor and of its views, which share the version.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from minigrad.engine.node import TensorBase


class Lock(list[int]):
    """A version that is another one's, and while it is `held` refuses to advance, in the name of `operation`."""

    def __init__(self, version: list[int], operation: str) -> None:
        super().__init__()
        self.version, self.operation, self.held = version, operation, True

    def __getitem__(self, index: Any) -> Any:
        return self.version[index]

    def __setitem__(self, index: Any, count: Any) -> None:
        if self.held:
            raise RuntimeError(
                f"{self.operation}: the function changes one of its arguments in place, which its derivative would not "
                "know of; build a new tensor with minigrad.where, or change a copy, "
                "x.detach().clone(), through which no gradient flows")
        self.version[index] = count


def lock(tensor: TensorBase, operation: str) -> Lock:
    """Put a lock on `tensor`, whose own version goes on counting in it."""
    tensor._version = held = Lock(tensor._version, operation)
    return held


@contextlib.contextmanager
def locked(tensors: Sequence[TensorBase], operation: str) -> Iterator[None]:
    """A block in which these tensors cannot be changed in place."""
    locks = [lock(tensor, operation) for tensor in tensors]
    try:
        yield
    finally:
        for tensor, held in zip(tensors, locks, strict=True):
            tensor._version, held.held = held.version, False
