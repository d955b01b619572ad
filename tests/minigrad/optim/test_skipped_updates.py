"""An update that is skipped leaves no trace: not in a parameter, not in the optimizer, not in what follows."""

import numpy as np
import pytest

from minigrad import Tensor, optim
from minigrad.device import asarray_on, to_numpy

from tests.minigrad.optim.optimizers import bits, every_optimizer, make_params, run, set_gradients


@every_optimizer
@pytest.mark.parametrize(("overflows", "spoil"), [((), None), ((0,), -np.inf), ((0, 0, 3), np.nan), ((2,), np.inf)])
@pytest.mark.parametrize("clip", [False, True])
def test_a_run_with_overflows_goes_on_as_if_they_had_not_been(make, overflows, spoil, clip, device):
    """It is the run without a scaler, bit for bit: the first momentum, Adam's corrections by the number of updates."""
    params, optimizer, scaler = run(make, device, overflows, clip=clip, inf=spoil)
    assert scaler.get_scale() == 65536.0 / 2 ** len(overflows)
    plain = make_params(device)
    alone = make(plain)
    for number in range(5):
        set_gradients(plain, number)
        if clip:
            optim.clip_grad_norm_(plain, 1.0)
        alone.step()
    assert bits(params, optimizer) == bits(plain, alone)


def test_counts_of_parameters_that_are_not_always_there(device):
    """Each counts its own updates: what was skipped, or had no gradient, is none."""
    (a, b, *_), (c, d, *_) = make_params(device), make_params(device)
    scaled, plain, scaler = optim.Adam([a, b], lr=0.1), optim.Adam([c, d], lr=0.1), optim.GradScaler()
    infinite, both_there = [False, True, False, True, False], [False, True, True, False, True]
    for number, (overflow, both) in enumerate(zip(infinite, both_there, strict=True)):
        set_gradients([a, b], number, scaler.get_scale())
        set_gradients([c, d], number)
        if not both:
            b.grad = d.grad = None
        if overflow:
            a.grad = a.grad * np.inf
        scaler.step(scaled)
        scaler.update()
        if not overflow:
            plain.step()
    assert [entry["step"] for entry in scaled.state_dict()["state"].values()] == [3, 2]
    assert bits([a, b], scaled) == bits([c, d], plain)


@every_optimizer
def test_nothing_waits_for_a_gpu(make, stand_in):
    params, scaler = make_params("cuda"), optim.GradScaler(growth_interval=2)
    optimizer = make(params)
    for number in range(6):
        set_gradients(params, number, 65536.0, np.inf if number == 2 else None)
        scaler.scale((params[0] * params[1]).sum())
        scaler.unscale_(optimizer)
        optim.clip_grad_norm_(params, 1.0)
        scaler.step(optimizer)
        scaler.update()
    assert not stand_in.synchronizations
    assert (scaler.factor.shape, scaler.factor.dtype) == ((), np.float32)
    assert scaler.get_scale() == 65536.0 * 2 / 2 * 2
    assert [entry["step"] for entry in optimizer.state_dict()["state"].values()] == [5] * 4


# --- Devices


def test_parameters_on_two_gpus(stand_in):
    """One optimizer, one decision: what overflows on one of them is skipped on both."""
    a, b = make_params("cuda:0")[0], make_params("cuda:1")[1]
    optimizer, scaler = optim.Adam([a, b], lr=0.1), optim.GradScaler()
    for spoil in (None, np.inf, None):
        before = to_numpy(a.data).copy(), to_numpy(b.data).copy()
        set_gradients([a, b], 0, scaler.get_scale())
        if spoil is not None:
            b.grad = b.grad * spoil
        stand_in.synchronizations.clear()
        scaler.step(optimizer)
        scaler.update()
        assert not stand_in.synchronizations
        for p, old in zip((a, b), before, strict=True):
            assert np.array_equal(to_numpy(p.data), old) == (spoil is not None)
    assert scaler.get_scale() == 32768.0
    assert scaler.scale(b.sum()).device == "cuda:1"


def test_a_model_that_moves(stand_in):
    """To a GPU and back: the scale, the counts and the state go along."""
    params, plain = make_params("cpu"), make_params("cpu")
    optimizer, alone = optim.Adam(params, lr=0.1), optim.Adam(plain, lr=0.1)
    scaler = optim.GradScaler(growth_interval=4)
    for number, device in enumerate(["cpu", "cuda:0", "cuda:0", "cuda:1", "cpu"]):
        for p in params:
            p.data = Tensor(p.data).to(device).data
        set_gradients(params, number, scaler.get_scale())
        set_gradients(plain, number)
        scaler.step(optimizer)
        scaler.update()
        alone.step()
    assert bits(params, optimizer) == bits(plain, alone)
    assert scaler.get_scale() == 131072.0


def test_host_and_gpu_in_one_optimizer_are_refused(stand_in):
    a, b = make_params("cpu")[0], make_params("cuda")[1]
    set_gradients([a, b], 0)
    with pytest.raises(ValueError, match="cpu, cuda:0"):
        optim.GradScaler().step(optim.SGD([a, b], lr=0.1))
    flag = stand_in.cupy.zeros((), dtype=bool)
    with pytest.raises(ValueError, match=r"cuda:0 .* cpu"):
        optim.SGD([a, b], lr=0.1).step(skip=flag)


# --- Optimizer.step(skip)


@every_optimizer
def test_skip_of_a_step(make, device):
    params = make_params(device)
    optimizer = make(params)
    set_gradients(params, 0)
    before = bits(params, optimizer)
    for flag in (True, np.True_, np.array(True), *([] if device == "cpu" else [asarray_on(device, True)])):
        optimizer.step(skip=flag)
        assert bits(params, optimizer) == before
    for flag in (None, False, np.array(False)):
        optimizer.step(skip=flag)
        assert bits(params, optimizer) != before
        before = bits(params, optimizer)


@pytest.mark.parametrize("skip", [1, np.array([True]), np.array(1.0)], ids=str)
def test_skip_is_one_bool(skip):
    with pytest.raises(TypeError, match=r"SGD\.step: skip must be a bool"):
        optim.SGD(make_params(), lr=0.1).step(skip=skip)
