"""memory_meter: bytes by arithmetic; views and shared arrays once, leaves not at all; nothing left afterwards."""

import gc

import minigrad as mg
from minigrad import inspect, nn
from minigrad.func import checkpoint

from tests.minigrad.inspect.programs import leaf


def test_what_is_saved_is_counted_and_freed(device):
    x = leaf(10, 10, device=device)
    with inspect.memory_meter() as memory:
        y = mg.exp(x)  # saves its output: 800 bytes
        assert memory.current == 800
        z = mg.tanh(y)  # and so does this
        assert memory.current == 1600
        loss = z.sum()  # saves a shape
        assert memory.current == 1600
        assert memory.by_place == {("exp", ""): 800, ("tanh", ""): 800}
        loss.backward(retain_graph=True)
        assert memory.current == 1600
    loss.backward()  # outside of the block
    assert (memory.current, memory.peak) == (0, 1600)
    assert memory.peak_by_place == {("exp", ""): 800, ("tanh", ""): 800}


def test_shared_memory_is_counted_once(device):
    x = leaf(10, 10, device=device)
    with inspect.memory_meter() as memory:
        y = mg.exp(x)
        first = y * y  # saves y twice: it is what exp saved
        second = y.T * y[:1]  # views of y
        assert memory.current == 800
        del first, second, y
        assert memory.current == 0


def test_a_view_keeps_the_whole_of_its_base():
    x = leaf(10, 10)
    with inspect.memory_meter() as memory:
        part = mg.sin(mg.exp(x)[:1])  # saves a row of 80 bytes
        assert memory.by_place == {("exp", ""): 800}
        del part
        row = mg.sin((x * 2)[:1])  # of an array that nobody saves
        assert memory.by_place == {("sin", ""): 800}
        del row


def test_leaves_and_views_of_leaves_are_not_counted():
    x, w = leaf(4, 10), leaf(10, 3)
    with inspect.memory_meter() as memory:
        out = x @ w
        other = mg.sin(w.T)
        joined = mg.concatenate([x, x]) * 1.0
        assert memory.current == 0
        del out, other, joined
        mg.exp(mg.sin(x)).sum().backward()
    assert memory.peak_by_place == {("exp", ""): 320}


def test_checkpoints_keep_their_arguments_alone():
    x = leaf(10, 10)
    with inspect.memory_meter() as memory:
        y = x * 2
        z = checkpoint(lambda t: mg.exp(mg.tanh(mg.sin(t))), y)
        assert memory.current == 800  # before anything uses it
        loss = (z * 1.0).sum()
        del z
        gc.collect()
        assert memory.current == memory.peak == 800  # y, which the checkpoint holds; its first run is not the tape's
        assert memory.by_place == {("checkpoint", ""): 800}
        del y
        loss.backward()
        assert memory.current == 0
    again = "checkpoint (computed again)"  # y for sin, and the outputs of tanh and exp
    assert memory.peak_by_place == {("checkpoint", ""): 800, ("tanh", again): 800, ("exp", again): 800}


def test_long_tables_are_cut():
    x, layers = leaf(10), nn.Sequential(*[nn.ReLU() for _ in range(30)])
    with inspect.memory_meter() as memory:
        layers(x).sum().backward()
    assert memory.peak == sum(memory.peak_by_place.values()) == 2400

    lines = str(memory).splitlines()
    assert sum(line.startswith("Sequential") for line in lines) == 20
    assert lines[-1] == "… 10 more"
