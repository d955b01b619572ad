"""The watchers of a trace: one keeps every tapped tensor of every attention, the other moves some of them.

`tapping` delivers tensors with the names of their steps, and a watcher knows which module is running. Together
they tell which module of the model called an attention, and which residual connection is around it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from minigrad import Tensor, is_grad_enabled, nn, no_grad
from minigrad import functional as F
from minigrad.device import to_numpy
from minigrad.engine.node import TensorBase
from minigrad.engine.watch import Watcher
from minigrad.functional.attention import join_heads

from transformer.explore.traced import INPUTS, PER_HEAD, PROJECTIONS, RETURNED, AttentionTrace, ResidualTrace
from transformer.model import Residual

AROUND = (*INPUTS, "output")  # the taps of a module around its call
FIRST, LAST = "queries", "context"  # those of the call begin and end with these
CORE = (*PER_HEAD.values(), "biased")
AFTER = ("concatenated", RETURNED)  # those that may follow the call


@dataclass(eq=False)
class Running:
    """A module that is running.

    Attributes:
        name: its dotted name; None of one that no attention is named by, as another model's.
        seen: the tensors around its attention, or those of a residual connection.
        called: the attentions that it called itself; of a residual connection, those that it is around.
    """

    module: Any
    name: str | None
    seen: dict[str, Any] = field(default_factory=dict)
    called: list[AttentionTrace] = field(default_factory=list)


class Callers(Watcher):
    """A watcher that knows the modules of a model that are running.

    A residual connection gives no attention its name: what it runs belongs to the module that gave it.
    """

    def __init__(self, model: nn.Module) -> None:
        self.names = {module: name or type(module).__name__ for name, module in model.named_modules()
                      if not isinstance(module, Residual)}
        self.running: list[Running] = []

    def before(self, what: Any, given: Any) -> None:
        """Note that a module is running."""
        if isinstance(what, nn.Module):
            self.running.append(Running(what, self.names.get(what)))

    def after(self, what: Any, given: Any, made: Any) -> None:
        """Note that it has ended."""
        if isinstance(what, nn.Module):
            self.running.pop()

    @property
    def caller(self) -> Running | None:
        """The innermost running module that an attention is named by."""
        return next((running for running in reversed(self.running) if running.name is not None), None)


class Recorder(Callers):
    """Records each tapped tensor with the attention that it belongs to.

    Args:
        model: the traced model, whose dotted names identify the attentions.
        calls: the calls by name, filled in place.
    """

    def __init__(self, model: nn.Module, calls: dict[str, list[AttentionTrace]]) -> None:
        super().__init__(model)
        self._calls = calls
        self._seen: dict[str, Any] = {}  # of the latest attention

    def tensor(self, name: str, tensor: Any) -> Any:
        """Record a tapped tensor: the visitor of `tapping`.

        What goes on is a copy, whose gradient is that of one path alone; it has one even if nothing before needs any.
        """
        seen = self._place_of(name)
        if seen is None:
            return None
        if is_grad_enabled():
            tensor = tensor.clone() if tensor.requires_grad else Tensor(tensor, requires_grad=True)
            tensor.retain_grad()
        seen[name] = tensor
        if name == LAST and self.caller is not None:
            self._complete(self.caller)
        return tensor

    def constant(self, name: str, array: Any) -> None:
        """Record a mask or a number: the reader of `tapping`."""
        if FIRST in self._seen:
            self._seen[name] = array._data if isinstance(array, TensorBase) else array

    def _place_of(self, name: str) -> dict[str, Any] | None:
        """Where the tensor of that name belongs; None if to no attention of the model."""
        if name in ("stream", "result"):
            innermost = self.running[-1] if self.running else None
            return innermost.seen if innermost and isinstance(innermost.module, Residual) else None
        if name in AROUND:
            return self.caller.seen if self.caller else None
        if name == FIRST:
            self._seen = {}
            return self._seen
        expected = AFTER if LAST in self._seen else CORE
        return self._seen if FIRST in self._seen and name in expected else None

    def _complete(self, caller: Running) -> None:
        """Keep the attention that has come to its last step."""
        attention = AttentionTrace(self.names[caller.module], caller.module, self._seen)
        self._calls.setdefault(attention.name, []).append(attention)
        around = [running for running in self.running if isinstance(running.module, Residual)]
        for running in (caller, *around[-1:]):
            running.called.append(attention)

    def after(self, what: Any, given: Any, made: Any) -> None:
        """Complete the attention of a module with the tensors around it, and others with a residual connection."""
        if isinstance(what, nn.Module):
            running = self.running.pop()
            if isinstance(what, Residual):
                for attention in running.called:
                    attention.residual = ResidualTrace(what, **running.seen)
            elif len(running.called) == 1:  # of several, nobody knows whose the tensors around them are
                [attention] = running.called
                attention._recorded.update(running.seen)
                attention.projections = projections(attention)


class Mover(Callers):
    """Adds `change` to some tensors, in the call of that number, counted from 1, that the module `name` makes.

    Attributes:
        moved: the number of tensors that came by.
    """

    def __init__(self, model: nn.Module, name: str, number: int, taps: Collection[str], change: Tensor) -> None:
        super().__init__(model)
        self.name, self.number, self.taps, self.change = name, number, taps, change
        self.calls = self.moved = 0

    def tensor(self, name: str, tensor: Any) -> Any:
        """The visitor of `tapping`."""
        if self.caller is None or self.caller.name != self.name:
            return None
        self.calls += name == FIRST
        if name not in self.taps or self.calls + (name in INPUTS) != self.number:  # inputs come before their call
            return None
        self.moved += 1
        return tensor + self.change


def projections(attention: AttentionTrace) -> dict[str, nn.Linear]:
    """By letter, the children of the module that make its queries, keys, values and output, each found by numbers."""
    found = {}
    for letter, (child, given, made) in PROJECTIONS.items():
        linear = getattr(attention.module, child, None)
        if isinstance(linear, nn.Linear) and given in attention and made in attention:
            result = attention.value(made)._data
            result = to_numpy(result if letter == "O" else join_heads(result))
            with no_grad():
                expected = F.linear(attention.value(given), linear.weight, linear.bias).numpy()
            rounding = float(np.finfo(expected.dtype).eps) ** 0.5 * abs(expected).max(initial=0)
            if expected.shape == result.shape and not abs(expected - result).max(initial=0) > rounding:
                found[letter] = linear
    return found
