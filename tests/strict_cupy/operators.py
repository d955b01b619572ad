"""The operators and the methods of the stand-in's array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.strict_cupy.machine import upload
from tests.strict_cupy.ndarray import NAMES, bind, call, ndarray, wrap


def defers(x: ndarray, other: Any) -> bool:
    """Whether ``x * other`` is left to ``other.__rmul__``: CuPy's reading of NEP 13."""
    if hasattr(other, "__array_ufunc__"):
        return other.__array_ufunc__ is None
    return getattr(other, "__array_priority__", 0) > x.__array_priority__


REDUCTIONS = {"all", "any", "argmax", "argmin", "max", "mean", "min", "prod", "std", "sum", "var"}


def binary(ufunc: np.ufunc, reflected: bool = False) -> Callable[[ndarray, Any], Any]:
    def operate(self: ndarray, other: Any) -> Any:
        if defers(self, other):
            return NotImplemented
        return ufunc(other, self) if reflected else ufunc(self, other)

    return operate


def method(name: str, parameters: str) -> Callable[..., Any]:
    def run(self: ndarray, *args: Any, **kwargs: Any) -> Any:
        bind(f"ndarray.{name}", parameters, args, kwargs)
        if name in REDUCTIONS and self.ndim == 0 and (args[0] if args else kwargs.get("axis")) not in (None, ()):
            raise np.exceptions.AxisError("axis is out of bounds for array of dimension 0")
        return call(name, getattr(np.ndarray, name), self, *args, **kwargs)

    return run


def take(self: ndarray, indices: Any, axis: int | None = None, out: ndarray | None = None) -> Any:
    """``ndarray.take``: indices that are out of range wrap around, and the host's are sent."""
    if not isinstance(indices, (ndarray, int, np.integer)):
        indices = np.asarray(indices, int)
        upload(indices, "index")
        indices = wrap(indices, [])
    return call("take", np.ndarray.take, self, indices, axis, out, mode="wrap")


BINARY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.true_divide,
    "floordiv": np.floor_divide, "mod": np.remainder, "pow": np.power, "matmul": np.matmul,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "lshift": np.left_shift,
    "rshift": np.right_shift,
}  # fmt: skip
COMPARISONS = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal,
}  # fmt: skip
UNARY = {"neg": np.negative, "pos": np.positive, "abs": np.absolute, "invert": np.invert}
METHODS = [
    "all", "any", "argmax", "argmin", "argsort", "astype", "clip", "compress", "conj", "copy",
    "cumprod", "cumsum", "diagonal", "dot", "flatten", "item", "max", "mean", "min", "nonzero",
    "prod", "ravel", "repeat", "reshape", "round", "searchsorted", "sort", "squeeze", "std", "sum",
    "swapaxes", "tobytes", "tolist", "trace", "transpose", "var", "view",
]  # fmt: skip


for _name, _ufunc in BINARY.items():
    setattr(ndarray, f"__{_name}__", binary(_ufunc))
    setattr(ndarray, f"__r{_name}__", binary(_ufunc, reflected=True))
    if _name != "matmul":  # CuPy's array has no __imatmul__
        setattr(ndarray, f"__i{_name}__", lambda self, other, _ufunc=_ufunc: _ufunc(self, other, out=self))
for _name, _ufunc in COMPARISONS.items():
    setattr(ndarray, f"__{_name}__", binary(_ufunc))
for _name, _ufunc in UNARY.items():
    setattr(ndarray, f"__{_name}__", lambda self, _ufunc=_ufunc: _ufunc(self))
for _name in METHODS:
    setattr(ndarray, _name, method(_name, NAMES["ndarray"][_name]))
ndarray.take = take
