"""Optimizers of all kinds, parameters, and gradients as a scaled loss gives them."""

import numpy as np
import pytest

from minigrad import GradScaler, Tensor, optim
from minigrad.device import to_numpy

from tests.minigrad.ops.row import function, lines

ALL = lines("""
    SGD(x, lr=0.1, weight_decay=0.01)
    SGD(x, lr=0.1, momentum=0.9)
    Adam(x, lr=0.1, weight_decay=0.01)
    AdamW(x, lr=0.1)
""")
every_optimizer = pytest.mark.parametrize("make", [function(call, vars(optim)) for call in ALL], ids=ALL)
SHAPES = [(3, 4), (4,), (), (90, 100)]


def make_params(device="cpu", shapes=SHAPES):
    draw = np.random.default_rng(0)
    return [Tensor(draw.standard_normal(s).astype(np.float32), device=device, requires_grad=True) for s in shapes]


def set_gradients(params, number, factor=1.0, spoil=None):
    """The gradients of update `number`, times a factor; `spoil`: a number that stands in one place of them."""
    draw = np.random.default_rng([7, number])
    for i, p in enumerate(params):
        values = draw.standard_normal(p.shape).astype(p.dtype) * p.dtype.type(factor)
        if spoil is not None and i == 3:
            values[5, 5] = spoil
        p.grad = Tensor(values, device=p.device)


def bits(params, optimizer):
    """All that an update may change, in bytes."""
    state = optimizer.state_dict()["state"]
    arrays = [to_numpy(p.data) for p in params]
    arrays += [np.asarray(value) for entry in state.values() for value in entry.values()]
    return [(a.dtype, a.shape, a.tobytes()) for a in arrays]


def run(make, device, overflows=(), steps=5, clip=False, inf=np.inf):
    """Updates with scaled gradients; those before which an update in `overflows` stands meet one that is skipped."""
    params = make_params(device)
    optimizer, scaler = make(params), GradScaler()
    for number in range(steps):
        for spoil in [inf] * overflows.count(number) + [None]:
            set_gradients(params, number, scaler.get_scale(), spoil)
            if clip:
                scaler.unscale_(optimizer)
                optim.clip_grad_norm_(params, 1.0)
            scaler.step(optimizer)
            scaler.update()
    return params, optimizer, scaler
