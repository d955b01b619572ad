"""What the tests of gradcheck check: inputs, and an operation whose rule they choose."""

import numpy as np

from minigrad import Tensor, primitive


def tensor(*shape, seed=0, device="cpu", requires_grad=True):
    values = np.asarray(np.random.default_rng([seed, *shape]).normal(size=shape))
    return Tensor(values, device=device, requires_grad=requires_grad)


def unary(rule):
    @primitive
    def cube(x):
        return x * x * x

    cube.gradient(x=rule)
    return cube
