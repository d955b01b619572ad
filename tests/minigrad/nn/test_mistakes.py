"""Mistakes in writing, making and calling modules: each is an error where it is made, which names it."""

import pytest

import minigrad
from minigrad import nn
from minigrad.device import DeviceError

from tests.minigrad.nn.model import Block


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
