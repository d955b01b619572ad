"""The hot operations as CUDA kernels, for float32 and float64 arrays of CuPy (docs/kernels.md)."""

from minigrad.kernels.cuda import attention, elements, linear, loss, normalization  # noqa: F401 - as in kernels
