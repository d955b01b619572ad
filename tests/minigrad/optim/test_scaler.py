"""GradScaler: small gradients survive; its scale, its state, what it refuses; a skipped update leaves no trace."""

import json

import numpy as np
import pytest

from minigrad import DeviceError, GradScaler, Tensor, optim

from tests.minigrad.optim.optimizers import bits, every_optimizer, make_params, run, set_gradients

# --- The scale


def scales(scaler, infinite, gpu):
    """The scale after each update; `infinite` says which of them overflow."""
    p = Tensor(np.zeros(2, np.float32), device=gpu, requires_grad=True)
    optimizer, found = optim.SGD([p], lr=0.1), []
    for overflow in infinite:
        p.grad = Tensor(np.array([1.0, np.inf if overflow else 1.0], np.float32), device=gpu)
        scaler.step(optimizer)
        scaler.update()
        found.append(scaler.get_scale())
    return found


@pytest.fixture
def interval(monkeypatch):
    return lambda length: monkeypatch.setattr("minigrad.precision.INTERVAL", length)


def test_it_grows_after_an_interval_and_backs_off(gpu, interval):
    """Also after its state went through JSON, in the middle of an interval."""
    interval(3)
    infinite = [False, False, True, False, False, False, False, True, True, False, False, False]
    scaler, again = GradScaler(16.0), GradScaler()
    found = scales(scaler, infinite[:5], gpu)
    again.load_state_dict(json.loads(json.dumps(scaler.state_dict())))
    assert again.state_dict() == {"scale": 8.0, "_growth_tracker": 2}
    assert found + scales(again, infinite[5:], gpu) == [16, 16, 8, 8, 8, 16, 16, 8, 4, 4, 4, 8]
    # It stays what float32 can hold.
    interval(1)
    assert scales(GradScaler(2.0**126), [False] * 3, gpu) == [2.0**127] * 3
    assert scales(GradScaler(2.0**-125), [True] * 3, gpu) == [2.0**-126] * 3


# --- Mistakes


@pytest.mark.parametrize("calls", ["update", "set unscale unscale", "set step step", "set step update step step"])
def test_calls_in_the_wrong_order(calls, gpu):
    params = make_params(gpu)
    optimizer, scaler = optim.SGD(params, lr=0.1), GradScaler()
    known = {"unscale": lambda: scaler.unscale_(optimizer), "step": lambda: scaler.step(optimizer),
             "update": scaler.update, "set": lambda: set_gradients(params, 0)}
    *right, wrong = [known[name] for name in calls.split()]
    for call in right:
        call()
    with pytest.raises(RuntimeError, match=r"\(\)|already"):
        wrong()


def test_parameters_stay_in_float32(gpu):
    p = Tensor(np.ones(3, np.float16), device=gpu, requires_grad=True)
    p.sum().backward()
    with pytest.raises(ValueError, match="keep the parameters in float32"):
        GradScaler().unscale_(optim.SGD([p], lr=0.1))


def test_the_host_has_no_mixed_precision():
    (a, b, *_) = make_params("cpu")
    for call in (lambda scaler: scaler.scale(a.sum()), lambda scaler: scaler.step(optim.SGD([a, b], lr=0.1))):
        set_gradients([a, b], 0)
        with pytest.raises(DeviceError, match=r"^GradScaler.*: mixed precision needs a GPU; "):
            call(GradScaler())


# --- An update that is skipped leaves no trace


@every_optimizer
@pytest.mark.parametrize(("overflows", "spoil"), [((), None), ((0,), -np.inf), ((0, 0, 3), np.nan), ((2,), np.inf)])
@pytest.mark.parametrize("clip", [False, True])
def test_a_run_with_overflows_goes_on_as_if_they_had_not_been(make, overflows, spoil, clip, gpu):
    """It is the run without a scaler, bit for bit: the first momentum, Adam's corrections by the number of updates."""
    params, optimizer, scaler = run(make, gpu, overflows, clip=clip, inf=spoil)
    assert scaler.get_scale() == 65536.0 / 2 ** len(overflows)
    plain = make_params(gpu)
    alone = make(plain)
    for number in range(5):
        set_gradients(plain, number)
        if clip:
            optim.clip_grad_norm_(plain, 1.0)
        alone.step()
    assert bits(params, optimizer) == bits(plain, alone)


@every_optimizer
def test_an_update_waits_once_for_a_gpu(make, stand_in, interval):
    interval(2)
    params, scaler = make_params("cuda"), GradScaler()
    optimizer = make(params)
    for number in range(6):
        set_gradients(params, number, 65536.0, np.inf if number == 2 else None)
        scaler.scale((params[0] * params[1]).sum())
        scaler.unscale_(optimizer)
        optim.clip_grad_norm_(params, 1.0)
        scaler.step(optimizer)
        scaler.update()
    assert sum(stand_in.synchronizations.values()) == 6
    assert scaler.get_scale() == 65536.0 * 2 / 2 * 2
    assert [entry["step"] for entry in optimizer.state_dict()["state"].values()] == [5] * 4
