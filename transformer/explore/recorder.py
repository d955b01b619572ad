"""The recorder of a trace: it keeps every tapped tensor of every attention.

`tapping` delivers tensors with the names of their steps, and an interpreter knows which module is running. Together
they tell which attention of the model a tensor belongs to, and which residual connection is around it.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from minigrad import Tensor, is_grad_enabled, nn
from minigrad.engine.interpreters import Interpreter
from minigrad.engine.node import TensorBase

from transformer.explore.traced import INPUTS, RETURNED, TAPS, AttentionTrace, ResidualTrace
from transformer.model import MultiHeadAttention, Residual

Call = tuple[str, int]


class Recorder(Interpreter):
    """An interpreter that records each tapped tensor with the attention that it belongs to.

    Args:
        model: the traced model, whose dotted names identify the attentions.
        calls: the calls by name, filled in place.
    """

    def __init__(self, model: nn.Module, calls: dict[str, list[AttentionTrace]]) -> None:
        self._calls = calls
        self._names = {module: name or type(module).__name__ for name, module in model.named_modules()
                       if isinstance(module, MultiHeadAttention)}
        self._open: list[Any] = []
        self._tensors: list[dict[str, Any]] = []  # of each open attention and residual connection
        self._inside: list[list[AttentionTrace]] = []  # the attentions that ended inside each open residual connection
        # Calls, by name and number: inside each open checkpoint; recomputed by a node; next to be replaced.
        self._checkpoints: list[list[Call]] = []
        self._again: WeakKeyDictionary[Any, list[Call]] = WeakKeyDictionary()
        self._replaced: list[Call] = []

    @property
    def attention(self) -> str | None:
        """The name of the attention that is running, also while a projection inside it runs."""
        return next((self._names[module] for module in reversed(self._open) if module in self._names), None)

    @property
    def innermost(self) -> Any:
        """The innermost module that is running."""
        return self._open[-1] if self._open else None

    def module_begins(self, module: Any) -> None:
        """Open a record for the tensors of an attention or a residual connection."""
        self._open.append(module)
        if module in self._names or isinstance(module, Residual):
            self._tensors.append({})
        if isinstance(module, Residual):
            self._inside.append([])

    def tensor(self, name: str, tensor: Any) -> Any:
        """Record a tapped tensor: the visitor of `tapping`."""
        residual = isinstance(self.innermost, Residual) and name in ("stream", "result")
        if not residual and (self.attention is None or name not in (*TAPS, RETURNED)):
            return None
        seen = self._tensors[-1]
        if name in INPUTS:
            seen[f"{name} given"] = tensor
        if name in INPUTS or name in ("stream", RETURNED):
            tensor = _own(tensor)
        if tensor.requires_grad:
            tensor.retain_grad()
        seen[name] = tensor
        return tensor

    def constant(self, name: str, array: Any) -> None:
        """Record a mask: the reader of `tapping`."""
        if self.attention is not None:
            self._tensors[-1][name] = array._data if isinstance(array, TensorBase) else array

    def module_ends(self, module: Any) -> None:
        """Close the record of an attention or a residual connection, and keep it unless the module raised."""
        while self._open and self._open.pop() is not module:
            pass  # a module inside has no end, because another interpreter raised as it began
        if module in self._names:
            seen = self._tensors.pop()
            if "output" in seen:  # it did not raise
                attention = AttentionTrace(self._names[module], module, seen)
                self._keep(attention)
                for attentions in self._inside[-1:]:
                    attentions.append(attention)
        elif isinstance(module, Residual):
            seen, attentions = self._tensors.pop(), self._inside.pop()
            for attention in attentions if "result" in seen else []:
                attention.residual = ResidualTrace(module, seen["stream"], seen["result"])

    def _keep(self, attention: AttentionTrace) -> None:
        """Add a call; a call that a backward recomputes replaces the one that a checkpoint discarded."""
        calls = self._calls.setdefault(attention.name, [])
        if self._replaced and self._replaced[0][0] == attention.name:
            place = self._replaced.pop(0)
            calls[place[1]] = attention
        else:
            place = attention.name, len(calls)
            calls.append(attention)
        for inside in self._checkpoints:
            inside.append(place)

    def operation(self, op: Any, operands: Any, proceed: Any) -> Any:
        """Note the calls inside a gradient checkpoint, which discards them: its backward recomputes them."""
        if not op.recomputes:
            return proceed(operands)
        inside: list[Call] = []
        self._checkpoints.append(inside)
        try:
            output = proceed(operands)
        finally:
            self._checkpoints.pop()
        if output is not None and output._node is not None:
            self._again[output._node] = inside
        return output

    def rules(self, node: Any, g: Any, proceed: Any) -> Any:
        """Let the calls that the backward of a gradient checkpoint recomputes replace those that it discarded."""
        if node not in self._again:
            return proceed(g)
        self._replaced = list(self._again[node])
        try:
            return proceed(g)
        finally:
            self._replaced = []


def _own(tensor: Tensor) -> Tensor:
    """A copy whose gradient is that of one path alone; it requires a gradient even if `tensor` does not."""
    if tensor.requires_grad or not is_grad_enabled():
        return tensor.clone()
    return Tensor(tensor, requires_grad=True)
