"""Gradient checkpointing: keep the inputs of a function in place of everything it computes, and compute it again.

Chen, Xu, Zhang and Guestrin, "Training deep nets with sublinear memory cost", 2016 (arXiv:1604.06174).

It is the engine's expansion at work (`minigrad.engine.backward`): one node stands for the whole function; when a
backward reaches it, the function runs again, is recorded in the node's place, and the traversal goes on through what it
recorded. So parameters that the function refers to, nested checkpoints and derivatives of any order need no special
care.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import Any

from minigrad import random
from minigrad.device.local import enable_grad, evaluation, recording
from minigrad.engine.backward import recorded_since
from minigrad.engine.node import Node, TensorBase, gradient_target, next_number, wrap
from minigrad.engine.primitive import body_kinds, casting, composing, primitive
from minigrad.engine.rules import Plan
from minigrad.engine.watch import Watcher, watch, watched
from minigrad.func.locks import locked
from minigrad.func.trees import tree_leaves
from minigrad.functional.bundle import bundle

# Functions that make the contexts which a recomputation enters again.
surroundings: ContextVar[tuple[Callable[[], contextlib.AbstractContextManager[None]], ...]] = ContextVar(
    "minigrad.surroundings", default=())


class Reads(Watcher):
    """Collects the version counters of all tensors that operations read."""

    def __init__(self) -> None:
        self.versions: dict[int, list[int]] = {}

    def add(self, values: Iterable[Any]) -> None:
        """The counters of the tensors among `values`, and in sequences among them."""
        for value in values:
            if isinstance(value, TensorBase):
                self.versions[id(value._version)] = value._version
            elif isinstance(value, (tuple, list)):
                self.add(value)

    def before(self, what: Any, given: Any) -> None:
        """Note what an operation reads."""
        self.add(given if isinstance(given, tuple) else ())


class Segment:
    """A call to be made again: the function, its arguments, and what the call depended on besides."""

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.function, self.args, self.kwargs = function, args, kwargs
        self.random_state, self.surroundings = random.get_state(), surroundings.get()
        self.evaluation = evaluation.get()
        self.settings: list[tuple[ContextVar[Any], Any]] = [
            (setting, setting.get()) for setting in (body_kinds, casting, composing)]

    def run(self) -> tuple[Any, Any]:
        """The differentiable results as one tensor (None if there are none), and how to put all of them in place."""
        given = [leaf for leaf in tree_leaves((self.args, self.kwargs)) if isinstance(leaf, TensorBase)]
        with locked(given, "checkpoint"):
            output = self.function(*self.args, **self.kwargs)
        several = isinstance(output, (tuple, list))
        parts = list(output) if several else [output]
        for part in parts:
            if not isinstance(part, TensorBase):
                raise TypeError(f"checkpoint: the function must return a tensor, or a tuple or list of them, got "
                                f"{type(part).__name__}")
        places = [i for i, part in enumerate(parts) if part._requires_grad]
        if not places:
            return None, lambda whole: output
        whole, apart = bundle([parts[i] for i in places])
        others, kind = [wrap(part._data, None, part._version) for part in parts], type(output)

        def in_place(whole: Any) -> Any:
            results: list[Any] = list(others)
            for place, part in zip(places, apart(whole), strict=True):
                results[place] = part
            return kind(results) if several else results[0]

        return whole, in_place

    def run_again(self) -> Any:
        """The differentiable results as one tensor, recorded, from the same random numbers."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(random.fork())
            stack.enter_context(enable_grad())
            stack.enter_context(evaluation.set_to(self.evaluation))
            for setting, value in self.settings:
                stack.callback(setting.reset, setting.set(value))
            for make in self.surroundings:
                stack.enter_context(make())
            random.set_state(self.random_state)
            return self.run()[0]


def record_again(node: Node) -> Any:
    """Record the segment in the place of `node`."""
    newest = next_number()
    whole = node.saved[0].run_again()
    if whole is None or tuple(whole.shape) != tuple(node.shape) or whole.dtype != node.dtype:
        got = "nothing that requires a gradient" if whole is None else f"{tuple(whole.shape)} {whole.dtype}"
        raise RuntimeError(f"checkpoint: the function gave {tuple(node.shape)} {node.dtype} the first time and "
                           f"{got} the second; it must depend on its arguments and parameters alone")
    reached = {id(target) for target in boundary(gradient_target(whole), newest)}
    for parent in node.parents:
        if id(parent) not in reached:
            shape = tuple(parent._data.shape if isinstance(parent, TensorBase) else parent.shape)
            raise RuntimeError(f"checkpoint: the function used a tensor of shape {shape} the first time that it "
                               "did not use the second; give what changes, such as the variable of a loop, as an "
                               "argument")
    return whole


@primitive
def _checkpoint(x):  # type: ignore[no-untyped-def]
    return x


_checkpoint.recomputes = True
_plan = Plan(needs=(), wanted=(), names=(), recompute=record_again)


def checkpoint(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """``function(*args, **kwargs)``, of which the tape keeps only the arguments; backward computes it again.

    Memory: what the function saves lives during its own forward and its own backward, never beyond. Time: one more
    forward. Random draws (dropout) are the same both times, unless other threads draw from the same state meanwhile:
    give each thread its own with `minigrad.random.fork`. Parameters and tensors that the function refers to receive
    their gradients as ever.

    Args:
        function: of tensors, to a tensor or a tuple or list of tensors; it must compute the same when called again.
        args, kwargs: its arguments.

    Returns:
        What the function returned.

    Raises:
        TypeError: the function returned something else than tensors.
        RuntimeError: the function changes one of its arguments in place, which the second call would do again; in the
            backward, if that call gave another shape or dtype or used other tensors, or if a tensor that the first one
            read was changed in place in between.
    """
    if not recording.get():
        return function(*args, **kwargs)
    in_place: Any = None

    def run() -> Any:
        nonlocal in_place
        output, in_place = _first_run(function, args, kwargs)
        return output

    given = (*args, *kwargs.values())
    output = watched(_checkpoint, given, run)
    return in_place(output)


def _first_run(function: Callable[..., Any], args: tuple[Any, ...],
               kwargs: dict[str, Any]) -> tuple[Any, Callable[[Any], Any]]:
    """As `Segment.run`; in place of what the results were recorded with, they have a node that stands for it."""
    segment, oldest, reads = Segment(function, args, kwargs), next_number(), Reads()
    reads.add((args, tuple(kwargs.values())))
    with watch(reads):
        whole, in_place = segment.run()
    if whole is None:
        return None, in_place
    reached = boundary(gradient_target(whole), oldest)
    reads.add(reached)
    # Of the tensors that the function reached, those that it made itself die with what it recorded.
    references = [weakref.ref(target) for target in reached]
    output = wrap(whole._data, None, whole._version)
    del whole, reached
    parents = tuple([target for target in [reference() for reference in references] if target is not None])
    versions = tuple([(counter, counter[0], None) for counter in reads.versions.values()])
    output._node = Node(_checkpoint, _plan, parents, (segment,), versions, output._data.shape, output._data.dtype)
    output._requires_grad = True
    return output, in_place


def boundary(root: Any, number: int) -> list[Any]:
    """The leaves, and the nodes older than `number`, that the newer nodes at or below `root` send gradients to."""
    newer = recorded_since(number, root)
    below = {id(parent): parent for node in newer.values() for parent in node.parents}
    return [target for key, target in below.items() if key not in newer]
