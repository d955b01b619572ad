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

import heapq
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from minigrad.device import device_of, is_array, on_device_of, xp
from minigrad.engine.accumulate import Pending, deliver, is_fresh
from minigrad.engine.hooks import hooked
from minigrad.engine.node import FREED, Node, TensorBase, gradient_target, next_number, wrap
from minigrad.engine.observe import observers, span
from minigrad.engine.operands import numbers_on
from minigrad.engine.plan import run_rule

Receive = Callable[[Any, Any, bool], None]  # of a leaf, its gradient, and whether nobody else refers to that memory


def _push_gradients(node: Node, g: Any, pending: Pending, wanted: set[int] | None) -> list[Any]:
    """Run the rules of `node` on its gradient `g`; returns the parents that received their first gradient."""
    plan, create_graph = node.plan, pending.create_graph
    if plan.recomputes or (create_graph and plan.expands):
        # What made it is recorded in the node's place, and the traversal goes on through what that recorded.
        newest = next_number()
        target = gradient_target(node.primitive.expand(node))
        for observer in observers():
            observer.expanded(node, target)
        if wanted is not None:
            wanted.update(_recorded_since(newest, target))
        if pending.expected:
            pending.expect(_recorded_since(newest, target).values())
        return [target] if pending.add(target, g, False) else []

    saved = node.saved if not create_graph else node.primitive.rejoin(node)
    values, first = (g, plan.needs, *saved), []
    watching, in_place = observers(), True
    if watching:
        watching = tuple([observer for observer in watching if observer.follows_gradients])
        in_place = all(observer.accumulates for observer in watching)
    if plan.joint is not None:
        results = plan.select(node.primitive, run_rule(*plan.joint, values))
        # One joint rule may hand the same memory to two inputs: only all-new, all-different arrays count as fresh.
        distinct = len({id(r) for r in results}) == len(results) and all(is_fresh(r, g, saved) for r in results)
        for target, result, name in zip(node.parents, results, plan.names, strict=True):
            if wanted is None or id(target) in wanted:
                result = node.primitive.conform(result, target, name)
                for observer in watching:
                    observer.gradient_sent(node, name, target, result)
                if pending.add(target, result, distinct):
                    first.append(target)
        return first

    for target, (name, function, pick, accumulate, accumulate_pick) in zip(node.parents, plan.calls, strict=True):
        if wanted is not None and id(target) not in wanted:
            continue
        if accumulate is not None and not create_graph and in_place:
            buffer, is_first = pending.owned_buffer(target, g)
            if is_first:
                for observer in watching:
                    observer.gradient_sent(node, name, target, buffer)
            accumulate(buffer, *(accumulate_pick(values) if accumulate_pick is not None else (g,)))
        else:
            result = function(g) if pick is None else function(*pick(values))
            like = target if type(target) is Node else target._data
            if getattr(result, "shape", None) != like.shape or result.dtype is not like.dtype:
                result = node.primitive.conform(result, target, name)
            for observer in watching:
                observer.gradient_sent(node, name, target, result)
            is_first = pending.add(target, result, not create_graph and result is not g and is_fresh(result, g, saved))
        if is_first:
            first.append(target)
    return first


def backward_pass(roots: Sequence[tuple[Any, Any]], create_graph: bool, retain_graph: bool,
                  wanted: set[int] | None, captured: set[int], receive: Receive | None = None) -> dict[int, list[Any]]:
    """Send gradients from `roots` down to the leaves.

    Args:
        roots: pairs of a target (node or leaf) and its gradient (raw arrays, or tensors under `create_graph`).
        wanted: ids of the targets worth reaching, for `grad`; None for all, for `backward`, which also fills the
            ``.grad`` of tensors that retain it.
        captured: ids of nodes whose gradient is a result.
        receive: takes the gradient of each leaf as soon as it is complete; the leaf is then no result.

    Returns:
        ``[gradient, owned, target]`` by the target's id, for every leaf reached and every captured node.
    """
    for root, _ in roots:
        if type(root) is Node and root.primitive.scales:
            with np.errstate(over="ignore", invalid="ignore"):
                return _observed_pass(roots, create_graph, retain_graph, wanted, captured, receive)
    return _observed_pass(roots, create_graph, retain_graph, wanted, captured, receive)


def _observed_pass(roots: Sequence[tuple[Any, Any]], create_graph: bool, retain_graph: bool, wanted: set[int] | None,
                   captured: set[int], receive: Receive | None) -> dict[int, list[Any]]:
    """As `backward_pass`, told to the observers if there are any."""
    if not observers():
        return _pass(_push_gradients, roots, create_graph, retain_graph, wanted, captured, receive)
    with span("backward"):
        return _pass(_push_observed, roots, create_graph, retain_graph, wanted, captured, receive)


def _pass(push: Callable[..., list[Any]], roots: Sequence[tuple[Any, Any]], create_graph: bool, retain_graph: bool,
          wanted: set[int] | None, captured: set[int], receive: Receive | None) -> dict[int, list[Any]]:
    """As `backward_pass`; `push` runs the rules of a node."""
    pending = Pending(create_graph)
    if receive is not None:
        below: dict[int, Node] = {}
        for root, _ in roots:
            below |= _recorded_since(-1, root)
        pending.expect(below.values())
    heap: list[tuple[int, Node]] = []
    results: dict[int, list[Any]] = {}
    retained: list[tuple[Any, Any]] = []
    first = [target for target, gradient in roots if pending.add(target, gradient, False)]
    while True:
        for target in first:  # those that received their first gradient, once each
            if type(target) is Node:
                heapq.heappush(heap, (-target.number, target))
        if not heap:
            break
        node = heapq.heappop(heap)[1]
        entry = pending.pop(node)
        if node._hooks:
            entry = hooked(entry)
        g = entry[0]
        if id(node) in captured:
            results[id(node)] = entry
        if wanted is None:
            if node.retained is not None:
                retained.append((node.retained, g))
        elif not any(id(parent) in wanted for parent in node.parents):
            first = []
            continue  # nothing below it is asked for, and the node remains unused
        if node.ticks or node.saved is FREED:
            node.check()
        if type(g) is np.ndarray:
            first = push(node, g, pending, wanted)
        else:
            with on_device_of(g._data if create_graph else g):
                first = push(node, g, pending, wanted)
        if not retain_graph:
            node.saved, node.ticks = FREED, ()
        if receive is not None:
            for gradient, owned, leaf in pending.complete(node):
                receive(leaf, gradient, owned)
    for tensor, g in retained:  # only now: a pass that fails on the way leaves every .grad as it was
        deliver(tensor(), g, False)
    return {**pending.entries, **results}


def _push_observed(node: Node, g: Any, pending: Pending, wanted: set[int] | None) -> list[Any]:
    """As `_push_gradients`, with the observers told before and after."""
    watching = observers()
    for observer in watching:
        observer.rules_begin(node, g)
    try:
        return _push_gradients(node, g, pending, wanted)
    finally:
        for observer in reversed(watching):
            observer.rules_end(node)


def arrived(entry: list[Any]) -> list[Any]:
    """The entry of a leaf at the end of a pass, after its hooks; the observers are told."""
    entry = hooked(entry)
    for observer in observers():
        observer.leaf_reached(entry[2], entry[0])
    return entry


def leaves_below(roots: Sequence[Any]) -> list[Any]:
    """Every leaf tensor below `roots`, each once."""
    seen: set[int] = set()
    stack, leaves = list(roots), []
    while stack:
        target = stack.pop()
        if id(target) in seen:
            continue
        seen.add(id(target))
        if isinstance(target, Node):
            stack.extend(target.parents)
        else:
            leaves.append(target)
    return leaves


def _recorded_since(number: int, root: Any) -> dict[int, Any]:
    """The nodes at or below `root` that are newer than `number`, by id."""
    found: dict[int, Any] = {}
    stack = [root]
    while stack:
        target = stack.pop()
        if isinstance(target, Node) and target.number > number and id(target) not in found:
            found[id(target)] = target
            stack.extend(target.parents)
    return found


def boundary(root: Any, number: int) -> list[Any]:
    """The leaves, and the nodes older than `number`, that the newer nodes at or below `root` send gradients to."""
    newer = _recorded_since(number, root)
    below = {id(parent): parent for node in newer.values() for parent in node.parents}
    return [target for key, target in below.items() if key not in newer]


def root_gradient(output: Any, gradient: Any, operation: str, create_graph: bool) -> Any:
    """The gradient to start from: given by the caller, or 1 for an output with a single element."""
    data = output._data
    namespace = xp(data)
    if gradient is None:
        if data.size != 1:
            raise ValueError(f"{operation}: only an output with one element has an implied gradient, got shape "
                             f"{data.shape}; reduce it (for instance with .sum()) or pass a gradient of that shape")
        with on_device_of(data):
            gradient = namespace.ones(data.shape, data.dtype)
    elif isinstance(gradient, TensorBase):
        gradient = gradient if create_graph else gradient._data
    elif not is_array(gradient):
        gradient = numbers_on(device_of(data), gradient, data.dtype, operation)
    if tuple(gradient.shape) != tuple(data.shape):
        raise ValueError(f"{operation}: the gradient has shape {tuple(gradient.shape)}, "
                         f"the output has shape {tuple(data.shape)}")
    place = device_of(getattr(gradient, "_data", gradient))
    if place != device_of(data):
        raise ValueError(f"{operation}: the gradient is on {place}, the output on {device_of(data)}; "
                         "move one with .to(device)")
    if gradient.dtype != data.dtype:
        with on_device_of(data):
            gradient = gradient.astype(data.dtype)
    if create_graph and not isinstance(gradient, TensorBase):
        gradient = wrap(gradient)
    return gradient


def require_recorded(output: Any, operation: str) -> None:
    """RuntimeError unless `output` is the start of a recorded graph."""
    if not output._requires_grad:
        raise RuntimeError(f"{operation}: the output (shape {tuple(output._data.shape)}) was not recorded: no input "
                           "requires a gradient, or it was computed under no_grad()")


def backward(output: Any, gradient: Any = None, retain_graph: bool = False, receive: Receive | None = None) -> None:
    """Accumulate the gradient of `output` into ``.grad`` of every leaf (and `retain_grad` tensor) it depends on.

    Args:
        output: a recorded tensor.
        gradient: what to start from, of output's shape; may be left out for a single element (then 1).
        retain_graph: keep the saved values, so that the graph can be gone through again.
        receive: called as ``receive(leaf, gradient, owned)`` for each leaf once its gradient is complete, often long
            before the pass ends. No ``.grad`` is filled and no hook of a leaf runs: `arrive` does both.

    Raises:
        RuntimeError: nothing was recorded; the graph was used before; a saved value was changed in place.
        ValueError: `gradient` is missing for several elements, or has another shape.
    """
    require_recorded(output, "backward")
    root = gradient_target(output)
    start = root_gradient(output, gradient, "backward", create_graph=False)
    results = backward_pass([(root, start)], False, retain_graph, wanted=None, captured=set(), receive=receive)
    if receive is None:
        arrive(results.values())
    elif root is output:  # a leaf, to which no node sent anything
        receive(root, start, False)


def arrive(entries: Iterable[list[Any]]) -> None:
    """Fill ``.grad`` of the leaves of these entries ``[gradient, owned, leaf]``, after the hooks of all of them."""
    for gradient, owned, leaf in [arrived(entry) for entry in entries]:
        deliver(leaf, gradient, owned)
