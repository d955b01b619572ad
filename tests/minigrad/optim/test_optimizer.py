"""What every optimizer promises: groups, errors, the step, state in and out, and following the parameters."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest

from minigrad import Tensor, nn, optim, parallel
from minigrad.device import to_numpy

from tests.minigrad.optim.optimizers import bits, every_optimizer, make_params, set_gradients


def tensor(*shape, seed=0):
    return Tensor(np.random.default_rng(seed).normal(size=shape), requires_grad=True)


def train(optimizer, params, steps, start=0):
    """Steps on gradients that depend on the step's number and on the parameter."""
    for t in range(start, start + steps):
        for i, p in enumerate(params):
            draw = np.random.default_rng([t, i]).normal(size=p.shape)
            p.grad = Tensor((draw + 0.1 * to_numpy(p.data)).astype(p.dtype), device=p.device)
        optimizer.step()


# --- groups ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [np.float32, np.longdouble, np.asarray, Tensor, Fraction])
def test_a_state_fits_json_whatever_numbers_the_options_were_set_to(form):
    """At the constructor, in a loaded state, or later."""
    given = {"lr": form(0.25), "betas": (form(0.5), form(0.75)), "eps": form(0.125), "weight_decay": form(0.5)}
    made, loaded, changed = optim.AdamW([tensor(0)], **given), optim.AdamW([tensor(0)]), optim.AdamW([tensor(0)])
    loaded.load_state_dict({"state": {}, "param_groups": [{"params": [0], **given}]})
    changed.param_groups[0].update(given)
    expected = {"lr": 0.25, "betas": [0.5, 0.75], "eps": 0.125, "weight_decay": 0.5, "params": [0]}
    for optimizer in (made, loaded, changed):
        assert json.loads(json.dumps(optimizer.state_dict()["param_groups"])) == [expected]
    assert {type(options["lr"]) for options in (made.defaults, made.param_groups[0], loaded.param_groups[0])} == {float}


def test_a_wrong_option_is_found_by_the_step_at_the_latest():
    for name, value, error in (("lr", math.nan, ValueError), ("eps", "x", TypeError), ("learning_rate", 1, ValueError)):
        p = tensor(2)
        optimizer, before = optim.Adam([p]), p.numpy().copy()
        p.grad = Tensor(np.ones(2))
        optimizer.param_groups[0][name] = value
        with pytest.raises(error, match=name):
            optimizer.step()
        np.testing.assert_array_equal(p.numpy(), before)


def test_a_group_may_join_later_and_one_that_is_refused_changes_nothing():
    a, b, alone = tensor(2), tensor(2), tensor(2)
    optimizer, other = optim.Adam([a], lr=0.1), optim.Adam([alone], lr=0.2)
    train(optimizer, [a], 2)
    with pytest.raises(ValueError, match="twice"):
        optimizer.add_param_group({"params": [tensor(2), a]})
    optimizer.add_param_group({"params": [b], "lr": 0.2})
    a.grad = None
    train(optimizer, [b], 2)
    train(other, [alone], 2)
    assert b.tolist() == alone.tolist()
    assert [entry["step"] for entry in optimizer.state_dict()["state"].values()] == [2, 2]


def test_a_state_belongs_to_the_numbers_in_its_groups():
    """As in PyTorch, whatever the order of the groups was."""
    first, second = optim.SGD([tensor(1), tensor(1)], momentum=0.9), optim.SGD([tensor(1), tensor(1)], momentum=0.9)
    train(first, list(first.state), 1)
    state = first.state_dict()
    state["param_groups"][0]["params"].reverse()
    second.load_state_dict(state)
    found, given = ([entry["momentum_buffer"].item() for entry in optimizer.state_dict()["state"].values()]
                    for optimizer in (second, first))
    assert found == given[::-1] != given


class Other(optim.Adam):
    """Adam with one more option, in another order."""

    def __init__(self, params):
        optim.Optimizer.__init__(self, params, {
            "more": 0.5, "eps": 1e-8, "weight_decay": 0.01, "betas": (0.9, 0.999), "lr": 0.1})


def test_a_subclass_may_have_options_of_its_own():
    optimizers = [Other(make_params()), optim.Adam(make_params(), lr=0.1, weight_decay=0.01)]
    for optimizer in optimizers:
        train(optimizer, list(optimizer.state), 2)
    found, expected = (bits(list(optimizer.state), optimizer) for optimizer in optimizers)
    assert found == expected


# --- the step --------------------------------------------------------------------------------------------------


@every_optimizer
def test_neither_blocks_nor_threads_change_a_bit(make, monkeypatch):
    """Threads share blocks of large parameters, small ones, arrays in Fortran order and of float16."""
    def trained(threads, order):
        params = make_params(shapes=[(35,), (4, 9), (5, 4), (), (0, 3)])
        params[1].data = np.asarray(params[1].data, order=order)
        params.append(Tensor(params[0], dtype=np.float16, requires_grad=True))
        optimizer = make(params)
        for number in range(3):
            set_gradients(params, number)
            params[2].grad = None
            with parallel.threads(threads):
                optimizer.step()
        return bits(params, optimizer)

    whole = trained(1, "C")
    for name, size in (("BLOCK", 8), ("WORTH_A_THREAD", 16)):
        monkeypatch.setattr(f"minigrad.optim.optimizer.{name}", size)
    assert trained(1, "F") == trained(3, "F") == whole


@every_optimizer
def test_the_step_is_in_place_and_counted_as_a_change(make):
    p = tensor(3)
    memory, loss = p.data, (p * p).sum()
    loss.backward(retain_graph=True)
    make([p]).step()
    assert p.data is memory
    with pytest.raises(RuntimeError, match="changed in place"):
        loss.backward()


# --- state ------------------------------------------------------------------------------------------------------


@every_optimizer
def test_a_resumed_run_is_bit_identical(make, device):
    """With positions and options as JSON leaves them; a state is a snapshot, which later steps do not change."""
    params = make_params(device)
    optimizer = make(params)
    train(optimizer, params, 3)
    optimizer.param_groups[0]["lr"] = 0.05
    copies = [Tensor(p, device=device, requires_grad=True) for p in params]
    state = optimizer.state_dict()
    train(optimizer, params, 3, start=3)
    resumed = make(copies)
    resumed.load_state_dict({"state": {str(i): entry for i, entry in state["state"].items()},
                             "param_groups": json.loads(json.dumps(state["param_groups"]))})
    assert resumed.param_groups[0]["lr"] == 0.05
    train(resumed, copies, 3, start=3)
    for p, q in zip(params, copies, strict=True):
        np.testing.assert_array_equal(to_numpy(p.data), to_numpy(q.data))


def trained():
    params = [tensor(3), tensor(2, 2)]
    optimizer = optim.Adam(params, lr=0.1)
    train(optimizer, params, 2)
    return optimizer


DAMAGE = """
    'param_groups': state.pop("param_groups")
    'NoneType': state.update(state=None)
    exp_avg: entries[0].update(exp_avg=np.array(["a"] * 3))
    step: entries[0].update(step=1.5)
    step: entries[0].update(step=-1)
    lr: group.update(lr="x")
    numbers of parameters: group["params"].pop()
    there is no 'exp_avg': entries[0].update(momentum_buffer=entries[0].pop("exp_avg"))
    exp_avg_sq of parameter 1: entries[1].update(exp_avg_sq=np.ones(4))
    optimizer: entries.update({2: entries[0]})
    momentum: group.update(momentum=0.9)
"""


@pytest.mark.parametrize("line", DAMAGE.strip().splitlines())
def test_a_state_that_does_not_fit_changes_nothing(line):
    """What the error names, and what is done to a state."""
    named, _, change = line.strip().partition(": ")
    optimizer, state = trained(), trained().state_dict()
    before = optimizer.state_dict()
    eval(change, {"state": state, "entries": state["state"], "group": state["param_groups"][0],  # noqa: S307
                  "np": np, "math": math})
    with pytest.raises(ValueError, match=f"load_state_dict: .*{named}"):
        optimizer.load_state_dict(state)
    after = optimizer.state_dict()
    assert after["param_groups"] == before["param_groups"]
    for i, entry in before["state"].items():
        for name, value in entry.items():
            np.testing.assert_array_equal(after["state"][i][name], value)


# --- following the parameters ---------------------------------------------------------------------------------------


@every_optimizer
def test_the_model_moves_after_the_optimizer_was_built(make, stand_in):
    """Parameters keep their identity and the state goes along: the run is as if it had never moved."""

    def run(devices):
        model = nn.Linear(3, 2)
        for p in model.parameters():
            p.copy_(np.linspace(-1, 1, p.size, dtype=np.float32).reshape(p.shape))
        params = list(model.parameters())
        optimizer = make(params)
        for t, device in enumerate(devices):
            model.to(device)
            train(optimizer, params, 1, start=t)
            assert all(p.device == device for p in params)
        model.to(dtype=np.float64)
        train(optimizer, params, 1, start=len(devices))
        for entry in optimizer.state_dict()["state"].values():
            assert {entry[name].dtype for name in entry.keys() - {"step"}} <= {np.dtype("f8")}  # it follows the dtype
        return [to_numpy(p.data) for p in params]

    stayed, moved = run(["cpu"] * 4), run(["cpu", "cuda:0", "cuda:1", "cpu"])
    for a, b in zip(stayed, moved, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_parameter_or_a_gradient_that_changed_shape_is_named():
    p = tensor(2, 3)
    optimizer = optim.Adam([p])
    p.grad = Tensor(np.ones((2, 3)))
    p.grad.data = np.ones((3, 2))
    with pytest.raises(ValueError, match=r"parameter 0 .*\(2, 3\).*\(3, 2\)"):
        optimizer.step()
    train(optimizer, [p], 1)
    p.data = np.zeros(4)
    p.grad = Tensor(np.zeros(4))
    with pytest.raises(ValueError, match=r"parameter 0 .*\(4,\) .* exp_avg .*\(2, 3\)"):
        optimizer.step()
