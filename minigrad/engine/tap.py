"""The seam through which a study of the inner steps of a computation enters: `tap`.

The readable compositions name their steps: ``scores = tap("scores", q @ k.mT)``. Outside a `tapping` block the
call returns its argument and costs one look at a context variable. Inside, the visitor sees every named tensor in
order, may keep it (and, after ``retain_grad()`` and a backward, its gradient), and may return another tensor to use
in its place: that is how a finite difference nudges an inner value. If it returns nothing, the tensor goes on as it is.

What a step needs beside tensors, such as a mask, is shown by `note`, to a second function that only looks.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, TypeVar

from minigrad.engine.node import TensorBase
from minigrad.engine.switches import fused, fused_kernels

T = TypeVar("T", bound=TensorBase)
Visitor = Callable[[str, TensorBase], TensorBase | None]
Reader = Callable[[str, Any], None]

_visitor: ContextVar[Visitor | None] = ContextVar("minigrad.engine.tap", default=None)
_reader: ContextVar[Reader | None] = ContextVar("minigrad.note", default=None)


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


def note(name: str, array: Any) -> None:
    """Show a constant of a step, a raw array such as a mask, under its `name`, to the reader of `tapping`, if any."""
    reader = _reader.get()
    if reader is not None and not fused_kernels.get():
        reader(name, array)


@contextlib.contextmanager
def tapping(visitor: Visitor, reader: Reader | None = None) -> Iterator[None]:
    """Send every tapped tensor inside the block to ``visitor(name, tensor)``; runs on compositions.

    What the visitor returns, a tensor of that shape, is used in the tensor's place; None leaves it. Constants that are
    noted go to ``reader(name, array)``.

    Local to the current thread or task. Blocks nest: the innermost visitor is the one that sees the taps, and its
    reader, if it has one, the constants. Inside, ``with fused(True):`` hides what it encloses.
    """
    token, reading = _visitor.set(visitor), _reader.set(reader)
    try:
        with fused(False):
            yield
    finally:
        _reader.reset(reading)
        _visitor.reset(token)
