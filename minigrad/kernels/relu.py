"""relu without a choice for each element, which takes NumPy twice as long, and ten times in the gradient."""

import numpy as np

from minigrad.ops import relu as definition


@definition.faster("numpy")
def relu(x):
    return np.maximum(x, np.zeros(x.shape[-1:], x.dtype))


def relu_gradient(g, out):
    """g where `out` is not 0, else 0: the bits of g and those of a mask of ones or zeros, so that ∞ · 0 is none."""
    bits = np.dtype(f"i{g.itemsize}")
    return (g.view(bits) & -(out != 0).astype(bits)).view(g.dtype)


relu.gradient(x=relu_gradient)
