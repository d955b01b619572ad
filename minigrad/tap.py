"""The seam through which a study of the inner steps of a computation enters: `tap`.

The readable compositions name their steps: ``scores = tap("scores", q @ k.mT)``. Outside a `tapping` block the
call returns its argument and costs one look at a context variable. Inside, the visitor sees every named tensor in
order, may keep it (and, after ``retain_grad()`` and a backward, its gradient), and may return another tensor to use
in its place: that is how a finite difference nudges an inner value. If it returns nothing, the tensor goes on as it is.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import TypeVar

from minigrad.modes import fused, fused_kernels
from minigrad.tape import TensorBase

T = TypeVar("T", bound=TensorBase)
Visitor = Callable[[str, TensorBase], TensorBase | None]

_visitor: ContextVar[Visitor | None] = ContextVar("minigrad.tap", default=None)


def tap(name: str, tensor: T) -> T:
    """Show `tensor`, under its `name`, to the visitor, if there is one; returns it, or what the visitor gives back."""
    visitor = _visitor.get()
    if visitor is None or fused_kernels.get():
        return tensor
    replacement = visitor(name, tensor)
    if replacement is None:
        return tensor
    if not isinstance(replacement, TensorBase) or replacement._data.shape != tensor._data.shape:
        raise ValueError(f"tap {name!r}: the visitor must return None or a tensor of shape {tuple(tensor._data.shape)}")
    return replacement  # type: ignore[return-value]


@contextlib.contextmanager
def tapping(visitor: Visitor) -> Iterator[None]:
    """Send every tapped tensor inside the block to ``visitor(name, tensor)``; runs on compositions.

    What the visitor returns, a tensor of that shape, is used in the tensor's place; None leaves it.

    Local to the current thread or task. Blocks nest: the innermost visitor is the one that sees the taps. Inside,
    ``with fused(True):`` hides what it encloses.
    """
    token = _visitor.set(visitor)
    try:
        with fused(False):
            yield
    finally:
        _visitor.reset(token)
