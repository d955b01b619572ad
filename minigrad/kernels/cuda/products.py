"""Products of matrices by cuBLAS itself. CuPy's own calls refuse to be recorded in a CUDA graph, and take longer."""

from __future__ import annotations

import ctypes
import functools
import importlib
from typing import Any

from minigrad.device import xp


@functools.cache
def cublas(kind: str) -> tuple[Any, Any, Any, Any]:
    """What sets its stream and what multiplies, for the dtype of this character; and 1 and 0 of that dtype."""
    version = importlib.import_module("cupy").cuda.runtime.runtimeGetVersion() // 1000
    library, real = ctypes.CDLL(f"libcublas.so.{version}"), ctypes.c_float if kind == "f" else ctypes.c_double
    pointer, number = ctypes.c_void_p, ctypes.c_int
    multiply = library.cublasSgemm_v2 if kind == "f" else library.cublasDgemm_v2
    multiply.argtypes = [pointer, number, number, number, number, number, pointer, pointer, number, pointer, number,
                         pointer, pointer, number]
    library.cublasSetStream_v2.argtypes = [pointer, pointer]
    return library.cublasSetStream_v2, multiply, real(1), real(0)


def product(a: Any, b: Any) -> Any:
    """``a @ b`` of matrices (M, K) and (K, N)."""
    (rows, terms), columns = a.shape, b.shape[1]
    out = xp(a).empty((rows, columns), a.dtype)
    if not (rows and terms and columns):
        out.fill(0)
        return out
    set_stream, multiply, one, zero = cublas(a.dtype.char)
    cuda = importlib.import_module("cupy").cuda
    handle = cuda.device.get_cublas_handle()
    set_stream(handle, cuda.get_current_stream().ptr)
    # cuBLAS stores columns one after the other: our rows are its columns, and it computes bᵀ aᵀ = (a b)ᵀ.
    (a, turned_a, apart_a), (b, turned_b, apart_b) = stored(a), stored(b)
    status = multiply(handle, turned_b, turned_a, columns, rows, terms, ctypes.byref(one), b.data.ptr, apart_b,
                      a.data.ptr, apart_a, ctypes.byref(zero), out.data.ptr, columns)
    if status:
        raise RuntimeError(f"cuBLAS: a product of {a.shape} and {b.shape} failed with status {status}")
    return out


def stored(x: Any) -> tuple[Any, int, int]:
    """A matrix that is contiguous by rows or by columns; whether by columns; and how far neighbours are apart."""
    if x.flags.c_contiguous:
        return x, 0, x.shape[1]
    if x.flags.f_contiguous:
        return x, 1, x.shape[0]
    return xp(x).ascontiguousarray(x), 0, x.shape[1]
