"""Parameter: a tensor that a module learns."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.arguments import whole_number
from minigrad.tensor import Tensor


class Parameter(Tensor):
    """A tensor that a module learns: assigned to an attribute of a `Module`, it is found by ``parameters()``.

    Results of operations on it are plain tensors.

    Args:
        data: an array or tensor of floats, copied.
        requires_grad: False for a parameter that is frozen.
    """

    __slots__ = ()

    def __init__(self, data: Any, requires_grad: bool = True) -> None:
        super().__init__(data, requires_grad=requires_grad)


def new_parameter(*shape: int) -> Parameter:
    """A parameter of float32 zeros, for an initialiser to fill; TypeError or ValueError for sizes that are none."""
    sizes = [whole_number(size, "a size", "Parameter") for size in shape]
    parameter = Parameter(np.zeros(0, np.float32))
    parameter.data = np.zeros(sizes, np.float32)  # not copied: memory is taken when the initialiser writes to it
    return parameter
