"""A function as a composition of small steps: how to run it, and how to look at its steps.

A primitive may name its ``composition``, the same function written with smaller operations. Within ``fused(False)``
that runs in its place.

A composition names its steps: ``scores = tap("scores", q @ k.mT)``. Outside a `tapping` block the call returns its
argument and costs one look at a context variable. Inside, the visitor sees every named tensor in order, may keep it
(and, after ``retain_grad()`` and a backward, its gradient), and may return another tensor to use in its place: that is
how a finite difference nudges an inner value. If it returns nothing, the tensor goes on as it is. What a step needs
beside tensors, such as a mask, goes to a second function, through `note`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, TypeVar

from minigrad.arguments import in_name_of
from minigrad.device.local import Setting
from minigrad.engine import primitive
from minigrad.engine.errors import CAUGHT
from minigrad.engine.node import TensorBase, wrap
from minigrad.engine.primitive import Primitive, casting

T = TypeVar("T", bound=TensorBase)
Visitor = Callable[[str, TensorBase], TensorBase | None]
Reader = Callable[[str, Any], None]

_visitor: ContextVar[Visitor | None] = ContextVar("minigrad.tap", default=None)
_reader: ContextVar[Reader | None] = ContextVar("minigrad.note", default=None)


def compose(op: Primitive, args: tuple[Any, ...]) -> Any:
    """The output of the composition of `op`; its errors name `op`, not the steps."""
    try:
        cast = casting.get() if op.precision is not None else None
        return op.composition(*(args if cast is None else cast.arguments(op, args)))  # type: ignore[misc]
    except CAUGHT as error:
        told = in_name_of(op.name, error, args)
        raise told from (error if told is not error else None)


def fused(enabled: bool) -> Setting[Any]:
    """``with fused(False):`` runs every fused function as its readable composition; `enabled` switches back.

    Local to the thread or task.
    """
    return Setting(primitive.composing, lambda now: None if enabled else compose)


def composing() -> bool:
    """Whether compositions run here in place of fused functions."""
    return primitive.composing.get() is not None


def tap(name: str, tensor: T) -> T:
    """Give `tensor`, under its `name`, to the visitor, if there is one; returns it, or what the visitor gives back."""
    visitor = _visitor.get()
    return tensor if visitor is None or not composing() else visited(visitor, name, tensor)


def visited(visitor: Visitor, name: str, tensor: T) -> T:
    """What goes on in the place of `tensor`, which the visitor has seen; a raw array it sees as a tensor."""
    seen = tensor if isinstance(tensor, TensorBase) else wrap(tensor)
    replacement = visitor(name, seen)
    if replacement is None:
        return tensor
    if not isinstance(replacement, TensorBase) or replacement._data.shape != seen._data.shape:
        raise ValueError(f"tap {name!r}: the visitor must return None or a tensor of shape {tuple(seen._data.shape)}")
    return replacement  # type: ignore[return-value]


def note(name: str, array: Any) -> None:
    """Give a constant of a step, a raw array such as a mask, under its `name`, to the reader of `tapping`, if any."""
    reader = _reader.get()
    if reader is not None and composing():
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
