"""What is recorded: bare tensors, and the nodes that remember how they were made.

A `TensorBase` holds an array. If it came out of a recorded operation it also holds a `Node`: which primitive made it,
which saved values the gradient rules will need, and the parents (nodes, or leaf tensors) to send gradients to.
"""

from __future__ import annotations

import itertools
import types
from collections.abc import Sequence
from typing import Any

import numpy as np

Array = Any  # numpy.ndarray, or the array of a CuPy-like module


class TensorBase:
    """An array, whether it requires a gradient, and the node that made it. `minigrad.Tensor` adds the methods.

    ``_version`` is a one-element list that counts in-place changes; views of the same memory share it. ``_hooks`` are
    those of a leaf: what is there has a method ``run(gradient)``.
    """

    __slots__ = ("__weakref__", "_data", "_grad", "_hooks", "_node", "_requires_grad", "_version")

    _data: Array
    _grad: Any  # a tensor, or None
    _hooks: Any  # None before the first one
    _node: Node | None
    _requires_grad: bool
    _version: list[int]


_tensor_class: type[TensorBase] = TensorBase


def register_tensor_class(cls: type[TensorBase]) -> None:
    """Let the results of operations be tensors of this class."""
    global _tensor_class
    _tensor_class = cls


def wrap(array: Array, node: Node | None = None, version: list[int] | None = None) -> Any:
    """A tensor around `array` (not copied), as the output of `node`."""
    tensor = _tensor_class.__new__(_tensor_class)
    if type(array) is not np.ndarray and isinstance(array, (np.generic, bool, int, float)):
        array = np.asarray(array)
    tensor._data, tensor._node, tensor._requires_grad = array, node, node is not None
    tensor._version = [0] if version is None else version
    tensor._grad = tensor._hooks = None
    return tensor


def in_dtype(tensor: Any, dtype: Any) -> Any:
    """The tensor, by a recorded cast if it has another dtype."""
    return tensor if tensor._data.dtype == dtype else tensor.astype(dtype)


class Saved(types.SimpleNamespace):
    """What a forward keeps for its own rule, by name: ``Saved(mean=mean)``, read as ``saved.mean``."""


FREED: tuple[Any, ...] = ("freed",)
next_number = itertools.count().__next__


class Node:
    """One recorded operation: its `Primitive`, its `Plan`, what its rules need, and where its gradients go.

    ``parents`` are the nodes, or leaf tensors, of the inputs that require gradients, in the order of ``plan.names``.
    ``versions`` are those of the saved values: ``(counter, its count when the value was saved, the value)``.
    ``retained`` is a weak reference to the tensor on which `retain_grad` was called, or None.
    A node never holds its own output, nor a tensor that is not a leaf: so no reference cycle can arise.
    """

    __slots__ = ("__weakref__", "_hooks", "dtype", "number", "parents", "plan", "primitive", "retained", "saved",
                 "shape", "versions")

    _hooks: Any
    retained: Any

    def __init__(self, primitive: Any, plan: Any, parents: Sequence[Any], saved: Sequence[Any],
                 versions: Sequence[tuple[list[int], int, Array]], shape: tuple[int, ...], dtype: Any) -> None:
        self.number = next_number()
        self.primitive, self.plan, self.parents, self.saved, self.versions = primitive, plan, parents, saved, versions
        self.shape, self.dtype = shape, dtype
        self.retained = self._hooks = None

    def check(self) -> None:
        """Raise if this node was freed by an earlier backward, or if a value that it saved has changed since."""
        if self.saved is FREED:
            raise RuntimeError(
                f"{self.primitive.name}: this part of the graph was already used by a backward pass (complete, or "
                "ended by an error) and its saved values are freed; pass retain_graph=True to the first pass to go "
                "through it twice, or compute the forward again")
        for counter, then, _ in self.versions:
            if counter[0] != then:
                raise RuntimeError(
                    f"{self.primitive.name}: a tensor of shape {self.shape} or an operand of it, saved for the "
                    "backward pass, was changed in place afterwards; change a copy, or change it after backward()")


def gradient_target(tensor: TensorBase) -> Any:
    """Where the gradient of `tensor` goes: its node, or, if it is a leaf, the tensor itself."""
    return tensor if tensor._node is None else tensor._node
