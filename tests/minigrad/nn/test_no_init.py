"""`nn.no_init`: nothing is drawn, what would be is zero, and the model that is loaded next is the same."""

import threading

import numpy as np
import pytest

import minigrad
from minigrad import nn
from minigrad.nn import init


class Own(nn.Module):
    """A module that calls the initialisers."""

    def __init__(self):
        super().__init__()
        self.drawn, self.constant = (nn.Parameter(np.zeros((3, 2), np.float32)) for _ in range(2))
        init.xavier_uniform_(self.drawn)
        init.ones_(self.constant)


MODULES = [
    lambda: nn.Linear(3, 4), lambda: nn.Embedding(5, 3, padding_idx=1), lambda: nn.LayerNorm(4), Own,
]


@pytest.mark.parametrize("make", MODULES)
def test_nothing_is_drawn_and_the_loaded_module_is_the_same(make):
    whole, before = make(), minigrad.random.get_state()
    with nn.no_init():
        module = make()
    assert minigrad.random.get_state() == before
    for parameter in module.parameters():
        values = np.unique(parameter.numpy())  # zeros, or a constant of the module
        assert len(values) == 1
        assert values[0] in (0, 1)
    module.load_state_dict(whole.state_dict())
    for mine, other in zip(module.parameters(), whole.parameters(), strict=True):
        np.testing.assert_array_equal(mine.numpy(), other.numpy())
        assert mine.requires_grad
        assert not np.shares_memory(mine.data, other.data)


def test_blocks_nest_and_are_local_to_a_thread():
    def drawn():
        return bool(nn.Linear(3, 4).weight.numpy().any())

    elsewhere = []
    with nn.no_init():
        with nn.no_init():
            assert not drawn()
        assert not drawn()
        thread = threading.Thread(target=lambda: elsewhere.append(drawn()))
        thread.start()
        thread.join()
    assert elsewhere == [True]
    assert drawn()
    assert not nn.no_init()(drawn)()
