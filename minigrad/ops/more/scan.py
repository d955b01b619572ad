"""Scans: each result is made of the one before it along an axis, and so each gradient of the one after it."""

from __future__ import annotations

import math
from typing import Any

from minigrad.arguments import single_axis
from minigrad.device import xp
from minigrad.engine.primitive import primitive
from minigrad.ops.comparison import equal, isinf
from minigrad.ops.exponential import exp
from minigrad.ops.more.padding import pad_constant
from minigrad.ops.more.shape import flip
from minigrad.ops.selection import where


def _require_axis(x: Any, axis: Any, operation: str) -> None:
    if axis is None or not x.ndim:
        raise ValueError(f"{operation}: needs an axis of the operand, got axis {axis} for shape {tuple(x.shape)}")
    single_axis(axis, x.shape, operation)


@primitive(fresh=True)
def cumsum(x, axis):
    """The running sum along `axis`."""
    _require_axis(x, axis, "cumsum")
    return x.cumsum(axis=axis)


# outⱼ = Σ_{i≤j} xᵢ, so dxᵢ = Σ_{j≥i} gⱼ: the running sum from the other end.
cumsum.gradient(x=lambda g, axis: flip(cumsum(flip(g, axis), axis), axis))


@primitive(fresh=True)
def linear_recurrence(factors, x, axis):
    """``out₀ = x₀`` and ``outₜ = factorsₜ · outₜ₋₁ + xₜ`` along `axis`, a step after the other; factors₀ is not used.

    `factors` and x have one shape. The steps are a Python loop over `axis`, each on all of the other axes at once.
    """
    _require_axis(x, axis, "linear_recurrence")
    if factors.shape != x.shape:
        raise ValueError(f"linear_recurrence: factors.shape == x.shape, got {tuple(factors.shape)} and "
                         f"{tuple(x.shape)}")
    out = x.copy()
    steps, factors = xp(x).moveaxis(out, axis, 0), xp(x).moveaxis(factors, axis, 0)
    for t in range(1, len(steps)):
        steps[t] += factors[t] * steps[t - 1]
    return out


@linear_recurrence.joint_gradient("factors", "x")
def linear_recurrence_gradient(g, factors, out, axis):
    # forward: outₜ = fₜ outₜ₋₁ + xₜ     so here: dxₜ = gₜ + fₜ₊₁ dxₜ₊₁, from the last to the first; dfₜ = dxₜ outₜ₋₁
    gx = recurrence_from_the_end(factors, g, axis)
    gx_of_next = flip(delay(flip(gx, axis), axis, 0.0), axis)
    return delay(gx_of_next * out, axis, 0.0), gx  # f₀ gets 0, not a product with it: dx₀ may be infinite


def recurrence_from_the_end(factors: Any, x: Any, axis: int) -> Any:
    """``outₜ = xₜ + factorsₜ₊₁ · outₜ₊₁``: `linear_recurrence` from the last element to the first."""
    return flip(linear_recurrence(delay(flip(factors, axis), axis, 0.0), flip(x, axis), axis), axis)


def delay(x: Any, axis: int, first: float) -> Any:
    """x moved one place along `axis`: `first`, x₀, x₁, …, without the last."""
    axis %= len(x.shape)
    widths = [(1, 0) if i == axis else (0, 0) for i in range(len(x.shape))]
    return pad_constant(x, widths, first)[(*(slice(None),) * axis, slice(0, x.shape[axis]))]


@primitive(fresh=True)
def cumprod(x, axis):
    """The running product along `axis`. Its gradient divides by nothing: it is right beside zeros, to every order."""
    _require_axis(x, axis, "cumprod")
    return x.cumprod(axis=axis)


# outⱼ = Π_{k≤j} xₖ, so dxᵢ = outᵢ₋₁ · sᵢ with sᵢ = Σ_{j≥i} gⱼ Π_{i<k≤j} xₖ = gᵢ + xᵢ₊₁ sᵢ₊₁.
cumprod.gradient(x=lambda g, x, out, axis: delay(out, axis, 1.0) * recurrence_from_the_end(x, g, axis))


@primitive(floating=True, fresh=True)
def logcumsumexp(x, axis):
    """``log Σ_{i≤j} exp xᵢ`` along `axis`, without overflow.

    A run of -inf from the start gives -inf, gradient 0. The gradient at ∞ is NaN, ``∞ - ∞``, as in PyTorch.
    """
    _require_axis(x, axis, "logcumsumexp")
    namespace, out = xp(x), x.copy()
    ends, reach = namespace.moveaxis(out, axis, 0), 1  # each place holds the logarithm of the sum of `reach` terms,
    while reach < len(ends):                           # and doubles it by the place that holds the terms before those
        ends[reach:] = namespace.logaddexp(ends[reach:], ends[:-reach])
        reach *= 2
    return out


# dxᵢ = Σ_{j≥i} gⱼ exp(xᵢ - outⱼ) = exp(xᵢ - outᵢ) sᵢ with sᵢ = gᵢ + exp(outᵢ - outᵢ₊₁) sᵢ₊₁. As out never decreases
# and xᵢ ≤ outᵢ, no exponent is positive.
def logcumsumexp_gradient(g, x, out, axis):
    before = delay(out, axis, -math.inf)
    stays = isinf(out) & equal(out, before)  # at an infinity, from which that itself cannot be subtracted
    falls = exp(where(stays, 0.0, before) - where(stays, 0.0, out))
    share = exp(x - where(equal(out, -math.inf), 0.0, out))
    return share * recurrence_from_the_end(falls, g, axis)


logcumsumexp.gradient(x=logcumsumexp_gradient)
