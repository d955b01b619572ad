"""Layer normalisation (Ba, Kiros and Hinton 2016, arXiv:1607.06450) and RMS normalisation (Zhang and Sennrich 2019,
arXiv:1910.07467)."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad import ops
from minigrad.arguments import in_precision, public
from minigrad.device import xp
from minigrad.engine.primitive import Saved, primitive
from minigrad.functional.compositions import tap
from minigrad.functional.sums import column_sums, row_dot, row_means
from minigrad.ops.linalg import rows


def check_shapes(operation: str, input: Any, weight: Any, bias: Any = None) -> None:
    """ValueError unless the parameters fit the input's last axis."""
    for name, parameter in (("weight", weight), ("bias", bias)):
        if parameter is not None and parameter.shape != input.shape[-1:]:
            raise ValueError(f"{operation}: {name}.shape == (input.shape[-1],), got {tuple(parameter.shape)} and "
                             f"{tuple(input.shape)}")


def layer_norm_by_steps(input: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    """layer_norm as a composition of small operations."""
    check_shapes("layer_norm", input, weight, bias)
    mean = tap("mean", ops.mean(input, axis=-1, keepdims=True))
    centered = tap("centered", input - mean)
    variance = tap("variance", ops.mean(centered * centered, axis=-1, keepdims=True))
    out = tap("normalized", centered / ops.sqrt(variance + eps))
    if weight is not None:
        out = out * weight
    return out if bias is None else out + bias


@primitive(floating=True, composition=layer_norm_by_steps, precision="float32")
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
    namespace = xp(input)
    mean = row_means(input)
    out = input - mean
    rstd = 1 / namespace.sqrt(row_dot(out, out) / input.shape[-1] + eps)
    out *= rstd  # x̂
    if weight is not None:
        out *= weight
    if bias is not None:
        out += bias
    return out, Saved(mean=mean, rstd=rstd)


@layer_norm.joint_gradient("input", "weight", "bias")
def layer_norm_gradient(g, input, weight, saved, needs):
    # forward: out = x̂ · weight + bias            so here: dbias = Σ g,  dweight = Σ g x̂,  dx̂ = g · weight
    normalized = input - saved.mean
    normalized *= saved.rstd
    grad_bias = column_sums(rows(g)) if needs.bias else None
    product = g * normalized
    grad_weight = column_sums(rows(product)) if needs.weight else None
    if not needs.input:
        return None, grad_weight, grad_bias
    # forward: x̂ = (x - mean) · rstd              so here: dx = rstd · (dx̂ - mean(dx̂) - x̂ mean(dx̂ · x̂)),
    # where the two means are what reaches x through the mean and through rstd.
    grad_input = g.copy() if weight is None else g * weight
    grad_input -= row_means(g, weight)
    normalized *= row_means(product, weight)
    grad_input -= normalized
    grad_input *= saved.rstd
    return grad_input, grad_weight, grad_bias


def rms_norm_by_steps(input: Any, weight: Any, eps: float) -> Any:
    """rms_norm as a composition of small operations."""
    check_shapes("rms_norm", input, weight)
    mean_square = tap("mean_square", ops.mean(input * input, axis=-1, keepdims=True))
    out = tap("normalized", input / ops.sqrt(mean_square + eps))
    return out if weight is None else out * weight


@primitive(floating=True, composition=rms_norm_by_steps)
def _rms_norm(input, weight, eps):
    check_shapes("rms_norm", input, weight)
    scale = 1 / xp(input).sqrt(row_dot(input, input) / input.shape[-1] + eps)
    out = (input * scale).astype(input.dtype, copy=False)  # x̂
    if weight is not None:
        out *= weight
    return out, Saved(scale=scale)


@_rms_norm.joint_gradient("input", "weight")
def rms_norm_gradient(g, input, weight, saved, needs):
    # forward: out = x̂ · weight             so here: dweight = Σ g x̂,  dx̂ = g · weight
    normalized = input * saved.scale
    grad_weight = column_sums(rows(g * normalized)) if needs.weight else None
    if not needs.input:
        return None, grad_weight
    h = g if weight is None else g * weight
    # forward: x̂ = x · scale                so here: dx = scale · (dx̂ - x̂ mean(dx̂ · x̂)),
    # where the mean is what reaches x through the scale.
    normalized *= row_dot(h, normalized) / input.shape[-1]
    grad_input = h - normalized
    grad_input *= saved.scale
    return grad_input, grad_weight


@in_precision("float32")
@public
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
    return _rms_norm(input, weight, eps)
