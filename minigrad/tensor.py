"""The Tensor that people use: what it is made of, how it leaves the engine, its gradient, and changes in place.

It speaks NumPy: ``axis``, ``keepdims``, ``transpose(axes)``; what is true of an ndarray is true here. Its operators are
in `minigrad.operators`, the methods that are ops in `minigrad.methods`.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from minigrad import autograd, ops
from minigrad.calls import public
from minigrad.device import (
    device_of,
    is_array,
    on_device_of,
    parse_device,
    to_device,
    to_numpy,
)
from minigrad.hooks import RemovableHandle, add_hook
from minigrad.methods import Methods
from minigrad.modes import recording
from minigrad.operands import numbers_on
from minigrad.operators import Operators, index_on_device, unwrap_nested
from minigrad.tape import Array, TensorBase, register_tensor_class, wrap


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
            data = np.asarray(unwrap_nested(data))
        except ValueError as error:
            raise ValueError(f"Tensor: the nested sequence has no regular shape ({error})") from None
        if without_dtype and dtype is None:
            data = _in_default_dtype(data)
    target_dtype = data.dtype if dtype is None else np.dtype(dtype)
    for kind in (data.dtype, target_dtype):
        if kind.kind not in "biuf":
            raise TypeError(f"Tensor: data must be boolean, integer or floating, got dtype {kind}")
    moved = to_device(data, device_of(data) if device is None else parse_device(device))
    with on_device_of(moved):
        return moved.astype(target_dtype, copy=moved is data)


def _in_default_dtype(listed: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What a list of Python numbers becomes; an empty one is floating."""
    if listed.dtype.kind == "f" or not listed.size:
        return listed.astype(np.float32)
    if listed.dtype.kind == "u" and listed.max() > np.iinfo(np.int64).max:
        raise OverflowError(f"Tensor: the integer {listed.max()} does not fit int64; name a dtype")
    return listed.astype(np.int64) if listed.dtype.kind in "iu" else listed


class Tensor(Operators, Methods):
    """A multi-dimensional array that can record what is done with it.

    Args:
        data: numbers, nested lists, an array, or a tensor; **copied** (`from_numpy` shares memory).
        dtype: by default the array's own; Python floats become float32, ints int64.
        device: ``"cpu"``, ``"cuda"``, ``"cuda:1"``; by default where the data is.
        requires_grad: whether `backward` computes ``.grad`` for it; floating dtypes only.

    Raises:
        TypeError: data that is not numeric; ``requires_grad`` for integers or booleans.
        ValueError: nested lists of irregular shape; an unknown device.
    """

    __slots__ = ()
    __array_ufunc__ = None  # ``np.exp(tensor)`` is refused, and ``ndarray * tensor`` asks the Tensor: no graph is cut
    __array_priority__ = 1000

    def __init__(self, data: Any, dtype: Any = None, device: str | None = None, requires_grad: bool = False) -> None:
        self._data = _to_array(data, dtype, device)
        self._node = None
        self._tick = [0]
        self._grad = None
        self._requires_grad = False
        self.requires_grad = requires_grad

    # ----------------------------------------------------------------- what it is

    @property
    def data(self) -> Array:
        """The raw array. Writing to it is not checked: a documented escape; call `bump_tick` afterwards."""
        return self._data

    @data.setter
    def data(self, array: Any) -> None:
        self._data = array._data if isinstance(array, TensorBase) else array
        self.bump_tick()

    def bump_tick(self) -> None:
        """Tell the tape that the raw array was changed in place, so that a stale saved value is an error."""
        self._tick[0] += 1

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

    def __repr__(self) -> str:
        with np.printoptions(precision=4, threshold=60, edgeitems=3):
            values = np.array2string(to_numpy(self._data), separator=", ", prefix=type(self).__name__ + "(")
        origin = f", op={self._node.primitive.name}" if self._node is not None else ""
        origin += ", requires_grad=True" if self._node is None and self._requires_grad else ""
        return f"{type(self).__name__}({values}, shape={self.shape}, dtype={self.dtype}, device={self.device}{origin})"

    def _repr_html_(self) -> str:
        """What a notebook shows; see `minigrad.notebook`."""
        from minigrad.notebook import tensor_html  # not before a notebook asks

        return tensor_html(self)

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if spec else str(self)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a 0-d tensor")
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        return (self[i] for i in range(len(self)))

    __hash__ = object.__hash__

    # ----------------------------------------------------------------- out of the engine

    def item(self) -> Any:
        """The only element, as a Python number."""
        if self.size != 1:
            raise ValueError(f"item: needs exactly one element, the shape is {self.shape}")
        return to_numpy(self._data).item()

    def tolist(self) -> Any:
        return to_numpy(self._data).tolist()

    def numpy(self) -> np.ndarray[Any, Any]:
        """The values on the host: a read-only view, or a copy from a GPU."""
        array = to_numpy(self._data).view()
        array.flags.writeable = False
        return array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if self._requires_grad:
            raise TypeError("np.asarray: this tensor requires a gradient, which NumPy would lose; "
                            "use .detach().numpy()")
        if self.device != "cpu":
            raise TypeError(f"np.asarray: this tensor is on {self.device}; use .numpy() to copy it to the host")
        array = self.numpy()
        return array.astype(dtype or array.dtype) if copy or (dtype is not None and dtype != array.dtype) else array

    def __dlpack__(self, **options: Any) -> Any:
        """The memory, shared with another library: ``torch.from_dlpack(t)``, ``np.from_dlpack(t)``."""
        if self._requires_grad:
            raise BufferError("__dlpack__: this tensor requires a gradient, which another library would lose; "
                              "use .detach()")
        return self._data.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        """The device in DLPack's numbering."""
        return self._data.__dlpack_device__()

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __index__(self) -> int:
        if self.dtype.kind not in "iu":
            raise TypeError(f"only integer tensors can be an index, this one is {self.dtype}")
        return int(self.item())

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ValueError(f"the truth value of a tensor of shape {self.shape} is ambiguous; use .any() or .all()")
        return bool(self.item())

    def __reduce__(self) -> Any:
        if self._requires_grad:
            raise TypeError("a tensor that requires a gradient cannot be serialised; use .detach() (or a state_dict)")
        if self.device != "cpu":
            raise TypeError(f"a tensor on {self.device} cannot be serialised; move it with .to('cpu')")
        return type(self), (to_numpy(self._data),)

    def __copy__(self) -> Tensor:
        """As of an ndarray: memory of its own, without the gradient."""
        duplicate = self.__deepcopy__({})
        duplicate.grad = None
        return duplicate

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if self._node is not None:
            raise RuntimeError("copy: this tensor is the result of a recorded operation; use .detach() first")
        if id(self) not in memo:
            with on_device_of(self._data):
                copy = wrap(self._data.copy())
            copy.__class__ = type(self)
            copy._requires_grad = self._requires_grad
            copy.grad = None if self.grad is None else self.grad.__deepcopy__(memo)
            memo[id(self)] = copy
        return memo[id(self)]

    # ----------------------------------------------------------------- gradients

    @property
    def grad(self) -> Any:
        """What `backward` has accumulated: a Tensor of this shape, dtype and device, or None.

        TypeError for anything else that is assigned to it, ValueError for a Tensor that differs in one of them.
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
        self._grad = gradient

    def backward(self, gradient: Any = None, retain_graph: bool = False, create_graph: bool = False) -> None:
        """Accumulate into ``.grad`` of every leaf that this tensor depends on; see `minigrad.autograd.backward`.

        `create_graph` is PyTorch's, and an error that names `minigrad.grad`, which has it.
        """
        if create_graph:
            raise TypeError("backward: create_graph would put a graph into .grad, and so a reference cycle; use "
                            "minigrad.grad(outputs, inputs, create_graph=True)")
        autograd.backward(self, gradient, retain_graph)

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
        return wrap(self._data, None, self._tick)

    def clone(self) -> Tensor:
        """A recorded copy."""
        return ops.astype(self, self.dtype)

    def astype(self, dtype: Any) -> Tensor:
        """A recorded copy in another dtype."""
        target = np.dtype(dtype)
        if target.kind not in "biuf":
            raise TypeError(f"astype: tensors are boolean, integer or floating, not {target}")
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

    def _check_writable(self, operation: str) -> None:
        if self._node is not None:
            raise RuntimeError(f"{operation}: this tensor is the result of a recorded operation "
                               f"({self._node.primitive.name}) and cannot be changed in place; build a new one with "
                               "minigrad.where")
        if any(step == 0 and n > 1 for step, n in zip(self._data.strides, self.shape, strict=True)):
            raise RuntimeError(f"{operation}: this tensor is a broadcast view, whose elements share memory; "
                               "use .clone() first")
        if not getattr(self._data.flags, "writeable", True):  # CuPy has no such flag
            raise RuntimeError(f"{operation}: this tensor looks at read-only memory; use .clone() first")

    def _raw_values(self, value: Any, operation: str) -> Any:
        if isinstance(value, TensorBase):
            if value._requires_grad and recording.get():
                raise RuntimeError(f"{operation}: the values require a gradient, which a change in place would lose; "
                                   "use minigrad.where, or .detach() them")
            return to_device(value._data, self.device)
        if isinstance(value, (int, float)):
            return value
        return numbers_on(self.device, value, self.dtype, operation)

    def __setitem__(self, index: Any, value: Any) -> None:
        self._check_writable("t[...] = value")
        with on_device_of(self._data):
            self._data[_raw(index_on_device(index, self.device))] = self._raw_values(value, "t[...] = value")
        self.bump_tick()

    def copy_(self, source: Any) -> Tensor:
        """Overwrite the values in place with those of `source`, a tensor, array or number that broadcasts to them."""
        self._check_writable("copy_")
        with on_device_of(self._data):
            self._data[...] = self._raw_values(source, "copy_")
        self.bump_tick()
        return self


register_tensor_class(Tensor)


def _raw(index: Any) -> Any:
    """An index with its tensors unwrapped."""
    if isinstance(index, tuple):
        return tuple(_raw(part) for part in index)
    return index._data if isinstance(index, TensorBase) else index


def as_tensor(data: Any, like: Tensor | None = None) -> Tensor:
    """`data` itself if it is a tensor; arrays are shared, anything else is copied to the device of `like`."""
    if isinstance(data, Tensor):
        return data
    if is_array(data):
        return wrap(data)
    return Tensor(data, device=None if like is None else like.device)
