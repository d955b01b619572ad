"""minigrad: reverse-mode automatic differentiation on NumPy or CuPy arrays, small enough to read."""

import importlib
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from minigrad import functional, ops, random
from minigrad.device import DeviceError
from minigrad.device.local import enable_grad, is_grad_enabled, no_grad
from minigrad.engine.primitive import Saved, primitive
from minigrad.functional.compositions import fused, tap, tapping
from minigrad.gradcheck import GradcheckError, gradcheck, gradgradcheck
from minigrad.ops import *
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
    from minigrad.precision import GradScaler as GradScaler
    from minigrad.precision import autocast as autocast

__version__ = "0.1.0"

__all__ = [
    "DeviceError", "GradScaler", "GradcheckError", "Saved", "Tensor", "arange", "autocast", "enable_grad", "eye",
    "from_dlpack", "from_numpy", "full", "full_like", "functional", "fused", "grad", "gradcheck", "gradgradcheck",
    "is_grad_enabled", "linspace", "manual_seed", "no_grad", "ones", "ones_like", "primitive", "random", "tap",
    "tapping", "zeros", "zeros_like",
]

# Loaded by the first `minigrad.nn`, so that `import minigrad` stays quick.
_ON_DEMAND = frozenset({"checkpoint", "func", "inspect", "kernels", "nn", "optim", "parallel", "precision"})
_PLACES = {"GradScaler": "precision", "autocast": "precision", "detect_anomaly": "inspect", "profile": "inspect"}

# The host bodies work on the others from outside. Everything else runs without them.
if find_spec("minigrad.kernels") is not None:
    importlib.import_module("minigrad.kernels")

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """The operations, which have no types."""

else:
    __all__ += ops.__all__

    def __getattr__(name):
        """Load what is loaded on demand."""
        if name in _PLACES:
            return getattr(importlib.import_module(f"minigrad.{_PLACES[name]}"), name)
        if name in _ON_DEMAND:
            return importlib.import_module(f"minigrad.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
