"""The operators of a Tensor: ``x + y``, ``x @ y``, ``x > y``, ``x[...]``; each calls the op of its name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from minigrad import ops
from minigrad.device import device_of, is_array, to_device, to_numpy
from minigrad.operands import as_operand
from minigrad.tape import TensorBase, wrap

if TYPE_CHECKING:
    from minigrad.tensor import Tensor


# Calling the bound method is quicker than calling the operation, which Python does through several layers.
_absolute = ops.absolute.__call__
_add = ops.add.__call__
_div = ops.div.__call__
_equal = ops.equal.__call__
_floor_divide = ops.floor_divide.__call__
_getitem = ops.getitem.__call__
_greater = ops.greater.__call__
_greater_equal = ops.greater_equal.__call__
_less = ops.less.__call__
_less_equal = ops.less_equal.__call__
_logical_and = ops.logical_and.__call__
_logical_not = ops.logical_not.__call__
_logical_or = ops.logical_or.__call__
_mul = ops.mul.__call__
_neg = ops.neg.__call__
_not_equal = ops.not_equal.__call__
_power = ops.power.__call__
_remainder = ops.remainder.__call__
_sub = ops.sub.__call__


class Operators(TensorBase):
    """What Python's operators do with a Tensor, which inherits them from here."""

    __slots__ = ()

    def __add__(self, other: Any) -> Tensor:
        return _add(self, other)

    def __radd__(self, other: Any) -> Tensor:
        return _add(other, self)

    def __sub__(self, other: Any) -> Tensor:
        return _sub(self, other)

    def __rsub__(self, other: Any) -> Tensor:
        return _sub(other, self)

    def __mul__(self, other: Any) -> Tensor:
        return _mul(self, other)

    def __rmul__(self, other: Any) -> Tensor:
        return _mul(other, self)

    def __truediv__(self, other: Any) -> Tensor:
        return _div(self, other)

    def __rtruediv__(self, other: Any) -> Tensor:
        return _div(other, self)

    def __pow__(self, other: Any) -> Tensor:
        return _power(self, other)

    def __rpow__(self, other: Any) -> Tensor:
        return _power(other, self)

    def __mod__(self, other: Any) -> Tensor:
        return _remainder(self, other)

    def __rmod__(self, other: Any) -> Tensor:
        return _remainder(other, self)

    def __floordiv__(self, other: Any) -> Tensor:
        return _floor_divide(self, other)

    def __rfloordiv__(self, other: Any) -> Tensor:
        return _floor_divide(other, self)

    def __matmul__(self, other: Any) -> Tensor:
        return ops.matmul(self, _matrix(other, self))

    def __rmatmul__(self, other: Any) -> Tensor:
        return ops.matmul(_matrix(other, self), self)

    def __neg__(self) -> Tensor:
        return _neg(self)

    def __abs__(self) -> Tensor:
        return _absolute(self)

    def __and__(self, other: Any) -> Tensor:
        return _logical_and(self, other)

    def __rand__(self, other: Any) -> Tensor:
        return _logical_and(other, self)

    def __or__(self, other: Any) -> Tensor:
        return _logical_or(self, other)

    def __ror__(self, other: Any) -> Tensor:
        return _logical_or(other, self)

    def __invert__(self) -> Tensor:
        return _logical_not(self)

    def __eq__(self, other: object) -> Tensor:  # type: ignore[override]
        return _equal(self, other)

    def __ne__(self, other: object) -> Tensor:  # type: ignore[override]
        return _not_equal(self, other)

    def __lt__(self, other: Any) -> Tensor:
        return _less(self, other)

    def __le__(self, other: Any) -> Tensor:
        return _less_equal(self, other)

    def __gt__(self, other: Any) -> Tensor:
        return _greater(self, other)

    def __ge__(self, other: Any) -> Tensor:
        return _greater_equal(self, other)

    def __getitem__(self, index: Any) -> Tensor:
        return _getitem(self, index_on_device(index, device_of(self._data)))


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
