"""Layers that join axes, between a convolution and a linear layer for example, and part them again."""

from __future__ import annotations

from minigrad.arguments import public
from minigrad.nn.module import Module
from minigrad.tensor import Tensor


class Flatten(Module):
    """The axes from `start_axis` to `end_axis` made one; by default all but the batch: (B, C, T) → (B, C·T).

    Args:
        start_axis: the first of them.
        end_axis: the last of them.
    """

    @public
    def __init__(self, start_axis: int = 1, end_axis: int = -1) -> None:
        super().__init__()
        self.start_axis, self.end_axis = start_axis, end_axis

    def forward(self, x: Tensor) -> Tensor:
        """Flatten `x`."""
        return x.flatten(self.start_axis, self.end_axis)

    def extra_repr(self) -> str:
        """The axes."""
        return f"start_axis={self.start_axis}, end_axis={self.end_axis}"


class Unflatten(Module):
    """One axis made several: ``Unflatten(1, (C, T))`` takes (B, C·T) to (B, C, T).

    Args:
        axis: the axis to part.
        unflattened_size: the lengths of the axes in its place; one of them may be -1.
    """

    @public
    def __init__(self, axis: int, unflattened_size: tuple[int, ...]) -> None:
        super().__init__()
        self.axis, self.unflattened_size = axis, tuple(unflattened_size)

    def forward(self, x: Tensor) -> Tensor:
        """Part the axis of `x`."""
        if not -x.ndim <= self.axis < x.ndim:
            raise IndexError(f"Unflatten: axis {self.axis} is out of range for shape {x.shape}")
        axis = self.axis % x.ndim
        return x.reshape((*x.shape[:axis], *self.unflattened_size, *x.shape[axis + 1:]))

    def extra_repr(self) -> str:
        """The axis and the lengths."""
        return f"axis={self.axis}, unflattened_size={self.unflattened_size}"
