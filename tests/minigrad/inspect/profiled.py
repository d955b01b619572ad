"""What the tests of `profile` share: something to compute with, and how its rows are compared."""

import numpy as np

from minigrad import Tensor


def leaf(*shape, device="cpu"):
    return Tensor(np.ones(shape or (3,)), device=device, requires_grad=True)


def ms(profile):
    """Operation -> (calls, ms) forward and backward; but for "gate", which bundles the results of a checkpoint."""
    rows = {}
    for name, row in profile.operations.items():
        if name == "gate":
            continue
        forward, backward = round(row.forward * 1e3, 9), round(row.backward * 1e3, 9)
        rows[name] = (row.forward_calls, forward, row.backward_calls, backward)
    return rows
