"""What the tape tells of one recorded operation: read from its node, at once, so that no array is kept alive."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from minigrad.device import is_array
from minigrad.engine.node import FREED, Node, Saved, TensorBase
from minigrad.inspect.lines import Line
from minigrad.inspect.memory import arrays_in
from minigrad.inspect.modules import ModuleCall


@dataclass
class Kept:
    """A value that the tape keeps: its name, its shape and bytes if it is an array, and the rules that ask for it.

    `rules` are the arguments whose gradient needs it; without any, the composition that stands for the operation under
    ``create_graph`` does.
    """

    name: str
    shape: tuple[int, ...] | None
    nbytes: int
    rules: tuple[str, ...]


@dataclass
class Entry:
    """One recorded operation.

    Attributes:
        number: counts what was recorded; a backward goes from large to small.
        name, shape, dtype: of the operation, and of its output.
        inputs: ``(argument, shape)`` of the tensors and arrays that went in; only of those that require a gradient if
            the operation ran outside of a `record_tape` block.
        parents: ``(argument, number)`` for each input that requires a gradient: of an entry, or of a leaf (negative).
        kept: what it saved; None if a backward had freed it already.
        line: the line of the program that ran it; None outside of a block.
        call: the call of a module that it ran in.
        inside: the number of the entry whose rule recorded it, under ``create_graph``, or in whose place it was
            recorded: a checkpoint that was computed again, a fused operation under ``create_graph``.
        expansions: the number of what gets its gradient, for each time that something was recorded in its place.
        fired: its place in the order of the backward, once its rules have run.
        times: how often they have run.
    """

    number: int
    name: str
    shape: tuple[int, ...]
    dtype: Any
    inputs: list[tuple[str, tuple[int, ...]]]
    parents: list[tuple[str, int]]
    kept: list[Kept] | None
    line: Line | None = None
    call: ModuleCall | None = None
    inside: int | None = None
    fired: int | None = None
    times: int = 0
    expansions: list[int] = field(default_factory=list)
    _norm: Any = field(default=None, repr=False)

    @property
    def gradient_norm(self) -> float | None:
        """The norm of the gradient of its output, in the last backward that came by. Reading it may synchronise."""
        return None if self._norm is None else float(self._norm)


@dataclass
class Leaf:
    """A tensor that no recorded operation made: a parameter, or an input that requires a gradient.

    Attributes:
        name: its dotted name, None if it has none.
        tensor: the tensor, None once nobody else holds it: the tape does not.
        times: how many backwards inside the block have reached it.
    """

    number: int
    name: str | None
    shape: tuple[int, ...]
    dtype: Any
    _reference: weakref.ref[TensorBase] = field(repr=False)
    times: int = 0
    _norm: Any = field(default=None, repr=False)

    @property
    def gradient_norm(self) -> float | None:
        """The norm of what the last backward that reached it brought, not of ``.grad``, which sums several."""
        return None if self._norm is None else float(self._norm)

    @property
    def tensor(self) -> Any:
        """The leaf itself, or None."""
        return self._reference()


def named_arguments(operation: Any, args: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """``(name, value)`` of the arguments of an operation; ``*xs`` one by one, as ``xs[0]``."""
    for name, value in zip(operation.parameters, args, strict=True):
        if operation.variadic and name == operation.parameters[0]:
            yield from ((f"{name}[{i}]", part) for i, part in enumerate(value))
        else:
            yield name, value


def read_inputs(operation: Any, args: Sequence[Any]) -> list[tuple[str, tuple[int, ...]]]:
    """``(argument, shape)`` of the tensors and arrays among the arguments."""
    return [(name, tuple(value.shape)) for name, value in named_arguments(operation, args)
            if isinstance(value, TensorBase) or is_array(value)]


def input_names(node: Node) -> list[str]:
    """The argument that each parent was given for."""
    operation, plan = node.primitive, node.plan
    if operation.variadic:
        return [f"{operation.parameters[0]}[{i}]" for i in plan.wanted]
    return list(plan.names) if plan.names else ["input"] * len(node.parents)  # a checkpoint has parents without names


def read_kept(node: Node) -> list[Kept] | None:
    """What `node` saved, the largest first, and which rule asked for it."""
    if node.saved is FREED:
        return None
    if node.primitive.recomputes:
        arrays = [array for value in node.saved for array in arrays_in(value)]
        return [Kept("arguments", None, sum(array.nbytes for array in arrays), ("input",))]
    kept = []
    asking = _askers(node)
    for source, value in zip(node.plan.keep, node.saved, strict=True):
        rules = tuple(asking.get(source, ()))
        for name, part in _parts(_name(node, source), value):
            arrays = list(arrays_in(part))
            shape = tuple(arrays[0].shape) if len(arrays) == 1 else None
            kept.append(Kept(name, shape, sum(array.nbytes for array in arrays), rules))
    return sorted(kept, key=lambda one: -one.nbytes)


def _parts(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Saved):
        yield from vars(value).items()
    else:
        yield name, value


def _name(node: Node, source: tuple[str, int]) -> str:
    kind, position = source
    if kind in ("out", "saved"):
        return kind
    parameter: str = node.primitive.parameters[position]
    return parameter if kind == "value" else f"{parameter}_{kind}"


def _askers(node: Node) -> dict[tuple[str, int], list[str]]:
    """For each saved value, the arguments whose rule asks for it by name."""
    plan, names = node.plan, input_names(node)
    rules = [(plan.joint[0], names)] if plan.joint is not None else [
        (call.function, [name]) for call, name in zip(plan.calls, names, strict=True)]
    asking: dict[tuple[str, int], list[str]] = {}
    for rule, arguments in rules:
        for parameter in inspect.signature(rule).parameters:
            if parameter not in ("g", "needs"):
                asking.setdefault(node.primitive._source(parameter), []).extend(arguments)
    return asking
