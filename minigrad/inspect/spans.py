"""Stretches of time: what a profile is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from minigrad.inspect.modules import RECOMPUTED, ModuleCall

Form = tuple[tuple[int, ...], Any]  # the shape and dtype of an array


@dataclass(slots=True, eq=False)
class Span:
    """One stretch of time in one thread: an operation, its gradient rules, the call of a module, or what was named.

    Attributes:
        kind: "operation", "backward" (the gradient rules of one), "module", or "span" (see `span`).
        name: of the operation; the dotted path of the module; what was given to `span`.
        thread: the number that the system gave the thread.
        call: the call of a module that it belongs to, of a module its own; None outside of all.
        parent: the span that it happens in, in the same thread, or None.
        backward: whether it is a part of a backward pass: gradient rules, and what runs inside of them.
        recomputed: whether it is a part of a checkpoint that is computed again.
        begin, end: nanoseconds, of the clock `time.perf_counter_ns`.
        own: nanoseconds of it outside of the spans that happen in it, and without the watching of those.
        watching: nanoseconds that watching it took, which are no part of it.
        bytes: of the memory that it made and that stayed: of an operation its output and what it saved for the
            backward, of gradient rules the gradients. What is a view, or was there before, has none.
        inputs, outputs: shape and dtype of the arrays that went in and came out.
    """

    kind: str
    name: str
    thread: int
    call: ModuleCall | None
    parent: Span | None
    backward: bool = False
    recomputed: bool = False
    begin: int = 0
    end: int = 0
    own: int = 0
    watching: int = 0
    bytes: int = 0
    inputs: tuple[Form, ...] = ()
    outputs: tuple[Form, ...] = ()

    @property
    def paths(self) -> set[str]:
        """Those of the modules around it, and its own if it is the call of one."""
        return set() if self.call is None else {call.path for call in self.call.chain} - {RECOMPUTED}

    @property
    def named(self) -> set[str]:
        """The names that were given to the stretches of the program that it lies in, its own among them."""
        names: set[str] = set()
        span: Span | None = self
        while span is not None:
            if span.kind == "span":
                names.add(span.name)
            span = span.parent
        return names
