"""The methods of a Tensor that are operations by NumPy's or PyTorch's names: each calls the operation of that name."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from minigrad import ops
from minigrad.arguments import public
from minigrad.engine.node import TensorBase

Axis = int | tuple[int, ...] | None
T = TypeVar("T")  # the class of the results


class Methods(TensorBase, Generic[T]):
    """``x.exp()``, ``x.sum(axis)``, ``x.reshape(shape)`` and the like; a Tensor inherits them from here."""

    __slots__ = ()

    # ----------------------------------------------------------------- the operations themselves

    # In a class, an operation is a method, as a function is.
    exp = ops.exp
    expm1 = ops.expm1
    log = ops.log
    log2 = ops.log2
    log10 = ops.log10
    log1p = ops.log1p
    sqrt = ops.sqrt
    square = ops.square
    sin = ops.sin
    cos = ops.cos
    tan = ops.tan
    sinh = ops.sinh
    cosh = ops.cosh
    tanh = ops.tanh
    sigmoid = ops.sigmoid
    erf = ops.erf
    erfc = ops.erfc
    relu = ops.relu
    abs = ops.absolute
    clip = ops.clip
    floor = ops.floor
    ceil = ops.ceil
    sign = ops.sign
    isnan = ops.isnan
    isinf = ops.isinf
    isfinite = ops.isfinite
    round = ops.round
    maximum = ops.maximum
    minimum = ops.minimum
    logaddexp = ops.logaddexp
    remainder = ops.remainder
    floor_divide = ops.floor_divide
    sum = ops.sum
    mean = ops.mean
    var = ops.var
    std = ops.std
    prod = ops.prod
    norm = ops.norm
    max = ops.max
    min = ops.min
    logsumexp = ops.logsumexp
    cumsum = ops.cumsum
    cumprod = ops.cumprod
    argmax = ops.argmax
    argmin = ops.argmin

    # ----------------------------------------------------------------- along axes, shapes and places

    @public
    def sort(self, axis: int | None = -1, descending: bool = False) -> T:
        """The values in order, as in NumPy; but a new tensor, nothing is sorted in place."""
        return ops.sort(self, axis, descending)

    @public
    def argsort(self, axis: int | None = -1, descending: bool = False) -> T:
        return ops.argsort(self, axis, descending)

    @public
    def topk(self, k: int, axis: int = -1, largest: bool = True) -> tuple[T, T]:
        return ops.topk(self, k, axis, largest)

    @public
    def any(self, axis: Axis = None, keepdims: bool = False) -> T:
        return ops.any(self, axis, keepdims)

    @public
    def all(self, axis: Axis = None, keepdims: bool = False) -> T:
        return ops.all(self, axis, keepdims)

    def reshape(self, *shape: Any) -> T:
        """A view of another shape: ``t.reshape(2, -1)`` or ``t.reshape((2, -1))``."""
        return ops.reshape(self, _ints(shape, "reshape"))

    def transpose(self, *axes: Any) -> T:
        """The axes in another order, all reversed if none is given: ``t.transpose(0, 2, 1)``, as in NumPy."""
        order = _ints(axes, "transpose") if axes and axes != (None,) else None
        return ops.transpose(self, order)

    @public
    def permute(self, *axes: Any) -> T:
        """PyTorch's name for `transpose` with all axes named."""
        return ops.transpose(self, _ints(axes, "permute"))

    def swapaxes(self, axis1: int, axis2: int) -> T:
        return ops.swapaxes(self, axis1, axis2)

    def moveaxis(self, source: int | Sequence[int], destination: int | Sequence[int]) -> T:
        return ops.moveaxis(self, source, destination)

    def ravel(self) -> T:
        return ops.ravel(self)

    @public
    def flatten(self, start_axis: int = 0, end_axis: int = -1) -> T:
        return ops.flatten(self, start_axis, end_axis)

    @public
    def squeeze(self, axis: Axis = None) -> T:
        return ops.squeeze(self, axis)

    @public
    def unsqueeze(self, axis: int) -> T:
        """PyTorch's name for `minigrad.expand_dims`."""
        return ops.expand_dims(self, axis)

    @public
    def expand(self, *shape: Any) -> T:
        """PyTorch's expand: repeat axes of length 1 without a copy; -1 keeps a length."""
        wanted = _ints(shape, "expand")
        lead = len(wanted) - self._data.ndim
        if lead < 0 or -1 in wanted[:lead]:
            raise ValueError(f"expand: {wanted} must have an entry for every axis of {self._data.shape}, and before "
                             "them a length, not -1, for every new axis")
        own = (*wanted[:lead], *self._data.shape)
        return ops.broadcast_to(self, tuple(o if n == -1 else n for n, o in zip(wanted, own, strict=True)))

    @public
    def split(self, sizes: int | Sequence[int], axis: int = 0) -> tuple[T, ...]:
        return ops.split(self, sizes, axis)

    @public
    def chunk(self, chunks: int, axis: int = 0) -> tuple[T, ...]:
        return ops.chunk(self, chunks, axis)

    @public
    def unbind(self, axis: int = 0) -> tuple[T, ...]:
        return ops.unbind(self, axis)

    @public
    def flip(self, axis: Axis = None) -> T:
        return ops.flip(self, axis)

    @public
    def roll(self, shift: int | tuple[int, ...], axis: Axis = None) -> T:
        return ops.roll(self, shift, axis)

    @public
    def repeat(self, repeats: Any, axis: int | None = None) -> T:
        """Each element repeated, as in NumPy. (PyTorch's repeat, of a whole tensor, is `tile`.)"""
        return ops.repeat(self, repeats, axis)

    @public
    def tile(self, reps: int | Sequence[int]) -> T:
        return ops.tile(self, reps)

    @public
    def diag(self, k: int = 0) -> T:
        return ops.diag(self, k)

    @public
    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> T:
        return ops.diagonal(self, offset, axis1, axis2)

    @public
    def trace(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> T:
        return ops.trace(self, offset, axis1, axis2)

    def dot(self, y: Any) -> T:
        return ops.dot(self, y)

    def outer(self, y: Any) -> T:
        return ops.outer(self, y)

    @public
    def take(self, indices: Any, axis: int | None = None) -> T:
        return ops.take(self, indices, axis)

    @public
    def gather(self, axis: int, index: Any) -> T:
        return ops.gather(self, axis, index)

    def index_put(self, indices: Any, values: Any) -> T:
        return ops.index_put(self, indices, values)

    def masked_fill(self, mask: Any, value: float) -> T:
        return ops.masked_fill(self, mask, value)


def _ints(values: tuple[Any, ...], operation: str) -> tuple[int, ...]:
    """``(2, 3)`` from ``(2, 3)`` or ``((2, 3),)``."""
    if len(values) == 1 and isinstance(values[0], (tuple, list)):
        values = tuple(values[0])
    try:
        return tuple(operator.index(v) for v in values)
    except TypeError as error:
        raise TypeError(f"{operation}: {error}") from None
