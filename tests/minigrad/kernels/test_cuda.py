"""Every CUDA kernel is held to the definition of its operation, on a GPU."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, kernels
from minigrad import functional as F
from minigrad.functional.dropout import dropout_with_mask

from tests.minigrad.kernels.test_bodies import ROWS, SHAPES, Row, arguments, booleans, close

MORE = [
    *[Row(F.linear, f"{n} rows", lambda x, n=n: (x(n, 5), x(70, 5), x(70))) for n in (1, 700, 5000)],
    Row(F.linear, "views", lambda x: (x(4, 3, 2, 5).swapaxes(0, 2), x(5, 70).T, x(70))),
    Row(F.linear, "no rows", lambda x: (x(0, 5), x(3, 5), x(3))),
    *[Row(dropout_with_mask, f"{s}", lambda x, s=s: (x(*s), booleans(*s), 0.3)) for s in SHAPES],
]


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("row", [*ROWS, *MORE], ids=lambda row: f"{row.op.name} {row.name}")
def test_a_kernel_computes_what_the_definition_does(row, dtype):
    """Value, and gradients of all inputs at once and of each alone."""
    op, args = row.op, arguments(row, dtype)
    places = [i for i in op.positions if i < len(args) and args[i] is not None]

    def results(device, wanted):
        tensors = [Tensor(a, device=device, requires_grad=i in wanted) if i in op.positions and a is not None else a
                   for i, a in enumerate(args)]
        out = op(*tensors)
        start = np.random.default_rng(7).standard_normal((*out.shape, 2))[..., 0].astype(dtype)
        gradients = mg.grad(out, [tensors[i] for i in wanted], Tensor(start, device=device))
        return out._node, [x.numpy() for x in (out, *gradients)]

    for wanted in [places, *([i] for i in places if len(places) > 1)]:
        with np.errstate(invalid="ignore"), kernels.only_definitions():
            expected = results("cpu", wanted)[1]
        node, found = results("cuda", wanted)
        assert node.plan in op.bodies["cupy"].plans.values()
        for ours, theirs in zip(found, expected, strict=True):
            close(ours, theirs)
