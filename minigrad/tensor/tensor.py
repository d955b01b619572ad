"""The Tensor that people use: what it is made of, its operators, its gradient, and changes in place.

It speaks NumPy: ``axis``, ``keepdims``, ``transpose(axes)``; what is true of an ndarray is true here. The methods that
are operations come from `minigrad.ops`; text, copies and the ways out of the engine in
`minigrad.tensor.conversion`.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from minigrad import ops
from minigrad.arguments import listed, numbers_on, numeric_dtype
from minigrad.device import device_of, is_array, on_device_of, parse_device, plain, to_device
from minigrad.device.local import recording
from minigrad.engine.node import Array, TensorBase, register_tensor_class, wrap
from minigrad.engine.operands import numeric
from minigrad.engine.primitive import public
from minigrad.engine.watch import watchers
from minigrad.ops.indexing import raw
from minigrad.tensor import gradients
from minigrad.tensor.conversion import ArrayLike
from minigrad.tensor.hooks import RemovableHandle, add_hook


def _both(operation: Any) -> tuple[Callable[[Any, Any], Tensor], Callable[[Any, Any], Tensor]]:
    """The methods of an operator: of the operand on its left, and of that on its right."""
    return lambda self, other: operation(self, other), lambda self, other: operation(other, self)


class Tensor(ArrayLike):
    """A multi-dimensional array that can record what is done with it.

    Args:
        data: numbers, nested lists, an array, or a tensor; **copied** (`from_numpy` shares memory).
        dtype: by default the array's own; Python floats become float32, ints int64.
        device: ``"cpu"``, ``"cuda"``, ``"cuda:1"``; by default where the data is.
        requires_grad: whether `backward` computes ``.grad`` for it; floating dtypes only.

    Raises:
        TypeError: data that is not numeric; a list of tensors that require a gradient, which `minigrad.stack` joins;
            ``requires_grad`` for integers or booleans.
        ValueError: nested lists of irregular shape; an unknown device.
    """

    __slots__ = ()
    __array_ufunc__ = None  # ``np.exp(tensor)`` is refused, and ``ndarray * tensor`` asks the Tensor: no graph is cut
    __array_priority__ = 1000

    def __init__(self, data: Any, dtype: Any = None, device: str | None = None, requires_grad: bool = False) -> None:
        self._data = _to_array(data, dtype, device)
        self._node = None
        self._version = [0]
        self._grad = self._hooks = None
        self._requires_grad = False
        self.requires_grad = requires_grad

    # ----------------------------------------------------------------- what it is

    shape = property(attrgetter("_data.shape"), doc="The length of each axis.")
    ndim = property(attrgetter("_data.ndim"), doc="How many axes there are.")
    size = property(attrgetter("_data.size"), doc="How many elements there are.")
    dtype = property(attrgetter("_data.dtype"), doc="What the elements are, a dtype of NumPy.")

    @property
    def device(self) -> str:
        """``"cpu"`` or ``"cuda:N"``."""
        return device_of(self._data)

    @property
    def data(self) -> Array:
        """The raw array. Writing to it is not checked: a documented escape; call `bump_tick` first.

        Raw arrays that are operands beside a tensor are not checked either; `detect_anomaly` finds both.
        """
        return self._data

    @data.setter
    def data(self, array: Any) -> None:
        given = as_tensor(array)._data
        self.bump_tick()
        self._data = given

    def bump_tick(self) -> None:
        """Tell the tape that the raw array changes in place, so that a stale saved value is an error."""
        self._version[0] += 1

    @property
    def requires_grad(self) -> bool:
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if value and self._data.dtype.kind != "f":
            raise TypeError(f"requires_grad: only floating tensors can require gradients, this is {self._data.dtype}")
        if not value and self._node is not None:
            raise RuntimeError("requires_grad: this tensor is the result of a recorded operation; use .detach()")
        self._requires_grad = bool(value)

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded operation made this tensor."""
        return self._node is None

    @property
    def mT(self) -> Tensor:
        """The last two axes swapped."""
        if self.ndim < 2:
            raise ValueError(f"mT: needs at least two dimensions, got shape {self.shape}")
        return self.swapaxes(-1, -2)

    @property
    def T(self) -> Tensor:
        """All axes reversed."""
        return self.transpose()

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a 0-d tensor")
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        return (self[i] for i in range(len(self)))

    # ----------------------------------------------------------------- operators

    __add__, __radd__ = _both(ops.add)
    __sub__, __rsub__ = _both(ops.sub)
    __mul__, __rmul__ = _both(ops.mul)
    __truediv__, __rtruediv__ = _both(ops.div)
    __floordiv__, __rfloordiv__ = _both(ops.floor_divide)
    __mod__, __rmod__ = _both(ops.remainder)
    __pow__, __rpow__ = _both(ops.power)
    __matmul__, __rmatmul__ = _both(ops.matmul)
    __and__, __rand__ = _both(ops.bitwise_and)
    __or__, __ror__ = _both(ops.bitwise_or)
    __eq__, __ne__ = _both(ops.equal)[0], _both(ops.not_equal)[0]  # type: ignore[assignment]
    __lt__, __gt__ = _both(ops.less)[0], _both(ops.greater)[0]
    __le__, __ge__ = _both(ops.less_equal)[0], _both(ops.greater_equal)[0]
    __hash__ = object.__hash__  # Python drops it where there is an ``__eq__``

    def __neg__(self) -> Tensor:
        return ops.neg(self)

    def __pos__(self) -> Tensor:
        return self

    def __abs__(self) -> Tensor:
        return ops.abs(self)

    def __invert__(self) -> Tensor:
        return ops.bitwise_not(self)

    def __getitem__(self, index: Any) -> Tensor:
        if type(index) is not int and type(index) is not slice:
            index = _index_on(index, device_of(self._data))
        return ops.getitem(self, index)

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """The operations, which become methods below."""

    def reshape(self, *shape: Any) -> Tensor:
        """A view of another shape: ``t.reshape(2, -1)`` or ``t.reshape((2, -1))``."""
        return ops.reshape(self, tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], list | tuple) else shape)

    def transpose(self, *axes: Any) -> Tensor:
        """The axes in another order, all reversed if none is given: ``t.transpose(0, 2, 1)``, as in NumPy."""
        return ops.transpose(self, axes[0] if len(axes) == 1 else axes or None)

    # ----------------------------------------------------------------- gradients

    @property
    def grad(self) -> Any:
        """What `backward` has accumulated: a Tensor of this shape, dtype and device, or None.

        A Tensor that is assigned to it is copied. TypeError for anything else, ValueError for a Tensor that differs in
        one of them.
        """
        return self._grad

    @grad.setter
    def grad(self, gradient: Any) -> None:
        if gradient is not None:
            if not isinstance(gradient, Tensor):
                raise TypeError(f"grad: expected a Tensor or None, got {type(gradient).__name__}")
            for what in ("shape", "dtype", "device"):
                own, given = getattr(self, what), getattr(gradient, what)
                if own != given:
                    raise ValueError(f"grad: its {what} must be {own}, that of the tensor, got {given}")
            gradient = wrap(gradients.copy(gradient._data))
        self._grad = gradient

    backward = gradients.backward

    def retain_grad(self) -> None:
        """Let `backward` fill ``.grad`` of this tensor although it is not a leaf."""
        if not self._requires_grad:
            raise RuntimeError("retain_grad: this tensor does not require a gradient")
        if self._node is not None:
            self._node.retained = weakref.ref(self)

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> RemovableHandle:
        """Call ``hook(gradient)`` in every backward, once the gradient of this tensor is complete.

        It may return another tensor of that shape to go on with. What ``.grad`` gets, of a leaf or after
        `retain_grad`, is what the hooks returned. They run in the order of registration, without recording, but under
        ``create_graph``, where what they do is differentiated in turn. A hook that refers to its own tensor makes a
        reference cycle, unless it is a leaf's and removed.

        Returns:
            A handle; ``handle.remove()`` takes the hook away.
        """
        if not self._requires_grad:
            raise RuntimeError("register_hook: this tensor does not require a gradient")
        return add_hook(self, hook)

    def detach(self) -> Tensor:
        """The same memory, outside the graph."""
        return wrap(self._data, None, self._version)

    def clone(self) -> Tensor:
        """A recorded copy."""
        return ops.astype(self, self.dtype)

    def astype(self, dtype: Any) -> Tensor:
        """A recorded copy in another dtype."""
        target = numeric_dtype(dtype, "astype")
        return ops.astype(self if target.kind == "f" else self.detach(), target)

    @public
    def to(self, device: Any = None, dtype: Any = None) -> Tensor:
        """On another device, or in another dtype, or both: itself if it is so already, else a recorded copy.

        ``x.to("cuda")``, ``x.to(np.float64)``, ``x.to("cuda", np.float64)``; a string is a device.
        """
        if device is not None and dtype is None and isinstance(device, type | np.dtype):
            device, dtype = None, device
        target = self.device if device is None else parse_device(device)
        cast = self if dtype is None or np.dtype(dtype) == self.dtype else self.astype(dtype)
        return cast if target == self.device else ops.to_device(cast, target)

    def requires_grad_(self, value: bool = True) -> Tensor:
        """Set ``requires_grad`` in place; returns the tensor."""
        self.requires_grad = value
        return self

    # ----------------------------------------------------------------- changes in place

    def _write(self, index: Any, value: Any, operation: str) -> None:
        if self._node is not None:
            raise RuntimeError(f"{operation}: this tensor is the result of a recorded operation "
                               f"({self._node.primitive.name}) and cannot be changed in place; build a new one with "
                               "minigrad.where")
        if self.size and any(step == 0 and n > 1 for step, n in zip(self._data.strides, self.shape, strict=True)):
            raise RuntimeError(f"{operation}: this tensor is a broadcast view, whose elements share memory; "
                               "use .clone() first")
        if not getattr(self._data.flags, "writeable", True):  # CuPy has no such flag
            raise RuntimeError(f"{operation}: this tensor looks at read-only memory; use .clone() first")
        if isinstance(value, TensorBase):
            if value._requires_grad and recording.get():
                raise RuntimeError(f"{operation}: the values require a gradient, which a change in place would lose; "
                                   "use minigrad.where, or .detach() them")
            value = to_device(value._data, self.device)
        elif not isinstance(value, (int, float)):
            value = numbers_on(self.device, value, self.dtype, operation)
        index = raw(_index_on(index, self.device))
        for watcher in watchers():
            watcher.writes(self, index, value)
        self.bump_tick()
        with on_device_of(self._data):
            self._data[index] = value

    def __setitem__(self, index: Any, value: Any) -> None:
        self._write(index, value, "t[...] = value")

    def copy_(self, source: Any) -> Tensor:
        """Overwrite the values in place with those of `source`, a tensor, array or number that broadcasts to them."""
        self._write(..., source, "copy_")
        return self


for _name, _operation in ops.OPERATIONS.items():  # those whose first parameter is x are methods, too
    if _operation.__wrapped__.__code__.co_varnames[0] == "x" and _name not in vars(Tensor):
        setattr(Tensor, _name, _operation)
register_tensor_class(Tensor)


def as_tensor(data: Any) -> Tensor:
    """`data` itself if it is a tensor; arrays are shared, anything else is copied."""
    if isinstance(data, Tensor):
        return data
    if is_array(data):
        return wrap(numeric(data, "Tensor"))
    return Tensor(data)


def _to_array(data: Any, dtype: Any, device: str | None) -> Array:
    """An array with memory of its own: numbers and lists become float32, int64 or bool, arrays keep their dtype."""
    if isinstance(dtype, int | float):  # Tensor(2, 3)
        raise TypeError(f"Tensor: dtype must be a dtype, got {dtype}; Tensor takes data, not a shape, as "
                        "minigrad.zeros((2, 3)) does")
    given = data._data if isinstance(data, TensorBase) else listed(data, "Tensor")
    array = given if is_array(given) else np.asarray(given)
    if dtype is None and not isinstance(given, np.generic) and not is_array(given):
        array = _in_default_dtype(array)
    array = numeric(array, "Tensor")
    moved = to_device(array, device_of(array) if device is None else parse_device(device))
    target = array.dtype if dtype is None else numeric_dtype(dtype, "Tensor")
    with on_device_of(moved):
        return moved.astype(target, copy=moved is given)


def _in_default_dtype(numbers: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What a list of Python numbers becomes; an empty one is floating."""
    if numbers.dtype.kind == "f" or not numbers.size:
        return numbers.astype(np.float32)
    if numbers.dtype.kind == "u" and numbers.max() > np.iinfo(np.int64).max:
        raise OverflowError(f"Tensor: the integer {numbers.max()} does not fit int64; name a dtype")
    return numbers.astype(np.int64) if numbers.dtype.kind in "iu" else numbers


def _index_on(index: Any, device: str) -> Any:
    """An index with its lists made arrays, and all on `device`. Tensors stay tensors: the tape sees them change.

    Of other arrays in host memory it has copies, since nothing sees these change before the backward pass.
    """
    if isinstance(index, tuple):
        return tuple(_index_on(part, device) for part in index)
    if isinstance(index, TensorBase):
        return index if device_of(index._data) == device else to_device(index._data, device)
    if isinstance(index, list):
        places = np.asarray(listed(index, "index"))
        index = places if places.size else places.astype(np.int64)
    elif isinstance(index, np.ndarray):
        index = plain(index, "index").copy()
    return index if device == "cpu" or not is_array(index) else to_device(index, device)
