"""The operators and the methods of the stand-in's array."""

import numpy as np

from tests.strict_cupy.ndarray import NAMES, bind, call, ndarray


def defers(x, other):
    """Whether ``x * other`` is left to ``other.__rmul__``: CuPy's reading of NEP 13."""
    if hasattr(other, "__array_ufunc__"):
        return other.__array_ufunc__ is None
    return getattr(other, "__array_priority__", 0) > x.__array_priority__


REDUCTIONS = {"all", "any", "argmax", "argmin", "max", "mean", "min", "sum"}


def binary(ufunc, reflected=False):
    def operate(self, other):
        if defers(self, other):
            return NotImplemented
        return ufunc(other, self) if reflected else ufunc(self, other)

    return operate


def method(name, parameters):
    def run(self, *args, **kwargs):
        bind(f"ndarray.{name}", parameters, args, kwargs)
        if name in REDUCTIONS and self.ndim == 0 and (args[0] if args else kwargs.get("axis")) not in (None, ()):
            raise np.exceptions.AxisError("axis is out of bounds for array of dimension 0")
        return call(name, getattr(np.ndarray, name), self, *args, **kwargs)

    return run


def take(self, indices, axis=None, out=None):
    """``ndarray.take``: indices that are out of range wrap around."""
    return call("take", np.ndarray.take, self, indices, axis, out, mode="wrap")


BINARY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.true_divide,
    "floordiv": np.floor_divide, "mod": np.remainder, "pow": np.power, "matmul": np.matmul, "and": np.bitwise_and,
    "or": np.bitwise_or,
}
COMPARISONS = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal,
}
UNARY = {"neg": np.negative, "invert": np.invert}
METHODS = [
    "all", "any", "argmax", "argmin", "astype", "copy", "cumsum", "dot", "max", "mean", "min", "ravel",
    "reshape", "sum", "swapaxes", "transpose", "view",
]


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
