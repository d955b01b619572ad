"""Mistakes in writing a Module: each is an error where it is made."""

import numpy as np
import pytest

import minigrad
from minigrad import nn

from tests.minigrad.nn.model import Block


@pytest.mark.parametrize(
    ("value", "kind"), [(nn.Parameter(np.ones(1)), "Parameter"), (nn.ReLU(), "ReLU"), (nn.ModuleList(), "ModuleList")]
)
def test_forgetting_super_init_is_named(value, kind):
    class Forgetful(nn.Module):
        def __init__(self):
            self.size = 3
            self.part = value

    with pytest.raises(AttributeError, match=rf"Forgetful.part: cannot assign a {kind} before super\(\).__init__\(\)"):
        Forgetful()


def test_forgetting_super_init_before_a_buffer():
    class Forgetful(nn.Module):
        def __init__(self):
            self.register_buffer("table", minigrad.ones((2,)))

    with pytest.raises(AttributeError, match=r"Forgetful.register_buffer\('table'\): call super"):
        Forgetful()


@pytest.mark.parametrize("wrong", [minigrad.ones((3,)), np.ones(3), 1.0])
def test_a_parameter_is_not_replaced_by_what_would_not_learn(wrong):
    block = Block()
    with pytest.raises(TypeError, match=rf"Block.scale is a Parameter .* got {type(wrong).__name__}; .*copy_"):
        block.scale = wrong
    assert "scale" in dict(block.named_parameters())


def test_a_buffer_stays_a_tensor():
    block = Block()
    with pytest.raises(TypeError, match=r"Block.offset is a buffer .* got ndarray"):
        block.offset = np.ones(3)
    block.offset = minigrad.zeros((3,))
    assert dict(block.named_buffers())["offset"] is block.offset


@pytest.mark.parametrize("hide", [lambda m: [m], lambda m: (1, m), lambda m: {"a": m}])
def test_modules_in_a_plain_container_would_be_lost(hide):
    block = Block()
    with pytest.raises(TypeError, match=r"Block.parts: .* use a ModuleList"):
        block.parts = hide(nn.Linear(1, 1))
    block.parts = hide("anything else")


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("linear", minigrad.ones((1,)), ValueError),
        ("forward", minigrad.ones((1,)), ValueError),
        ("a.b", minigrad.ones((1,)), ValueError),
        ("", minigrad.ones((1,)), ValueError),
        ("fresh", np.ones(1), TypeError),
    ],
)
def test_buffers_have_good_names_and_are_tensors(name, value, error):
    block = Block()
    with pytest.raises(error, match=r"register_buffer"):
        block.register_buffer(name, value)
    assert [n for n, _ in block.named_buffers()] == ["offset"]


def test_a_module_without_forward():
    class Empty(nn.Module):
        pass

    with pytest.raises(NotImplementedError, match=r"Empty must define forward\(\)"):
        Empty()(1)


def test_train_takes_a_bool():
    with pytest.raises(TypeError, match=r"Block.train: mode must be a bool, got str"):
        Block().train("eval")
