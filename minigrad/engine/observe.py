"""The seam through which tools watch the engine work: an `Observer` is told of every operation, both ways.

Outside an `observing` block an operation pays one look at a context variable. The tools built on it are in
`minigrad.inspect`: the profile, the memory meter, anomaly detection, the tape as text, the picture of the graph.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from minigrad.engine.node import Array, Node, TensorBase

if TYPE_CHECKING:
    from minigrad.engine.rules import Rules


class Observer:
    """Base of what watches; a subclass overrides what it wants to be told.

    It is told of what happens, forward and backward, in the thread or task that entered the `observing` block, and in
    threads that run in a copy of its context: these call its methods at the same time. Under ``create_graph``
    the rules are themselves operations, and are told of as such between `rules_begin` and `rules_end`.

    A `minigrad.func.checkpoint` is told of as an operation named "checkpoint", ``operation.recomputes``, whose `args`
    are those of its function. What runs between its begin and its end is thrown away, and its output's node stands for
    it; a backward that comes to that node computes it again, between `rules_begin` and `rules_end` of the node.
    """

    follows_gradients = True  # False: `gradient_sent` is not called, and rules that add into a buffer go on doing so
    accumulates = False  # True: they do so anyway, and `gradient_sent` tells of the buffer, still empty, when it is new

    def operation_begins(self, operation: Rules, args: Sequence[Any]) -> None:
        """`operation` is about to run on `args`, in the order of its parameters (``*xs`` as one tuple)."""

    def operation_ends(self, operation: Rules, args: Sequence[Any], output: TensorBase | None) -> None:
        """It has run; `output` is None if it raised. What was recorded is ``output._node``, or None.

        Of a checkpoint, `output` is None too if there is nothing to be computed again.
        """

    def rules_begin(self, node: Node, gradient: Array | TensorBase) -> None:
        """The gradient of the output of `node` is complete, and its rules are about to run on it."""

    def gradient_sent(self, node: Node, name: str, target: Node | TensorBase, gradient: Array | TensorBase) -> None:
        """The rule for the input `name` gave `gradient`, which goes to `target`: a node, or a leaf tensor."""

    def rules_end(self, node: Node) -> None:
        """The rules of `node` have run, or raised."""

    def expanded(self, node: Node, target: Node | TensorBase) -> None:
        """In place of the rules of `node`, what made it was recorded, up to `target`, which gets its gradient."""

    def leaf_reached(self, leaf: TensorBase, gradient: Array | TensorBase) -> None:
        """A backward pass has ended; `gradient` is all that it sent to `leaf`, whose hooks have run."""

    def module_begins(self, module: Any) -> None:
        """The forward of an nn.Module begins."""

    def module_ends(self, module: Any) -> None:
        """It has ended, or raised."""

    def span_begins(self, name: str) -> None:
        """A stretch of the program that has a name begins: see `span`."""

    def span_ends(self, name: str) -> None:
        """It has ended, or raised."""


_observers: ContextVar[tuple[Observer, ...]] = ContextVar("minigrad.observers", default=())
observers = _observers.get


@contextlib.contextmanager
def observing(observer: Observer) -> Iterator[None]:
    """Tell `observer` of all that the current thread or task does inside. Blocks nest: all of them are told."""
    token = _observers.set((*_observers.get(), observer))
    try:
        yield
    finally:
        _observers.reset(token)


@contextlib.contextmanager
def unobserved(observer: Observer | None = None) -> Iterator[None]:
    """Tell nobody, or not `observer`, of what the current thread or task does inside."""
    told = () if observer is None else tuple(other for other in _observers.get() if other is not observer)
    token = _observers.set(told)
    try:
        yield
    finally:
        _observers.reset(token)


@contextlib.contextmanager
def span(name: str) -> Iterator[None]:
    """Give a stretch of the program a name, under which a profile shows it: ``with span("data"): batch = next(data)``.

    Spans nest. It can be a decorator, too: ``@span("metric")``. Where nobody watches, it costs next to nothing.

    Args:
        name: what it is called.
    """
    watching = observers()
    for observer in watching:
        observer.span_begins(name)
    try:
        yield
    finally:
        for observer in reversed(watching):
            observer.span_ends(name)
