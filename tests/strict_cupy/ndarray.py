"""The stand-in's array: it holds a NumPy array, and does only what CuPy's array does."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from tests.strict_cupy.machine import Device, current_device, synchronizations, upload
from tests.strict_cupy.memory import memory

NAMES = json.loads(Path(__file__).with_name("names.json").read_text(encoding="utf-8"))
SCALARS = (bool, int, float, complex, np.generic)

# These look at the same memory, or copy between devices: any device may be the current one.
WITHOUT_KERNEL = {
    "broadcast_to", "copy", "diagonal", "expand_dims", "flip", "imag", "moveaxis", "permute_dims",
    "ravel", "real", "reshape", "shape", "squeeze", "swapaxes", "transpose", "view",
}
# The shape of the result, or the result itself, depends on values, or an error does: the host has to wait for them.
SYNCHRONIZING = {"argwhere", "bincount", "flatnonzero", "nonzero", "unique"}


class ndarray:
    """An array on a device: no NumPy array, and never one implicitly; 0-d results stay arrays."""

    __slots__ = ("__weakref__", "_base", "_block", "_device", "_host")
    __array_priority__ = 100
    __hash__ = None

    def __init__(self, host, device, base=None):
        if not host.flags.writeable:  # CuPy has no such flag: a write through broadcast_to changes the original
            host.flags.writeable = True
        self._host, self._device, self._base, self._block = host, device, base, 0
        if base is None:
            self._block = memory.allocate(device, host.nbytes)

    def __del__(self):
        if self._block:
            memory.free(self._device, self._block)

    # What it is: none of this waits for the device.
    shape = property(lambda self: self._host.shape)
    dtype = property(lambda self: self._host.dtype)
    ndim = property(lambda self: self._host.ndim)
    size = property(lambda self: self._host.size)
    strides = property(lambda self: self._host.strides)
    nbytes = property(lambda self: self._host.nbytes)
    device = property(lambda self: Device(self._device))
    base = property(lambda self: self._base)
    T = property(lambda self: call("transpose", np.transpose, self))
    mT = property(lambda self: call("swapaxes", np.swapaxes, self, -1, -2))

    @property
    def flags(self):
        flags = self._host.flags
        return SimpleNamespace(c_contiguous=flags.c_contiguous, f_contiguous=flags.f_contiguous,
                               owndata=self._base is None)

    def __len__(self):
        return len(self._host)

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __getattr__(self, name):
        known = name in NAMES["ndarray"]
        reason = "is not modelled by the stand-in" if known else "does not exist in CuPy"
        raise AttributeError(f"cupy.ndarray.{name} {reason}")

    # To the host: never implicitly, and each way is counted.
    def __array__(self, *args, **kwargs):
        raise TypeError("Implicit conversion to a NumPy array is not allowed; use .get()")

    def __array_function__(self, function, types, args, kwargs):
        from tests.strict_cupy.namespace import cupy  # numpy.sum(x) is cupy.sum(x), where CuPy has it

        implementation = getattr(cupy, function.__name__, None) if function.__module__ == "numpy" else None
        return NotImplemented if implementation is None else implementation(*args, **kwargs)

    def get(self, stream=None, order="C", out=None, blocking=True):
        synchronizations["get"] += 1
        return self._host.copy(order)

    def set(self, arr, stream=None):
        upload(arr, "set")
        self._host[...] = arr

    def _wait(self, cause):
        synchronizations[cause] += 1
        return self._host

    def __float__(self):
        return float(self._wait("float()").item())

    def __int__(self):
        return int(self._wait("int()").item())

    def __bool__(self):
        return bool(self._wait("bool()"))

    def __repr__(self):
        return repr(self._wait("repr"))

    def __deepcopy__(self, memo):
        with self.device:
            return self.copy()

    # Indexing.
    def __getitem__(self, index):
        index, advanced = prepare_index(self, index)
        if not advanced:
            return wrap(self._host[index], [self])
        check_devices([self])
        return wrap(np.array(self._host[index]), [])

    def __setitem__(self, index, value):
        index, _ = prepare_index(self, index)
        check_devices([self])
        if isinstance(value, np.ndarray) and value.ndim:
            raise ValueError("non-scalar numpy.ndarray cannot be used for fill")
        self._host[index] = operand(value)

    # NumPy's ufuncs come here, and so do the operators below (NEP 13).
    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        from tests.strict_cupy.namespace import cupy

        operands = (*inputs, *kwargs.get("out", ()))
        if method != "__call__" or not all(isinstance(x, (ndarray, np.ndarray, *SCALARS)) for x in operands):
            return NotImplemented
        if "out" in kwargs:
            (kwargs["out"],) = kwargs["out"]
        return getattr(cupy, ufunc.__name__)(*inputs, **kwargs)


def wrap(result, operands):
    """A NumPy result as a device array: a view is where its operand is, the rest on the current device."""
    if isinstance(result, (tuple, list)):
        return type(result)(wrap(item, operands) for item in result)
    if isinstance(result, np.generic):
        result = np.asarray(result)
    if not isinstance(result, np.ndarray):
        return result
    for x in operands:
        if result is x._host:
            return x
        if is_view(result, x._host):
            return ndarray(result, x._device, x if x._base is None else x._base)
    return ndarray(result, current_device())


def is_view(result, array):
    """Whether `result` looks at the memory of `array`, or has none of its own because both are empty."""
    base = result.base
    return base is not None and (base is array or base is array.base or np.may_share_memory(result, array))


def operand(x):
    """What an operation is given, for NumPy: the array in a device array, or a number as it is."""
    if isinstance(x, ndarray):
        check_devices([x])
        return x._host
    return number(x)


def number(x):
    """A number as it is; TypeError for anything else."""
    if isinstance(x, SCALARS):
        return x
    raise TypeError(f"Unsupported type {type(x)}")


def check_devices(operands):
    here = current_device()
    for x in operands:
        if x._device != here:
            raise ValueError(f"The device where the array resides ({x._device}) is different from the current device "
                             f"({here})")


def unwrap(x, operands):
    """An argument with NumPy arrays in place of the device arrays in it, which ``operands`` collects."""
    if isinstance(x, ndarray):
        operands.append(x)
        return x._host
    if isinstance(x, np.ndarray):
        raise TypeError(f"Unsupported type {type(x)}")
    if isinstance(x, (tuple, list)):
        return type(x)(unwrap(item, operands) for item in x)
    return x


def call(name, function, *args, **kwargs):
    """Run a NumPy function on device arrays, as CuPy's function of that name would."""
    operands = []
    args = unwrap(args, operands)
    kwargs = {key: unwrap(value, operands) for key, value in kwargs.items()}
    if name not in WITHOUT_KERNEL:
        check_devices(operands)
    if name in SYNCHRONIZING:
        synchronizations[name] += 1
    with np.errstate(all="ignore"):  # a GPU does not warn
        return wrap(function(*args, **kwargs), operands)


def bind(name, parameters, args, kwargs):
    """TypeError unless CuPy's function takes these arguments; ``parameters`` is its entry in names.json."""
    names = [p for p in parameters.split(", ") if p]
    if "*args" in names or any(n.startswith("*") and n[1:].isidentifier() for n in names):
        limit = None
    else:
        limit = sum(1 for n in names[: names.index("*") if "*" in names else None] if n not in ("/", "**kwargs"))
    if limit is not None and len(args) > limit:
        raise TypeError(f"cupy: {name}() takes {limit} positional arguments but {len(args)} were given")
    if "**kwargs" not in names:
        for key in kwargs:
            if key not in [n.rstrip("=") for n in names]:
                raise TypeError(f"cupy: {name}() got an unexpected keyword argument {key!r}")


def prepare_index(array, index):
    """The index for NumPy, and whether it is advanced. Integer arrays that are out of range wrap around.

    A boolean array makes the host wait, in an assignment too: CuPy counts what is True before it starts a kernel.
    """
    items = list(index) if isinstance(index, tuple) else [index]
    for i, item in enumerate(items):
        if isinstance(item, ndarray):
            check_devices([item])
            items[i] = item._host
        elif isinstance(item, (list, tuple, np.ndarray, bool, np.bool_)):  # CuPy uploads these
            items[i] = np.asarray(item) if np.size(item) else np.zeros(np.shape(item), np.int32)
            upload(items[i], "index")
    arrays = [item for item in items if isinstance(item, np.ndarray)]
    masks = sum(a.dtype == bool for a in arrays)
    if masks > 1:
        raise IndexError("CuPy does not support an index of more than one boolean array")
    if masks:
        synchronizations["boolean mask"] += 1
    taken = sum(axes_of(item) for item in items)
    if not any(item is Ellipsis for item in items):
        items.append(Ellipsis)  # so that a full integer index gives a 0-d view, not a NumPy scalar
    axis = 0
    for i, item in enumerate(items):
        if isinstance(item, np.ndarray) and item.dtype != bool and axis < array.ndim and array.shape[axis]:
            items[i] = item % array.shape[axis]
        axis += array.ndim - taken if item is Ellipsis else axes_of(item)
    return tuple(items), bool(arrays)


def axes_of(item):
    """How many axes of the array one item of an index takes."""
    if item is None or item is Ellipsis:
        return 0
    return item.ndim if isinstance(item, np.ndarray) and item.dtype == bool else 1
