"""layer_norm in one launch, its gradient in two."""

from minigrad.engine.node import Saved
from minigrad.functional.normalization import check_shapes
from minigrad.functional.normalization import layer_norm as definition
from minigrad.kernels.cuda.launching import empty, launch_rows
from minigrad.kernels.cuda.linear import column_sums

PARTS = 1024  # blocks, at most, that add up gradients of weight and bias, each for its share of the rows


@definition.faster("cupy")
def layer_norm(input, weight=None, bias=None, eps=1e-5):
    check_shapes("layer_norm", input, weight, bias)
    *lengths, width = input.shape
    out, (mean, rstd) = empty(input), empty(input, 2, *lengths, 1)
    launch_rows("layer_norm", input, input, weight, bias, out, mean, rstd, float(eps), width)
    return out, Saved(mean=mean, rstd=rstd)


@layer_norm.joint_gradient("input", "weight", "bias")
def layer_norm_gradient(g, input, weight, saved):
    width, rows = input.shape[-1], saved.mean.size
    grad_input, parts = empty(input), empty(input, max(1, min(rows, PARTS)), 2, width)
    launch_rows("layer_norm_gradient", parts[:, 0], g, input, weight, saved.mean, saved.rstd, grad_input, parts, rows,
                width)
    return grad_input, *column_sums(parts.reshape(len(parts), 2 * width)).reshape(2, width)
