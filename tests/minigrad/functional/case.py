"""A row of the table of functionals: how to call it, and inputs to call it with."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from minigrad import Tensor

Shapes = tuple[tuple[int, ...], ...]


class Case(NamedTuple):
    """``function(*inputs)``; the inputs that are differentiated have these shapes."""

    name: str
    function: Callable[..., Any]
    shapes: Shapes
    differentiable: bool = True  # whether the gradient is to be that of the value

    def host_inputs(self, dtype: Any = np.float64) -> list[np.ndarray]:
        """Values near 1 in absolute value, the same for every call."""
        rng = np.random.default_rng(len(self.name))
        return [rng.normal(size=shape).astype(dtype) for shape in self.shapes]

    def inputs(self, dtype: Any = np.float64, device: str = "cpu") -> list[Tensor]:
        return [Tensor(array, device=device, requires_grad=True) for array in self.host_inputs(dtype)]
