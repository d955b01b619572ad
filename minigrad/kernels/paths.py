"""Which body each operation of a computation ran, and why others declined."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from minigrad.device import is_array
from minigrad.engine.interpreters import Interpreter, Operands, interpreters, interpreting
from minigrad.engine.primitive import Primitive, body_kinds
from minigrad.engine.rules import Body


class Step(NamedTuple):
    """One operation.

    Attributes:
        operation: its name.
        operands: dtype and shape of each array that it was given.
        ran: the body that ran: the module in which it is defined, or "definition".
        declined: for each body that was asked before and did not run, its module and the reason.
    """

    operation: str
    operands: tuple[str, ...]
    ran: str
    declined: tuple[tuple[str, ...], ...]


class PathExplanation(NamedTuple):
    """What `explain_path` returns; printed, it is a table.

    Attributes:
        steps: the operations in the order in which they ran, those of the backward pass without the rules.
        result: what the function returned.
    """

    steps: tuple[Step, ...]
    result: Any

    def __str__(self) -> str:
        """A line for each operation and a line for each body that declined; equal operations in a row are counted."""
        lines: list[str] = []
        grouped: list[list[Any]] = []
        for step in self.steps:
            if grouped and grouped[-1][0] == step:
                grouped[-1][1] += 1
            else:
                grouped.append([step, 1])
        width = max([len(step.operation) for step in self.steps], default=0)
        for step, count in grouped:
            times = f" ({count} times)" if count > 1 else ""
            operands = f"  of {', '.join(step.operands)}" if step.operands else ""
            lines.append(f"{step.operation:<{width}}  {step.ran}{operands}{times}")
            lines += [f"{'':<{width}}  not {body}: {reason}" for body, reason in step.declined]
        return "\n".join(lines)


def explain_path(function: Callable[..., Any], *args: Any, **kwargs: Any) -> PathExplanation:
    """Run ``function(*args, **kwargs)`` and tell, for each operation on tensors, which body ran and why others did not.

    ```python
    print(minigrad.explain_path(model.loss, source, target, labels))
    ```

    A gradient rule belongs to the body that ran its operation.
    """
    watcher = PathWatcher()
    with interpreting(watcher):
        result = function(*args, **kwargs)
    return PathExplanation(tuple(watcher.steps), result)


def report_choice(operation: str, ran: str, *declined: str) -> None:
    """Let `explain_path` tell which of several ways a function took.

    Args:
        operation: what both ways compute.
        ran: the way that was taken.
        declined: the way that was not, and the reason.
    """
    for entry in interpreters():
        if isinstance(entry, PathWatcher):
            entry.steps.append(Step(operation, (), ran, (declined,) if declined else ()))


class PathWatcher(Interpreter):
    """Notes the body of every operation, for `explain_path`."""

    def __init__(self) -> None:
        self.steps: list[Step] = []

    def operation(self, op: Primitive, operands: Operands, proceed: Callable[[Operands], Any]) -> Any:
        """The output of `op`, after noting what runs it."""
        flat = [v for value in operands.values for v in (value if isinstance(value, tuple) else (value,))]
        arrays = tuple(f"{value.dtype}{tuple(value.shape)}" for value in flat if is_array(value))
        ran = op.body_for(operands.values)
        self.steps.append(Step(op.name, arrays, _place(ran), tuple(_declined(op, ran, operands.values))))
        return proceed(operands)


def _place(body: Body) -> str:
    """The module of what a body brings of its own, forward or rule; "definition" for the primitive itself."""
    definition = body.primitive
    theirs = (definition.forward, *definition.rules.values(), *definition.adding.values(), definition.joint)
    own = (body.forward, *body.rules.values(), *body.adding.values(), body.joint)
    return next((function.__module__ for function in own if function not in theirs), "definition")


def _declined(op: Primitive, ran: Body, values: Any) -> list[tuple[str, str]]:
    """The bodies of `op` that are asked before `ran`, and why they do not run."""
    kinds, found = body_kinds.get(), []
    for body in op.bodies:
        if body is ran:
            break
        if body.kind not in kinds:
            reason = "only definitions run here"
        else:
            reason = (body.suits.__doc__ or "its `suits` declines").strip().partition(".")[0]
        found.append((_place(body), reason))
    return found
