"""Gradient checkpointing: keep the inputs of a function in place of everything it computes, and compute it again.

Chen, Xu, Zhang and Guestrin, "Training deep nets with sublinear memory cost", 2016 (arXiv:1604.06174).

One node stands for the whole function. It has no rules: when a backward reaches it, the function runs again and is
recorded in the node's place, and the traversal goes on through what it recorded. So parameters that the function refers
to, nested checkpoints and derivatives of any order need no special care.
"""

from __future__ import annotations

import contextvars
import weakref
from typing import Any

from minigrad import random
from minigrad.device.local import recording
from minigrad.engine.backward import graph_of
from minigrad.engine.errors import shown
from minigrad.engine.node import Node, TensorBase, gradient_target, next_number, wrap
from minigrad.engine.primitive import primitive
from minigrad.engine.rules import Function, Plan
from minigrad.engine.watch import Watcher, put_around, watch, watched, watchers
from minigrad.func.call import tensors_in
from minigrad.func.modules import replaced
from minigrad.func.trees import tree_leaves, tree_map
from minigrad.functional.bundle import bundle
from minigrad.functional.compositions import _looking


class Reads(Watcher):
    """Collects the version counters of all tensors that operations read."""

    def __init__(self) -> None:
        self.counters: dict[int, list[int]] = {}

    def before(self, what: Any, given: Any) -> None:
        """Note what an operation reads."""
        self.counters.update({id(counter): counter for counter in counters_of(given)})


def counters_of(values: Any) -> list[list[int]]:
    """The version counters of the tensors in nested `values`."""
    return [value._version for value in tree_leaves(values) if isinstance(value, TensorBase)]


class Segment:
    """A call to be made again: the function, its arguments, the random state and the context that it ran in."""

    def __init__(self, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.function, self.arguments = function, (args, kwargs)
        self.random_state, self.context = random.get_state(), contextvars.copy_context()

    def run(self) -> tuple[Any, Function]:
        """The differentiable results as one tensor (None if there are none), and how to put all of them in place."""
        args, kwargs = self.arguments
        output = self.function(*args, **kwargs)
        recorded = [leaf for leaf in tensors_in(output, "checkpoint") if leaf._requires_grad]
        whole, apart = bundle(recorded) if recorded else (None, lambda whole: [])
        form = tree_map(lambda leaf: None if leaf._requires_grad else leaf, output)

        def in_place(whole: Any) -> Any:
            parts = iter(apart(whole))
            return tree_map(lambda leaf: next(parts) if leaf is None else leaf, form)

        return whole, in_place

    def first_run(self) -> tuple[Any, Function]:
        """As `run`; the one tensor has a node that stands for what was recorded."""
        oldest, reads = next_number(), Reads()
        versions = [(counter, counter[0], None) for counter in counters_of(self.arguments)]
        with watch(reads):
            whole, in_place = self.run()
        if whole is None:
            return None, in_place
        output = wrap(whole._data, None, whole._version)
        references = [weakref.ref(target) for target in graph_of([whole._node], oldest)[1]]
        del whole  # and with what it recorded, the leaves that the function made for itself
        parents = [target for reference in references if (target := reference()) is not None]
        versions += [(counter, counter[0], None) for counter in reads.counters.values()]
        output._node = Node(_checkpoint, Plan(), parents, (self.arguments, self), versions, output._data.shape,
                            output._data.dtype)
        output._requires_grad = True
        return output, in_place

    def run_again(self, node: Node) -> Any:
        """The one tensor again, recorded, to take the place of `node`.

        In the context of the first run, but observed by those who observe the backward.
        """
        newest = next_number()
        around = watchers()

        def again() -> Any:
            with put_around(watchers=around), random.fork(), replaced():
                random.set_state(self.random_state)
                return self.run()[0]

        whole = self.context.copy().run(again)
        if whole is None or (whole.shape, whole.dtype) != (node.shape, node.dtype):
            raise RuntimeError(f"checkpoint: the function gave {node.shape} {node.dtype} the first time and "
                               f"{shown(whole)} the second; it must depend on its arguments and parameters alone")
        reached = set(map(id, graph_of([gradient_target(whole)], newest)[1]))
        for parent in node.parents:
            if id(parent) not in reached:
                raise RuntimeError(f"checkpoint: the function used a tensor of shape {parent.shape} the first time "
                                   "that it did not use the second; give what changes, such as the variable of a "
                                   "loop, as an argument")
        return whole


@primitive
def _checkpoint(x):  # type: ignore[no-untyped-def]
    return x


_checkpoint.recomputes = lambda node: node.saved[1].run_again(node)


def checkpoint(function: Function, *args: Any, **kwargs: Any) -> Any:
    """``function(*args, **kwargs)``, of which the tape keeps only the arguments; backward computes it again.

    Memory: what the function saves lives during its own forward and its own backward, never beyond. Time: one more
    forward. Random draws (dropout) are the same both times, unless other threads draw from the same state meanwhile:
    give each thread its own with `minigrad.random.fork`. Parameters and tensors that the function refers to receive
    their gradients as ever. In a `minigrad.tapping` block, whose visitor may keep what it sees, it is a plain call.

    Args:
        function: of tensors, to a tensor, or tuples, lists or dictionaries of them; it must compute the same when
            called again.
        args, kwargs: its arguments.

    Returns:
        What the function returned.

    Raises:
        TypeError: the function returned something else than tensors.
        RuntimeError: in the backward, if an argument, or a tensor that the function read, was changed in place, by the
            function itself or since; or if the second call gave another shape or dtype or used other tensors.
    """
    if not recording.get() or _looking.get()[0] is not None:
        return function(*args, **kwargs)
    found = list[Any]()

    def run() -> Any:
        found[:] = Segment(function, args, kwargs).first_run()
        return found[0]

    output = watched(_checkpoint, (*args, *kwargs.values()), run)
    return found[1](output)
