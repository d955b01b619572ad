"""layer_norm in one launch, its gradient in two."""

from __future__ import annotations

from minigrad.device import xp
from minigrad.engine.node import Saved
from minigrad.functional.normalization import check_shapes
from minigrad.functional.normalization import layer_norm as layer_norm_definition
from minigrad.kernels.cuda.launching import block_of, dense, launch, launch_rows
from minigrad.kernels.cuda.linear import column_sums

PARTS = 1024  # blocks, at most, that add up gradients of weight and bias, each for its share of the rows


@layer_norm_definition.faster("cupy")
def layer_norm(input, weight=None, bias=None, eps=1e-5):
    check_shapes("layer_norm", input, weight, bias)
    x = dense(input)
    out = xp(x).empty_like(x)
    mean, rstd = (xp(x).empty((*x.shape[:-1], 1), x.dtype) for _ in range(2))
    launch_rows("layer_norm", x, x, dense(weight), dense(bias), out, mean, rstd, float(eps), x.shape[-1])
    return out, Saved(mean=mean, rstd=rstd)


@layer_norm.joint_gradient("input", "weight", "bias")
def layer_norm_gradient(g, input, weight, saved, needs):
    x, width, rows = dense(input), input.shape[-1], saved.mean.size
    parts = max(1, min(rows, PARTS))
    grad_input, of_parts = xp(x).empty_like(x), xp(x).empty((parts, 2, width), x.dtype)
    launch("rows.cu", "layer_norm_gradient", x, (parts,), block_of(x), dense(g), x, dense(weight), saved.mean,
           saved.rstd, grad_input, of_parts, rows, width)
    if not (needs.weight or needs.bias):
        return grad_input, None, None
    return grad_input, *column_sums(of_parts.reshape(parts, 2 * width)).reshape(2, width)
