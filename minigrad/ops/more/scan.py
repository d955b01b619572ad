"""Scans: each result is made of the one before it along an axis, and so each gradient of the one after it."""

from __future__ import annotations

from typing import Any

from minigrad.arguments import public
from minigrad.device import xp
from minigrad.device.sums import running_sums
from minigrad.engine.primitive import primitive
from minigrad.ops.more.one_axis import along_one_axis
from minigrad.ops.more.padding import pad_constant
from minigrad.ops.more.shape import flip


@primitive(fresh=True)
def _cumsum(x, axis):
    return running_sums(x, axis)


# outⱼ = Σ_{i≤j} xᵢ, so dxᵢ = Σ_{j≥i} gⱼ: the running sum from the other end.
_cumsum.gradient(x=lambda g, axis: flip(_cumsum(flip(g, axis), axis), axis))


@public
def cumsum(x: Any, axis: int | None = None) -> Any:
    """The running sum along `axis`; of the flattened x if it is None, as in NumPy."""
    return along_one_axis(_cumsum, x, axis, "cumsum")


@primitive(fresh=True)
def linear_recurrence(factors, x, axis):
    """``out₀ = x₀`` and ``outₜ = factorsₜ · outₜ₋₁ + xₜ`` along `axis`, a step after the other; factors₀ is not used.

    `factors` and x have one shape. The steps are a Python loop over `axis`, each on all of the other axes at once.
    """
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
def _cumprod(x, axis):
    return x.cumprod(axis=axis)


# outⱼ = Π_{k≤j} xₖ, so dxᵢ = outᵢ₋₁ · sᵢ with sᵢ = Σ_{j≥i} gⱼ Π_{i<k≤j} xₖ = gᵢ + xᵢ₊₁ sᵢ₊₁.
_cumprod.gradient(x=lambda g, x, out, axis: delay(out, axis, 1.0) * recurrence_from_the_end(x, g, axis))


@public
def cumprod(x: Any, axis: int | None = None) -> Any:
    """The running product along `axis`; of the flattened x if it is None, as in NumPy.

    Its gradient divides by nothing: it is right beside zeros, to every order.
    """
    return along_one_axis(_cumprod, x, axis, "cumprod")
