"""layer_norm in one launch, its gradient in two."""

from __future__ import annotations

from minigrad.device import xp
from minigrad.engine.node import Saved
from minigrad.functional.normalization import check_shapes
from minigrad.functional.normalization import layer_norm as layer_norm_definition
from minigrad.kernels.cuda.launching import for_rows, launch
from minigrad.kernels.cuda.linear import column_sums

PARTS = 1024  # blocks, at most, that add up gradients of weight and bias, each for its share of the rows


@layer_norm_definition.faster("cupy")
def layer_norm(input, weight=None, bias=None, eps=1e-5):
    check_shapes("layer_norm", input, weight, bias)
    namespace, width = xp(input), input.shape[-1]
    x = namespace.ascontiguousarray(input)
    weight, bias = (None if a is None else namespace.ascontiguousarray(a) for a in (weight, bias))
    out = namespace.empty_like(x)
    mean, rstd = (namespace.empty((*x.shape[:-1], 1), x.dtype) for _ in range(2))
    launch("rows.cu", "layer_norm", x, *for_rows(mean.size, width), x, weight, bias, out, mean, rstd, float(eps),
           width)
    return out, Saved(mean=mean, rstd=rstd)


@layer_norm.joint_gradient("input", "weight", "bias")
def layer_norm_gradient(g, input, weight, saved, needs):
    namespace, width, rows = xp(input), input.shape[-1], saved.mean.size
    g, x = namespace.ascontiguousarray(g), namespace.ascontiguousarray(input)
    weight = None if weight is None else namespace.ascontiguousarray(weight)
    (parts,), block = for_rows(max(1, min(rows, PARTS)), width)
    grad_input, of_parts = namespace.empty_like(x), namespace.empty((parts, 2, width), x.dtype)
    launch("rows.cu", "layer_norm_gradient", x, (parts,), block, g, x, weight, saved.mean, saved.rstd, grad_input,
           of_parts, rows, width)
    if not (needs.weight or needs.bias):
        return grad_input, None, None
    return grad_input, *column_sums(of_parts.reshape(parts, 2 * width)).reshape(2, width)
