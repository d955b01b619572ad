"""layer_norm and rms_norm in place, with sums by the BLAS."""

from __future__ import annotations

import numpy as np

from minigrad.engine.node import Saved
from minigrad.functional.more.rms_norm import _rms_norm as rms_norm_definition
from minigrad.functional.normalization import check_shapes
from minigrad.functional.normalization import layer_norm as layer_norm_definition
from minigrad.kernels.bodies import faster_body, on_host
from minigrad.kernels.host.sums import column_sums, row_dot, row_means
from minigrad.ops.shape import rows


@faster_body(layer_norm_definition, on_host, fresh=True)
def layer_norm(input, weight=None, bias=None, eps=1e-5):
    check_shapes("layer_norm", input, weight, bias)
    mean = row_means(input)
    out = input - mean
    rstd = 1 / np.sqrt(row_dot(out, out) / input.shape[-1] + eps)
    out *= rstd  # x̂
    if weight is not None:
        out *= weight
    if bias is not None:
        out += bias
    return out, Saved(mean=mean, rstd=rstd)


@layer_norm.joint_gradient("input", "weight", "bias")
def layer_norm_gradient(g, input, weight, saved, needs):
    # The definition's steps; the two means are products with the weight: Σ g · weight and Σ g x̂ · weight, over D.
    normalized = input - saved.mean
    normalized *= saved.rstd
    grad_bias = column_sums(rows(g)) if needs.bias else None
    product = g * normalized
    grad_weight = column_sums(rows(product)) if needs.weight else None
    if not needs.input:
        return None, grad_weight, grad_bias
    grad_input = g.copy() if weight is None else g * weight
    grad_input -= row_means(g, weight)
    normalized *= row_means(product, weight)
    grad_input -= normalized
    grad_input *= saved.rstd
    return grad_input, grad_weight, grad_bias


@faster_body(rms_norm_definition, on_host, fresh=True)
def rms_norm(input, weight, eps):
    check_shapes("rms_norm", input, weight)
    scale = 1 / np.sqrt(row_dot(input, input) / input.shape[-1] + eps)
    out = input * scale  # x̂
    if weight is not None:
        out *= weight
    return out, Saved(scale=scale)


@rms_norm.joint_gradient("input", "weight")
def rms_norm_gradient(g, input, weight, saved, needs):
    normalized = input * saved.scale
    grad_weight = column_sums(rows(g * normalized)) if needs.weight else None
    if not needs.input:
        return None, grad_weight
    h = g if weight is None else g * weight
    normalized *= row_dot(h, normalized) / input.shape[-1]
    grad_input = h - normalized
    grad_input *= saved.scale
    return grad_input, grad_weight
