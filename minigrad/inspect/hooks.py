"""Hooks on operations: functions that are called before and after each, in the forward and in the backward."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from minigrad.engine.interpreters import WATCH, Operands, interpreters, interpreting, not_interpreting
from minigrad.engine.node import Array, Node, TensorBase
from minigrad.engine.primitive import Primitive
from minigrad.inspect.modules import ModuleWatcher


class Event:
    """One run of an operation, or of the gradient rules of one. The same object goes to `before` and to `after`.

    Attributes:
        name: of the operation.
        phase: "forward" or "backward".
        inputs: forward: the arguments, in the order of the operation's parameters (``*xs`` as one tuple); backward:
            the gradient of the output, alone.
        output: forward: the output, None before it is there and if the operation raised; backward: None.
        gradients: backward: ``(argument, gradient)`` for each input that has one, once the rules have run; arrays, or
            tensors under ``create_graph``.
        node: what was recorded: in the forward from `after` on, None if nothing was; in the backward always.
        module: the dotted path of the module that it belongs to, from the class of the outermost module that was
            called, "" outside of all; "checkpoint (computed again)" for what a checkpointed function itself runs the
            second time.

    A hook may put attributes of its own on it. Arrays must not be written to.
    """

    def __init__(self, name: str, phase: str, inputs: tuple[Any, ...], module: str, node: Node | None = None) -> None:
        self.name, self.phase, self.inputs, self.module, self.node = name, phase, inputs, module, node
        self.output: Any = None
        self.gradients: list[tuple[str, Any]] = []

    def __repr__(self) -> str:
        return f"<{self.phase} of {self.name}{' in ' + self.module if self.module else ''}>"


Hook = Callable[[Event], Any]


class _Hooks(ModuleWatcher):
    """Makes an event of each operation, and of the rules of each."""

    buffers = False  # a hook sees the gradient of each rule, not sums of several

    def __init__(self, before: Hook | None, after: Hook | None) -> None:
        super().__init__()
        self._before, self._after = before, after
        self._modules: weakref.WeakKeyDictionary[Node, str] = weakref.WeakKeyDictionary()

    @contextlib.contextmanager
    def _around(self, event: Event) -> Iterator[None]:
        """A block in which the event happens, with the hooks before and after it."""
        self._call(self._before, event)
        try:
            yield
        finally:
            self._call(self._after, event)

    def _call(self, hook: Hook | None, event: Event) -> None:
        if hook is not None:
            with not_interpreting(*[entry for entry in interpreters() if entry.phase == WATCH]):
                hook(event)

    def operation(self, op: Primitive, operands: Operands, proceed: Callable[[Operands], Any]) -> Any:
        event = Event(op.name, "forward", operands.args, self.calls.path)
        with self._around(event):
            event.output = output = proceed(operands)
            if output is not None and output._node is not None:
                event.node = output._node
                self._modules[output._node] = event.module
                if op.recomputes:
                    self.calls.keep(output._node)
        return output

    def rules(self, node: Node, g: Array | TensorBase, proceed: Callable[[Any], list[Any]]) -> list[Any]:
        event = Event(node.primitive.name, "backward", (g,), self._modules.get(node, ""), node)
        with self.calls.inside(node), self._around(event):
            gradients = proceed(g)
            if node.plan.names:
                event.gradients = [(name, gradient) for name, gradient in zip(node.plan.names, gradients, strict=True)
                                   if gradient is not None]
        return gradients


@contextlib.contextmanager
def op_hook(before: Hook | None = None, after: Hook | None = None) -> Iterator[None]:
    """Call ``before(event)`` and ``after(event)`` around every operation inside the block, forward and backward.

    Local to the current thread or task, and to threads that run in a copy of its context, which call the hooks at the
    same time. Operations that a hook runs itself have no events; what it raises stops the computation.

    Args:
        before: called before the operation, or the rules of one, run.
        after: called when they have run, or raised.
    """
    if before is None and after is None:
        raise ValueError("op_hook: give before, after or both")
    with interpreting(_Hooks(before, after)):
        yield
