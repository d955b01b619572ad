"""A function as a composition of small steps: how to run it, and how to look at its steps.

The definition of a composite primitive runs on arrays, as one operation, and on tensors, where it records its own small
steps. Within ``fused(False)`` it gets the tensors.

A definition names its steps: ``scores = tap("scores", q @ k.mT)``. Outside a `tapping` block the call returns its
argument and costs one look at a context variable. Inside, the visitor sees every named tensor in order, may keep it
(and, after ``retain_grad()`` and a backward, its gradient), and may return another tensor to use in its place: that is
how a finite difference nudges an inner value. If it returns nothing, the tensor goes on as it is. What a step needs
beside tensors, such as a mask, goes to a second function, through `note`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any, TypeVar

from minigrad.device.local import Setting
from minigrad.device.sums import narrowed, widened
from minigrad.engine.errors import CAUGHT, explain
from minigrad.engine.node import TensorBase
from minigrad.engine.primitive import Primitive
from minigrad.engine.watch import around, put_around

T = TypeVar("T", bound=TensorBase)
Visitor = Callable[[str, TensorBase], TensorBase | None]
Reader = Callable[[str, Any], None]

_looking: ContextVar[tuple[Visitor | None, Reader | None]] = ContextVar("minigrad.tapping", default=(None, None))


def compose(op: Primitive, args: tuple[Any, ...], values: Sequence[Any]) -> Any:
    """The output of the steps of `op`, in the dtypes of its values; their errors name `op`."""
    try:
        with put_around(cast=None):
            return op.steps(args, values)
    except CAUGHT as error:
        explain(error, args, op.name)


def fused(enabled: bool) -> Setting[Any]:
    """``with fused(False):`` records the steps of every fused function one by one; `enabled` switches back.

    Local to the thread or task.
    """
    return put_around(compose=None if enabled else compose)


def composing() -> bool:
    """Whether compositions run here in place of fused functions."""
    return around.get().compose is not None


def tap(name: str, tensor: T, scale: float = 1.0) -> T:
    """Give `tensor`, under its `name`, to the visitor, if there is one; returns it, or what the visitor gives back.

    An array, of a definition that runs on arrays, is returned as it is. The visitor sees ``tensor / scale``, in float32
    if float16 may have no room for it, and what it gives back is scaled again.
    """
    visitor, _ = _looking.get()
    return tensor if visitor is None else visited(visitor, name, tensor, scale)


def visited(visitor: Visitor, name: str, tensor: Any, scale: float) -> Any:
    """What goes on in the place of `tensor`, which the visitor has seen."""
    visible = isinstance(tensor, TensorBase) and composing() and scale != 0
    if not visible:
        return tensor
    seen = tensor if scale == 1 else widened(tensor) / scale
    given: Any = visitor(name, seen)
    result = seen if given is None else given
    fits = isinstance(result, TensorBase) and result._data.shape == seen._data.shape
    if not fits:
        raise ValueError(f"tap {name!r}: the visitor must return None or a tensor of shape {tuple(seen._data.shape)}")
    return result if scale == 1 else narrowed(result * scale, tensor.dtype)


def note(**constants: Any) -> None:
    """Give the constants of steps, such as a mask, under their names to the reader of `tapping`, if any; not None."""
    _, reader = _looking.get()
    if reader is not None and composing():
        for name, constant in constants.items():
            if constant is not None:
                reader(name, constant)


@contextlib.contextmanager
def tapping(visitor: Visitor, reader: Reader | None = None) -> Iterator[None]:
    """Send every tapped tensor inside the block to ``visitor(name, tensor)``; runs on compositions.

    What the visitor returns, a tensor of that shape, is used in the tensor's place; None leaves it. Constants that are
    noted go to ``reader(name, array)``.

    Local to the current thread or task. Blocks nest: the innermost visitor is the one that sees the taps, and its
    reader, if it has one, the constants. Inside, ``with fused(True):`` hides what it encloses.
    """
    with fused(False), Setting(_looking, lambda before: (visitor, reader)):
        yield
