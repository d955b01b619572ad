"""linear by cuBLAS itself. CuPy's own products refuse to be recorded in a CUDA graph, and take longer to call."""

import ctypes
import functools

from minigrad.device import xp
from minigrad.functional.linear import check_shapes
from minigrad.functional.linear import linear as definition
from minigrad.kernels.cuda.launching import empty, launch
from minigrad.ops.shape import rows


@definition.faster("cupy")
def linear(input, weight, bias=None):
    check_shapes(input, weight, bias)
    out = product(rows(input), weight.T)
    if bias is not None:
        out += bias
    return out.reshape((*input.shape[:-1], weight.shape[0]))


linear.gradient(input=lambda g, weight: product(rows(g), weight).reshape((*g.shape[:-1], weight.shape[1])),
                weight=lambda g, input: product(rows(g).T, rows(input)),
                bias=lambda g: column_sums(rows(g)))


def product(a, b):
    """``a @ b`` of matrices (M, K) and (K, N)."""
    (rows, terms), columns, cuda = a.shape, b.shape[1], xp(a).cuda
    cublas = library(cuda)
    if cublas is None or not (rows and terms and columns):
        return a @ b
    real, multiply = ((ctypes.c_float, cublas.cublasSgemm_v2) if a.dtype.char == "f" else
                      (ctypes.c_double, cublas.cublasDgemm_v2))
    pointer, out = ctypes.c_void_p, empty(a, rows, columns)
    handle = pointer(cuda.device.get_cublas_handle())
    cublas.cublasSetStream_v2(handle, pointer(cuda.get_current_stream().ptr))
    # cuBLAS stores columns one after the other: our rows are its columns, and it computes bᵀ aᵀ = (a b)ᵀ.
    (b, b_by_columns, b_step), (a, a_by_columns, a_step) = stored(b), stored(a)
    status = multiply(handle, b_by_columns, a_by_columns, columns, rows, terms, ctypes.byref(real(1)),
                      pointer(b.data.ptr), b_step, pointer(a.data.ptr), a_step, ctypes.byref(real(0)),
                      pointer(out.data.ptr), columns)
    if status:
        raise RuntimeError(f"cuBLAS: a product of {a.shape} and {b.shape} failed with status {status}")
    return out


def stored(x):
    """A matrix that is contiguous by rows or by columns; whether by columns; and how far neighbours are apart."""
    if x.flags.f_contiguous and not x.flags.c_contiguous:
        return x, 1, x.shape[0]
    return xp(x).ascontiguousarray(x), 0, x.shape[1]


@functools.cache
def library(cuda):
    """cuBLAS, which CuPy has loaded; None where it has no such name, as on Windows."""
    try:
        return ctypes.CDLL(f"libcublas.so.{cuda.runtime.runtimeGetVersion() // 1000}")
    except OSError:
        return None


def column_sums(x):
    """``x.sum(0)`` of a matrix: CuPy adds up long columns slowly."""
    length, width = x.shape
    parts = max(1, min(64, length // 512))
    sums = empty(x, parts, width)
    launch("matrices.cu", "column_sums", x, (-(-width // 32), parts), (32, 16), x, sums, length, width)
    return sums[0] if parts == 1 else column_sums(sums)
