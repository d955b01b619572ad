"""The seam around every operation: interpreters may rewrite one, cast its operands, or watch it, both ways.

`interpreting` adds an `Interpreter` for a block. Without one, an operation pays one look at a context variable. With
some, an operation passes through them, outermost first, around its own run:

    rewrite    may put another operation in its place
    cast       may change the arrays that the operation runs on; the graph keeps the tensors that the caller gave
    compose    runs its steps
    watch      sees what runs, and what its gradient rules return
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any, ClassVar, NamedTuple

from minigrad.device.local import Setting
from minigrad.engine.node import Array, Node, TensorBase

Operation = Any  # a `Primitive`, which is defined above this

REWRITE, CAST, COMPOSE, WATCH = range(4)


class Operands(NamedTuple):
    """What an operation was given.

    Attributes:
        args: the arguments as the caller gave them, in the order of the parameters; ``*xs`` as one tuple.
        values: the same as arrays and plain values, of one dtype and device: what the operation runs on.
    """

    args: tuple[Any, ...]
    values: Sequence[Any]


class Interpreter:
    """Base of what stands around operations; a subclass overrides the methods that it needs.

    It acts in the thread or task that entered `interpreting`, and in threads that run in a copy of its context: these
    call its methods at the same time.
    """

    phase: ClassVar[int] = WATCH
    replaces_inside: ClassVar[bool] = False  # a rewriter that also acts on the operations of its own replacement
    buffers: bool = True  # False for a watcher that keeps gradients: nothing is added into them in place

    def operation(self, op: Operation, operands: Operands, proceed: Callable[[Operands], Any]) -> Any:
        """Return the output of `op`: of ``proceed(operands)``, or of something else."""
        return proceed(operands)

    def function(self, function: Callable[..., Any], args: list[Any]) -> None:
        """Change in place the arguments of a function of several operations that declares a precision."""

    def rules(self, node: Node, g: Array | TensorBase, proceed: Callable[[Any], list[Any]]) -> list[Any]:
        """Return a gradient for each of ``node.parents``: those of ``proceed(g)``, which runs the rules of `node`.

        None stands for a parent that nobody asks about. An array that a rule has added into is the sum so far.
        """
        return proceed(g)

    def expanded(self, node: Node, target: Node | TensorBase) -> None:
        """The pass recorded the composition of `node`, or computed it again; `target` is its output."""

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


Entries = tuple[Interpreter, ...]
_entries: ContextVar[Entries] = ContextVar("minigrad.interpreters", default=())
interpreters = _entries.get


def interpreting(entry: Interpreter) -> Setting[Entries]:
    """A block, or a decorator, in which `entry` stands around every operation. Later ones of a phase are inner ones."""
    return Setting(_entries, lambda entries: entries if entry in entries else tuple(
        sorted((*entries, entry), key=lambda one: one.phase)))


def not_interpreting(*kinds: type[Interpreter] | Interpreter) -> Setting[Entries]:
    """A block without the given interpreters, or those of the given classes."""
    return Setting(_entries, lambda entries: tuple(
        e for e in entries if not any(e is kind or (isinstance(kind, type) and isinstance(e, kind)) for kind in kinds)))


def only_watching() -> Setting[Entries]:
    """A block in which no interpreter changes anything: where a recorded operation is differentiated again."""
    return Setting(_entries, lambda entries: tuple(e for e in entries if e.phase == WATCH))


def not_casting() -> Setting[Entries]:
    """A block in which operations run in the dtypes that they are given: the steps of one whose inputs were cast."""
    return Setting(_entries, lambda entries: tuple(e for e in entries if e.phase != CAST))


def in_place_of_rewriters(entries: Entries) -> Setting[Entries]:
    """A block with what changes operations from `entries`, and what watches from where the block is entered."""
    changing = tuple(e for e in entries if e.phase != WATCH)
    return Setting(_entries, lambda now: (*changing, *(e for e in now if e.phase == WATCH)))


def interpret(op: Operation, operands: Operands, run: Callable[[Operands], Any]) -> Any:
    """The output of `op`, through all interpreters; `run` is what the innermost one proceeds to."""
    return _through(interpreters(), op, operands, run)


def _through(entries: Entries, op: Operation, operands: Operands, run: Callable[[Operands], Any]) -> Any:
    if not entries:
        return run(operands)
    entry, inner, around = entries[0], entries[1:], interpreters()
    if entry.phase != REWRITE or entry.replaces_inside:
        return entry.operation(op, operands, lambda operands: _through(inner, op, operands, run))

    def proceed(operands: Operands) -> Any:  # a checkpoint runs operations, which are rewritten, too
        with Setting(_entries, lambda now: around):
            return _through(inner, op, operands, run)

    with not_interpreting(entry):  # a replacement may use the operation that it replaces
        return entry.operation(op, operands, proceed)


def interpret_rules(node: Node, g: Any, run: Callable[[Any], list[Any]]) -> list[Any]:
    """The gradients of the parents of `node`, through all that watch."""
    proceed = run
    for entry in reversed(interpreters()):
        if entry.phase == WATCH:
            proceed = _around(entry, node, proceed)
    return proceed(g)


def _around(entry: Interpreter, node: Node, proceed: Callable[[Any], list[Any]]) -> Callable[[Any], list[Any]]:
    return lambda g: entry.rules(node, g, proceed)


@contextlib.contextmanager
def span(name: str) -> Iterator[None]:
    """Give a stretch of the program a name, under which a profile shows it: ``with span("data"): batch = next(data)``.

    Spans nest. It can be a decorator, too: ``@span("metric")``. Without interpreters it costs next to nothing.

    Args:
        name: what it is called.
    """
    entries = interpreters()
    for entry in entries:
        entry.span_begins(name)
    try:
        yield
    finally:
        for entry in reversed(entries):
            entry.span_ends(name)
