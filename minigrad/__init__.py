"""minigrad: reverse-mode automatic differentiation on NumPy or CuPy arrays, small enough to read."""

import importlib
from importlib.util import find_spec
from typing import TYPE_CHECKING

from minigrad import functional, random
from minigrad.device import DeviceError
from minigrad.device.local import enable_grad, is_grad_enabled, no_grad
from minigrad.engine.primitive import Saved, primitive
from minigrad.functional.compositions import fused, tap, tapping
from minigrad.gradcheck import GradcheckError, gradcheck, gradgradcheck
from minigrad.ops import (
    absolute,
    argmax,
    argmin,
    argsort,
    broadcast_to,
    ceil,
    chunk,
    clip,
    concatenate,
    cos,
    cosh,
    cumprod,
    cumsum,
    diag,
    diagonal,
    dot,
    einsum,
    erf,
    erfc,
    exp,
    expand_dims,
    expm1,
    flatten,
    flip,
    floor,
    floor_divide,
    gather,
    hstack,
    index_put,
    isfinite,
    isinf,
    isnan,
    log,
    log1p,
    log2,
    log10,
    logaddexp,
    logsumexp,
    masked_fill,
    matmul,
    max,
    maximum,
    mean,
    min,
    minimum,
    moveaxis,
    norm,
    outer,
    pad,
    power,
    prod,
    ravel,
    relu,
    remainder,
    repeat,
    reshape,
    roll,
    round,
    sigmoid,
    sign,
    sin,
    sinh,
    sort,
    split,
    sqrt,
    square,
    squeeze,
    stack,
    std,
    sum,
    swapaxes,
    take,
    tan,
    tanh,
    tile,
    topk,
    trace,
    transpose,
    tril,
    triu,
    unbind,
    var,
    vstack,
    where,
)
from minigrad.random import manual_seed
from minigrad.tensor import Tensor
from minigrad.tensor.creation import (
    arange,
    eye,
    from_dlpack,
    from_numpy,
    full,
    full_like,
    linspace,
    ones,
    ones_like,
    zeros,
    zeros_like,
)
from minigrad.tensor.gradients import grad

if TYPE_CHECKING:
    from minigrad import checkpoint, func, inspect, nn, optim  # noqa: F401 - loaded on demand, see below
    from minigrad.inspect import detect_anomaly as detect_anomaly
    from minigrad.inspect import profile as profile
    from minigrad.precision import autocast as autocast

__version__ = "0.1.0"

__all__ = [
    "DeviceError", "GradcheckError", "Saved", "Tensor", "absolute", "arange", "argmax", "argmin", "argsort", "autocast",
    "broadcast_to", "ceil", "chunk", "clip", "concatenate", "cos", "cosh", "cumprod", "cumsum", "diag", "diagonal",
    "dot", "einsum", "enable_grad", "erf", "erfc", "exp", "expand_dims", "expm1", "eye", "flatten", "flip", "floor",
    "floor_divide", "from_dlpack", "from_numpy", "full", "full_like", "functional", "fused", "gather", "grad",
    "gradcheck", "gradgradcheck", "hstack", "index_put", "is_grad_enabled", "isfinite", "isinf", "isnan", "linspace",
    "log", "log1p", "log2", "log10", "logaddexp", "logsumexp", "manual_seed", "masked_fill", "matmul", "max", "maximum",
    "mean", "min", "minimum", "moveaxis", "no_grad", "norm", "ones", "ones_like", "outer", "pad", "power", "primitive",
    "prod", "random", "ravel", "relu", "remainder", "repeat", "reshape", "roll", "round", "sigmoid", "sign", "sin",
    "sinh", "sort", "split", "sqrt", "square", "squeeze", "stack", "std", "sum", "swapaxes", "take", "tan", "tanh",
    "tap", "tapping", "tile", "topk", "trace", "transpose", "tril", "triu", "unbind", "var", "vstack", "where", "zeros",
    "zeros_like",
]

# Loaded by the first `minigrad.nn`, so that `import minigrad` stays quick.
_ON_DEMAND = frozenset({"checkpoint", "func", "inspect", "kernels", "nn", "optim", "parallel", "precision"})
_PLACES = {"autocast": "precision", "detect_anomaly": "inspect", "profile": "inspect"}

# The host bodies work on the others from outside. Everything else runs without them.
if find_spec("minigrad.kernels") is not None:
    importlib.import_module("minigrad.kernels")

if not TYPE_CHECKING:  # a type checker should find a missing name missing

    def __getattr__(name):
        """Load what is loaded on demand."""
        if name in _PLACES:
            return getattr(importlib.import_module(f"minigrad.{_PLACES[name]}"), name)
        if name in _ON_DEMAND:
            return importlib.import_module(f"minigrad.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
