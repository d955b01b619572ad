"""memory_meter: bytes by arithmetic; views and shared arrays once, leaves not at all; nothing left afterwards."""

import minigrad as mg
from minigrad import inspect
from minigrad.func import checkpoint

from tests.minigrad.inspect.programs import leaf


def test_what_is_saved_is_counted_and_freed(device):
    x = leaf(10, 10, device=device)
    with inspect.memory_meter() as memory:
        y = mg.exp(x)  # saves its output: 800 bytes
        assert memory.current == 800
        loss = mg.tanh(y).sum()  # tanh saves its output, sum a shape
        assert memory.current == 1600
        del y
        loss.backward(retain_graph=True)
        assert memory.current == 1600
    loss.backward()  # outside of the block
    assert (memory.current, memory.peak) == (0, 1600)
    assert "1.6 kB" in str(memory)


def test_shared_memory_is_counted_once_and_a_view_as_the_whole_of_its_base(device):
    x = leaf(10, 10, device=device)
    with inspect.memory_meter() as memory:
        y = mg.exp(x)
        first = y * y  # saves y twice: it is what exp saved
        second = y.T * y[:1]  # views of y
        assert memory.current == 800
        del first, second, y
        assert memory.current == 0
        row = mg.sin((x * 2)[:1])  # of an array that nobody else keeps
        assert memory.current == 800
        del row


def test_of_a_checkpoint_only_the_arguments_stay():
    x = leaf(10, 10)
    with inspect.memory_meter() as memory:
        y = x * 2
        z = checkpoint(lambda t: mg.exp(mg.tanh(mg.sin(t))), y).sum()
        del y
        assert memory.current == 800  # y, which the checkpoint keeps
        z.backward()
        assert (memory.current, memory.peak) == (0, 2400)  # and while it runs, the outputs of tanh and exp
