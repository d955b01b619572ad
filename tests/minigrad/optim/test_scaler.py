"""GradScaler: gradients too small for float16 survive; its scale, its state, its devices and what it refuses."""

import json
import re

import numpy as np
import pytest

from minigrad import Tensor, autocast, optim
from minigrad import functional as F
from minigrad.device import to_numpy

from tests.minigrad.optim.optimizers import ALL, bits, make_params, run, set_gradients


def test_a_gradient_too_small_for_float16_survives_scaled_and_vanishes_otherwise(device):
    x, w = (Tensor(np.full((1, 4), 1e-4, np.float32), device=device, requires_grad=True) for _ in range(2))
    scaler = optim.GradScaler(50_000.0)

    def loss():
        with autocast():
            return (F.linear(x, w).astype(np.float32) * 1e-4).sum()  # d/dx = 1e-4 · 1e-4 = 1e-8

    loss().backward()
    np.testing.assert_array_equal(to_numpy(x.grad.data), 0)
    x.grad = w.grad = None
    scaler.scale(loss()).backward()
    scaler.unscale_(optim.SGD([x, w], lr=0.0))
    np.testing.assert_allclose(to_numpy(x.grad.data), 1e-8, rtol=2e-3)
    assert x.grad.dtype == np.float32


def test_an_overflow_of_float16_is_found_skipped_and_recovered_from(device):
    """A scale of 2³⁰ makes gradients infinite; it is halved until they are not, and the weights change then only."""
    x = Tensor(np.ones((2, 3), np.float32), device=device)
    w = Tensor(np.ones((4, 3), np.float32), device=device, requires_grad=True)
    optimizer, scaler, scales = optim.Adam([w], lr=0.1), optim.GradScaler(2.0**30), []
    before = to_numpy(w.data).copy()
    while not optimizer.state_dict()["state"]:
        np.testing.assert_array_equal(to_numpy(w.data), before)
        scales.append(scaler.get_scale())
        optimizer.zero_grad()
        with autocast():
            loss = F.linear(x, w).sum().astype(np.float32)
        scaler.scale(loss).backward()  # without a warning of NumPy's, which would be an error here
        scaler.step(optimizer)
        scaler.update()
    # The gradient of a weight is the sum of two that are as large as the scale, and float16 holds 2¹⁵, not 2¹⁶.
    assert scales == [2.0**power for power in range(30, 13, -1)]
    assert scaler.get_scale() == 2.0**14
    assert np.abs(to_numpy(w.data) - before).min() > 0.09


# --- The scale


def scales(scaler, infinite, device):
    """The scale after each update; `infinite` says which of them overflow."""
    p = Tensor(np.zeros(2, np.float32), device=device, requires_grad=True)
    optimizer, found = optim.SGD([p], lr=0.1), []
    for overflow in infinite:
        p.grad = Tensor(np.array([1.0, np.inf if overflow else 1.0], np.float32), device=device)
        scaler.step(optimizer)
        scaler.update()
        found.append(scaler.get_scale())
    return found


def test_it_grows_after_an_interval_and_backs_off(device):
    scaler = optim.GradScaler(16.0, growth_factor=4.0, backoff_factor=0.25, growth_interval=3)
    infinite = [False, False, True, False, False, False, False, True, True, False, False, False]
    assert scales(scaler, infinite, device) == [16, 16, 4, 4, 4, 16, 16, 4, 1, 1, 1, 4]
    # It stays what float32 can hold.
    assert scales(optim.GradScaler(2.0**126, growth_interval=1), [False] * 3, device) == [2.0**127] * 3
    assert scales(optim.GradScaler(2.0**-125), [True] * 3, device) == [2.0**-126] * 3


def test_state_goes_round(device):
    """Through JSON, in the middle of an interval, to a run that goes on bit for bit."""
    *_, scaler = run(ALL["Adam"], device, overflows=(1,), steps=5, scaler=optim.GradScaler(2.0**10, 4.0, 0.25, 3))
    saved = json.loads(json.dumps(scaler.state_dict()))
    assert saved == {"scale": 2.0**10 * 0.25 * 4, "growth_factor": 4.0, "backoff_factor": 0.25, "growth_interval": 3,
                     "_growth_tracker": 1}
    restored = optim.GradScaler()
    restored.load_state_dict(saved)
    assert restored.state_dict() == saved
    infinite = [False, False, True, False, False, False]
    assert scales(restored, infinite, device) == scales(scaler, infinite, device)


def test_several_optimizers_share_a_scale(device):
    (a, b, *_) = make_params(device)
    first, second, scaler = optim.SGD([a], lr=0.1), optim.SGD([b], lr=0.1), optim.GradScaler()
    before = to_numpy(a.data).copy(), to_numpy(b.data).copy()
    set_gradients([a, b], 0, 65536.0)
    a.grad = a.grad * np.inf
    with np.errstate(invalid="ignore"):
        scaler.step(first)
        scaler.step(second)
    scaler.update()
    np.testing.assert_array_equal(to_numpy(a.data), before[0])
    assert not np.array_equal(to_numpy(b.data), before[1])
    assert scaler.get_scale() == 32768.0


def test_not_enabled_it_does_nothing(device):
    params, plain = make_params(device), make_params(device)
    optimizer, alone, scaler = optim.Adam(params), optim.Adam(plain), optim.GradScaler(enabled=False)
    loss = params[0].sum()
    assert scaler.scale(loss) is loss
    for number in range(2):
        set_gradients(params, number)
        set_gradients(plain, number)
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        alone.step()
    assert bits(params, optimizer) == bits(plain, alone)
    assert (scaler.is_enabled(), scaler.get_scale(), scaler.factor, scaler.found_inf) == (False, 1.0, 1.0, False)
    assert scaler.state_dict() == {}
    scaler.load_state_dict({})


def test_what_is_scaled(device):
    loss = Tensor(np.array(2.0, np.float16), device=device, requires_grad=True)
    scaled = optim.GradScaler(2.0**20).scale(loss)
    assert (scaled.item(), scaled.dtype) == (2.0**21, np.float32)
    (a, b, *_) = make_params(device)
    both = optim.GradScaler(8.0).scale([a.sum(), b.sum()])
    assert type(both) is list
    assert [t.item() for t in both] == [8 * a.sum().item(), 8 * b.sum().item()]
    assert type(optim.GradScaler().scale((a,))) is tuple
    with pytest.raises(TypeError, match="got float"):
        optim.GradScaler().scale(1.0)


# --- Mistakes


def test_calls_in_the_wrong_order():
    params = make_params("cpu")
    optimizer, scaler = optim.SGD(params, lr=0.1), optim.GradScaler()
    with pytest.raises(RuntimeError, match=r"update: .*step\(optimizer\)"):
        scaler.update()
    with pytest.raises(RuntimeError, match=r"gradient; call .*backward\(\)"):
        scaler.step(optimizer)
    set_gradients(params, 0)
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="gradients are unscaled already"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match=r"step: .*update\(\)"):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match=r"unscale_: step\(\)"):
        scaler.unscale_(optimizer)
    scaler.update()
    scaler.step(optimizer)
    p = Tensor(np.ones(3, np.float16), requires_grad=True)
    p.sum().backward()
    with pytest.raises(ValueError, match="keep the parameters in float32"):
        scaler.unscale_(optim.SGD([p], lr=0.1))


@pytest.mark.parametrize(("options", "error"), [
    ({"init_scale": 0.0}, ValueError), ({"init_scale": 1e39}, ValueError), ({"init_scale": float("nan")}, ValueError),
    ({"init_scale": "cuda"}, TypeError), ({"init_scale": True}, TypeError), ({"growth_factor": 1.0}, ValueError),
    ({"backoff_factor": 1.0}, ValueError), ({"backoff_factor": 0.0}, ValueError), ({"growth_interval": 0}, ValueError),
])
def test_factors_out_of_range(options, error):
    ((name, value),) = options.items()
    with pytest.raises(error, match=f"{name.removeprefix('init_')} must be .* got {re.escape(repr(value))}"):
        optim.GradScaler(**options)
    assert optim.GradScaler(np.float32(4.0)).get_scale() == 4.0


def test_a_state_that_is_none_changes_nothing():
    scaler, before = optim.GradScaler(), optim.GradScaler().state_dict()
    for state in ({}, [], {**before, "more": 1}, {**before, "scale": 4.0, "growth_factor": 0.5}):
        with pytest.raises(ValueError, match="growth_factor"):
            scaler.load_state_dict(state)
        assert scaler.state_dict() == before
