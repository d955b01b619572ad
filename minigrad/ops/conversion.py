"""The same array in another dtype, and arrays made to match another."""

from __future__ import annotations

from minigrad.arguments import numeric_dtype
from minigrad.device import xp
from minigrad.engine.primitive import primitive


@primitive(fresh=True)
def astype(x, dtype):
    """x in another dtype (a copy); the gradient is cast back."""
    return x.astype(numeric_dtype(dtype, "astype"))


astype.gradient(x=lambda g, x_dtype: g.astype(x_dtype))


@primitive
def zeros_like(x):
    """Zeros of the shape, dtype and device of x."""
    return xp(x).zeros_like(x)


zeros_like.no_gradient()
