"""Element-wise operations: arithmetic, comparisons, exponentials, trigonometry, choices. Operands broadcast.

With ``out = f(x)``, element by element, the Jacobian is diagonal, and the rule for x is ``g · f'(x)``. Most operations
are rows of a table: a name, the forward, one line of documentation, and a rule for each operand. A row without rules
has no gradient: a result requires none, and says so at once, where a gradient of zeros would let a model train on
nothing. To pass a gradient straight through a step (Bengio, Léonard and Courville 2013, arXiv:1308.3432):
``x + (minigrad.round(x) - x).detach()``.

A gradient of exactly 0 stays 0 where a slope is infinite or not a number (last section). An exponential that
overflows is different: ``exp(1000)`` is ∞, and so is its slope. These rules leave ``0 · ∞ = NaN`` as it is, for the
sake of their speed: guard the argument too, ``where(x < 9, exp(where(x < 9, x, 0)), 0)``, or `clip` it.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from minigrad import device
from minigrad.device import xp
from minigrad.engine.primitive import primitive


def row(name: str, forward: Callable[..., Any], documentation: str, floating: bool = False, fresh: bool = True,
        **rules: Any) -> Any:
    """The operation of this name; without rules it has no gradient. The options are those of `primitive`.

    `fresh` must be False where a rule returns g itself, what is saved, or a view of either.
    """
    forward.__name__ = forward.__qualname__ = name
    forward.__doc__ = documentation
    made = primitive(forward, broadcasts=forward.__code__.co_argcount > 1, floating=floating, fresh=fresh)
    if rules:
        made.gradient(**rules)
    return made if rules else made.no_gradient()


def function(name: str, documentation: str, floating: bool = True, **rules: Any) -> Any:
    """The row of a function of one operand that NumPy and CuPy have by this name."""
    return row(name, lambda x: getattr(xp(x), name)(x), documentation, floating, **rules)


# --------------------------------------------------------------------------- arithmetic

add = row("add", lambda x, y: x + y, "``x + y``.", fresh=False, x=lambda g: g, y=lambda g: g)
sub = row("sub", lambda x, y: x - y, "``x - y``.", fresh=False, x=lambda g: g, y=lambda g: -g)
mul = row("mul", lambda x, y: x * y, "``x * y``.", x=lambda g, y: g * y, y=lambda g, x: g * x)
div = row("div", lambda x, y: x / y, "``x / y``; integers give float32. A gradient of exactly 0 stays 0 at y = 0.",
          floating=True,
          x=lambda g, y: g / y if has_no_zeros(y) else quotient(g, y, y != 0),
          y=lambda g, y, out: -g * out / y if has_no_zeros(y) else -_product(g, quietly(operator.truediv, out, y)))
neg = row("neg", lambda x: -x, "``-x``.", x=lambda g: -g)
square = row("square", lambda x: x * x, "``x²``.", x=lambda g, x: g * x * 2)
floor_divide = row("floor_divide", lambda x, y: x // y, "``x // y``, the floor of the quotient. No gradient.")
remainder = row("remainder", lambda x, y: x % y,
                "``x % y = x - floor(x / y) · y``, of the sign of y, with the slopes 1 and ``-floor(x / y)``.",
                fresh=False, x=lambda g: g,
                y=lambda g, x, y: -g * floor_divide(x, y) if has_no_zeros(y) else
                -_product(g, quietly(floor_divide, x, y)))


@primitive(broadcasts=True, fresh=True)
def power(x, y):
    """``x ** y``.

    Its gradient is finite, to every order, where the mathematical one is: at x = 0 too. A gradient of exactly 0 stays 0
    at a pole (``x**-1`` at 0) and outside the domain (``x**0.5`` at -1).
    """
    return x ** y


power.gradient(x=lambda g, x, y: base_slope(g, x, y) if isinstance(y, (int, float)) else
               _product(g, _base_slope(x, y)),
               y=lambda g, x, out: exponent_slope(g, x, out))


def base_slope(g: Any, x: Any, y: float) -> Any:
    """``g · y · x**(y-1)``; the exponents 0, where ``0 · 0**-1`` would be NaN, and 2 are written out."""
    if y == 0:
        return g * zeros_like(x)
    if y == 2:
        return g * x * 2
    whole = float(y).is_integer()
    regular = (whole and y > 0) or (x != 0 if whole else x > 0 if y < 1 else x >= 0)
    if has_no_zeros(regular):
        return g * y * x ** (y - 1)
    return _product(g, y * quietly(power, x, y - 1))


@primitive(broadcasts=True, fresh=True)
def _base_slope(x, y):
    """``y · x**(y-1)`` for an array of exponents; 0 where an exponent of 0 meets a power that is infinite."""
    return _product(y, quietly(power, x, y - 1))


_base_slope.gradient(x=lambda g, x, y: _product(g, _product(y, _base_slope(x, y - 1))),
                     y=lambda g, x, y: _product(
                         g, _product(quietly(power, x, y - 1), 1 + _product(y, quietly(log, x)))))


def exponent_slope(g: Any, x: Any, out: Any) -> Any:
    """``g · out · log x``; at x = 0, where ``0**y`` does not change with y > 0, it is 0, also at y = 0, and else -∞."""
    if isinstance(x, (int, float)):
        return g * out * (where(isinf(out), -out, 0.0) if x == 0 else math.log(x) if x > 0 else math.nan)
    if has_no_zeros(x > 0):
        return g * out * log(x)
    return _product(g, _product(out, quietly(log, where((x != 0) | (out != 1), x, 1.0))))


# --------------------------------------------------------------------------- functions of one operand

exp = function("exp", "``eˣ``. Where it overflows, so does its slope, and even a gradient of 0 becomes NaN.",
               x=lambda g, out: g * out)
expm1 = function("expm1", "``eˣ - 1``, exact near x = 0.",
                 x=lambda g, x: g * exp(x))  # not out + 1, which has lost the digits of eˣ where x is far below 0
log: Any = function("log", "The natural logarithm. A gradient of exactly 0 stays 0 where x is not positive.",
                    x=lambda g, x: quotient(g, x, x > 0))
log2 = function("log2", "The logarithm to base 2, with the edges of `log`.",
                x=lambda g, x: quotient(g, x * math.log(2), x > 0))
log10 = function("log10", "The logarithm to base 10, with the edges of `log`.",
                 x=lambda g, x: quotient(g, x * math.log(10), x > 0))
log1p = function("log1p", "``log(1 + x)``, exact near x = 0, with the edges of `log` at x = -1.",
                 x=lambda g, x: quotient(g, 1 + x, x > -1))
sqrt = function("sqrt", "The square root. A gradient of exactly 0 stays 0 where x is not positive.",
                x=lambda g, out: quotient(g * 0.5, out, out > 0))
sin = function("sin", "The sine.", x=lambda g, x: g * cos(x))
cos: Any = function("cos", "The cosine.", x=lambda g, x: -g * sin(x))
tan = function("tan", "The tangent.", x=lambda g, out: g * (1 + out * out))
tanh = function("tanh", "The hyperbolic tangent, in [-1, 1].", x=lambda g, out: g * (1 - out * out))
sign = function("sign", "-1, 0 or 1. No gradient.", False)
abs = function("abs", "``|x|``; the gradient at 0 is 0.", False, x=lambda g, x: g * sign(x))
floor = row("floor", lambda x: xp(x).floor(x).astype(x.dtype, copy=False),
            "The largest whole number that is not above x, in x's dtype. No gradient.")
ceil = row("ceil", lambda x: xp(x).ceil(x).astype(x.dtype, copy=False),
           "The smallest whole number that is not below x, in x's dtype. No gradient.")
sigmoid = row("sigmoid", lambda x: device.expit(x), "``1 / (1 + e⁻ˣ)``; far below 0 it has all its digits, too.", True,
              x=lambda g, out: g * (out - out * out))
erf = row("erf", lambda x: device.erf(x), "The error function, ``2/√π ∫₀ˣ exp(-t²) dt``.", True,
          x=lambda g, x: g * (bell(x, 1) * (2 / math.sqrt(math.pi))))
erfc = row("erfc", lambda x: device.erfc(x), "``1 - erf(x)``; far above 0 it has all its digits, too.", True,
           x=lambda g, x: g * (bell(x, 1) * (-2 / math.sqrt(math.pi))))
relu = row("relu", lambda x: xp(x).maximum(x, 0), "``max(x, 0)``; the gradient at 0 is 0, and passes where x is NaN.",
           x=lambda g, out: where(out != 0, g, 0.0))  # positive, or NaN


def bell(x: Any, width: float) -> Any:
    """``exp(-x²/width)``, of an array or a tensor; the digits of x² that float32 lacks would count far out."""
    wide = x.astype(np.float64)
    return exp(wide * wide * (-1 / width)).astype(x.dtype)


@primitive
def round(x, decimals=0):
    """x to the nearest number with that many `decimals`, halves to the even one (NumPy's rule). No gradient."""
    return xp(x).round(x, decimals).astype(x.dtype, copy=False)


@primitive
def zeros_like(x):
    """Zeros of the shape, dtype and device of x."""
    return xp(x).zeros_like(x)


round.no_gradient()
zeros_like.no_gradient()

# --------------------------------------------------------------------------- comparisons and logic: booleans

equal = row("equal", lambda x, y: x == y, "``x == y``.")
not_equal = row("not_equal", lambda x, y: x != y, "``x != y``.")
less = row("less", lambda x, y: x < y, "``x < y``.")
less_equal = row("less_equal", lambda x, y: x <= y, "``x <= y``.")
greater = row("greater", lambda x, y: x > y, "``x > y``.")
greater_equal = row("greater_equal", lambda x, y: x >= y, "``x >= y``.")
bitwise_and = row("bitwise_and", lambda x, y: x & y, "``x & y``: of booleans and, of integers the same for each bit.")
bitwise_or = row("bitwise_or", lambda x, y: x | y, "``x | y``: of booleans or, of integers the same for each bit.")
bitwise_not = row("bitwise_not", lambda x: ~x, "``~x``: of booleans not, of integers the same for each bit.")
isnan = function("isnan", "Whether each element is not a number.", False)
isinf = function("isinf", "Whether each element is ∞ or -∞.", False)
isfinite = function("isfinite", "Whether each element is a number, and neither ∞ nor -∞.", False)

# --------------------------------------------------------------------------- choices


@primitive(broadcasts=True, fresh=True)
def where(condition, x, y):
    """x where the condition holds, y elsewhere; all three broadcast. The condition is boolean and has no gradient.

    A condition that is a NumPy array is sent to the device of the tensors.
    """
    if not hasattr(condition, "dtype") or condition.dtype.kind != "b":
        kind = getattr(condition, "dtype", type(condition).__name__)
        raise TypeError(f"where: the condition must be a boolean tensor or array, got {kind}")
    if x is None or y is None:
        raise TypeError("where: cannot use None as an operand; give a Tensor, an array or a number")
    out = xp(condition).where(condition, x, y)
    only_numbers = not hasattr(x, "dtype") and not hasattr(y, "dtype")
    return out.astype(np.float32) if only_numbers and out.dtype.kind == "f" else out


where.gradient(x=lambda g, condition: where(condition, g, 0.0),
               y=lambda g, condition: where(condition, 0.0, g))


def share(g: Any, loses: Any, ties: Any) -> Any:
    """Nothing to the loser, half of g to each where the two tie."""
    return where(loses, 0.0, where(ties, g * 0.5, g))


maximum = row("maximum", lambda x, y: xp(x if hasattr(x, "dtype") else y).maximum(x, y),
              "The larger of x and y; equal ones get half of the gradient each; where one is NaN, both get all of it.",
              x=lambda g, x, y: share(g, x < y, x == y), y=lambda g, x, y: share(g, y < x, x == y))
minimum = row("minimum", lambda x, y: xp(x if hasattr(x, "dtype") else y).minimum(x, y),
              "The smaller of x and y; equal ones get half of the gradient each; where one is NaN, both get all of it.",
              x=lambda g, x, y: share(g, x > y, x == y), y=lambda g, x, y: share(g, y > x, x == y))


@primitive(broadcasts=True, fresh=True)
def clip(x, min=None, max=None):
    """x kept within [min, max], broadcasting; a bound is a number, a tensor, or None for no bound.

    On a bound the gradient goes to x, beyond it to the bound, and to both where one of them is NaN. Where min is above
    max, the result is max.
    """
    if min is None and max is None:
        raise ValueError("clip: give min, max or both")
    namespace = xp(x)
    x = x if min is None else namespace.maximum(x, min)
    return x if max is None else namespace.minimum(x, max)  # CuPy's clip passes over NaN


def clip_gradient(g, x, min, max):
    if min is not None:
        g = where(x < min, 0.0, g)
    return g if max is None else where(x > max, 0.0, g)


def clip_gradient_of_min(g, x, min, max):
    within = x >= min
    return where(within if max is None else within | (min > max), 0.0, g)


def clip_gradient_of_max(g, x, min, max):
    raised = x if min is None else maximum(x, min)
    return where(raised <= max, 0.0, g)


clip.gradient(x=clip_gradient, min=clip_gradient_of_min, max=clip_gradient_of_max)

# --------------------------------------------------------------------------- edges: a gradient of 0 where a slope is ∞
#
# ``where(x > 0, log(x), 0)`` sends a gradient of 0 to the logarithms of what is not positive, and ``0 · ∞`` would make
# it NaN. **By convention a gradient of exactly 0 stays 0**: at a pole (``1/x`` at 0), where a slope is infinite
# (``sqrt`` at 0), and outside the domain (``log`` at -1); to every order. It is the value of the product that the
# convention sets. The derivative with respect to the gradient is the slope itself, ∞ or NaN, which is what
# `minigrad.func.jvp` finds.
#
# A rule sees the gradient, not where it comes from. That of the root in ``sqrt(x)**2`` at 0 is 0 as well, and so is the
# result, though the derivative is 1: as a limit, 0 · ∞ may be any number. No rule can tell the two apart; where a
# factor vanishes as fast as the slope grows, write the function without them. docs/gradients/elementwise.md has a
# table.


def has_no_zeros(x: Any) -> bool:
    """Whether x is True, or an array in host memory without a 0 or a False.

    It is not checked on a GPU, where the check would synchronise, nor of a tensor.
    """
    return x is True or (isinstance(x, (np.ndarray, np.generic)) and np.count_nonzero(x) == x.size)


def quotient(g: Any, x: Any, regular: Any) -> Any:
    """``g / x``, but 0 where g is exactly 0 and x is not `regular`."""
    return g / x if has_no_zeros(regular) else _kept_quotient(g, x, regular)  # the usual case, or an edge


@primitive(broadcasts=True, fresh=True)
def _kept_quotient(dividend, x, regular):
    """`quotient` as an operation, so that it can be differentiated again."""
    return dividend / xp(dividend).where((dividend != 0) | regular, x, dividend.dtype.type(1))


_kept_quotient.gradient(
    dividend=lambda g, x, regular: quietly(quotient, g, x, regular),
    x=lambda g, dividend, x, regular: -quotient(quotient(_product(g, dividend), x, regular), x, regular))


@primitive(broadcasts=True, fresh=True)
def _product(x, y):
    """``x · y``, but 0 where one of them is exactly 0, whatever the other is."""
    return xp(x).where(y == 0, 0, x) * xp(x).where(x == 0, 0, y)


_product.gradient(x=lambda g, y: _product(g, y),
                  y=lambda g, x: _product(g, x))


def quietly(function: Callable[..., Any], *operands: Any) -> Any:
    """A slope, ``function(*operands)``, that may be infinite or not a number, without a warning."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return function(*operands)
