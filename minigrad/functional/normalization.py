"""Layer normalisation (Ba, Kiros and Hinton 2016, arXiv:1607.06450), and RMS normalisation (Zhang and Sennrich 2019,
arXiv:1910.07467)."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad import ops
from minigrad.arguments import number
from minigrad.device.sums import column_sums, narrowed, widened
from minigrad.engine.node import Saved
from minigrad.engine.primitive import primitive, public_in_precision
from minigrad.functional.compositions import tap
from minigrad.ops.shape import rows


def check_shapes(operation: str, input: Any, weight: Any, bias: Any = None) -> None:
    """ValueError unless the input has a last axis and the parameters fit it."""
    for name, parameter in (("weight", weight), ("bias", bias)):
        if not input.ndim or (parameter is not None and parameter.shape != input.shape[-1:]):
            raise ValueError(f"{operation}: needs {name}.shape == (input.shape[-1],), of an input (…, D), got "
                             f"{None if parameter is None else tuple(parameter.shape)} and {tuple(input.shape)}")


@primitive(floating=True, composite=True, precision="float32", fresh=True)
def layer_norm(input, weight=None, bias=None, eps=1e-5):
    """Each row shifted to mean 0 and scaled to variance 1, then ``· weight + bias``.

    Args:
        input: (…, D)
        weight, bias: (D,) or None
        eps: added to the variance (which divides by D, not D - 1)

    Returns:
        (…, D)
    """
    check_shapes("layer_norm", input, weight, bias)
    wide = widened(input)
    mean = tap("mean", wide.mean(axis=-1, keepdims=True))  # (…, 1)
    centered = tap("centered", wide - mean)
    variance = tap("variance", (centered * centered).mean(axis=-1, keepdims=True))
    rstd = 1 / ops.sqrt(variance + eps)
    out = tap("normalized", centered * rstd)  # x̂
    out = out if weight is None else out * weight
    out = out if bias is None else out + bias
    return narrowed(out, input.dtype), Saved(mean=mean, rstd=rstd)


@layer_norm.joint_gradient("input", "weight", "bias")
def layer_norm_gradient(g, input, weight, saved):
    # forward: out = x̂ · weight + bias            so here: dbias = Σ g,  dweight = Σ g x̂,  dx̂ = g · weight
    normalized = (input - saved.mean) * saved.rstd
    grad_bias = column_sums(rows(g))
    grad_weight = column_sums(rows(g * normalized))
    grad_normalized = g if weight is None else g * weight
    # forward: x̂ = (x - mean) · rstd              so here: dx = rstd · (dx̂ - mean(dx̂) - x̂ mean(dx̂ · x̂)),
    # where the two means are what reaches x through the mean and through rstd.
    grad_input = saved.rstd * (grad_normalized - grad_normalized.mean(axis=-1, keepdims=True)
                               - normalized * (grad_normalized * normalized).mean(axis=-1, keepdims=True))
    return grad_input, grad_weight, grad_bias


# --------------------------------------------------------------------------- without the shift


@primitive(floating=True, composite=True, fresh=True)
def _rms_norm(input, weight, eps):
    check_shapes("rms_norm", input, weight)
    wide = widened(input)
    mean_square = tap("mean_square", (wide * wide).mean(axis=-1, keepdims=True))
    scale = 1 / ops.sqrt(mean_square + eps)
    out = tap("normalized", wide * scale)  # x̂
    out = out if weight is None else out * weight
    return narrowed(out, input.dtype), Saved(scale=scale)


@_rms_norm.joint_gradient("input", "weight")
def rms_norm_gradient(g, input, weight, saved):
    # forward: out = x̂ · weight             so here: dweight = Σ g x̂,  dx̂ = g · weight
    normalized = input * saved.scale
    grad_weight = column_sums(rows(g * normalized))
    grad_normalized = g if weight is None else g * weight
    # forward: x̂ = x · scale                so here: dx = scale · (dx̂ - x̂ mean(dx̂ · x̂)),
    # where the mean is what reaches x through the scale.
    grad_input = saved.scale * (grad_normalized
                                - normalized * (grad_normalized * normalized).mean(axis=-1, keepdims=True))
    return grad_input, grad_weight


@public_in_precision("float32")
def rms_norm(input: Any, weight: Any = None, eps: float | None = None) -> Any:
    """Each row divided by its root mean square, then ``· weight``: layer norm without the shift.

    Args:
        input: (…, D)
        weight: (D,) or None
        eps: added to the mean square; None for the machine epsilon of the input's dtype, PyTorch's default

    Returns:
        (…, D)

    Raises:
        ValueError: a weight of another shape.
    """
    if eps is None:
        eps = float(np.finfo(input.dtype if input.dtype.kind == "f" else np.float32).eps)
    return _rms_norm(input, weight, number(eps, "eps", "rms_norm"))
