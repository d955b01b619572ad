"""minigrad: reverse-mode automatic differentiation on NumPy or CuPy arrays, small enough to read."""

from minigrad import functional, random
from minigrad.creation import arange, from_dlpack, from_numpy, full, ones, zeros
from minigrad.device import DeviceError
from minigrad.gradcheck import GradcheckError, gradcheck, gradgradcheck
from minigrad.modes import enable_grad, fused, is_grad_enabled, no_grad
from minigrad.ops import (
    absolute,
    argmax,
    argmin,
    broadcast_to,
    clip,
    concatenate,
    cumsum,
    einsum,
    erf,
    exp,
    expand_dims,
    flip,
    gather,
    log,
    logsumexp,
    masked_fill,
    matmul,
    max,
    maximum,
    mean,
    min,
    minimum,
    pad,
    power,
    relu,
    reshape,
    scatter_add,
    sigmoid,
    sign,
    split,
    sqrt,
    squeeze,
    stack,
    sum,
    swapaxes,
    take,
    tanh,
    transpose,
    tril,
    triu,
    var,
    where,
)
from minigrad.primitive import Saved, primitive
from minigrad.random import manual_seed
from minigrad.tap import tap, tapping
from minigrad.tensor import Tensor
from minigrad.transforms import grad

__version__ = "0.1.0"

__all__ = [
    "DeviceError", "GradcheckError", "Saved", "Tensor", "absolute", "arange", "argmax", "argmin", "broadcast_to",
    "clip", "concatenate", "cumsum", "einsum", "enable_grad", "erf", "exp", "expand_dims", "flip", "from_dlpack",
    "from_numpy", "full", "functional", "fused", "gather", "grad", "gradcheck", "gradgradcheck", "is_grad_enabled",
    "log", "logsumexp", "manual_seed", "masked_fill", "matmul", "max", "maximum", "mean", "min", "minimum", "no_grad",
    "ones", "pad", "power", "primitive", "random", "relu", "reshape", "scatter_add", "sigmoid", "sign", "split",
    "sqrt", "squeeze", "stack", "sum", "swapaxes", "take", "tanh", "tap", "tapping", "transpose", "tril", "triu",
    "var", "where", "zeros",
]
