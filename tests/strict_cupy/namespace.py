"""The stand-in's modules: ``cupy`` and ``cupyx.scipy.special``."""

import numpy as np
import scipy.special

from tests.strict_cupy import machine
from tests.strict_cupy.kernels import KERNELS
from tests.strict_cupy.ndarray import NAMES, bind, call, check_devices, ndarray, number, operand, prepare_index, wrap

# A function whose first parameter has one of these names takes no number or list for it.
ARRAY_PARAMETERS = {"a", "arr", "array", "ary", "condition", "m", "prototype", "x"}
TAKES_ANYTHING = {"ndim", "shape", "size"}
# What ``add.at`` changes, by atomic operations: not int64, and not bool. The `at` of other ufuncs is not modelled.
ATOMIC_DTYPES = ("int32", "uint32", "uint64", "float16", "float32", "float64", "complex64", "complex128")


class Ufunc:
    """``cupy.ufunc``: device arrays and numbers in, arrays out; there is no ``where``."""

    def __init__(self, ufunc):
        self._ufunc, self.__name__ = ufunc, ufunc.__name__

    def __call__(self, *args, **kwargs):
        bind(self.__name__, "*args, out=, dtype=, casting=", args, kwargs)
        for x in args:
            if type(x) is not ndarray:
                number(x)
        return call(self.__name__, self._ufunc, *args, **kwargs)

    def at(self, a, indices, b):
        if self.__name__ != "add" or a.dtype not in ATOMIC_DTYPES:
            raise TypeError(f"cupy.{self.__name__}.at does not support {a.dtype}")
        check_devices([a])
        self._ufunc.at(a._host, prepare_index(a, indices)[0], operand(b))


def function(name, parameters, implementation):
    """CuPy's function ``name``, run by NumPy's ``implementation``."""
    first = parameters.partition(", ")[0].rstrip("=")

    def run(*args, **kwargs):
        bind(name, parameters, args, kwargs)
        if args and first in ARRAY_PARAMETERS and name not in TAKES_ANYTHING and not isinstance(args[0], ndarray):
            raise TypeError(f"cupy: {name}(): Unsupported type {type(args[0])}")
        return call(name, implementation, *args, **kwargs)

    return run


class Namespace:
    """A module of which each name is looked up in names.json when it is first used."""

    def __init__(self, name, parameters, numpy_module, ufuncs=()):
        self._name, self._parameters, self._numpy, self._ufuncs = name, parameters, numpy_module, ufuncs

    def __getattr__(self, name):
        found = self._find(name)
        setattr(self, name, found)
        return found

    def _find(self, name):
        if name in self._ufuncs:
            return Ufunc(getattr(self._numpy, name))
        if name not in self._parameters:
            raise AttributeError(f"module {self._name!r} has no attribute {name!r}")
        return function(name, self._parameters[name], getattr(self._numpy, name))


class Cupy(Namespace):
    """The module ``cupy``: what differs from NumPy is written out, the rest is NumPy behind the gate."""

    ndarray = ndarray
    cuda = machine.cuda
    __version__ = NAMES["cupy"]

    def _find(self, name):
        return getattr(np, name) if name in NAMES["constants"] else super()._find(name)

    def array(self, obj, dtype=None, copy=True, order="K", subok=False, ndmin=0):
        return self._array("array", obj, dtype, copy, order, ndmin)

    def _array(self, cause, obj, dtype, copy, order, ndmin=0):
        if isinstance(obj, ndarray):  # from another device too: this is how arrays move between devices
            here = obj._device == machine.current_device()
            if here and not copy and (dtype is None or obj.dtype == dtype) and obj.ndim >= ndmin:
                return obj
            host = np.array(obj._host, dtype=dtype, order=order, ndmin=ndmin)
        else:
            host = np.array(obj, dtype=dtype, order=order, ndmin=ndmin)
            machine.upload(host, cause)
        return wrap(host, [])

    def asarray(self, a, dtype=None, order=None, *, copy=None, blocking=False):
        return self._array("asarray", a, dtype, copy, order or "K")

    def get_default_memory_pool(self):
        return machine.MemoryPool()

    def asnumpy(self, a, stream=None, order="C", out=None, *, blocking=True):
        return a.get() if isinstance(a, ndarray) else np.asarray(a)

    def clip(self, a, a_min, a_max, out=None):
        """It passes over NaN."""
        low = a if a_min is None else call("clip", np.fmax, a, a_min)
        return low if a_max is None else call("clip", np.fmin, low, a_max)

    def pad(self, array, pad_width, mode="constant", **kwargs):
        if np.ndim(pad_width) == 2 and np.shape(pad_width)[1] == 1 < len(pad_width):
            raise ValueError("cupy: pad(): a pair for each axis, or one for all")
        return call("pad", np.pad, array, pad_width, mode, **kwargs)

    def zeros_like(self, a, dtype=None, order="K", subok=None, shape=None):
        """The shape () counts as none."""
        return call("zeros_like", np.zeros_like, a, dtype, order, True, shape or None)

    def ElementwiseKernel(self, in_params, out_params, operation, name="kernel"):
        """What NumPy computes in its place, by its name: see `kernels`."""
        def run(*args):
            host = operand(args[-1])
            host[...] = KERNELS[name](*map(operand, args[:-1]), host.shape)

        return run

    def take(self, a, indices, axis=None, out=None):
        return a.take(indices, axis, out)

    def take_along_axis(self, a, indices, axis):
        return call("take_along_axis", np.take_along_axis, a, indices % length(a, axis), axis)


def length(array, axis):
    return array.size if axis is None else array.shape[axis]


cupy = Cupy("cupy", NAMES["functions"], np, NAMES["ufuncs"])
special = Namespace("cupyx.scipy.special", {}, scipy.special, NAMES["special"])
