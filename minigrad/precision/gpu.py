"""How products on GPUs may round: sums of float16 products in float32."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from minigrad.device import cuda_device, module_for

# A flag of cublasMath_t, in NVIDIA's cublas_api.h; CuPy hands it on, but has no name for it.
_WHOLE_SUMS = 16  # CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION


@contextlib.contextmanager
def float32_sums(device: str) -> Iterator[None]:
    """Let float16 products on `device` add up in float32 to the end: a context manager, and a decorator.

    cuBLAS adds up in float32 as it is, but where it divides the terms of a sum, it may round each part to float16
    before it adds the parts. Within the block it may not. On the host that never happens, and there is nothing to do.

    It holds for products that this thread begins, on this GPU; blocks may be nested.

    Source: cuBLAS's documentation, "cublasMath_t", on CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION.

    Raises:
        DeviceError: there is no such GPU.
    """
    if device == "cpu":
        yield
        return
    with cuda_device(device):
        cuda = module_for(device).cuda
        handle = cuda.get_cublas_handle()  # each thread has one for each GPU
    before = cuda.cublas.getMathMode(handle)
    cuda.cublas.setMathMode(handle, before | _WHOLE_SUMS)
    try:
        yield
    finally:
        cuda.cublas.setMathMode(handle, before)
