"""A clock for the tests of the profile: it moves by what an operation says that it takes, so that sums are exact."""

import pytest

from minigrad import Tensor, primitive


class Clock:
    """Nanoseconds; `tick` of them go by whenever somebody looks."""

    def __init__(self):
        self.now = self.tick = 0

    def __call__(self):
        self.now += self.tick
        return self.now


CLOCK = Clock()


def take(milliseconds):
    CLOCK.now += milliseconds * 1_000_000


@primitive
def pause(x):
    take(10)
    return x * 1.0


@primitive
def slow(x):
    take(20)
    return x * 1.0


def slow_gradient(g):
    if isinstance(g, Tensor):  # under create_graph it is made of an operation
        return pause(g)
    take(30)
    return g * 1.0


pause.gradient(x=lambda g: g)
slow.gradient(x=slow_gradient)


@pytest.fixture
def clock(monkeypatch):
    """The clock, at 0, in place of the machine's."""
    CLOCK.now = CLOCK.tick = 0
    for module in ("profiler", "profile_report"):
        monkeypatch.setattr(f"minigrad.inspect.{module}.perf_counter_ns", CLOCK)
    return CLOCK


def ms(profile):
    """Operation -> (calls, ms) forward and backward; but for "gate", which bundles the results of a checkpoint."""
    return {name: (row.forward_calls, round(row.forward * 1e3, 9), row.backward_calls, round(row.backward * 1e3, 9))
            for name, row in profile.operations.items() if name != "gate"}
