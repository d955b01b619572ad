"""One call of a function within a transform: copies of its arguments, its value, and its gradients by the copies."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from minigrad.device.local import enable_grad, is_grad_enabled
from minigrad.engine.backward import graph_of
from minigrad.engine.node import gradient_target
from minigrad.func.trees import tree_leaves, tree_like, tree_map
from minigrad.ops import zeros_like
from minigrad.tensor import Tensor, gradients


def tensors_in(value: Any, name: str) -> list[Any]:
    """The leaves of a function's result, which must be tensors."""
    leaves = tree_leaves(value)
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise TypeError(f"{name}: the function must return tensors, got {type(leaf).__name__}; return the tensor "
                            "itself, without .item(), float() or .numpy()")
    return leaves


class Ended(Tensor):
    """The class of a copy of an argument while its transform takes no gradient: nobody can ask for one by this leaf."""

    __slots__ = ()


class Call:
    """``function(*args, **kwargs)``, on copies of the arguments at the positions `argnums`, an int or several.

    Attributes:
        value: what the function returned.
        continues: whether the value depends on a leaf outside, by which somebody may differentiate it: one that is no
            copy of an argument, neither of this call nor of another that has ended.
    """

    def __init__(self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any],
                 argnums: int | Sequence[int], name: str) -> None:
        self.name, self.outside, given = name, is_grad_enabled(), list(args)

        def copied(position: int) -> Any:
            if not -len(args) <= position < len(args):
                raise ValueError(f"{name}: argnums {argnums!r} must name some of {len(args)} positional arguments")
            copy = tree_map(self._copy, args[position])
            given[position] = tree_map(lambda leaf: leaf, copy)  # the function may change its dictionaries and lists
            return copy

        self.copies = tree_map(copied, argnums if isinstance(argnums, int) else tuple(argnums))
        self.inputs = tree_leaves(self.copies)
        with self._open(), enable_grad():
            self.value = function(*given, **kwargs)
        outputs = [gradient_target(out) for out in tree_leaves(self.value) if isinstance(out, Tensor)]
        self.continues = self.outside and any(
            leaf.requires_grad and not isinstance(leaf, Ended) for leaf in graph_of(outputs)[1])

    def _copy(self, value: Any) -> Tensor:
        """A leaf of our own; or, if `value` requires a gradient, a tensor that is connected to it."""
        connected = isinstance(value, Tensor) and value.requires_grad and self.outside
        return value.clone() if connected else Tensor(value, requires_grad=True)

    @contextlib.contextmanager
    def _open(self) -> Iterator[None]:
        """A block in which transforms inside, in any thread, see the copies as leaves; they must not be written to."""
        own = [leaf for leaf in self.inputs if leaf.is_leaf]
        for leaf in own:
            leaf.__class__ = Tensor
        try:
            yield
        finally:
            for leaf in own:
                leaf.__class__ = Ended
        if any(leaf._version[0] for leaf in self.inputs):
            raise RuntimeError(f"{self.name}: the function changes one of its arguments in place, which its derivative "
                               "would not know of; build a new tensor with minigrad.where, or change a copy, "
                               "x.detach().clone(), through which no gradient flows")

    def gradients(self, outputs: Sequence[Any], starts: Sequence[Any], keep: bool = False) -> Any:
        """The gradients of `outputs` for each of `argnums`, in the form of the argument; zeros if none depends on it.

        They are recorded if the value continues, or a start requires a gradient. `keep`: there may be another pass.
        """
        continues = self.continues or any(getattr(start, "requires_grad", False) for start in starts)
        record = continues and is_grad_enabled()
        reached = [(out, start) for out, start in zip(outputs, starts, strict=True) if out.requires_grad]
        with self._open():
            found = gradients.grad([out for out, _ in reached], self.inputs, [start for _, start in reached],
                                   create_graph=record, retain_graph=keep or record, allow_unused=True)
        return tree_like(self.copies, [zeros_like(x.detach()) if g is None else g
                                       for x, g in zip(self.inputs, found, strict=True)])

    def result(self) -> Any:
        """The value as the caller gets it: recorded only if somebody outside may go on from it."""
        if self.continues:
            return self.value
        return tree_map(lambda out: out.detach() if isinstance(out, Tensor) else out, self.value)
