"""What every optimizer promises: groups, errors, state in and out, and following the parameters."""

import json

import numpy as np
import pytest

from minigrad import Tensor, nn, optim
from minigrad.checkpoint import load_tensors, save_tensors
from minigrad.device import to_numpy

ALL = {
    "SGD": lambda params: optim.SGD(params, lr=0.1, momentum=0.9),
    "Adam": lambda params: optim.Adam(params, lr=0.1),
    "AdamW": lambda params: optim.AdamW(params, lr=0.1),
}
every_optimizer = pytest.mark.parametrize("make", ALL.values(), ids=ALL)


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


def test_options_of_a_group_replace_the_defaults():
    a, b = tensor(2), tensor(3)
    before = a.data.copy(), b.data.copy()
    optimizer = optim.SGD([{"params": [a]}, {"params": b, "lr": 0.5}], lr=0.25)
    a.grad, b.grad = Tensor(np.ones(2)), Tensor(np.ones(3))
    optimizer.step()
    np.testing.assert_array_equal(a.data, before[0] - 0.25)
    np.testing.assert_array_equal(b.data, before[1] - 0.5)


def test_a_group_may_join_later():
    a, b = tensor(2), tensor(3)
    grown, whole = optim.Adam([a], lr=0.1), [tensor(2), tensor(3)]
    train(grown, [a], 2)
    grown.add_param_group({"params": [b], "lr": 0.2})
    train(grown, [a, b], 2, start=2)

    first, second = optim.Adam([whole[0]], lr=0.1), optim.Adam([whole[1]], lr=0.2)
    train(first, whole[:1], 4)
    for t in (2, 3):
        whole[1].grad = Tensor(np.random.default_rng([t, 1]).normal(size=3) + 0.1 * whole[1].data)
        second.step()
    np.testing.assert_array_equal(a.data, whole[0].data)
    np.testing.assert_array_equal(b.data, whole[1].data)


def test_options_are_read_at_each_step():
    p = tensor(3)
    before = p.data.copy()
    optimizer = optim.SGD([p], lr=1.0)
    optimizer.param_groups[0]["lr"] = 0.0
    p.grad = Tensor(np.ones(3))
    optimizer.step()
    np.testing.assert_array_equal(p.data, before)


def test_repr_tells_sizes_and_options():
    text = repr(optim.AdamW([{"params": [tensor(2, 3), tensor(3)]}, {"params": [tensor(1)], "weight_decay": 0.0}]))
    assert text.splitlines() == [
        "AdamW (",
        "  (0): 2 tensors, 9 parameters, lr=0.001, betas=(0.9, 0.999), eps=1e-08, weight_decay=0.01",
        "  (1): 1 tensors, 1 parameters, lr=0.001, betas=(0.9, 0.999), eps=1e-08, weight_decay=0.0",
        ")",
    ]


shared = tensor(2)
product = tensor(2) * 2.0

MISTAKES = {
    "nothing": ([], {}, ValueError, "empty parameter list"),
    "an empty group": ([{"params": []}], {}, ValueError, "empty parameter list in group 0"),
    "one tensor": (tensor(2), {}, TypeError, "pass it in a list"),
    "one group": ({"params": [tensor(2)]}, {}, TypeError, "pass it in a list"),
    "an array": ([np.ones(2)], {}, TypeError, "parameter 0 must be a Tensor, got ndarray"),
    "twice in a group": ([shared, tensor(1), shared], {}, ValueError, "parameter 2 .* given twice"),
    "in two groups": ([{"params": [shared]}, {"params": [shared]}], {}, ValueError, "parameter 1 .* given twice"),
    "no leaf": ([product], {}, ValueError, "result of an operation"),
    "a group without params": ([{"lr": 1.0}], {}, ValueError, "needs the key 'params'"),
    "a misspelt option": ([{"params": [tensor(2)], "weight_decy": 0}], {}, ValueError, "unknown option weight_decy"),
    "lr": ([tensor(2)], {"lr": -0.1}, ValueError, r"lr must be at least 0, got -0\.1"),
    "lr of a group": ([{"params": [tensor(2)], "lr": -2}], {}, ValueError, "lr must be at least 0, got -2"),
    "weight_decay": ([tensor(2)], {"weight_decay": -1}, ValueError, "weight_decay must be at least 0"),
}


@every_optimizer
@pytest.mark.parametrize(("params", "options", "error", "message"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_are_named(make, params, options, error, message):
    kind = type(make([tensor(1)]))
    with pytest.raises(error, match=message):
        kind(params, **options)


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (optim.SGD, {"momentum": -1}, "momentum must be at least 0"),
        (optim.SGD, {"nesterov": True}, "nesterov needs momentum > 0"),
        (optim.SGD, {"nesterov": True, "momentum": 0.9, "dampening": 0.1}, "dampening = 0"),
        (optim.Adam, {"betas": (1.0, 0.9)}, "betas must be two numbers"),
        (optim.Adam, {"betas": (0.9, -0.1)}, "betas must be two numbers"),
        (optim.Adam, {"betas": (0.9,)}, "betas must be two numbers"),
        (optim.AdamW, {"eps": -1e-8}, "eps must be at least 0"),
    ],
)
def test_options_out_of_range_are_named(kind, options, message):
    with pytest.raises(ValueError, match=f"{kind.__name__}: .*{message}"):
        kind([tensor(2)], **options)


def test_a_failed_group_changes_nothing():
    optimizer = optim.SGD([shared], lr=0.1)
    with pytest.raises(ValueError, match="given twice"):
        optimizer.add_param_group({"params": [tensor(2), shared]})
    assert len(optimizer.param_groups) == 1
    train(optimizer, [shared], 1)
    assert list(optimizer.state_dict()["state"]) == [0]


def test_a_gradient_of_another_shape_is_refused():
    p = tensor(2, 3)
    p.grad = Tensor(np.ones((2, 3)))
    p.grad.data = np.ones((3, 2))
    with pytest.raises(ValueError, match=r"parameter 0 has shape \(2, 3\), its gradient \(3, 2\)"):
        optim.Adam([p]).step()


# --- the step in its surroundings --------------------------------------------------------------------------------


@every_optimizer
def test_the_step_is_in_place_and_counted_as_a_change(make):
    p = tensor(3)
    memory, loss = p.data, (p * p).sum()
    loss.backward(retain_graph=True)
    make([p]).step()
    assert p.data is memory
    with pytest.raises(RuntimeError, match="changed in place"):
        loss.backward()


def test_zero_grad_sets_none():
    a, b = tensor(3), tensor(3)
    optimizer = optim.SGD([{"params": [a]}, {"params": [b]}])
    a.grad = b.grad = Tensor(np.ones(3))
    optimizer.zero_grad()
    assert a.grad is None
    assert b.grad is None


@every_optimizer
def test_it_finds_a_minimum(make):
    target = np.array([1.0, -2.0, 3.0])
    p = Tensor(np.zeros(3), requires_grad=True)
    optimizer = make([p])
    for _ in range(500):
        optimizer.zero_grad()
        ((p - target) ** 2).sum().backward()
        optimizer.step()
    np.testing.assert_allclose(p.data, target, atol=0.02)


# --- state ------------------------------------------------------------------------------------------------------


def through_files(state, folder):
    """As a checkpoint does it: arrays to safetensors, the rest to JSON, and back."""
    arrays = {f"{i}.{name}": value for i, entry in state["state"].items() for name, value in entry.items()
              if isinstance(value, np.ndarray)}  # fmt: skip
    steps = {i: entry["step"] for i, entry in state["state"].items()}
    save_tensors(folder / "optimizer.safetensors", arrays)
    steps, groups = json.loads(json.dumps([steps, state["param_groups"]]))
    entries = {i: {"step": step} for i, step in steps.items()}
    for name, array in load_tensors(folder / "optimizer.safetensors")[0].items():
        i, _, name = name.partition(".")
        entries[i][name] = array
    return {"state": entries, "param_groups": groups}


@every_optimizer
def test_a_resumed_run_is_bit_identical(make, tmp_path, device):
    shapes = [(3, 4), (5,), (), (300, 200)]
    params = [Tensor(tensor(*s).data.astype(np.float32), device=device, requires_grad=True) for s in shapes]
    optimizer = make(params)
    train(optimizer, params, 3)
    optimizer.param_groups[0]["lr"] = 0.05
    copies = [Tensor(p, device=device, requires_grad=True) for p in params]
    resumed = make(copies)
    resumed.load_state_dict(through_files(optimizer.state_dict(), tmp_path))
    assert resumed.param_groups[0]["lr"] == 0.05
    train(optimizer, params, 3, start=3)
    train(resumed, copies, 3, start=3)
    for p, q in zip(params, copies, strict=True):
        np.testing.assert_array_equal(to_numpy(p.data), to_numpy(q.data))


@every_optimizer
def test_state_dict_is_a_snapshot(make):
    params = [tensor(3), tensor(2, 2)]
    optimizer = make(params)
    train(optimizer, params, 2)
    state = optimizer.state_dict()
    kept = {name: np.copy(value) for name, value in state["state"][1].items()}
    train(optimizer, params, 1, start=2)
    assert state["param_groups"][0]["params"] == [0, 1]
    for name, value in kept.items():
        np.testing.assert_array_equal(state["state"][1][name], value)


def test_state_dict_by_pytorchs_names():
    params = [tensor(3), tensor(2, 2)]
    optimizer = optim.Adam(params)
    assert optimizer.state_dict()["state"] == {}
    train(optimizer, params, 2)
    entry = optimizer.state_dict()["state"][1]
    assert set(entry) == {"step", "exp_avg", "exp_avg_sq"}
    assert entry["step"] == 2
    assert entry["exp_avg"].shape == (2, 2)
    momentum = optim.SGD(params, momentum=0.9)
    train(momentum, params, 1)
    assert set(momentum.state_dict()["state"][0]) == {"step", "momentum_buffer"}


def trained():
    params = [tensor(3), tensor(2, 2)]
    optimizer = optim.Adam(params, lr=0.1)
    train(optimizer, params, 2)
    return optimizer


def damage(change):
    state = trained().state_dict()
    change(state)
    return state


DAMAGED = {
    "no dictionary": ([1], "expected the keys"),
    "no groups": ({"state": {}}, "expected the keys"),
    "fewer parameters": (damage(lambda s: s["param_groups"][0]["params"].pop()), r"\[2\] parameters here and \[1\]"),
    "another optimizer": (
        damage(lambda s: s["state"][0].update(momentum_buffer=s["state"][0].pop("exp_avg"))),
        "parameter 0 needs .*exp_avg.* has .*momentum_buffer",
    ),
    "another shape": (
        damage(lambda s: s["state"][1].update(exp_avg_sq=np.ones(4))),
        r"exp_avg_sq of parameter 1 has shape \(4,\), the parameter has \(2, 2\)",
    ),
    "too many": (damage(lambda s: s["state"].update({7: s["state"][0]})), "parameter 7"),
    "an option": (damage(lambda s: s["param_groups"][0].update(lr=-1)), "lr must be at least 0"),
    "an unknown option": (damage(lambda s: s["param_groups"][0].update(momentum=0.9)), "unknown option momentum"),
}


@pytest.mark.parametrize(("state", "message"), DAMAGED.values(), ids=DAMAGED)
def test_a_state_that_does_not_fit_changes_nothing(state, message):
    optimizer = trained()
    before = optimizer.state_dict()
    with pytest.raises(ValueError, match=message):
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
        return [to_numpy(p.data) for p in params]

    stayed, moved = run(["cpu"] * 4), run(["cpu", "cuda:0", "cuda:1", "cpu"])
    for a, b in zip(stayed, moved, strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_state_follows_the_dtype():
    model = nn.Linear(3, 2)
    optimizer = optim.Adam(model.parameters())
    train(optimizer, list(model.parameters()), 2)
    before = optimizer.state_dict()["state"][0]
    model.to(dtype=np.float64)
    optimizer.zero_grad()
    optimizer.step()
    after = optimizer.state_dict()["state"][0]
    assert after["exp_avg"].dtype == np.float64
    assert after["step"] == 2
    np.testing.assert_array_equal(after["exp_avg"], before["exp_avg"].astype(np.float64))


def test_a_parameter_that_changed_shape_is_named():
    p = tensor(3)
    optimizer = optim.Adam([p])
    train(optimizer, [p], 1)
    p.data = np.zeros(4)
    p.grad = Tensor(np.zeros(4))
    with pytest.raises(ValueError, match=r"parameter 0 has shape \(4,\) and its exp_avg has \(3,\)"):
        optimizer.step()
