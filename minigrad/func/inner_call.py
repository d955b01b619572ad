"""One call of a function within a transform: its inputs, and the gradients with respect to them."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from minigrad.device.local import enable_grad, is_grad_enabled
from minigrad.engine.node import Node, TensorBase, gradient_target
from minigrad.func.locks import lock
from minigrad.func.trees import tree_leaves, tree_like, tree_map
from minigrad.ops import zeros_like
from minigrad.tensor import Tensor, gradients


def _input(value: Any, operation: str) -> Tensor:
    """A tensor that requires a gradient: connected to `value` if that does, else of its own."""
    tensor = value if isinstance(value, Tensor) else Tensor(value)
    if tensor.dtype.kind != "f":
        raise TypeError(f"{operation}: only floating arguments can be differentiated, got {tensor.dtype}; choose "
                        "others by argnums")
    return tensor.clone() if tensor.requires_grad else tensor.detach().requires_grad_()


# The leaves that calls made for themselves and that have ended, by id: they are in the graph of what their function
# computed, but nobody can ask for their gradient any more.
_ended: weakref.WeakValueDictionary[int, Tensor] = weakref.WeakValueDictionary()


class InnerCall:
    """One call of a function on inputs of its own, so that its derivative with respect to them can be taken.

    It is a block, for the call and for each time that the derivative is taken: within it the leaves among the inputs
    count for transforms inside the function, and no input can be changed in place, wherever the function runs: in
    another thread, or again, in the backward of a checkpoint.
    """

    def __init__(self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any],
                 positions: Sequence[int], operation: str) -> None:
        self.operation, self.outside = operation, is_grad_enabled()
        fresh = list(args)
        for position in positions:
            given = args[position] if self.outside else tree_map(detached, args[position])
            fresh[position] = tree_map(lambda leaf: _input(leaf, operation), given)
        # In lists and dictionaries of our own, since the function may change those that it is given.
        self.given = [tree_map(lambda leaf: leaf, fresh[position]) for position in positions]
        self.inputs = tree_leaves(self.given)
        self.own = {id(tensor): tensor for tensor in self.inputs if tensor.is_leaf}
        self.locks = [lock(tensor, operation) for tensor in self.inputs]
        with self, enable_grad():
            self.value = function(*fresh, **kwargs)

    def __enter__(self) -> InnerCall:
        for key in self.own:
            _ended.pop(key, None)
        for held in self.locks:
            held.held = True
        return self

    def __exit__(self, *exception: object) -> None:
        _ended.update(self.own)
        for held in self.locks:
            held.held = False

    def gradients(self, outputs: Sequence[Any], starts: Sequence[Any], create_graph: bool, keep: bool = False) -> Any:
        """The gradients for each position, in the form of its argument: zeros where the outputs do not depend."""
        recorded = [(out, start) for out, start in zip(outputs, starts, strict=True) if out.requires_grad]
        found: Sequence[Any] = [None] * len(self.inputs)
        if recorded and self.inputs:
            found = gradients.grad([out for out, _ in recorded], self.inputs, [start for _, start in recorded],
                                    create_graph=create_graph, retain_graph=keep or create_graph, allow_unused=True)
        filled = [zeros_like(x.detach()) if g is None else g for x, g in zip(self.inputs, found, strict=True)]
        return tree_like(self.given, filled)

    @property
    def continues(self) -> bool:
        """Whether somebody outside may differentiate the result: it depends on a leaf that is not ours."""
        if not self.outside:
            return False
        outputs = [gradient_target(out) for out in tree_leaves(self.value) if isinstance(out, TensorBase)]
        return any(leaf._requires_grad and id(leaf) not in self.own and _ended.get(id(leaf)) is not leaf
                   for leaf in leaves_below(outputs))

    def result(self, tree: Any) -> Any:
        """Values as the caller gets them: recorded only if somebody outside may go on from them."""
        return tree if self.continues else tree_map(detached, tree)


def detached(value: Any) -> Any:
    """`value` outside the graph, if it is a tensor."""
    return value.detach() if isinstance(value, Tensor) else value


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
