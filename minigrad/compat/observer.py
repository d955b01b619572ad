"""The base class of what watched operations before there were interpreters:
an `Interpreter` with an event before and one after each.

`minigrad.engine.interpreters` has what replaces it: `Interpreter` for `Observer`, `interpreting` for `observing`,
`not_interpreting` for `unobserved`, `interpreters` for `observers`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minigrad.device.local import Setting
from minigrad.engine.interpreters import (
    WATCH,
    Entries,
    Interpreter,
    Operands,
    interpreters,
    interpreting,
    not_interpreting,
)
from minigrad.engine.node import Array, Node, TensorBase
from minigrad.engine.primitive import Primitive


class Observer(Interpreter):
    """Base of what watches; a subclass overrides the events that it needs, beside those of an `Interpreter`."""

    follows_gradients = True  # False: `gradient_sent` is not called, and rules that add into a buffer go on doing so
    accumulates = False  # True: they do so anyway, and `gradient_sent` gets the buffer

    @property
    def buffers(self) -> bool:  # type: ignore[override]
        """Whether gradient rules that add into a buffer may do so."""
        return self.accumulates or not self.follows_gradients

    def operation_begins(self, operation: Primitive, args: Sequence[Any]) -> None:
        """An operation is about to run on `args`, in the order of its parameters (``*xs`` as one tuple)."""

    def operation_ends(self, operation: Primitive, args: Sequence[Any], output: TensorBase | None) -> None:
        """It has run; `output` is None if it raised."""

    def rules_begin(self, node: Node, gradient: Array | TensorBase) -> None:
        """The gradient of the output of `node` is complete, and its rules are about to run on it."""

    def gradient_sent(self, node: Node, name: str, target: Node | TensorBase, gradient: Array | TensorBase) -> None:
        """The rule for the input `name` gave `gradient`, which goes to `target`: a node, or a leaf tensor."""

    def rules_end(self, node: Node) -> None:
        """The rules of `node` have run, or raised."""

    def operation(self, op: Primitive, operands: Operands, proceed: Callable[[Operands], Any]) -> Any:
        """Run `op` between its two events."""
        args, output = operands.args, None
        self.operation_begins(op, args)
        try:
            output = proceed(operands)
        finally:
            self.operation_ends(op, operands.args, output)
        return output

    def rules(self, node: Node, g: Array | TensorBase, proceed: Callable[[Any], list[Any]]) -> list[Any]:
        """Run the rules of `node` between their events."""
        self.rules_begin(node, g)
        try:
            gradients = proceed(g)
            if self.follows_gradients and node.plan.names:
                for name, target, gradient in zip(node.plan.names, node.parents, gradients, strict=True):
                    if gradient is not None:
                        self.gradient_sent(node, name, target, gradient)
        finally:
            self.rules_end(node)
        return gradients


def observers() -> Entries:
    """Everything that watches here."""
    return tuple(entry for entry in interpreters() if entry.phase == WATCH)


def observing(observer: Observer) -> Setting[Entries]:
    """Send `observer` the events of the current thread or task in this block. Blocks nest: each gets all of them."""
    return interpreting(observer)


def unobserved(observer: Observer | None = None) -> Setting[Entries]:
    """A block without `observer`, or without anything that watches."""
    return not_interpreting(*observers()) if observer is None else not_interpreting(observer)
