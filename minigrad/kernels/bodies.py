"""How a faster body is registered, and how one says which operands it takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minigrad.engine.primitive import PLAIN, Primitive
from minigrad.engine.rules import Body, Function


class FasterBody(Body):
    """A body for some operands, registered from outside. What it does not bring of the gradient is the definition's.

    Args:
        primitive: the operation; `forward` has its parameters.
        suits: whether the forward takes these arguments: arrays and plain values, in order.
        kind: "fast"; "precise" for one that runs where a gradient is recorded, too.
        fresh: as for `Primitive`.
    """

    def __init__(self, primitive: Any, forward: Function, suits: Callable[..., bool], kind: str = "fast",
                 fresh: bool = False) -> None:
        super().__init__(primitive, forward, fresh)
        self.suits, self.kind = suits, kind
        self.rules, self.adding = dict(primitive.rules), dict(primitive.adding)
        self.joint, self.has_saved = primitive.joint, primitive.has_saved


def faster_body(primitive: Primitive, suits: Callable[..., bool],
                fresh: bool = False) -> Callable[[Function], FasterBody]:
    """Decorate a forward that runs in place of the definition of `primitive`, where it suits.

    The name becomes a `FasterBody`, whose `gradient` and `joint_gradient` take its rules; what it does not bring is the
    definition's.

    Args:
        primitive: the operation; the decorated function has its parameters.
        suits: whether the body takes these arguments, which are raw arrays and plain values, in order.
        fresh: each gradient that a rule returns is memory of its own; see `minigrad.primitive`.
    """
    def register(forward: Function) -> FasterBody:
        body = FasterBody(primitive, forward, suits, "fast", fresh)
        primitive.add_body(body)
        return body

    return register


def add_body(primitive: Primitive, suits: Callable[..., bool], forward: Function | None = None, kind: str = "fast",
             **rules: Function) -> FasterBody:
    """Register a `FasterBody` whose rules are as fresh as the definition's; without a `forward`, with that of the
    definition."""
    body = FasterBody(primitive, forward or primitive.forward, suits, kind, primitive.fresh)
    if rules:
        body.gradient(**rules)
    primitive.add_body(body)
    return body


def on_host(*arguments: Any) -> bool:
    """It takes float32 and float64 arrays in host memory.

    All floating arrays have one dtype, at least one is there, and those of ids and masks are in host memory as well.
    """
    dtype = None
    for x in arguments:
        if type(x) is np.ndarray:
            own = x.dtype
            if own is not dtype and own.kind == "f":
                if own.char not in "fd" or (dtype is not None and own != dtype):
                    return False
                dtype = own
        elif type(x) not in PLAIN and hasattr(x, "dtype"):
            return False
    return dtype is not None
