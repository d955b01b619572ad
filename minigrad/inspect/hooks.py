"""Hooks on operations: functions that are called before and after each, in the forward and in the backward."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from minigrad.engine.node import Array, Node, TensorBase
from minigrad.inspect.modules import ModuleCalls
from minigrad.inspect.observer import Observer, observing, unobserved


class Event:
    """One run of an operation, or of the gradient rules of one. The same object goes to `before` and to `after`.

    Attributes:
        name: of the operation.
        phase: "forward" or "backward".
        inputs: forward: the arguments, in the order of the operation's parameters (``*xs`` as one tuple); backward:
            the gradient of the output, alone.
        output: forward: the output, None before it is there and if the operation raised; backward: None.
        gradients: backward: ``(argument, gradient)`` for each rule that has run; arrays, or tensors under
            ``create_graph``; empty if the hooks do not follow gradients.
        node: what was recorded: in the forward from `after` on, None if nothing was; in the backward always.
        module: the dotted path of the module that it belongs to, "" outside of all; "checkpoint (computed again)" for
            what a checkpointed function itself runs the second time.
        parent: the event during which this one happens: a rule whose operations run under ``create_graph``, or a
            checkpoint, in its first run or computed again.

    A hook may put attributes of its own on it. Arrays must not be written to.
    """

    def __init__(self, operation: Any, phase: str, inputs: tuple[Any, ...], key: Any, module: str,
                 parent: Event | None) -> None:
        self.operation, self.name, self.phase, self.inputs = operation, operation.name, phase, inputs
        self.module, self.parent, self._key = module, parent, key
        self.output: Any = None
        self.node: Node | None = None
        self.gradients: list[tuple[str, Any]] = []

    @property
    def transient(self) -> bool:
        """Whether it happens in the first run of a checkpoint, of which the tape keeps nothing."""
        event = self.parent
        while event is not None and not (event.operation.recomputes and event.phase == "forward"):
            event = event.parent
        return event is not None

    def __repr__(self) -> str:
        return f"<{self.phase} of {self.name}{' in ' + self.module if self.module else ''}>"


Hook = Callable[[Event], Any]


class _Hooks(Observer):
    """Makes events of what it is told."""

    def __init__(self, before: Hook | None, after: Hook | None, model: Any, gradients: bool) -> None:
        self._before, self._after, self.follows_gradients = before, after, gradients
        self._calls = ModuleCalls(model)
        self._modules: weakref.WeakKeyDictionary[Node, str] = weakref.WeakKeyDictionary()
        self._local = threading.local()

    def _running(self) -> list[Event]:
        if not hasattr(self._local, "events"):
            self._local.events = []
        events: list[Event] = self._local.events
        return events

    def _begin(self, operation: Any, phase: str, inputs: tuple[Any, ...], key: Any, module: str) -> None:
        running = self._running()
        event = Event(operation, phase, inputs, key, module, running[-1] if running else None)
        event.node = key if phase == "backward" else None
        running.append(event)
        if self._before is not None:
            with unobserved():
                self._before(event)

    def _end(self, key: Any) -> Event:
        running = self._running()
        event = running.pop()
        while event._key is not key:  # its end was not told, because another observer raised
            event = running.pop()
        return event

    def _call_after(self, event: Event) -> None:
        if self._after is not None:
            with unobserved():
                self._after(event)

    def operation_begins(self, operation: Any, args: Sequence[Any]) -> None:
        current = self._calls.current
        self._begin(operation, "forward", tuple(args), args, current.path if current else "")

    def operation_ends(self, operation: Any, args: Sequence[Any], output: TensorBase | None) -> None:
        event = self._end(args)
        event.output = output
        if output is not None and output._node is not None:
            event.node = output._node
            self._modules[output._node] = event.module
            if operation.recomputes:
                self._calls.keep(output._node)
        self._call_after(event)

    def rules_begin(self, node: Node, gradient: Array | TensorBase) -> None:
        self._calls.rules_begin(node)
        self._begin(node.primitive, "backward", (gradient,), node, self._modules.get(node, ""))

    def gradient_sent(self, node: Node, name: str, target: Node | TensorBase, gradient: Array | TensorBase) -> None:
        self._running()[-1].gradients.append((name, gradient))

    def rules_end(self, node: Node) -> None:
        self._calls.rules_end(node)
        self._call_after(self._end(node))

    def module_begins(self, module: Any) -> None:
        self._calls.begin(module)

    def module_ends(self, module: Any) -> None:
        self._calls.end(module)


@contextlib.contextmanager
def op_hook(before: Hook | None = None, after: Hook | None = None, *, model: Any = None,
            gradients: bool = True) -> Iterator[None]:
    """Call ``before(event)`` and ``after(event)`` around every operation inside the block, forward and backward.

    Local to the current thread or task, and to threads that run in a copy of its context, which call the hooks at the
    same time. Operations that a hook runs itself are not told of; what it raises stops the computation.

    Args:
        before: called before the operation, or the rules of one, run.
        after: called when they have run, or raised.
        model: a module, from which ``event.module`` counts the dotted names.
        gradients: whether ``event.gradients`` is filled. False leaves rules that add into the engine's own buffers
            (indexing) as they are: use it where time or memory is measured.
    """
    if before is None and after is None:
        raise ValueError("op_hook: give before, after or both")
    with observing(_Hooks(before, after, model, gradients)):
        yield
