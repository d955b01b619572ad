"""The operators of a Tensor: ``x + y``, ``x @ y``, ``x > y``, ``x[...]``; each calls the op of its name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from minigrad import ops
from minigrad.device import device_of, is_array, to_device, to_numpy
from minigrad.engine.node import TensorBase, wrap
from minigrad.engine.operands import as_operand

if TYPE_CHECKING:
    from minigrad.tensor import Tensor


class Operators(TensorBase):
    """What Python's operators do with a Tensor, which inherits them from here."""

    __slots__ = ()

    def __add__(self, other: Any) -> Tensor:
        return ops.add(self, other)

    def __radd__(self, other: Any) -> Tensor:
        return ops.add(other, self)

    def __sub__(self, other: Any) -> Tensor:
        return ops.sub(self, other)

    def __rsub__(self, other: Any) -> Tensor:
        return ops.sub(other, self)

    def __mul__(self, other: Any) -> Tensor:
        return ops.mul(self, other)

    def __rmul__(self, other: Any) -> Tensor:
        return ops.mul(other, self)

    def __truediv__(self, other: Any) -> Tensor:
        return ops.div(self, other)

    def __rtruediv__(self, other: Any) -> Tensor:
        return ops.div(other, self)

    def __pow__(self, other: Any) -> Tensor:
        return ops.power(self, other)

    def __rpow__(self, other: Any) -> Tensor:
        return ops.power(other, self)

    def __mod__(self, other: Any) -> Tensor:
        return ops.remainder(self, other)

    def __rmod__(self, other: Any) -> Tensor:
        return ops.remainder(other, self)

    def __floordiv__(self, other: Any) -> Tensor:
        return ops.floor_divide(self, other)

    def __rfloordiv__(self, other: Any) -> Tensor:
        return ops.floor_divide(other, self)

    def __matmul__(self, other: Any) -> Tensor:
        return ops.matmul(self, _matrix(other, self))

    def __rmatmul__(self, other: Any) -> Tensor:
        return ops.matmul(_matrix(other, self), self)

    def __neg__(self) -> Tensor:
        return ops.neg(self)

    def __abs__(self) -> Tensor:
        return ops.absolute(self)

    def __and__(self, other: Any) -> Tensor:
        return ops.logical_and(self, other)

    def __rand__(self, other: Any) -> Tensor:
        return ops.logical_and(other, self)

    def __or__(self, other: Any) -> Tensor:
        return ops.logical_or(self, other)

    def __ror__(self, other: Any) -> Tensor:
        return ops.logical_or(other, self)

    def __invert__(self) -> Tensor:
        return ops.logical_not(self)

    def __eq__(self, other: object) -> Tensor:  # type: ignore[override]
        return ops.equal(self, other)

    def __ne__(self, other: object) -> Tensor:  # type: ignore[override]
        return ops.not_equal(self, other)

    def __lt__(self, other: Any) -> Tensor:
        return ops.less(self, other)

    def __le__(self, other: Any) -> Tensor:
        return ops.less_equal(self, other)

    def __gt__(self, other: Any) -> Tensor:
        return ops.greater(self, other)

    def __ge__(self, other: Any) -> Tensor:
        return ops.greater_equal(self, other)

    def __getitem__(self, index: Any) -> Tensor:
        return ops.getitem(self, index_on_device(index, device_of(self._data)))


def _matrix(value: Any, like: TensorBase) -> Any:
    """An operand of ``@``, as a tensor on the device of `like`."""
    if isinstance(value, TensorBase):
        return value
    return wrap(as_operand(value, (like,), "matmul"))


def index_on_device(index: Any, device: str) -> Any:
    """An index with its lists made arrays, and all on `device`. Tensors stay tensors: the tape sees them change."""
    if isinstance(index, tuple):
        return tuple(index_on_device(part, device) for part in index)
    if isinstance(index, TensorBase):
        return index if device_of(index._data) == device else to_device(index._data, device)
    if isinstance(index, list):
        index = np.asarray(unwrap_nested(index), dtype=None if len(index) else np.int64)
    return index if device == "cpu" or not is_array(index) else to_device(index, device)


def unwrap_nested(data: Any) -> Any:
    """Nested lists with host tensors inside, as nested lists of arrays."""
    if isinstance(data, TensorBase):
        return to_numpy(data._data)
    return [unwrap_nested(item) for item in data] if isinstance(data, (list, tuple)) else data
