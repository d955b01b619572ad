"""linear by cuBLAS itself. CuPy's own products refuse to be recorded in a CUDA graph, and take longer to call."""

from __future__ import annotations

import ctypes
import functools
import importlib
from typing import Any

from minigrad.device import xp
from minigrad.functional.linear import check_shapes
from minigrad.functional.linear import linear as linear_definition
from minigrad.kernels.cuda.launching import dense, launch
from minigrad.ops.shape import rows


@linear_definition.faster("cupy")
def linear(input, weight, bias=None):
    check_shapes(input, weight, bias)
    out = product(rows(input), weight.T)
    if bias is not None:
        out += bias
    return out.reshape((*input.shape[:-1], weight.shape[0]))


linear.gradient(input=lambda g, weight: product(rows(g), weight).reshape((*g.shape[:-1], weight.shape[1])),
                weight=lambda g, input: product(rows(g).T, rows(input)),
                bias=lambda g: column_sums(rows(g)))


def product(a: Any, b: Any) -> Any:
    """``a @ b`` of matrices (M, K) and (K, N)."""
    (rows, terms), columns = a.shape, b.shape[1]
    found = library(a.dtype.char)
    if found is None or not (rows and terms and columns):
        return a @ b
    cublas, real, multiply = found
    cuda, out = importlib.import_module("cupy").cuda, xp(a).empty((rows, columns), a.dtype)
    handle = cuda.device.get_cublas_handle()
    cublas.cublasSetStream_v2(ctypes.c_void_p(handle), ctypes.c_void_p(cuda.get_current_stream().ptr))
    # cuBLAS stores columns one after the other: our rows are its columns, and it computes bᵀ aᵀ = (a b)ᵀ.
    (b, *of_b), (a, *of_a) = stored(b), stored(a)
    status = multiply(handle, of_b[0], of_a[0], columns, rows, terms, ctypes.byref(real(1)), b.data.ptr, of_b[1],
                      a.data.ptr, of_a[1], ctypes.byref(real(0)), out.data.ptr, columns)
    if status:
        raise RuntimeError(f"cuBLAS: a product of {a.shape} and {b.shape} failed with status {status}")
    return out


def stored(x: Any) -> tuple[Any, int, int]:
    """A matrix that is contiguous by rows or by columns; whether by columns; and how far neighbours are apart."""
    if x.flags.f_contiguous and not x.flags.c_contiguous:
        return x, 1, x.shape[0]
    return dense(x), 0, x.shape[1]


@functools.cache
def library(kind: str) -> tuple[Any, Any, Any] | None:
    """cuBLAS, which CuPy has loaded; and for the dtype of this character, its number in C and what multiplies.

    None where the library has no such name, as on Windows.
    """
    version = importlib.import_module("cupy").cuda.runtime.runtimeGetVersion() // 1000
    try:
        cublas = ctypes.CDLL(f"libcublas.so.{version}")
    except OSError:
        return None
    real, multiply = {"f": (ctypes.c_float, cublas.cublasSgemm_v2), "d": (ctypes.c_double, cublas.cublasDgemm_v2)}[kind]
    pointer, number = ctypes.c_void_p, ctypes.c_int
    multiply.argtypes = [pointer, *5 * [number], pointer, pointer, number, pointer, number, pointer, pointer, number]
    return cublas, real, multiply


def column_sums(x: Any) -> Any:
    """``x.sum(0)`` of a matrix: CuPy adds up long columns slowly."""
    length, width = x.shape
    parts = max(1, min(64, length // 512))
    sums = xp(x).empty((parts, width), x.dtype)
    launch("matrices.cu", "column_sums", x, (-(-width // 32), parts), (32, 16), dense(x), sums, length,
           width)
    return sums[0] if parts == 1 else column_sums(sums)
