"""However parameters are packed and cut into blocks, each is updated as if it were alone."""

import numpy as np
import pytest

from minigrad import Tensor, optim, parallel
from minigrad.device import to_numpy
from minigrad.optim import clip
from minigrad.optim.storage import packing

from tests.minigrad.optim.optimizers import every_optimizer, make_params, set_gradients

BLOCK, SMALL = packing.BLOCK, packing.SMALL_ON_HOST

MIXTURES = {
    "many small, more than one pack": [(SMALL,)] * 6 + [(7,)] * 5,
    "small between large": [(40, 300), (300,), (300, 40), (1,), (2, 2)],
    "blocks and a rest": [(2 * BLOCK + 3,), (5,)],
    "0-d and empty": [(), (0, 4), (3,)],
}


@pytest.fixture
def every_piece_is_worth_a_thread(monkeypatch):
    monkeypatch.setattr(packing, "WORTH_A_THREAD", packing.PIECE)
    monkeypatch.setattr(clip, "WORTH_A_THREAD", packing.PIECE)


def hand_over(gradients_of, params):
    for p, q in zip(gradients_of, params, strict=True):
        q.grad = Tensor(p.grad)


def check_same(params, others):
    for p, q in zip(params, others, strict=True):
        np.testing.assert_array_equal(p.data, q.data)


def adam_by_the_paper(p, gradients, lr, weight_decay):
    """Algorithm 1 with whole arrays and the correction written out; decoupled weight decay."""
    m = v = np.zeros_like(p)
    for t, g in enumerate(gradients, start=1):
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g * g
        p = p - lr * weight_decay * p
        p = p - lr * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
    return p


@pytest.mark.parametrize("shapes", MIXTURES.values(), ids=MIXTURES)
def test_adamw_is_the_papers_for_any_mixture_of_sizes(shapes, device):
    params = make_params(device, shapes, np.float64)
    start = [to_numpy(p.data).copy() for p in params]
    optimizer, gradients = optim.AdamW(params, lr=0.1, weight_decay=0.2), []
    for number in range(3):
        set_gradients(params, number)
        gradients.append([to_numpy(p.grad.data).copy() for p in params])
        optimizer.step()
    for i, p in enumerate(params):
        expected = adam_by_the_paper(start[i], [g[i] for g in gradients], 0.1, 0.2)
        np.testing.assert_allclose(to_numpy(p.data), expected, rtol=1e-12, atol=1e-13)


@every_optimizer
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_neither_packing_nor_the_order_of_memory_changes_a_bit(make, dtype):
    """Those that are updated alone are in Fortran order. All stay where they are, and gradients are only read."""
    shapes = [(6,), (100, 50), (200, 300), (3,)]
    together, alone = make_params("cpu", shapes, dtype), make_params("cpu", shapes, dtype)
    for p in alone:
        p.data = np.asfortranarray(p.data)
    memory = [p.data for p in (*together, *alone)]
    optimizers = [make(together), *[make([p]) for p in alone]]
    for number in range(4):
        set_gradients(together, number)
        hand_over(together, alone)
        for p in alone:
            p.grad.data = np.asfortranarray(p.grad.data)
        for p in (*together, *alone):
            p.grad.data.flags.writeable = False
        for optimizer in optimizers:
            optimizer.step()
    check_same(together, alone)
    assert all(p.data is array for p, array in zip((*together, *alone), memory, strict=True))


@every_optimizer
def test_parameters_without_gradient_stay_and_count_no_step(make):
    """One that joins late is updated as if it were new: its bias correction starts at its own first step."""
    params = make_params("cpu", [(4,), (4,), (4,)])
    late, before = params[1], params[1].data.copy()
    optimizer = make(params)
    for number in range(3):
        set_gradients(params, number)
        late.grad = None
        optimizer.step()
    np.testing.assert_array_equal(late.data, before)
    assert sorted(optimizer.state_dict()["state"]) == [0, 2]

    fresh = Tensor(before, requires_grad=True)
    newcomer = make([fresh])
    for number in range(2):
        set_gradients(params, number)
        hand_over([late], [fresh])
        optimizer.step()
        newcomer.step()
    check_same([late], [fresh])
    assert [entry["step"] for entry in optimizer.state_dict()["state"].values()] == [5, 2, 5]


def test_float16_is_updated_in_float32():
    """In float16 the square of 1e-4 is 0, and the step would be lr·m̂/ε. NumPy's numbers as options widen nothing."""
    p = Tensor(np.ones(3, np.float16), requires_grad=True)
    optimizer = optim.Adam([p], lr=np.float64(0.25))
    p.grad = Tensor(np.full(3, 1e-4, np.float16))
    optimizer.step()
    assert p.dtype == np.float16
    np.testing.assert_array_equal(p.data, np.full(3, 0.75, np.float16))
    assert optimizer.state_dict()["state"][0]["exp_avg_sq"].dtype == np.float32


def test_many_small_parameters_take_few_blocks():
    (pack,) = packing.make_packs([packing.Placement(0, "cpu", np.dtype("f4"), (64,), ("m",))] * 100)
    assert pack.members == list(range(100))


@every_optimizer
def test_threads_do_not_change_a_bit(make, every_piece_is_worth_a_thread):
    """They share large parameters, packs of small ones, arrays in Fortran order and of float16."""
    shapes = [(3 * packing.PIECE + 5,), (40,), (packing.PIECE, 2), (7, 9), (), (0, 3)]
    serial, shared = make_params("cpu", shapes), make_params("cpu", shapes)
    for params in (serial, shared):
        params[2].data = np.asfortranarray(params[2].data)
        params.append(Tensor(params[0].numpy()[: packing.PIECE], dtype=np.float16, requires_grad=True))
    optimizers = make(serial), make(shared)
    for number in range(2):
        set_gradients(serial, number)
        hand_over(serial, shared)
        serial[1].grad = shared[1].grad = None  # of a pack, one that has no gradient
        norms = [optim.clip_grad_norm_(serial, 1.0)]
        optimizers[0].step()
        with parallel.threads(3):
            norms.append(optim.clip_grad_norm_(shared, 1.0))
            optimizers[1].step()
        assert norms[0] == norms[1] > 1
    check_same(serial, shared)
    states = [optimizer.state_dict()["state"] for optimizer in optimizers]
    assert states[0].keys() == states[1].keys() == {0, 2, 3, 4, 5, 6}
    for i, entry in states[0].items():
        assert all(np.array_equal(entry[name], states[1][i][name]) for name in entry)
