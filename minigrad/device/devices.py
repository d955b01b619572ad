"""Where arrays live: the one module that knows both NumPy and CuPy.

The device follows the array. ``xp(array)`` is the namespace of the array it is given (``numpy``, or ``cupy``
for an array on a GPU), so an operation's body is written once and runs wherever its operands are; nothing
global decides it. Devices have canonical names: ``"cpu"``, ``"cuda:0"``, ``"cuda:1"``, ...

CuPy is imported when a GPU is first asked for, never before. ``array_module`` is the one seam through which
another CuPy-like module may serve the ``cuda`` devices; the tests use it on machines that have no GPU.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, NoReturn

import numpy


class DeviceError(RuntimeError):
    """A device that was asked for cannot be used here; the message is one line and names the remedy."""


# --- Which namespace serves an array --------------------------------------------------------------


class _Namespaces(dict[type, Any]):
    """Type -> the namespace that serves it, None for what is no array; each type is classified once."""

    def __missing__(self, kind: type) -> Any:
        namespace = None
        if issubclass(kind, (numpy.ndarray, numpy.generic, bool, int, float, complex)):
            namespace = numpy
        elif kind.__module__.partition(".")[0] == "cupy":  # made by the caller, so CuPy is imported and works
            cupy = importlib.import_module("cupy")
            namespace = cupy if issubclass(kind, cupy.ndarray) else None
        self[kind] = namespace
        return namespace


_namespaces = _Namespaces()
_special_functions: dict[Any, Any] = {}  # a CuPy-like namespace -> its module of special functions
_cuda_module: Any = None  # the namespace that serves the "cuda" devices, once one has been asked for


def xp(array: Any) -> Any:
    """The namespace that serves ``array``: ``numpy`` for host arrays and numbers, else its array module.

    Raises TypeError for anything that is neither an array nor a number (a list, a Tensor).
    """
    return _namespaces[type(array)] or _refuse(type(array))


def _refuse(kind: type) -> NoReturn:
    raise TypeError(f"expected an array (NumPy's or CuPy's) or a number, got {kind.__module__}.{kind.__qualname__}")


def is_array(x: Any) -> bool:
    """Whether ``x`` is an array, NumPy's or CuPy's, as opposed to a number, a list or a Tensor."""
    namespace = _namespaces[type(x)]
    return isinstance(x, numpy.ndarray) if namespace is numpy else namespace is not None


def is_host(x: Any) -> bool:
    """Whether ``x`` is an array in host memory, or a number."""
    return _namespaces[type(x)] is numpy


def plain(data: Any, operation: str) -> Any:
    """``data``, where an array of a subclass of ndarray becomes one without the arithmetic of the subclass.

    It stays in its memory. TypeError for masked elements. One that `minigrad.inspect.program` follows stays as it is.
    """
    if hasattr(data, "mask") and numpy.ma.is_masked(data):
        raise TypeError(f"{operation}: the array has masked elements, which a tensor has not; use .filled(value), or "
                        "minigrad.where with the mask")
    return numpy.asarray(data) if isinstance(data, numpy.ndarray) and not hasattr(data, "traced") else data


@contextlib.contextmanager
def array_module(namespace: Any, special: Any) -> Iterator[None]:
    """Let ``namespace``, a module like ``cupy``, serve the ``cuda`` devices within the ``with`` block.

    ``special`` is its counterpart of ``cupyx.scipy.special``. The setting is process-wide, for tests. Arrays
    of real CuPy may be in use at the same time: which namespace serves an array follows from its type.
    """
    global _cuda_module
    before = _cuda_module, _namespaces.get(namespace.ndarray)
    _cuda_module = _namespaces[namespace.ndarray] = namespace
    _special_functions[namespace] = special
    try:
        yield
    finally:
        _cuda_module, _namespaces[namespace.ndarray] = before


# --- Device names ---------------------------------------------------------------------------------


def parse_device(device: str) -> str:
    """The canonical name of a device: ``"cpu"``, or ``"cuda:N"`` (``"cuda"`` means ``"cuda:0"``).

    TypeError for what is no string, ValueError for any other name; it may not exist (``module_for``).
    """
    if not isinstance(device, str):
        raise TypeError(f"device must be a string such as 'cpu' or 'cuda:0', got {device!r}; a dtype is changed by "
                        ".astype(dtype) or .to(dtype=dtype)")
    if device == "cpu":
        return device
    match = re.fullmatch(r"cuda(?::(0|[1-9][0-9]*))?", device)
    if match is None:
        raise ValueError(f"unknown device {device!r}; use 'cpu', 'cuda' or 'cuda:N' with N = 0, 1, ...")
    return f"cuda:{int(match[1] or 0)}"


def device_of(array: Any) -> str:
    """The canonical name of the device that holds ``array``."""
    return "cpu" if xp(array) is numpy else f"cuda:{array.device.id}"


def module_for(device: str) -> Any:
    """The namespace that makes arrays on ``device``; DeviceError, with cause and remedy, if it cannot be used."""
    return numpy if device == "cpu" else _gpu_module(parse_device(device))


def _gpu_module(device: str) -> Any:
    module = _find_cuda()
    count = module.cuda.runtime.getDeviceCount()
    if _index(device) >= count:
        raise DeviceError(f"there is no {device}; this machine has {count} (cuda:0 to cuda:{count - 1})")
    return module


def _index(device: str) -> int:
    return int(device.removeprefix("cuda:"))


# --- Transfers ------------------------------------------------------------------------------------

_NO_CONTEXT: AbstractContextManager[Any] = contextlib.nullcontext()


def on_device_of(array: Any) -> AbstractContextManager[Any]:
    """A context in which new arrays are made on ``array``'s device. Host arrays share one empty context."""
    return _NO_CONTEXT if xp(array) is numpy else array.device


def on_device(device: str) -> Any:
    """A context in which `module_for(device)` makes arrays on ``device``: for a GPU, CuPy's object for it."""
    return _NO_CONTEXT if device == "cpu" else module_for(device).cuda.Device(_index(parse_device(device)))


def to_numpy(array: Any) -> numpy.ndarray[Any, Any]:
    """``array`` on the host: a host array itself, a copy of a GPU array (which waits for the GPU)."""
    module = xp(array)
    return numpy.asarray(array) if module is numpy else module.asnumpy(array)


def to_device(array: Any, device: str) -> Any:
    """``array`` on ``device``: the same object if it is there already, else a copy."""
    if is_array(array) and device_of(array) == device:
        return array
    return to_numpy(array) if device == "cpu" else _to_gpu(array, parse_device(device))


def _to_gpu(array: Any, device: str) -> Any:
    if is_array(array) and device_of(array) == device:  # "cuda" is "cuda:0"
        return array
    module = module_for(device)
    with on_device(device):  # the current one, to which an array of another GPU is copied
        return module.array(array) if xp(array) is module else module.asarray(to_numpy(array))


def asarray_on(device: str, data: Any, dtype: Any = None) -> Any:
    """``data`` (an array, a number, or nested lists) as an array of ``dtype`` on ``device``.

    Like ``numpy.asarray`` it shares memory with an array that has that dtype and device already.
    """
    if not is_array(data):
        data = numpy.asarray(data, dtype=dtype)
    with on_device_of(data):
        data = data if dtype is None else data.astype(dtype, copy=False)
    return to_device(data, device)


def synchronize(device: str) -> None:
    """Wait until ``device`` has finished the work given to it; nothing to wait for on the host."""
    if device != "cpu":
        on_device(device).synchronize()


# --- Is a GPU usable? -----------------------------------------------------------------------------

_INSTALL = "pip install 'minigrad-transformer[cuda12]'  (cuda13 for a CUDA 13 driver)"


class CudaStatus(NamedTuple):
    """What ``cuda_status`` found: how many `devices` can be used and, if none can, the `reason`, in one line."""

    devices: int
    reason: str


def cuda_status() -> CudaStatus:
    """How many GPUs can be used, found by using one. It imports CuPy, and never raises."""
    try:
        return CudaStatus(_find_cuda().cuda.runtime.getDeviceCount(), "")
    except DeviceError as error:
        return CudaStatus(0, str(error))


def _find_cuda() -> Any:
    """CuPy, imported and tried, or the module in its place; DeviceError with one of three messages.

    That CuPy can be imported says little: it needs no driver for that, and loads cuBLAS and the run-time
    compiler only when it first uses them. So a kernel is compiled and a product computed, once.
    """
    global _cuda_module
    if _cuda_module is not None:
        return _cuda_module
    no_gpu, no_library = "there is no usable GPU", "a library it needs is missing"
    try:
        cupy = importlib.import_module("cupy")
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError) and error.name == "cupy":
            raise DeviceError(f"CuPy is not installed, and cuda devices need it: {_INSTALL}") from error
        # CuPy wraps the loader's own message, its cause, in a long banner.
        raise _unusable(no_library, error.__cause__ or error) from error
    try:
        count = cupy.cuda.runtime.getDeviceCount()
        if count:
            with cupy.cuda.Device(0):
                square = cupy.ones((2, 2), dtype=cupy.float32) + 1  # compiled at run time, by NVRTC
                cupy.asnumpy(square @ square)  # computed by cuBLAS
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise _unusable(no_gpu, error) from error
    except (ImportError, OSError, RuntimeError, cupy.cuda.compiler.CompileException) as error:
        raise _unusable(no_library, error) from error
    if not count:
        raise _unusable(no_gpu, "the driver reports no device")
    _cuda_module = cupy
    return cupy


def _unusable(what: str, reason: object) -> DeviceError:
    return DeviceError(f"CuPy is installed, but {what}: {' '.join(str(reason).split())}; check the driver with "
                       f"nvidia-smi, install CuPy and the CUDA libraries together by {_INSTALL}, or use the device cpu")


# --- Functions that NumPy leaves to SciPy ----------------------------------------------------------


def special_function(name: str, x: Any) -> Any:
    """The function `name` of one argument, elementwise, in x's dtype: SciPy's on the host, CuPy's on a GPU."""
    namespace = xp(x)
    if namespace not in _special_functions:
        module = "scipy.special" if namespace is numpy else "cupyx.scipy.special"
        _special_functions[namespace] = importlib.import_module(module)
    with on_device_of(x):
        out = getattr(_special_functions[namespace], name)(x)
        return out.astype(x.dtype, copy=False) if x.dtype.kind == "f" else out  # neither has all of them for float16


# 2/√π ∫₀ˣ exp(-t²) dt; one minus that without its cancellation; 1 / (1 + e⁻ˣ); the normal distribution function.
erf, erfc, expit, ndtr = (functools.partial(special_function, name) for name in ("erf", "erfc", "expit", "ndtr"))
