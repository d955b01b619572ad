"""The recorder of a trace: it keeps every tapped tensor of every attention.

`tapping` delivers tensors with the names of their steps, and a watcher knows which module is running. Together
they tell which module of the model called an attention, and which residual connection is around it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from minigrad import Tensor, is_grad_enabled, nn
from minigrad.device import on_device_of
from minigrad.engine.node import Node, TensorBase
from minigrad.engine.primitive import Primitive
from minigrad.engine.watch import Watcher
from minigrad.functional.attention import join_heads

from transformer.explore.calls import callers
from transformer.explore.traced import FIRST, INPUTS, LAST, PROJECTIONS, RETURNED, STEPS, AttentionTrace, ResidualTrace
from transformer.model import Residual

AROUND = (*INPUTS, "output")  # the taps of a module around its call
AFTER = ("concatenated", RETURNED)  # those that may follow the call
RESIDUAL = ("stream", "result")
COPIED = (*INPUTS, "queries", "keys", "values", RETURNED, "stream")  # tensors that may be used elsewhere, too


@dataclass(eq=False)
class Running:
    """A module that is running.

    Attributes:
        name: its dotted name; None if it is none of the traced model's.
        seen: the tensors around its attention, or those of a residual connection.
        called: the attentions that it called itself.
        inside: the attentions that ran inside it, without those in a residual connection of their own.
    """

    module: Any
    name: str | None
    seen: dict[str, Any] = field(default_factory=dict)
    called: list[AttentionTrace] = field(default_factory=list)
    inside: list[AttentionTrace] = field(default_factory=list)


class Recorder(Watcher):
    """A watcher that records each tapped tensor with the attention that it belongs to.

    Args:
        model: the traced model, whose dotted names identify the attentions.
        calls: the calls by name, filled in place.
    """

    def __init__(self, model: nn.Module, calls: dict[str, list[AttentionTrace]]) -> None:
        self._calls = calls
        self._names = callers(model)
        self._running: list[Running] = []
        self._seen: dict[str, Any] = {}  # of the latest attention
        # The attentions inside each open checkpoint; recomputed by a node; next to be recomputed.
        self._checkpoints: list[list[AttentionTrace]] = []
        self._again: WeakKeyDictionary[Any, list[AttentionTrace]] = WeakKeyDictionary()
        self._recomputed: list[AttentionTrace] = []

    @property
    def _caller(self) -> Running | None:
        """The innermost running module that an attention is named by."""
        return next((running for running in reversed(self._running) if running.name is not None), None)

    def before(self, what: Any, given: Any) -> None:
        """Note that a module is running; and the checkpoints, which discard the attentions in them.

        A checkpoint's backward computes them again.
        """
        if isinstance(what, nn.Module):
            self._running.append(Running(what, self._names.get(what)))
        elif isinstance(what, Node) and what in self._again:
            self._recomputed = list(self._again[what])
        elif isinstance(what, Primitive) and what.recomputes:
            self._checkpoints.append([])

    def after(self, what: Any, given: Any, made: Any) -> None:
        """It has ended."""
        if isinstance(what, nn.Module):
            self._module_ends(what)
        elif isinstance(what, Node) and what in self._again:
            self._recomputed = []
        elif isinstance(what, Primitive) and what.recomputes:
            inside = self._checkpoints.pop()
            if made is not None and made._node is not None:
                self._again[made._node] = inside

    def tensor(self, name: str, tensor: Any) -> Any:
        """Record a tapped tensor: the visitor of `tapping`."""
        seen = self._place_of(name)
        if seen is None:
            return None
        if name in INPUTS:
            seen[f"{name} given"] = tensor
        if name in COPIED:
            tensor = _own(tensor, discarded=bool(self._checkpoints))
        if tensor.requires_grad:
            tensor.retain_grad()
        seen[name] = tensor
        if name == LAST:
            self._complete()
        return tensor

    def constant(self, name: str, array: Any) -> None:
        """Record a mask or a number: the reader of `tapping`."""
        if FIRST in self._seen:
            self._seen[name] = array._data if isinstance(array, TensorBase) else array

    def _place_of(self, name: str) -> dict[str, Any] | None:
        """Where the tensor of that name belongs; None if to no attention of the model."""
        caller = self._caller
        if name in RESIDUAL:
            innermost = self._running[-1] if self._running else None
            return innermost.seen if innermost and isinstance(innermost.module, Residual) else None
        if name in AROUND:
            return caller.seen if caller else None
        if name == FIRST:
            self._seen = {}
            return self._seen
        expected = AFTER if LAST in self._seen else (*STEPS, LAST)
        return self._seen if FIRST in self._seen and name in expected else None

    def _complete(self) -> None:
        """Keep the attention that has come to its last step; one that a backward recomputes is the one of before."""
        caller = self._caller
        if self._recomputed:
            attention = self._recomputed.pop(0)
            around = {name: seen for name, seen in attention._recorded.items() if name.removesuffix(" given") in AROUND}
            self._seen = attention._recorded = around | self._seen
        elif caller is None:
            return  # another model's
        else:
            attention = AttentionTrace(self._names[caller.module], caller.module, self._seen)
            self._calls.setdefault(attention.name, []).append(attention)
        if caller is not None:
            caller.called.append(attention)
        for running in self._running[-1:]:
            running.inside.append(attention)
        for inside in self._checkpoints:
            inside.append(attention)

    def _module_ends(self, module: nn.Module) -> None:
        """Complete the attention of a module with the tensors around it, and others with a residual connection."""
        running = self._running.pop()
        if isinstance(module, Residual):
            if "result" in running.seen:
                for attention in running.inside:
                    attention.residual = ResidualTrace(module, running.seen["stream"], running.seen["result"])
        else:
            for outer in self._running[-1:]:
                outer.inside += running.inside
        if len(running.called) == 1:  # of several, nobody knows whose the tensors around them are
            [attention] = running.called
            attention._recorded.update(running.seen)
            attention.projections = projections(attention)


def projections(attention: AttentionTrace) -> dict[str, nn.Linear]:
    """By letter, the children of the module that make its queries, keys, values and output, each found by numbers."""
    around = {"Q": ("query_input", "queries"), "K": ("key_input", "keys"), "V": ("value_input", "values"),
              "O": ("concatenated", "output")}
    found = {}
    for letter, (given, made) in around.items():
        linear = getattr(attention.module, PROJECTIONS[letter], None)
        if isinstance(linear, nn.Linear) and given in attention and made in attention:
            result = attention.value(made)._data
            if _is_map(linear, attention.value(given)._data, join_heads(result) if letter != "O" else result):
                found[letter] = linear
    return found


def _is_map(linear: nn.Linear, x: Any, y: Any) -> bool:
    """Whether ``y = x W + b``, but for rounding."""
    with on_device_of(x):
        expected = x @ linear.weight._data.T
        if linear.bias is not None:
            expected = expected + linear.bias._data
        if expected.shape != y.shape or not y.size:
            return expected.shape == y.shape
        rounding = float(np.finfo(y.dtype).eps) ** 0.5
        return not bool(abs(expected - y).max() > rounding * abs(expected).max())


def _own(tensor: Tensor, discarded: bool) -> Tensor:
    """A copy whose gradient is that of one path alone; it requires a gradient even if `tensor` does not.

    Not in a checkpoint, which discards it: the backward computes another one, and would miss a leaf of the first time.
    """
    if tensor.requires_grad or discarded or not is_grad_enabled():
        return tensor.clone()
    return Tensor(tensor, requires_grad=True)
