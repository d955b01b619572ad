"""The methods of a Tensor that are ops under NumPy's or PyTorch's names; each calls the op of its name.

``dim`` and ``keepdim`` are understood wherever ``axis`` and ``keepdims`` are.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from minigrad import ops
from minigrad.arguments import public
from minigrad.tensor.elementwise_methods import ElementwiseMethods

if TYPE_CHECKING:
    from minigrad.tensor import Tensor

Axis = int | tuple[int, ...] | None


class Methods(ElementwiseMethods):
    """``x.sum(axis)``, ``x.reshape(shape)`` and the like; a Tensor inherits them from here."""

    __slots__ = ()

    if not TYPE_CHECKING:  # a type checker should find a missing name missing

        def __getattr__(self, name):
            """Say what a name from PyTorch or NumPy is called here; runs only where there is no such attribute."""
            kind, told = type(self).__name__, None
            if not name.startswith("_"):
                from minigrad.compat.names import missing

                told = missing(kind, name)
            raise AttributeError(told or f"{kind!r} object has no attribute {name!r}", name=name)

    @public
    def sum(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        return ops.sum(self, axis, keepdims)

    @public
    def mean(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        return ops.mean(self, axis, keepdims)

    @public
    def var(self, axis: Axis = None, correction: int = 0, keepdims: bool = False) -> Tensor:
        return ops.var(self, axis, correction, keepdims)

    @public
    def std(self, axis: Axis = None, correction: int = 0, keepdims: bool = False) -> Tensor:
        return ops.std(self, axis, correction, keepdims)

    @public
    def prod(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        return ops.prod(self, axis, keepdims)

    @public
    def norm(self, ord: float | str | None = None, axis: Axis = None, keepdims: bool = False) -> Tensor:
        return ops.norm(self, ord, axis, keepdims)

    @public
    def median(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        return ops.median(self, axis, keepdims)

    @public
    def max(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        return ops.max(self, axis, keepdims)

    @public
    def min(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        return ops.min(self, axis, keepdims)

    @public
    def logsumexp(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        return ops.logsumexp(self, axis, keepdims)

    @public
    def cumsum(self, axis: int) -> Tensor:
        return ops.cumsum(self, axis)

    @public
    def cumprod(self, axis: int) -> Tensor:
        return ops.cumprod(self, axis)

    @public
    def logcumsumexp(self, axis: int) -> Tensor:
        return ops.logcumsumexp(self, axis)

    @public
    def argmax(self, axis: int | None = None, keepdims: bool = False) -> Tensor:
        return ops.argmax(self, axis, keepdims)

    @public
    def argmin(self, axis: int | None = None, keepdims: bool = False) -> Tensor:
        return ops.argmin(self, axis, keepdims)

    @public
    def sort(self, axis: int | None = -1, descending: bool = False, stable: bool = True) -> Tensor:
        """The values in order, as in NumPy; but a new tensor, nothing is sorted in place."""
        return ops.sort(self, axis, descending, stable)

    @public
    def argsort(self, axis: int | None = -1, descending: bool = False, stable: bool = True) -> Tensor:
        return ops.argsort(self, axis, descending, stable)

    @public
    def topk(self, k: int, axis: int = -1, largest: bool = True, sorted: bool = True) -> tuple[Tensor, Tensor]:
        return ops.topk(self, k, axis, largest, sorted)

    @public
    def any(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        return ops.any(self, axis, keepdims)

    @public
    def all(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        return ops.all(self, axis, keepdims)

    def reshape(self, *shape: Any) -> Tensor:
        """A view of another shape: ``t.reshape(2, -1)`` or ``t.reshape((2, -1))``."""
        return ops.reshape(self, _ints(shape, "reshape"))

    def transpose(self, *axes: Any) -> Tensor:
        """The axes in another order, all reversed if none is given: ``t.transpose(0, 2, 1)``, as in NumPy."""
        order = _ints(axes, "transpose") if axes and axes != (None,) else None
        return ops.transpose(self, order)

    @public
    def permute(self, *axes: Any) -> Tensor:
        """PyTorch's name for `transpose` with all axes named."""
        return ops.transpose(self, _ints(axes, "permute"))

    def swapaxes(self, axis1: int, axis2: int) -> Tensor:
        return ops.swapaxes(self, axis1, axis2)

    def moveaxis(self, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
        return ops.moveaxis(self, source, destination)

    def ravel(self) -> Tensor:
        return ops.ravel(self)

    @public
    def flatten(self, start_axis: int = 0, end_axis: int = -1) -> Tensor:
        return ops.flatten(self, start_axis, end_axis)

    @public
    def squeeze(self, axis: Axis = None) -> Tensor:
        return ops.squeeze(self, axis)

    @public
    def unsqueeze(self, axis: int) -> Tensor:
        """PyTorch's name for `minigrad.expand_dims`."""
        return ops.expand_dims(self, axis)

    @public
    def expand(self, *shape: Any) -> Tensor:
        """PyTorch's expand: repeat axes of length 1 without a copy; -1 keeps a length."""
        wanted = _ints(shape, "expand")
        lead = len(wanted) - self._data.ndim
        if lead < 0 or -1 in wanted[:lead]:
            raise ValueError(f"expand: {wanted} must have an entry for every axis of {self._data.shape}, and before "
                             "them a length, not -1, for every new axis")
        own = (*wanted[:lead], *self._data.shape)
        return ops.broadcast_to(self, tuple(o if n == -1 else n for n, o in zip(wanted, own, strict=True)))

    @public
    def split(self, sizes: int | Sequence[int], axis: int = 0) -> tuple[Tensor, ...]:
        return ops.split(self, sizes, axis)

    @public
    def chunk(self, chunks: int, axis: int = 0) -> tuple[Tensor, ...]:
        return ops.chunk(self, chunks, axis)

    @public
    def unbind(self, axis: int = 0) -> tuple[Tensor, ...]:
        return ops.unbind(self, axis)

    @public
    def flip(self, axis: Axis = None) -> Tensor:
        return ops.flip(self, axis)

    @public
    def roll(self, shift: int | tuple[int, ...], axis: Axis = None) -> Tensor:
        return ops.roll(self, shift, axis)

    @public
    def repeat(self, repeats: Any, axis: int | None = None) -> Tensor:
        """Each element repeated, as in NumPy. (PyTorch's repeat, of a whole tensor, is `tile`.)"""
        return ops.repeat(self, repeats, axis)

    @public
    def repeat_interleave(self, repeats: Any, axis: int | None = None) -> Tensor:
        return ops.repeat_interleave(self, repeats, axis)

    @public
    def tile(self, reps: int | Sequence[int]) -> Tensor:
        return ops.tile(self, reps)

    @public
    def diag(self, k: int = 0) -> Tensor:
        return ops.diag(self, k)

    @public
    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
        return ops.diagonal(self, offset, axis1, axis2)

    @public
    def trace(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
        return ops.trace(self, offset, axis1, axis2)

    def dot(self, y: Any) -> Tensor:
        return ops.dot(self, y)

    def inner(self, y: Any) -> Tensor:
        return ops.inner(self, y)

    def outer(self, y: Any) -> Tensor:
        return ops.outer(self, y)

    @public
    def take(self, indices: Any, axis: int | None = None) -> Tensor:
        return ops.take(self, indices, axis)

    @public
    def gather(self, axis: int, index: Any) -> Tensor:
        return ops.gather(self, axis, index)

    @public
    def scatter(self, axis: int, index: Any, src: Any) -> Tensor:
        return ops.scatter(self, axis, index, src)

    @public
    def scatter_add(self, axis: int, index: Any, src: Any) -> Tensor:
        return ops.scatter_add(self, axis, index, src)

    @public
    def index_select(self, axis: int, index: Any) -> Tensor:
        return ops.index_select(self, axis, index)

    @public
    def index_add(self, axis: int, index: Any, source: Any) -> Tensor:
        return ops.index_add(self, axis, index, source)

    def index_put(self, indices: Any, values: Any, accumulate: bool = False) -> Tensor:
        return ops.index_put(self, indices, values, accumulate)

    def masked_select(self, mask: Any) -> Tensor:
        return ops.masked_select(self, mask)

    def nonzero(self) -> tuple[Tensor, ...]:
        return ops.nonzero(self)

    def argwhere(self) -> Tensor:
        return ops.argwhere(self)

    def bincount(self, weights: Any = None, minlength: int = 0) -> Tensor:
        return ops.bincount(self, weights, minlength)

    def masked_fill(self, mask: Any, value: float) -> Tensor:
        return ops.masked_fill(self, mask, value)


def _ints(values: tuple[Any, ...], operation: str) -> tuple[int, ...]:
    """``(2, 3)`` from ``(2, 3)`` or ``((2, 3),)``."""
    if len(values) == 1 and isinstance(values[0], (tuple, list)):
        values = tuple(values[0])
    try:
        return tuple(operator.index(v) for v in values)
    except TypeError as error:
        raise TypeError(f"{operation}: {error}") from None
