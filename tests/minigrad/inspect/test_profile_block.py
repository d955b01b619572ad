"""The block of a profile: its beginning and end, pauses, what goes wrong inside, blocks and threads that overlap."""

import contextlib
import contextvars
import threading

import numpy as np
import pytest

import minigrad as mg
from minigrad import inspect, nn, primitive
from minigrad.engine.interpreters import Interpreter, interpreters, interpreting

from tests.minigrad.inspect.clock import clock, pause, slow, take  # noqa: F401 - `clock` is a fixture
from tests.minigrad.inspect.profiled import leaf, ms

pytestmark = pytest.mark.usefixtures("clock")


def test_a_pause_is_not_measured_and_its_time_is_not_the_block_s():
    class Other(Interpreter):
        seen = 0

        def operation(self, op, operands, proceed):
            self.seen += 1
            return proceed(operands)

    other = Other()
    with interpreting(other), mg.profile() as profile:
        slow(leaf())
        before = interpreters()
        with contextlib.suppress(KeyError), profile.pause():
            assert interpreters() == (other,)
            slow(leaf())
            take(500)
            raise KeyError
        assert interpreters() == before
        slow(leaf())
    assert profile.operations["slow"].forward_calls == 2
    assert other.seen == 3
    assert profile.elapsed == pytest.approx(profile.total, abs=1e-4)


def test_the_clock_stops_with_the_block_and_so_does_the_profile():
    with mg.profile() as profile:
        slow(leaf())
    take(100)
    slow(leaf())
    assert profile.elapsed == 0.020
    assert len(profile.spans) == 1


@pytest.mark.parametrize("where", ["operation", "rule", "module", "interpreter"])
def test_an_error_ends_what_it_ends_and_nothing_else(where):
    class Stop(Interpreter):
        def operation(self, op, operands, proceed):
            raise RuntimeError("stop")

    @primitive
    def broken(x):
        take(1)
        if where != "rule":
            raise RuntimeError("stop")
        return x * 1.0

    def rule(g):
        take(2)
        raise RuntimeError("stop")

    broken.gradient(x=rule)

    class Fails(nn.Module):
        def forward(self, x):
            take(3)
            raise RuntimeError("stop")

    def run(x):
        if where == "interpreter":
            with inspect.span("around"), interpreting(Stop()):
                slow(x)
        elif where == "module":
            Fails()(x)
        else:
            broken(x).backward(np.ones(3))

    with mg.profile() as profile:
        with pytest.raises(RuntimeError, match="stop"):
            run(leaf())
        slow(leaf())
    assert interpreters() == ()
    last = profile.spans[-1]
    assert (last.name, last.parent, last.own) == ("slow", None, 20_000_000)
    assert [(s.kind, s.name, s.own) for s in profile.spans[:-1]] == {
        "operation": [("operation", "broken", 1_000_000)],
        "rule": [("operation", "broken", 1_000_000), ("backward", "broken", 2_000_000), ("span", "backward", 0)],
        "module": [("module", "Fails", 3_000_000)],
        "interpreter": [("operation", "slow", 0), ("span", "around", 0)],
    }[where]


def test_the_profile_of_a_block_that_raises_can_be_read():
    with pytest.raises(ValueError, match="add"), mg.profile() as profile:
        slow(leaf()) + leaf(2)
    assert interpreters() == ()
    assert (ms(profile), profile.elapsed) == ({"slow": (1, 20, 0, 0), "add": (1, 0, 0, 0)}, 0.020)


def test_blocks_nest():
    with mg.profile() as outer:
        slow(leaf())
        with mg.profile() as inner:
            pause(leaf())
    assert (set(outer.operations), set(inner.operations)) == ({"slow", "pause"}, {"pause"})


def test_a_module_that_was_called_outside_of_the_block():
    class Profiled(nn.Module):
        def forward(self, x):
            with mg.profile() as self.profile:
                return slow(x)

    model = Profiled()
    model(leaf())
    assert ms(model.profile) == {"slow": (1, 20, 0, 0)}


def test_a_thread_that_outlives_the_block_is_left_alone():
    begun, over = threading.Event(), threading.Event()

    def work():
        with inspect.span("in both"):
            begun.set()
            assert over.wait(10)
            slow(leaf())

    with mg.profile() as profile:
        thread = threading.Thread(target=contextvars.copy_context().run, args=(work,))
        thread.start()
        assert begun.wait(10)
    over.set()
    thread.join()
    assert profile.spans == []
