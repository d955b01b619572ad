"""A tensor as text, as Python numbers, as an array of NumPy or of another library, and as a copy."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from minigrad.device import device_of, on_device_of, to_numpy
from minigrad.engine.node import TensorBase, wrap


class ArrayLike(TensorBase):
    """Text, conversions and copies; a Tensor inherits them from here."""

    __slots__ = ()

    def __repr__(self) -> str:
        with np.printoptions(precision=4, threshold=60, edgeitems=3):
            values = np.array2string(to_numpy(self._data), separator=", ", prefix=type(self).__name__ + "(")
        origin = f", op={self._node.primitive.name}" if self._node is not None else ""
        origin += ", requires_grad=True" if self._node is None and self._requires_grad else ""
        return (f"{type(self).__name__}({values}, shape={self._data.shape}, dtype={self._data.dtype}, "
                f"device={device_of(self._data)}{origin})")

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if spec else str(self)

    # ----------------------------------------------------------------- out of the engine

    def item(self) -> Any:
        """The only element, as a Python number."""
        if self._data.size != 1:
            raise ValueError(f"item: needs exactly one element, the shape is {self._data.shape}")
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
                            "call a function of minigrad (minigrad.stack for a list), or use .detach().numpy()")
        if device_of(self._data) != "cpu":
            raise TypeError(f"np.asarray: this tensor is on {device_of(self._data)}; use .numpy() to copy it to the "
                            "host")
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
        if self._data.dtype.kind not in "iu":
            raise TypeError(f"only integer tensors can be an index, this one is {self._data.dtype}")
        return int(self.item())

    def __bool__(self) -> bool:
        if self._data.size != 1:
            raise ValueError(f"the truth value of a tensor of shape {self._data.shape} is ambiguous; use .any() or "
                             ".all()")
        return bool(self.item())

    def __reduce__(self) -> Any:
        if self._requires_grad:
            raise TypeError("a tensor that requires a gradient cannot be serialised; use .detach() (or a state_dict)")
        if device_of(self._data) != "cpu":
            raise TypeError(f"a tensor on {device_of(self._data)} cannot be serialised; move it with .to('cpu')")
        return type(self), (to_numpy(self._data),)

    def __copy__(self) -> Self:
        """As of an ndarray: memory of its own, without the gradient."""
        duplicate = self.__deepcopy__({})
        duplicate._grad = None
        return duplicate

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        if self._node is not None:
            raise RuntimeError("copy: this tensor is the result of a recorded operation; use .detach() first")
        if id(self) not in memo:
            with on_device_of(self._data):
                copy = wrap(self._data.copy())
            copy.__class__ = type(self)
            copy._requires_grad = self._requires_grad
            copy._grad = None if self._grad is None else self._grad.__deepcopy__(memo)
            memo[id(self)] = copy
        return memo[id(self)]
