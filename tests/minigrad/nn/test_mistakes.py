"""Mistakes in writing, making and calling modules: each is an error where it is made, which names it."""

import numpy as np
import pytest

import minigrad
from minigrad import Tensor, nn
from minigrad.device import DeviceError

from tests.minigrad.nn.model import Block

X = Tensor(np.ones((2, 4, 7)))

MAKING = [
    (lambda: nn.Linear(0, 3), ValueError, "a size .* got 0"),
    (lambda: nn.Linear(3, 2.0), TypeError, "a size .* float"),
    (lambda: nn.Embedding(3, 3, padding_idx=3), ValueError, "Embedding: padding_idx .* got 3"),
    (lambda: nn.LayerNorm((3, 4)), TypeError, "a size .* tuple"),
    (lambda: nn.Dropout(1.0), ValueError, "Dropout: .* 1"),
    (lambda: nn.LayerNorm(3, "1"), TypeError, "LayerNorm: eps .* str"),
    (lambda: nn.Dropout("1"), TypeError, "Dropout: .* str"),
    (lambda: nn.Linear(7, 2, size=3), TypeError, r"Linear.__init__\(\) got an unexpected keyword argument 'size'"),
    (lambda: nn.GELU("sigmoid")(X), ValueError, "gelu: .* 'sigmoid'"),
    (lambda: nn.Parameter(np.array([1])), TypeError, "floating"),
    (lambda: Block().to("gpu"), ValueError, "'gpu'"),
    (lambda: Block().to(dtype=np.int64), TypeError, "Block.to: dtype .* int64"),
    (lambda: Block().train("eval"), TypeError, "Block.train: mode .* str"),
    (lambda: Block().register_forward_hook(3), TypeError, "hook"),
    (lambda: nn.Module()(1), NotImplementedError, "Module"),
]


@pytest.mark.parametrize(("make", "error", "said"), MAKING)
def test_mistakes_are_named(make, error, said):
    with pytest.raises(error, match=said):
        make()


@pytest.mark.skipif(bool(minigrad.device.cuda_status().devices), reason="there is a GPU")
def test_a_device_that_there_is_not_changes_nothing():
    block = Block()
    with pytest.raises(DeviceError):
        block.to("cuda")
    assert {t.device for t in block.parameters()} == {"cpu"}


def test_forgetting_super_init_does_no_harm():
    class Forgetful(nn.Module):
        def __init__(self):
            self.part = nn.Linear(2, 1)
            self.register_buffer("table", minigrad.ones((2,)))

    assert list(Forgetful().state_dict()) == ["table", "part.weight", "part.bias"]
    assert list(nn.Linear(2, 1).named_buffers()) == []


def test_a_parameter_stays_one_and_a_buffer_a_tensor():
    block = Block()
    for wrong in (minigrad.ones((3,)), 1.0):
        with pytest.raises(TypeError, match=rf"Block.scale .* Parameter .* {type(wrong).__name__}"):
            block.scale = wrong
    with pytest.raises(TypeError, match=r"Block.offset .* Tensor .* ndarray"):
        block.offset = np.ones(3)
    block.offset = minigrad.zeros((3,))
    assert dict(block.named_buffers())["offset"] is block.offset
    block.offset = nn.Parameter(np.zeros(3, np.float32))
    assert "offset" not in dict(block.named_parameters())  # it is not learnt
    assert "scale" in dict(block.named_parameters())


@pytest.mark.parametrize("hide", [lambda m: [m], lambda m: (1, m), lambda m: {"a": m}])
def test_modules_in_a_plain_container_would_be_lost(hide):
    block = Block()
    with pytest.raises(TypeError, match=r"Block.parts: .* ModuleList"):
        block.parts = hide(nn.Linear(1, 1))
    block.parts = hide("anything else")


@pytest.mark.parametrize(("name", "value"), [("fresh", np.ones(1)), ("scale", minigrad.ones((3,)))])
def test_a_buffer_is_a_tensor_and_takes_no_parameters_place(name, value):
    block = Block()
    with pytest.raises(TypeError, match=name):
        block.register_buffer(name, value)
    assert [n for n, _ in block.named_buffers()] == ["offset"]
    assert "scale" in dict(block.named_parameters())
