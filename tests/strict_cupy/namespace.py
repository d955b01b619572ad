"""The stand-in's modules: ``cupy``, with ``cupy.linalg`` and ``cupy.random``, and ``cupyx.scipy.special``."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.special

from tests.strict_cupy import machine
from tests.strict_cupy.kernels import KERNELS
from tests.strict_cupy.machine import synchronizations
from tests.strict_cupy.ndarray import NAMES, bind, call, check_devices, ndarray, number, operand, prepare_index, wrap

# A function whose first parameter has one of these names takes no number or list for it.
ARRAY_PARAMETERS = {"a", "arr", "array", "ary", "condition", "m", "prototype", "x"}
TAKES_ANYTHING = {"ndim", "shape", "size"}
# The ufuncs that have `at`, and what they change, by atomic operations: not int64, and not bool.
ATOMIC_EXTREMES = ("int32", "uint32", "uint64", "float32", "float64")
ATOMIC_DTYPES = {
    "add": (*ATOMIC_EXTREMES, "float16", "complex64", "complex128"),
    "maximum": ATOMIC_EXTREMES,
    "minimum": ATOMIC_EXTREMES,
}


class Ufunc:
    """``cupy.ufunc``: device arrays and numbers in, arrays out; there is no ``where``."""

    def __init__(self, ufunc: np.ufunc) -> None:
        self._ufunc, self.__name__ = ufunc, ufunc.__name__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        wrong = {key: value for key, value in kwargs.items() if key not in ("out", "dtype", "casting")}
        if wrong:
            raise TypeError(f"Wrong arguments {wrong}")
        for x in args:
            if type(x) is not ndarray:
                number(x)
        return call(self.__name__, self._ufunc, *args, **kwargs)

    def at(self, a: ndarray, indices: Any, b: Any) -> None:
        self._only("at", *ATOMIC_DTYPES)
        allowed = ATOMIC_DTYPES[self.__name__]
        if a.dtype not in allowed:
            raise TypeError(f"cupy.{self.__name__}.at only supports {', '.join(allowed)} as data type, got {a.dtype}")
        check_devices([a])
        self._ufunc.at(a._host, prepare_index(a, indices)[0], operand(b))

    def reduce(self, array: ndarray, axis: int = 0, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        self._only("reduce", "add", "multiply")
        return call("reduce", self._ufunc.reduce, array, axis, dtype, out, keepdims)

    def _only(self, method: str, *ufuncs: str) -> None:
        if self.__name__ not in ufuncs:
            raise NotImplementedError(f"`cupy_{self.__name__}.{method}` is not supported yet")


def function(name: str, parameters: str, implementation: Callable[..., Any]) -> Callable[..., Any]:
    """CuPy's function ``name``, run by NumPy's ``implementation``."""
    first = parameters.partition(", ")[0].rstrip("=")

    def run(*args: Any, **kwargs: Any) -> Any:
        bind(name, parameters, args, kwargs)
        if args and first in ARRAY_PARAMETERS and name not in TAKES_ANYTHING and not isinstance(args[0], ndarray):
            raise TypeError(f"cupy: {name}(): Unsupported type {type(args[0])}")
        if args and first == "tup" and not all(isinstance(x, ndarray) for x in args[0]):
            raise TypeError(f"cupy: {name}(): only cupy arrays can be joined")
        return call(name, implementation, *args, **kwargs)

    return run


class Namespace:
    """A module of which each name is looked up in names.json when it is first used."""

    def __init__(self, name: str, parameters: dict[str, str], numpy_module: Any) -> None:
        self._name, self._parameters, self._numpy = name, parameters, numpy_module

    def __getattr__(self, name: str) -> Any:
        found = self._find(name)
        setattr(self, name, found)
        return found

    def _find(self, name: str) -> Any:
        if name not in self._parameters:
            raise AttributeError(f"module {self._name!r} has no attribute {name!r}")
        if not hasattr(self._numpy, name):
            raise AttributeError(f"the stand-in does not model {self._name}.{name}")
        return function(name, self._parameters[name], getattr(self._numpy, name))


class Cupy(Namespace):
    """The module ``cupy``: what differs from NumPy is written out, the rest is NumPy behind the gate."""

    ndarray = ndarray
    cuda = machine.cuda
    newaxis = None
    linalg = Namespace("cupy.linalg", NAMES["linalg"], np.linalg)
    __version__ = NAMES["cupy"]

    def _find(self, name: str) -> Any:
        if name in NAMES["ufuncs"] and hasattr(np, name):
            return Ufunc(getattr(np, name))
        if name in NAMES["constants"] and hasattr(np, name):
            return getattr(np, name)
        return super()._find(name)

    def array(self, obj: Any, dtype: Any = None, copy: bool | None = True, order: str = "K", subok: bool = False,
              ndmin: int = 0) -> ndarray:
        return self._array("array", obj, dtype, copy, order, ndmin)

    def _array(self, cause: str, obj: Any, dtype: Any, copy: bool | None, order: str, ndmin: int = 0) -> ndarray:
        if isinstance(obj, ndarray):  # from another device too: this is how arrays move between devices
            here = obj._device == machine.current_device()
            if here and not copy and (dtype is None or obj.dtype == dtype) and obj.ndim >= ndmin:
                return obj
            host = np.array(obj._host, dtype=dtype, order=order, ndmin=ndmin)
        elif isinstance(obj, (list, tuple)) and any(isinstance(x, ndarray) for x in obj):
            host = np.array([x._host for x in obj], dtype=dtype, order=order, ndmin=ndmin)
        else:
            host = np.array(obj, dtype=dtype, order=order, ndmin=ndmin)
            machine.upload(host, cause)
        return wrap(host, [])

    def asarray(self, a: Any, dtype: Any = None, order: Any = None, *, copy: bool | None = None,
                blocking: bool = False) -> ndarray:
        return self._array("asarray", a, dtype, copy, order or "K")

    def get_default_memory_pool(self) -> machine.MemoryPool:
        return machine.MemoryPool()

    def ascontiguousarray(self, a: ndarray, dtype: Any = None) -> ndarray:
        return call("ascontiguousarray", np.ascontiguousarray, a, dtype)

    def asnumpy(self, a: Any, stream: Any = None, order: str = "C", out: Any = None, *, blocking: bool = True) -> Any:
        return a.get() if isinstance(a, ndarray) else np.asarray(a)

    def where(self, condition: Any, x: Any = None, y: Any = None) -> Any:
        if not isinstance(condition, ndarray):
            raise TypeError(f"cupy: where(): Unsupported type {type(condition)}")
        if x is None and y is None:
            synchronizations["where"] += 1
            return call("where", np.where, condition)
        return call("where", np.where, condition, x, y)

    def clip(self, a: ndarray, a_min: Any, a_max: Any, out: Any = None) -> Any:
        """It passes over NaN."""
        low = a if a_min is None else call("clip", np.fmax, a, a_min)
        return low if a_max is None else call("clip", np.fmin, low, a_max)

    def zeros_like(self, a: ndarray, dtype: Any = None, order: str = "K", subok: Any = None, shape: Any = None) -> Any:
        """The shape () counts as none."""
        return call("zeros_like", np.zeros_like, a, dtype, order, True, shape or None)

    def pad(self, array: ndarray, pad_width: Any, mode: str = "constant", **kwargs: Any) -> Any:
        if np.ndim(pad_width) == 2 and np.shape(pad_width)[1] == 1 < len(pad_width):
            raise ValueError("cupy: pad(): a pair for each axis, or one for all")
        return call("pad", np.pad, array, pad_width, mode, **kwargs)

    def ElementwiseKernel(self, in_params: str, out_params: str, operation: str, name: str = "kernel") -> Any:
        """What NumPy computes in its place, by its name: see `kernels`."""
        def run(*args: Any) -> None:
            host = operand(args[-1])
            host[...] = KERNELS[name](*map(operand, args[:-1]), host.shape)

        return run

    def take(self, a: ndarray, indices: Any, axis: int | None = None, out: Any = None) -> Any:
        return a.take(indices, axis, out)

    def take_along_axis(self, a: ndarray, indices: ndarray, axis: int | None) -> Any:
        return call("take_along_axis", np.take_along_axis, a, indices % length(a, axis), axis)

    def put_along_axis(self, arr: ndarray, indices: ndarray, values: Any, axis: int | None) -> None:
        call("put_along_axis", np.put_along_axis, arr, indices % length(arr, axis), values, axis)

    def array_equal(self, a1: ndarray, a2: ndarray, equal_nan: bool = False) -> Any:
        return wrap(np.asarray(np.array_equal(operand(a1), operand(a2), equal_nan)), [])


def length(array: ndarray, axis: int | None) -> int:
    return array.size if axis is None else array.shape[axis]


class Generator:
    """``cupy.random.Generator``: it has no normal, choice, shuffle or permutation."""

    def __init__(self, seed: Any = None) -> None:
        self._host = np.random.default_rng(seed)

    def __getattr__(self, name: str) -> Any:
        if name not in NAMES["Generator"]:
            raise AttributeError(f"cupy.random.Generator has no attribute {name!r}")

        def draw(*args: Any, **kwargs: Any) -> Any:
            bind(name, NAMES["Generator"][name], args, kwargs)
            return wrap(np.asarray(getattr(self._host, name)(*args, **kwargs)), [])

        return draw


class Special(Namespace):
    """The module ``cupyx.scipy.special``, as far as its functions are ufuncs."""

    def _find(self, name: str) -> Any:
        if name not in NAMES["special"] or not isinstance(getattr(scipy.special, name, None), np.ufunc):
            return super()._find(name)
        return Ufunc(getattr(scipy.special, name))


cupy = Cupy("cupy", NAMES["functions"], np)
cupy.random = SimpleNamespace(default_rng=Generator, Generator=Generator)
special = Special("cupyx.scipy.special", {}, scipy.special)
