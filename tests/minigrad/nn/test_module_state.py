"""state_dict and load_state_dict."""

import numpy as np
import pytest

from tests.minigrad.nn.model import STATE, Block, Model


def as_arrays(state):
    return {name: tensor.numpy().copy() for name, tensor in state.items()}


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
        np.testing.assert_array_equal(array, source.state_dict()[name].numpy())
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


WRONG = [  # what takes the place of a value (None: nothing), and what is said of it
    ("blocks.1.scale", None, "missing: blocks.1.scale"),
    ("a.b", np.ones(1), "unexpected: a.b"),
    ("blocks.0.scale", np.ones((3, 1), np.float32), "blocks.0.scale: shape (3, 1) given, (3,) needed"),
    ("blocks.0.linear.bias", np.ones(3), "blocks.0.linear.bias: dtype float64 given, float32 needed"),
    ("out.weight", np.ones((5, 3), np.float32), "out.weight: differs from embedding.weight"),
]


def test_a_state_that_does_not_fit_changes_nothing():
    """All its problems are listed."""
    model, state = Model(), as_arrays(Model().state_dict())
    before = as_arrays(model.state_dict())
    for name, value, _ in WRONG:
        state[name] = value
    state = {name: value for name, value in state.items() if value is not None}
    with pytest.raises(ValueError, match=r"^Model.load_state_dict: ") as caught:
        model.load_state_dict(state)
    assert all(said in str(caught.value) for _, _, said in WRONG)
    with pytest.raises(TypeError, match=r"count .*list"):
        model.load_state_dict({**before, "count": [7]})
    with pytest.raises(TypeError, match=r"by name, expected, got str; .*load_tensors\(path\)"):
        model.load_state_dict("model.safetensors", strict=False)
    for name, array in as_arrays(model.state_dict()).items():
        np.testing.assert_array_equal(array, before[name])
