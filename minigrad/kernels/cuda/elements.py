"""Element-wise operations whose definitions need several launches."""

import functools

from minigrad.device import xp
from minigrad.functional.dropout import checked
from minigrad.functional.dropout import dropout_with_mask as dropout_definition
from minigrad.ops import relu as relu_definition


@functools.cache
def elementwise(namespace, name, inputs, operation):
    """A kernel of CuPy that computes ``y``; its operands broadcast."""
    return namespace.ElementwiseKernel(inputs, "T y", operation, f"minigrad_{name}")


@dropout_definition.faster("cupy")
def dropout_with_mask(input, mask, p):
    drop = elementwise(xp(input), "dropout", "T x, bool kept, float64 factor", "y = x * kept * (T)factor")
    return drop(input, mask, 1 / (1 - checked(mask, p)))


dropout_with_mask.gradient(input=lambda g, mask, p: dropout_with_mask.forward(g, mask, p))

relu = relu_definition.faster("cupy")(relu_definition.forward)
relu.gradient(x=lambda g, out: elementwise(xp(g), "relu_gradient", "T g, T out", "y = out != 0 ? g : (T)0")(g, out))
