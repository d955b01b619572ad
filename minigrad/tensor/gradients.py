"""Gradients for people: `backward` adds them into ``.grad``, `grad` returns them, to any order."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from typing import Any

from minigrad.arguments import numbers_on
from minigrad.device import device_of, is_array, on_device_of, xp
from minigrad.device.local import enable_grad
from minigrad.engine.backward import Receive, backward_pass, graph_of
from minigrad.engine.errors import shown
from minigrad.engine.node import Array, Node, TensorBase, gradient_target, wrap
from minigrad.engine.operands import numeric


def backward(output: Any, gradient: Any = None, retain_graph: bool = False, receive: Receive | None = None) -> None:
    """Accumulate the gradient of `output` into ``.grad`` of every leaf (and `retain_grad` tensor) it depends on.

    Only `grad` takes ``create_graph``: in ``.grad``, a graph would be a reference cycle.

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
    start, root = start_of(output, gradient, "backward", create_graph=False), output._node or output
    results = backward_pass([(root, start)], False, retain_graph, wanted=None, captured=set(), receive=receive)
    if receive is not None and root is output:  # a leaf, to which no node sent anything
        receive(root, start, False)
    else:
        arrive(results.values())


def arrive(entries: Iterable[list[Any]]) -> None:
    """Fill ``.grad`` of the targets of these entries ``[gradient, owned, target]``, after the hooks of all leaves."""
    for gradient, owned, target in [arrived(e) if e[2]._hooks else e for e in entries]:
        leaf = target.retained() if type(target) is Node else target  # or the tensor on which retain_grad() was called
        if leaf is not None and leaf._grad is None:  # memory of its own the first time, added to in place afterwards
            leaf._grad = wrap(gradient if owned and leaf is target else copy(gradient))
        elif leaf is not None:  # else that tensor is gone
            leaf._grad._version[0] += 1
            with on_device_of(gradient):
                leaf._grad._data += gradient


def arrived(entry: list[Any]) -> list[Any]:
    """An entry at the end of a pass, after the hooks of its leaf; those of a node have run."""
    gradient, _, leaf = entry
    return [leaf._hooks.run(gradient), False, leaf] if type(leaf) is not Node and leaf._hooks else entry


def copy(array: Array) -> Array:
    """A copy with memory of its own, on the same device; a NumPy scalar becomes an array."""
    with on_device_of(array):
        return xp(array).copy(array)


def start_of(output: Any, gradient: Any, operation: str, create_graph: bool) -> Any:
    """The gradient to start from: given by the caller, or 1 for an output with a single element."""
    if not output._requires_grad:
        raise RuntimeError(f"{operation}: the output (shape {tuple(output._data.shape)}) was not recorded: no input "
                           "requires a gradient, or it was computed under no_grad()")
    data = output._data
    if gradient is not None:
        return given_start(data, gradient, operation, create_graph)
    if data.size != 1:
        raise ValueError(f"{operation}: only an output with one element has an implied gradient, got shape "
                         f"{data.shape}; reduce it (for instance with .sum()) or pass a gradient of that shape")
    with on_device_of(data):
        return xp(data).ones(data.shape, data.dtype)


def given_start(data: Array, gradient: Any, operation: str, create_graph: bool) -> Any:
    """A gradient that the caller gave for an output with this data, in its dtype; ValueError if it does not fit."""
    if isinstance(gradient, TensorBase):
        gradient = gradient if create_graph else gradient._data
    else:
        gradient = (numeric(gradient, operation) if is_array(gradient) else
                    numbers_on(device_of(data), gradient, data.dtype, operation))
    if tuple(gradient.shape) != tuple(data.shape):
        raise ValueError(f"{operation}: the gradient has shape {tuple(gradient.shape)}, "
                         f"the output has shape {tuple(data.shape)}")
    place = device_of(getattr(gradient, "_data", gradient))
    if place != device_of(data):
        raise ValueError(f"{operation}: the gradient is on {place}, the output on {device_of(data)}; "
                         "move one with .to(device)")
    with on_device_of(data):
        return gradient if gradient.dtype == data.dtype else gradient.astype(data.dtype)


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
    input_list, output_list = _tensors(inputs, "input"), _tensors(outputs, "output")
    if grad_outputs is None:
        starts = [None] * len(output_list)
    else:  # one for one; a tensor or an array is one start, not a sequence of its rows
        alone = isinstance(outputs, TensorBase) or isinstance(grad_outputs, TensorBase) or is_array(grad_outputs)
        starts = [grad_outputs] if alone else list(grad_outputs)
    if len(starts) != len(output_list):
        raise ValueError(f"grad: {len(output_list)} outputs but {len(starts)} grad_outputs")
    for position, tensor in enumerate(input_list):
        if not tensor._requires_grad:
            raise ValueError(f"grad: input {position} (shape {tuple(tensor._data.shape)}) does not require a "
                             "gradient; make it with requires_grad=True")
    roots = []
    for output, start in zip(output_list, starts, strict=True):
        roots.append((gradient_target(output), start_of(output, start, "grad", create_graph)))

    targets = [gradient_target(tensor) for tensor in input_list]
    captured = {id(target) for target in targets}
    wanted = _paths_to([target for target, _ in roots], captured)
    keep = create_graph if retain_graph is None else retain_graph
    with enable_grad() if create_graph else contextlib.nullcontext():
        results = backward_pass(roots, create_graph, keep, wanted, captured)

    gradients: list[Any] = []
    finished: dict[int, list[Any]] = {}  # of each target once, also where it is given twice
    for position, target in enumerate(targets):
        entry = results.get(id(target)) if id(target) in wanted else None
        if entry is None:
            if not allow_unused:
                shape = tuple(input_list[position]._data.shape)
                raise ValueError(f"grad: the outputs do not depend on input {position} (shape {shape}); "
                                 "pass allow_unused=True to get None for it")
            gradients.append(None)
            continue
        again = id(target) in finished
        value, owned, _ = finished[id(target)] = finished[id(target)] if again else arrived(entry)
        if not create_graph:
            value = wrap(value if owned and not again else copy(value))
        elif not value._requires_grad:
            value = wrap(copy(value._data))
        gradients.append(value)
    return gradients[0] if single else tuple(gradients)


def _tensors(given: Any, what: str) -> list[Any]:
    """A tensor, or several, as a list; TypeError for anything else."""
    if isinstance(given, TensorBase):
        return [given]
    if not isinstance(given, Iterable):
        raise TypeError(f"grad: the {what}s must be a Tensor or a sequence of them, got {shown(given)}")
    listed = list(given)
    for position, tensor in enumerate(listed):
        if not isinstance(tensor, TensorBase):
            raise TypeError(f"grad: {what} {position} is a {type(tensor).__name__}, not a Tensor")
    return listed


def _paths_to(roots: Sequence[Any], inputs: set[int]) -> set[int]:
    """The ids of every target below `roots` from which one of `inputs` can be reached, inputs included."""
    nodes, leaves = graph_of(roots)
    wanted = inputs & {*nodes, *map(id, leaves)}
    for node in sorted(nodes.values(), key=lambda node: node.number):  # parents come first, so one sweep is enough
        if any(id(parent) in wanted for parent in node.parents):
            wanted.add(id(node))
    return wanted
