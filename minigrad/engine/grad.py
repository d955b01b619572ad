"""Gradients as a function of outputs and inputs: `grad`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from typing import Any

from minigrad.device import is_array
from minigrad.engine.backward import arrived, backward_pass, start_of
from minigrad.engine.errors import shown
from minigrad.engine.node import Node, TensorBase, gradient_target, wrap
from minigrad.engine.operands import copy
from minigrad.engine.switches import enable_grad


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
        value, owned, _ = entry if isinstance(target, Node) else arrived(entry)  # a node's hooks have run
        if not create_graph:
            value = wrap(value if owned and id(target) not in given else copy(value))
        elif not value._requires_grad:
            value = wrap(copy(value._data))
        given.add(id(target))
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
