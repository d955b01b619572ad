"""How products on GPUs may round: TF32, and sums of float16 products in float32."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from minigrad.device import DeviceError, cuda_device, module_for, parse_device

# Values of cublasMath_t, in NVIDIA's cublas_api.h; CuPy hands them on, but has no names for them.
_TF32_MATH = 3  # CUBLAS_TF32_TENSOR_OP_MATH
_WHOLE_SUMS = 16  # CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION: a flag, set beside a mode
_TF32_CAPABILITY = 80  # compute capability 8.0: the Ampere generation


@contextlib.contextmanager
def tf32(device: str) -> Iterator[None]:
    """Let float32 products on `device` round their operands to TF32: a context manager, and a decorator.

    TF32 keeps float32's range, its 8 bits of exponent, but of its 23 bits of mantissa only 10. Rounding an operand to
    the nearest such number changes it by at most 2⁻¹¹ (0.05 %) of itself, and a product of two by about twice that;
    products are summed in float32. In exchange a GPU's tensor cores can compute them. The arrays stay float32, nothing
    but matrix products is touched, and cuBLAS decides of each whether it makes use of the permission.

    The permission holds for products that this thread begins, on this GPU, until the block ends; blocks may be nested.
    Outside it is not given: CuPy leaves cuBLAS in its default mode, in which a float32 product is computed in float32.
    The environment variable ``CUPY_TF32=1``, however, makes CuPy ask for TF32 in products of two matrices, in the whole
    process, whatever is said here.

    Source: NVIDIA, "NVIDIA A100 Tensor Core GPU Architecture" (2020), on TF32; cuBLAS's documentation, "cublasMath_t".

    Args:
        device: a GPU such as ``"cuda"``, of compute capability 8.0 or more.

    Raises:
        DeviceError: for the host, or a GPU that is missing or too old for TF32.
    """
    device = parse_device(device)
    if device == "cpu":
        raise DeviceError("tf32: the device is cpu, and TF32 is a way in which GPUs multiply; leave it out there")
    with cuda_device(device) as gpu:
        capability = gpu.compute_capability  # "75" is 7.5, "120" is 12.0
        if int(capability) < _TF32_CAPABILITY:
            raise DeviceError(f"tf32: {device} has compute capability {capability[:-1]}.{capability[-1]}, and TF32 "
                              "needs 8.0 or more; leave it out there: products stay float32")
    with _math_mode(device, lambda before: _TF32_MATH | before & _WHOLE_SUMS):
        yield


@contextlib.contextmanager
def float32_sums(device: str) -> Iterator[None]:
    """Let float16 products on `device` add up in float32 to the end: a context manager, and a decorator.

    cuBLAS adds up in float32 as it is, but where it divides the terms of a sum, it may round each part to float16
    before it adds the parts. Within the block it may not. On the host that never happens, and there is nothing to do.

    It holds for products that this thread begins, on this GPU; blocks may be nested, also with those of `tf32`.

    Source: cuBLAS's documentation, "cublasMath_t", on CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION.

    Raises:
        DeviceError: there is no such GPU.
    """
    with contextlib.nullcontext() if device == "cpu" else _math_mode(device, lambda before: before | _WHOLE_SUMS):
        yield


@contextlib.contextmanager
def _math_mode(device: str, change: Callable[[int], int]) -> Iterator[None]:
    """A block in which cuBLAS has the mode that `change` makes of the present one."""
    with cuda_device(device):
        cuda = module_for(device).cuda
        handle = cuda.get_cublas_handle()  # each thread has one for each GPU
    before = cuda.cublas.getMathMode(handle)
    cuda.cublas.setMathMode(handle, change(before))
    try:
        yield
    finally:
        cuda.cublas.setMathMode(handle, before)
