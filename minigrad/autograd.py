"""The tape: bare tensors, the nodes that remember how they were made, and the backward pass over them.

A `TensorBase` holds an array. If it came out of a recorded operation it also holds a `Node`: which primitive made
it, which saved values the gradient rules will need, and the parents (nodes, or leaf tensors) to send gradients to.
Nodes are numbered in the order of their creation, so a child always has a larger number than its parents; the
backward pass takes nodes from a heap, largest number first, and therefore visits each one exactly once, after all
of its gradient has arrived. There is no recursion: graphs of any depth work.

The same loop serves two purposes:

* the ordinary backward runs the rules on raw arrays, and adds in place into buffers that it owns;
* under ``create_graph`` it runs the *same* rules on tensors, which records them, so that the gradient can itself be
  differentiated, to any order.
"""

from __future__ import annotations

import contextlib
import functools
import heapq
import inspect
import itertools
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import numpy as np

from minigrad.device import asarray_on, device_of, is_array, on_device_of, xp

if TYPE_CHECKING:
    from minigrad.primitive import Plan, Primitive

Array = Any  # numpy.ndarray, or the array of a CuPy-like module


# --------------------------------------------------------------------------- context-local switches


class Switch:
    """A context-local boolean; each use is a context manager and a decorator, of generator functions too."""

    def __init__(self, name: str, default: bool) -> None:
        self._variable: ContextVar[bool] = ContextVar(name, default=default)
        self.get = self._variable.get

    def set_to(self, value: bool) -> SwitchContext:
        """A context manager, and decorator, within which the switch has this value."""
        return SwitchContext(self._variable, value)


class SwitchContext:
    """``with`` sets the switch and puts the old value back; as a decorator it does so around every call.

    Functions, generator functions and coroutine functions can be decorated.
    """

    def __init__(self, variable: ContextVar[bool], value: bool) -> None:
        self._variable, self._value = variable, value
        self._previous: list[bool] = []

    def __enter__(self) -> None:
        self._previous.append(self._variable.get())
        self._variable.set(self._value)

    def __exit__(self, *exception: object) -> None:
        self._variable.set(self._previous.pop())

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Decorate `function`; TypeError for an asynchronous generator function."""
        if inspect.isasyncgenfunction(function):
            raise TypeError(f"{function.__name__}: an asynchronous generator cannot be decorated with this switch; "
                            "use it inside as a context manager, around code that does not yield")
        if inspect.iscoroutinefunction(function):  # may be suspended inside: each task has a context of its own

            @functools.wraps(function)
            async def run(*args: Any, **kwargs: Any) -> Any:
                with SwitchContext(self._variable, self._value):
                    return await function(*args, **kwargs)

            return run
        if not inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def call(*args: Any, **kwargs: Any) -> Any:
                with SwitchContext(self._variable, self._value):
                    return function(*args, **kwargs)

            return call

        # A generator is entered and left at every step: its caller must never run under our switch.
        @functools.wraps(function)
        def generate(*args: Any, **kwargs: Any) -> Iterator[Any]:
            generator = function(*args, **kwargs)
            resume, argument = generator.send, None
            while True:
                with SwitchContext(self._variable, self._value):
                    try:
                        item = resume(argument)
                    except StopIteration as stop:
                        return stop.value
                try:
                    resume, argument = generator.send, (yield item)
                except GeneratorExit:
                    with SwitchContext(self._variable, self._value):
                        generator.close()
                    raise
                except BaseException as error:  # noqa: BLE001 - thrown in by the caller: the generator's to handle
                    resume, argument = generator.throw, error

        return generate


recording = Switch("minigrad.recording", default=True)
fused_kernels = Switch("minigrad.fused", default=True)


def no_grad() -> SwitchContext:
    """Record nothing inside: ``with no_grad(): …``, or as a decorator. Local to the current thread or task."""
    return recording.set_to(False)


def enable_grad() -> SwitchContext:
    """Record again inside a `no_grad` block."""
    return recording.set_to(True)


def is_grad_enabled() -> bool:
    """Whether operations are recorded here."""
    return recording.get()


def fused(enabled: bool) -> SwitchContext:
    """``with fused(False):`` runs every fused function as its readable composition. Local to the thread or task."""
    return fused_kernels.set_to(enabled)


# --------------------------------------------------------------------------- tensors and nodes


class TensorBase:
    """An array, whether it requires a gradient, and the node that made it. `minigrad.Tensor` adds the methods.

    ``_tick`` is a one-element list that counts in-place changes; views of the same memory share it.
    """

    __slots__ = ("__weakref__", "_data", "_node", "_requires_grad", "_tick", "grad")

    _data: Array
    _node: Node | None
    _requires_grad: bool
    _tick: list[int]
    grad: Any


_tensor_class: type[TensorBase] = TensorBase


def register_tensor_class(cls: type[TensorBase]) -> None:
    """The one seam by which `minigrad.tensor` tells the engine which class its results have."""
    global _tensor_class
    _tensor_class = cls


def wrap(array: Array, node: Node | None = None, tick: list[int] | None = None) -> Any:
    """A tensor around `array` (not copied), as the output of `node`."""
    tensor = _tensor_class.__new__(_tensor_class)
    tensor._data = array if not isinstance(array, (np.generic, bool, int, float)) else np.asarray(array)
    tensor._node = node
    tensor._requires_grad = node is not None
    tensor._tick = [0] if tick is None else tick
    tensor.grad = None
    return tensor


class Saved:
    """Values that a fused forward keeps for its joint rule: ``Saved(mean=mean, rstd=rstd)``, read as ``saved.mean``."""

    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)


FREED: tuple[Any, ...] = ("freed",)
_next_number = itertools.count().__next__


class Node:
    """One recorded operation: what its rules need, and whom its gradients go to.

    ``parents`` are the nodes, or leaf tensors, of the inputs that require gradients, in the order of ``plan.calls``.
    ``ticks`` are the change counters of the saved values: ``(tick, its count when the value was saved, the value)``.
    A node never holds its own output, nor a tensor that is not a leaf: so no reference cycle can arise.
    """

    __slots__ = ("__weakref__", "dtype", "number", "parents", "plan", "primitive", "retained", "saved", "shape",
                 "ticks")

    def __init__(self, primitive: Primitive, plan: Plan, parents: tuple[Any, ...], saved: tuple[Any, ...],
                 ticks: tuple[tuple[list[int], int, Array], ...], shape: tuple[int, ...], dtype: Any) -> None:
        self.number = _next_number()
        self.primitive, self.plan, self.parents, self.saved, self.ticks = primitive, plan, parents, saved, ticks
        self.shape, self.dtype = shape, dtype
        self.retained: Any = None  # a weak reference to the tensor on which retain_grad() was called

    def check(self) -> None:
        """Raise if this node was freed by an earlier backward, or if a value that it saved has changed since."""
        if self.saved is FREED:
            raise RuntimeError(
                f"{self.primitive.name}: this part of the graph was already used by a backward pass and its saved "
                "values are freed; pass retain_graph=True to the first pass to go through it twice")
        for tick, then, _ in self.ticks:
            if tick[0] != then:
                raise RuntimeError(
                    f"{self.primitive.name}: a tensor of shape {self.shape} or an operand of it, saved for the "
                    "backward pass, was changed in place afterwards; change a copy, or change it after backward()")


def gradient_target(tensor: TensorBase) -> Any:
    """Where the gradient of `tensor` goes: its node, or, if it is a leaf, the tensor itself."""
    return tensor if tensor._node is None else tensor._node


# --------------------------------------------------------------------------- accumulation


class Pending:
    """Gradients that have arrived but were not sent on yet, by the id of the node or leaf that they are for.

    An entry is ``[value, owned]``. A rule may return its argument, a view, or one array for two inputs, so a value
    is borrowed at first and never written to. The second arrival makes a sum that we own; later ones add into it.
    """

    def __init__(self, create_graph: bool) -> None:
        self.create_graph = create_graph
        self.entries: dict[int, list[Any]] = {}

    def add(self, target: Any, value: Any, fresh: bool) -> bool:
        """Add `value`; True if it is the first for `target`. `fresh`: nobody else can refer to its memory."""
        if self.create_graph and not isinstance(value, TensorBase):  # a rule may return a constant
            value = wrap(value)
        entry = self.entries.get(id(target))
        if entry is None:
            self.entries[id(target)] = [value, fresh]
            return True
        if self.create_graph:
            entry[0] = entry[0] + value
            return False
        with on_device_of(value):  # which need not be the current one: `to_device` sends gradients to another
            if entry[1]:
                entry[0] += value
            else:
                entry[0], entry[1] = entry[0] + value, True
        return False

    def owned_buffer(self, target: Any, like: Array) -> tuple[Array, bool]:
        """An array of the target's shape that we own, for rules that add into it; and whether it is the first."""
        entry = self.entries.get(id(target))
        namespace = xp(like)
        if entry is None:
            buffer = namespace.zeros(target.shape, target.dtype)
            self.entries[id(target)] = [buffer, True]
            return buffer, True
        if not entry[1] or isinstance(entry[0], np.generic):
            entry[0], entry[1] = namespace.array(entry[0]), True
        return entry[0], False

    def pop(self, target: Any) -> list[Any]:
        """Take the entry of `target` out."""
        return self.entries.pop(id(target))


def _fresh(value: Any, g: Any, saved: tuple[Any, ...]) -> bool:
    """Whether a rule's result is an array that it made itself: not a view, nor one of the things it was given."""
    if value is g or getattr(value, "base", value) is not None:
        return False
    for other in saved:
        if value is other:
            return False
        several = other if type(other) is tuple else vars(other).values() if type(other) is Saved else ()
        if any(value is one for one in several):
            return False
    return True


# --------------------------------------------------------------------------- the backward pass


def _push_gradients(node: Node, g: Any, pending: Pending, wanted: set[int] | None) -> list[Any]:
    """Run the rules of `node` on its gradient `g`; returns the parents that received their first gradient."""
    plan, first = node.plan, []
    if pending.create_graph and plan.expands:
        # The composition is recorded in the node's place, and the traversal goes on through what it recorded.
        newest = _next_number()
        target = gradient_target(node.primitive.expand(node))
        if wanted is not None:
            wanted |= _recorded_since(newest, target)
        pending.add(target, g, False)
        return [target]

    saved = node.primitive.rejoin(node) if pending.create_graph else node.saved
    values = (g, plan.needs, *saved)
    if plan.joint is not None:
        function, picks = plan.joint
        results = function(*[values[i] for i in picks])
        results = plan.select(node.primitive, results)
        # One joint rule may hand the same memory to two inputs: only all-new, all-different arrays count as fresh.
        distinct = len({id(r) for r in results}) == len(results) and all(_fresh(r, g, saved) for r in results)
        for target, result, name in zip(node.parents, results, plan.names, strict=True):
            if wanted is None or id(target) in wanted:
                result = node.primitive.conform(result, target, name)
                if pending.add(target, result, distinct):
                    first.append(target)
        return first

    for target, call in zip(node.parents, plan.calls, strict=True):
        if wanted is not None and id(target) not in wanted:
            continue
        if call.accumulate is not None and not pending.create_graph:
            buffer, is_first = pending.owned_buffer(target, g)
            call.accumulate(buffer, *[values[i] for i in call.accumulate_picks])
        else:
            result = call.function(*[values[i] for i in call.picks])
            fresh = not pending.create_graph and _fresh(result, g, saved)
            is_first = pending.add(target, node.primitive.conform(result, target, call.name), fresh)
        if is_first:
            first.append(target)
    return first


def _backward_pass(roots: Sequence[tuple[Any, Any]], create_graph: bool, retain_graph: bool,
                   wanted: set[int] | None, captured: set[int]) -> dict[int, list[Any]]:
    """Send gradients from `roots` down to the leaves.

    Args:
        roots: pairs of a target (node or leaf) and its gradient (raw arrays, or tensors under `create_graph`).
        wanted: ids of the targets worth reaching, for `grad`; None for all, for `backward`, which also fills the
            ``.grad`` of tensors that retain it.
        captured: ids of nodes whose gradient is a result.

    Returns:
        ``[gradient, owned]`` by id, for every leaf reached and every captured node.
    """
    pending = Pending(create_graph)
    heap: list[tuple[int, Node]] = []
    queued: set[int] = set()

    def queue(target: Any) -> None:
        if isinstance(target, Node) and id(target) not in queued:
            queued.add(id(target))
            heapq.heappush(heap, (-target.number, target))

    results: dict[int, list[Any]] = {}
    visited: list[Node] = []
    for target, gradient in roots:
        pending.add(target, gradient, False)
        queue(target)
    while heap:
        node = heapq.heappop(heap)[1]
        visited.append(node)  # keeps ids in `queued` from being reused while the pass runs
        entry = pending.pop(node)
        g = entry[0]
        if id(node) in captured:
            results[id(node)] = entry
        if wanted is None:
            if node.retained is not None:
                _deliver(node.retained(), g, False)
        elif not any(id(parent) in wanted for parent in node.parents):
            continue  # nothing below it is asked for, and the node remains unused
        node.check()
        with on_device_of(g._data if create_graph else g):
            for target in _push_gradients(node, g, pending, wanted):
                queue(target)
        if not retain_graph:
            node.saved, node.ticks = FREED, ()
    return {**pending.entries, **results}


def _deliver(leaf: Any, value: Any, owned: bool) -> None:
    """Put a gradient into ``leaf.grad``: memory of its own the first time, added in place afterwards."""
    if leaf is None:  # a retained tensor that nobody holds any more
        return
    if isinstance(value, TensorBase):
        value = value._data
    if leaf.grad is not None:
        buffer = leaf.grad._data
        with on_device_of(buffer):
            buffer += value
        leaf.grad._tick[0] += 1
        return
    leaf.grad = wrap(value if owned else _copy(value))


def _copy(array: Array) -> Array:
    """A copy with memory of its own, on the same device; a NumPy scalar becomes an array."""
    with on_device_of(array):
        return xp(array).array(array)


def _leaves(roots: Sequence[Any]) -> list[Any]:
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


def _paths_to(roots: Sequence[Any], inputs: set[int]) -> set[int]:
    """The ids of every target below `roots` from which one of `inputs` can be reached, inputs included."""
    seen: dict[int, Any] = {}
    stack = list(roots)
    while stack:
        target = stack.pop()
        if id(target) not in seen:
            seen[id(target)] = target
            if isinstance(target, Node):
                stack.extend(target.parents)
    wanted = inputs & seen.keys()
    nodes = sorted((t for t in seen.values() if isinstance(t, Node)), key=lambda node: node.number)
    for node in nodes:  # parents come first, so one sweep is enough
        if any(id(parent) in wanted for parent in node.parents):
            wanted.add(id(node))
    return wanted


def _recorded_since(number: int, root: Any) -> set[int]:
    """The ids of the nodes at or below `root` that are newer than `number`."""
    found: set[int] = set()
    stack = [root]
    while stack:
        target = stack.pop()
        if isinstance(target, Node) and target.number > number and id(target) not in found:
            found.add(id(target))
            stack.extend(target.parents)
    return found


def _root_gradient(output: Any, gradient: Any, operation: str, create_graph: bool) -> Any:
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
        gradient = asarray_on(device_of(data), gradient, data.dtype)
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


def _require_recorded(output: Any, operation: str) -> None:
    if not output._requires_grad:
        raise RuntimeError(f"{operation}: the output (shape {tuple(output._data.shape)}) was not recorded: no input "
                           "requires a gradient, or it was computed under no_grad()")


def backward(output: Any, gradient: Any = None, retain_graph: bool = False) -> None:
    """Accumulate the gradient of `output` into ``.grad`` of every leaf (and `retain_grad` tensor) it depends on.

    Args:
        output: a recorded tensor.
        gradient: what to start from, of output's shape; may be left out for a single element (then 1).
        retain_graph: keep the saved values, so that the graph can be gone through again.

    Raises:
        RuntimeError: nothing was recorded; the graph was used before; a saved value was changed in place.
        ValueError: `gradient` is missing for several elements, or has another shape.
    """
    _require_recorded(output, "backward")
    root = gradient_target(output)
    start = _root_gradient(output, gradient, "backward", create_graph=False)
    leaves = _leaves([root])
    results = _backward_pass([(root, start)], False, retain_graph, wanted=None, captured=set())
    for leaf in leaves:
        if id(leaf) in results:
            _deliver(leaf, *results[id(leaf)])


def grad(outputs: Any, inputs: Any, grad_outputs: Any = None, *, create_graph: bool = False,
         retain_graph: bool | None = None, allow_unused: bool = False) -> Any:
    """The gradients of `outputs` (summed) with respect to `inputs`; ``.grad`` is not touched.

    Args:
        outputs: a recorded tensor, or a sequence of them.
        inputs: a tensor, or a sequence of tensors, leaves or not, that require gradients.
        grad_outputs: what to start from, one for each output; may be left out for single elements.
        create_graph: record the computation of the gradients, so that they can be differentiated again.
        retain_graph: keep the saved values; by default the same as `create_graph`.
        allow_unused: give None for an input that the outputs do not depend on, in place of an error.

    Returns:
        A tensor if `inputs` is one, else a tuple with one entry for each input, each with memory of its own.
    """
    single = isinstance(inputs, TensorBase)
    input_list = [inputs] if single else list(inputs)
    output_list = [outputs] if isinstance(outputs, TensorBase) else list(outputs)
    if grad_outputs is None:
        starts = [None] * len(output_list)
    else:  # one for one; a tensor or an array is one start, not a sequence of its rows
        alone = isinstance(outputs, TensorBase) or isinstance(grad_outputs, TensorBase) or is_array(grad_outputs)
        starts = [grad_outputs] if alone else list(grad_outputs)
    if len(starts) != len(output_list):
        raise ValueError(f"grad: {len(output_list)} outputs but {len(starts)} grad_outputs")
    for position, tensor in enumerate(input_list):
        if not isinstance(tensor, TensorBase):
            raise TypeError(f"grad: input {position} is a {type(tensor).__name__}, not a Tensor")
        if not tensor._requires_grad:
            raise ValueError(f"grad: input {position} (shape {tuple(tensor._data.shape)}) does not require a "
                             "gradient; make it with requires_grad=True")
    roots = []
    for output, start in zip(output_list, starts, strict=True):
        _require_recorded(output, "grad")
        roots.append((gradient_target(output), _root_gradient(output, start, "grad", create_graph)))

    targets = [gradient_target(tensor) for tensor in input_list]
    captured = {id(target) for target in targets}
    wanted = _paths_to([target for target, _ in roots], captured)
    keep = create_graph if retain_graph is None else retain_graph
    switch = enable_grad() if create_graph else contextlib.nullcontext()
    with switch:
        results = _backward_pass(roots, create_graph, keep, wanted, captured)

    gradients: list[Any] = []
    given: set[int] = set()
    for position, target in enumerate(targets):
        entry = results.get(id(target)) if id(target) in wanted else None
        if entry is None:
            if not allow_unused:
                shape = tuple(input_list[position]._data.shape)
                raise ValueError(f"grad: the outputs do not depend on input {position} (shape {shape}); "
                                 "pass allow_unused=True to get None for it")
            gradients.append(None)
            continue
        value, owned = entry
        if not create_graph:
            value = wrap(value if owned and id(target) not in given else _copy(value))
        elif not value._requires_grad:
            value = wrap(_copy(value._data))
        given.add(id(target))
        gradients.append(value)
    return gradients[0] if single else tuple(gradients)
