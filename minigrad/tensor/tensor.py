"""The Tensor that people use: what it is made of, its operators, its gradient, and changes in place.

It speaks NumPy: ``axis``, ``keepdims``, ``transpose(axes)``; what is true of an ndarray is true here. The methods that
are operations stand in `minigrad.tensor.methods`; text, copies and the ways out of the engine in
`minigrad.tensor.conversion`.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from minigrad import ops
from minigrad.arguments import numbers_on, numeric_dtype, public
from minigrad.device import device_of, is_array, on_device_of, parse_device, plain, to_device, to_numpy
from minigrad.device.local import recording
from minigrad.engine.node import Array, TensorBase, register_tensor_class, wrap
from minigrad.engine.operands import as_operand, numeric
from minigrad.ops.indexing import raw
from minigrad.tensor import gradients
from minigrad.tensor.conversion import ArrayLike
from minigrad.tensor.hooks import RemovableHandle, add_hook
from minigrad.tensor.methods import Methods


class Tensor(ArrayLike, Methods["Tensor"]):
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

    @property
    def shape(self) -> tuple[int, ...]:
        return self._data.shape

    @property
    def ndim(self) -> int:
        return self._data.ndim

    @property
    def size(self) -> int:
        return self._data.size

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._data.dtype

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

    def __pos__(self) -> Tensor:
        return self

    def __abs__(self) -> Tensor:
        return ops.absolute(self)

    def __and__(self, other: Any) -> Tensor:
        return ops.bitwise_and(self, other)

    def __rand__(self, other: Any) -> Tensor:
        return ops.bitwise_and(other, self)

    def __or__(self, other: Any) -> Tensor:
        return ops.bitwise_or(self, other)

    def __ror__(self, other: Any) -> Tensor:
        return ops.bitwise_or(other, self)

    def __invert__(self) -> Tensor:
        return ops.bitwise_not(self)

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
        if type(index) is not int and type(index) is not slice:
            index = _index_on(index, device_of(self._data))
        return ops.getitem(self, index)

    __hash__ = object.__hash__  # Python drops it where there is an ``__eq__``

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

    def backward(self, gradient: Any = None, retain_graph: bool = False, create_graph: bool = False) -> None:
        """Accumulate into ``.grad`` of every leaf that this tensor depends on; see `minigrad.engine.backward`.

        `create_graph` is PyTorch's, and an error that names `minigrad.grad`, which has it.
        """
        if create_graph:
            raise TypeError("backward: create_graph would put a graph into .grad, and so a reference cycle; use "
                            "minigrad.grad(outputs, inputs, create_graph=True)")
        gradients.backward(self, gradient, retain_graph)

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
        self.bump_tick()
        with on_device_of(self._data):
            self._data[index] = value

    def __setitem__(self, index: Any, value: Any) -> None:
        self._write(index, value, "t[...] = value")

    def copy_(self, source: Any) -> Tensor:
        """Overwrite the values in place with those of `source`, a tensor, array or number that broadcasts to them."""
        self._write(..., source, "copy_")
        return self


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
    if isinstance(data, TensorBase):
        data = data._data
    if not is_array(data):
        without_dtype = not isinstance(data, np.generic)
        try:
            data = np.asarray(_unwrap_nested(data))
        except ValueError as error:
            raise ValueError(f"Tensor: the nested sequence has no regular shape ({error})") from None
        if without_dtype and dtype is None:
            data = _in_default_dtype(data)
    data = numeric(data, "Tensor")
    moved = to_device(data, device_of(data) if device is None else parse_device(device))
    target_dtype = data.dtype if dtype is None else numeric_dtype(dtype, "Tensor")
    with on_device_of(moved):
        return moved.astype(target_dtype, copy=moved is data)


def _in_default_dtype(listed: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What a list of Python numbers becomes; an empty one is floating."""
    if listed.dtype.kind == "f" or not listed.size:
        return listed.astype(np.float32)
    if listed.dtype.kind == "u" and listed.max() > np.iinfo(np.int64).max:
        raise OverflowError(f"Tensor: the integer {listed.max()} does not fit int64; name a dtype")
    return listed.astype(np.int64) if listed.dtype.kind in "iu" else listed


def _matrix(value: Any, like: TensorBase) -> Any:
    """An operand of ``@``, as a tensor on the device of `like`."""
    if isinstance(value, TensorBase) or value is None:  # of None matmul says what it needs
        return value
    return wrap(as_operand(value, (like,), "matmul"))


def _index_on(index: Any, device: str) -> Any:
    """An index with its lists made arrays, and all on `device`. Tensors stay tensors: the tape sees them change.

    Of other arrays in host memory it has copies, since nothing sees these change before the backward pass.
    """
    if isinstance(index, tuple):
        return tuple(_index_on(part, device) for part in index)
    if isinstance(index, TensorBase):
        return index if device_of(index._data) == device else to_device(index._data, device)
    if isinstance(index, list):
        listed = np.asarray(_unwrap_nested(index))
        index = listed if listed.size else listed.astype(np.int64)
    elif isinstance(index, np.ndarray):
        index = plain(index, "index").copy()
    return index if device == "cpu" or not is_array(index) else to_device(index, device)


def _unwrap_nested(data: Any) -> Any:
    """Nested lists with host tensors inside, as nested lists of arrays."""
    if isinstance(data, TensorBase):
        if data._requires_grad and recording.get():
            raise TypeError("Tensor: a list of tensors that require a gradient would become a constant; join them with "
                            "minigrad.stack, or give .detach() or float() of each for a constant")
        return to_numpy(data._data)
    if isinstance(data, (list, tuple)):
        return [_unwrap_nested(item) for item in data]
    return plain(data, "Tensor") if isinstance(data, np.ndarray) else data
