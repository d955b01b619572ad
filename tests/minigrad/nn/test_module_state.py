"""state_dict and load_state_dict."""

import numpy as np
import pytest

from minigrad.device import to_numpy

from tests.minigrad.nn.model import STATE, Block, Model


def as_arrays(state):
    return {name: to_numpy(tensor.data).copy() for name, tensor in state.items()}


def test_state_dict_has_each_name_of_a_tied_parameter():
    model = Model()
    state = model.state_dict()
    assert list(state) == STATE
    assert not any(tensor.requires_grad for tensor in state.values())
    assert state["out.weight"].data is state["embedding.weight"].data is model.out.weight.data


def test_load_state_dict_in_place(device):
    source, target = Model(), Model().to(device)
    memory = [p.data for p in target.parameters()]
    assert target.load_state_dict(as_arrays(source.state_dict())) == ([], [])
    assert all(p.data is m for p, m in zip(target.parameters(), memory, strict=True))
    for name, array in as_arrays(target.state_dict()).items():
        np.testing.assert_array_equal(array, as_arrays(source.state_dict())[name])
    assert target.load_state_dict(source.state_dict()) == ([], [])


def test_loading_counts_as_a_change():
    block = Block()
    loss = (block.scale * block.scale).sum()
    block.load_state_dict(Block().state_dict())
    with pytest.raises(RuntimeError, match=r"changed in place"):
        loss.backward()


def test_not_strict():
    model = Model()
    state = as_arrays(Model().state_dict())
    del state["blocks.0.scale"]
    state["more"] = np.ones(1)
    keys = model.load_state_dict(state, strict=False)
    assert keys.missing_keys == ["blocks.0.scale"]
    assert keys.unexpected_keys == ["more"]
    np.testing.assert_array_equal(model.blocks[1].linear.weight.data, state["blocks.1.linear.weight"])


def change(**values):
    return lambda state: state.update({name.replace("__", "."): value for name, value in values.items()})


WRONG = {
    "missing": (lambda s: s.pop("blocks.1.scale"), ValueError, "missing: blocks.1.scale"),
    "unexpected": (change(a__b=np.ones(1)), ValueError, "unexpected: a.b"),
    "shape": (
        change(blocks__0__scale=np.ones((3, 1), np.float32)),
        ValueError,
        r"blocks.0.scale: shape \(3, 1\) given, \(3,\) needed",
    ),
    "dtype": (
        change(blocks__0__scale=np.ones(3)),
        ValueError,
        "blocks.0.scale: dtype float64 given, float32 needed; cast",
    ),
    "tied": (
        change(out__weight=np.ones((5, 3), np.float32)),
        ValueError,
        "out.weight: differs from embedding.weight, with which it is tied",
    ),
    "no array": (change(count=[7]), TypeError, "count must be a tensor or an array, got list"),
}


@pytest.mark.parametrize(("spoil", "error", "message"), WRONG.values(), ids=WRONG)
def test_a_state_that_does_not_fit_changes_nothing(spoil, error, message):
    model, state = Model(), as_arrays(Model().state_dict())
    before = as_arrays(model.state_dict())
    spoil(state)
    with pytest.raises(error, match=message):
        model.load_state_dict(state)
    for name, array in as_arrays(model.state_dict()).items():
        np.testing.assert_array_equal(array, before[name])


def test_all_problems_are_listed_at_once():
    state = as_arrays(Model().state_dict())
    for spoil, error, _ in WRONG.values():
        if error is ValueError:
            spoil(state)
    with pytest.raises(ValueError, match=r"(?s)Model.load_state_dict.*missing.*unexpected.*differs"):
        Model().load_state_dict(state)
