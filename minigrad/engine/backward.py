"""The backward pass: gradients travel from the outputs, through the recorded nodes, to the leaves.

Nodes are numbered in the order of their creation, so a child always has a larger number than its parents; the backward
pass takes nodes from a heap, largest number first, and therefore visits each one exactly once, after all of its
gradient has arrived. There is no recursion: graphs of any depth work.

The same loop serves two purposes:

* the ordinary backward runs the rules on raw arrays, and adds in place into buffers that it owns;
* under ``create_graph`` it runs the *same* rules on tensors, which records them, so that the gradient can itself be
  differentiated, to any order.
"""

from __future__ import annotations

import contextlib
import functools
import heapq
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from minigrad.device import is_array, on_device_of, xp
from minigrad.device.sums import broadcasts_to, sum_to
from minigrad.engine.node import FREED, Array, Node, TensorBase, gradient_target, in_dtype, next_number, wrap
from minigrad.engine.primitive import only_definitions
from minigrad.engine.watch import NOTHING, around, put_around, span, watched

Receive = Callable[[Any, Any, bool], None]  # of a leaf, its gradient, and whether nobody else refers to that memory


class Arriving:
    """Gradients that have arrived but were not sent on yet, and the heap of the nodes that they are for.

    An entry is ``[value, owned, target]``, by the id of the node or leaf. A rule may return its argument, a view, or
    one array for two inputs, so a value is borrowed at first and never written to. The second arrival makes a sum that
    we own; later ones add into it. Under ``create_graph`` values are tensors, which no sum changes.
    """

    def __init__(self, create_graph: bool) -> None:
        self.create_graph = create_graph
        self.may_write = not create_graph and all(watcher.buffers for watcher in around.get().watchers)
        self.entries: dict[int, list[Any]] = {}
        self.heap: list[tuple[int, Node]] = []
        self.expected: Counter[int] = Counter()  # how many gradients are still to come, by a leaf's id; see `expect`

    def add(self, target: Any, value: Any, fresh: bool) -> None:
        """Add `value` to what is there for `target`. `fresh`: nobody else can refer to its memory."""
        if self.create_graph and not isinstance(value, TensorBase):  # a constant that a rule returned
            value = wrap(value)
        entry = self.entries.get(id(target))
        if entry is None:
            self.entries[id(target)] = [value, fresh, target]
            if type(target) is Node:
                heapq.heappush(self.heap, (-target.number, target))
        elif not entry[1] or entry[0] is not value:  # else it is a buffer, into which a rule has added already
            add: Any = operator.iadd if entry[1] else operator.add
            with on_device_of(getattr(value, "_data", value)):  # not always the current one: `to_device`
                entry[0], entry[1] = add(entry[0], value), True

    def buffer(self, target: Any, like: Array) -> Array:
        """The sum so far for `target`, an array that we own, for a rule to add into."""
        if id(target) not in self.entries:
            self.add(target, xp(like).zeros(target.shape, target.dtype), True)
        entry = self.entries[id(target)]
        if not entry[1] or isinstance(entry[0], np.generic):
            entry[0], entry[1] = xp(like).array(entry[0]), True
        return entry[0]

    def latest(self) -> list[Any]:
        """Remove and return the entry of the newest node, whose gradient is complete, after its hooks."""
        node = heapq.heappop(self.heap)[1]
        entry = self.entries.pop(id(node))
        return [node._hooks.run(entry[0]), False, node] if node._hooks else entry

    def expect(self, nodes: Iterable[Node]) -> None:
        """Count what `nodes` are going to send to each leaf, so that `hand_over` knows the last."""
        self.expected.update([id(parent) for node in nodes for parent in node.parents if type(parent) is not Node])

    def hand_over(self, node: Node, receive: Receive) -> None:
        """Let `receive` take the gradients of the leaves for which `node`, which has sent its own, was the last."""
        for parent in node.parents:
            if type(parent) is not Node:
                self.expected[id(parent)] -= 1
                if not self.expected[id(parent)]:
                    gradient, owned, leaf = self.entries.pop(id(parent))
                    receive(leaf, gradient, owned)


def backward_pass(roots: Sequence[tuple[Any, Any]], create_graph: bool, retain_graph: bool,
                  wanted: set[int] | None, captured: set[int], receive: Receive | None = None) -> dict[int, list[Any]]:
    """Send gradients from `roots` down to the leaves.

    Args:
        roots: pairs of a target (node or leaf) and its gradient (raw arrays, or tensors under `create_graph`).
        wanted: ids of the targets worth reaching; None for all.
        captured: ids of nodes whose gradient is a result; if `wanted` is None, so is that of nodes that retain it.
        receive: takes the gradient of each leaf as soon as it is complete; the leaf is then no result.

    Returns:
        ``[gradient, owned, target]`` by the target's id, for every leaf reached and every captured node.
    """
    arriving, results = Arriving(create_graph), {}
    for root, gradient in roots:
        arriving.add(root, gradient, False)
    if receive is not None:
        arriving.expect(graph_of([root for root, _ in roots])[0].values())
    with contextlib.ExitStack() as stack:
        if create_graph:  # the recorded gradient uses definitions, in the precision of the forward
            stack.enter_context(put_around(compose=None, cast=None))
            stack.enter_context(only_definitions())
        if around.get() is not NOTHING:
            stack.enter_context(span("backward"))
        while arriving.heap:
            g, _, node = entry = arriving.latest()
            if id(node) in captured or (wanted is None and node.retained is not None):
                results[id(node)] = entry
            if wanted is not None and not any(id(parent) in wanted for parent in node.parents):
                continue  # nothing below it is asked for, and the node remains unused
            node.check()
            run = functools.partial(gradients_of_parents, node, g, arriving, wanted)
            if g.device == "cpu" and around.get() is NOTHING:
                gradients = run()
            else:
                with on_device_of(getattr(g, "_data", g)):
                    gradients = watched(node, g, run)
            for target, gradient in zip(node.parents, gradients, strict=True):
                if gradient is not None:
                    arriving.add(target, gradient, node.plan.fresh and arriving.may_write)
            if not retain_graph:
                node.saved, node.versions = FREED, ()
            if receive is not None:
                arriving.hand_over(node, receive)
    return {**arriving.entries, **results}


def gradients_of_parents(node: Node, g: Any, arriving: Arriving, wanted: set[int] | None) -> list[Any]:
    """Run the rules of `node`: the gradient of each parent, or None where it is not needed."""
    plan, create_graph = node.plan, arriving.create_graph
    # Rules that add into a buffer, only where we may write; under create_graph the definition's, or none: `expand`.
    joint, calls = (plan.calls if arriving.may_write or not (create_graph or plan.of_definition[1]) else
                    plan.of_definition)
    if not calls:
        return expand(node, g, arriving, wanted)
    values = (g, plan.needs, *(saved_as_tensors(node) if create_graph else node.saved))
    if joint is not None:
        values = tuple(joint.rule(*joint.pick(values)))
        if len(values) != len(node.primitive.inputs):
            raise TypeError(f"{node.primitive.name}: its joint gradient rule must return one gradient for each of its "
                            f"{len(node.primitive.inputs)} inputs")
    gradients: list[Any] = [None] * len(calls)
    for i, (rule, pick, adds) in enumerate(calls):
        target = node.parents[i]
        if wanted is None or id(target) in wanted:
            if adds:
                gradient = arriving.buffer(target, g)
                rule(gradient, *pick(values))
            else:
                gradient = rule(*pick(values))
            like = target if type(target) is Node else target._data
            if getattr(gradient, "shape", None) != like.shape or gradient.dtype != like.dtype:
                gradient = match_input(gradient, like, node.primitive, plan.names[i])
            gradients[i] = gradient
    return gradients


def match_input(gradient: Any, like: Any, primitive: Any, name: str) -> Any:
    """What a rule returned for the input `name`, in that input's dtype, summed over the axes that were broadcast.

    An error if it is no array, or its shape is not that of an input that was broadcast.
    """
    shape = getattr(gradient, "shape", None)
    if shape is None or (shape != like.shape and not (primitive.broadcasts and broadcasts_to(like.shape, shape))):
        returned = repr(gradient) if shape is None else f"shape {tuple(shape)}"
        raise (TypeError if shape is None else ValueError)(
            f"{primitive.name}: its gradient rule for {name!r} returned {returned} for an input of shape "
            f"{tuple(like.shape)}")
    gradient = sum_to(gradient, like.shape)
    return gradient if gradient.dtype == like.dtype else gradient.astype(like.dtype)


# --------------------------------------------------------------------------- second order, and recomputation


def expand(node: Node, g: Any, arriving: Arriving, wanted: set[int] | None) -> list[None]:
    """Record what made `node` in its place, and send its gradient on to what that recorded, not to the parents."""
    newest = next_number()
    target = gradient_target((node.primitive.recomputes or composed)(node))
    recorded = graph_of([target], newest)[0]
    if wanted is not None:
        wanted.update(recorded)
    if arriving.expected:
        arriving.expect(recorded.values())
    arriving.add(target, g, False)
    return [None] * len(node.parents)


def composed(node: Node) -> Any:
    """The steps of the primitive of `node`, recorded on its inputs, all of which it keeps."""
    primitive, kept = node.primitive, dict(zip(node.plan.keep, saved_as_tensors(node), strict=True))
    return primitive.composed([kept["value", i] for i in range(len(primitive.parameters))])


def saved_as_tensors(node: Node) -> list[Any]:
    """The saved values of `node` as tensors, in their place in the graph, so that rules on them are recorded."""
    primitive, parents = node.primitive, dict(zip(node.plan.names, node.parents, strict=True))
    versions = {id(value): counter for counter, _, value in node.versions}  # a change after this pass is an error too

    values = []
    for (kind, position), value in zip(node.plan.keep, node.saved, strict=True):
        if kind == "out":
            value = wrap(value, node, versions[id(value)])
        elif kind == "value" and position in primitive.positions and is_array(value):
            target = parents.get(primitive.parameters[position])
            if isinstance(target, TensorBase):  # it was cast on the way into the forward, and so into its rules
                value = in_dtype(target, value.dtype)
            else:
                value = wrap(value, target, versions.get(id(value)))
        values.append(value)
    return values


def graph_of(roots: Iterable[Any], since: int = -1) -> tuple[dict[int, Node], list[Any]]:
    """The nodes at or below `roots` that are newer than the number `since`, by id; and the targets they lead to."""
    newer: dict[int, Node] = {}
    others: dict[int, Any] = {}
    stack = list(roots)
    while stack:
        target = stack.pop()
        if type(target) is not Node or target.number <= since:
            others[id(target)] = target
        elif id(target) not in newer:
            newer[id(target)] = target
            stack.extend(target.parents)
    return newer, list(others.values())
