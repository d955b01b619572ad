"""Watching by events: an `Observer` is an interpreter whose methods are called before and after what it watches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minigrad.device.local import Setting
from minigrad.engine.interpreters import Entries, Interpreter, Operands, interpreters, interpreting, not_interpreting
from minigrad.engine.node import Array, Node, TensorBase
from minigrad.engine.primitive import Primitive


class Observer(Interpreter):
    """Base of what watches; a subclass overrides the events that it needs.

    The events are those of the thread or task that entered the `observing` block, and of threads that run in a copy of
    its context: these call the methods at the same time. Under ``create_graph`` the rules are themselves operations,
    with events of their own between `rules_begin` and `rules_end`.

    A `minigrad.func.checkpoint` is an operation named "checkpoint", whose `args` are those of its function. What runs
    between its begin and its end is thrown away, and its output's node stands for it; a backward that comes to that node
    computes it again, between `rules_begin` and `rules_end` of the node.
    """

    def operation_begins(self, operation: Primitive, args: Sequence[Any]) -> None:
        """An operation is about to run on `args`, in the order of its parameters (``*xs`` as one tuple)."""

    def operation_ends(self, operation: Primitive, args: Sequence[Any], output: TensorBase | None) -> None:
        """It has run; `output` is None if it raised. What was recorded is ``output._node``, or None.

        Of a checkpoint, `output` is None too if there is nothing to be computed again.
        """

    def rules_begin(self, node: Node, gradient: Array | TensorBase) -> None:
        """The gradient of the output of `node` is complete, and its rules are about to run on it."""

    def gradient_sent(self, node: Node, name: str, target: Node | TensorBase, gradient: Array | TensorBase) -> None:
        """The rule for the input `name` gave `gradient`, which goes to `target`: a node, or a leaf tensor."""

    def rules_end(self, node: Node) -> None:
        """The rules of `node` have run, or raised."""

    def operation(self, op: Primitive, operands: Operands, proceed: Callable[[Operands], Any]) -> Any:
        """Run `op` between its two events."""
        self.operation_begins(op, operands.args)
        output = None
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
            for name, target, gradient in zip(node.plan.names, node.parents, gradients, strict=False):
                if gradient is not None:
                    self.gradient_sent(node, name, target, gradient)
        finally:
            self.rules_end(node)
        return gradients


def observers() -> Entries:
    """All interpreters that are in place here."""
    return interpreters()


def observing(observer: Observer) -> Setting[Entries]:
    """Send `observer` the events of the current thread or task in this block. Blocks nest: each gets all of them."""
    return interpreting(observer)


def unobserved(observer: Observer | None = None) -> Setting[Entries]:
    """A block without `observer`, or without any."""
    return not_interpreting(Observer) if observer is None else not_interpreting(observer)
