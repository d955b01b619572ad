"""profile: calls and times, by operation, module and span, exact by a clock that operations move; the trace file."""

import json

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, inspect, nn, primitive
from minigrad.func import checkpoint

from tests.minigrad.inspect.programs import leaf, training_step


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


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """The clock, at 0, in place of the machine's."""
    CLOCK.now = CLOCK.tick = 0
    monkeypatch.setattr("minigrad.inspect.profiler.perf_counter_ns", CLOCK)
    return CLOCK


def table(profile, kind):
    """Name -> calls, and ms: forward, backward, own."""
    return {name: (row.calls, *(round(1e3 * part, 9) for part in (row.forward, row.backward, row.own)))
            for name, row in profile.rows(kind).items()}


class Block(nn.Module):
    """30 ms of its own, 20 of them in an operation, and what `inner` takes."""

    def __init__(self, inner, again=False):
        super().__init__()
        self.inner, self.again = inner, again

    def forward(self, x):
        take(10)
        x = slow(x)
        return checkpoint(self.inner, x) if self.again else self.inner(x)


class Slow(nn.Module):
    def forward(self, x):
        return slow(x)


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (lambda x: (slow(x) + slow(x)).sum().backward(),
         {"slow": (2, 40, 60, 100), "add": (1, 0, 0, 0), "sum": (1, 0, 0, 0)}),
        (lambda x: mg.grad(slow(x), x, mg.ones(3, np.float64), create_graph=True),
         {"slow": (1, 20, 10, 20), "pause": (1, 0, 10, 10)}),  # what runs in a rule is a part of the rule
    ],
    ids=["both-ways", "create-graph"],
)
def test_operations(program, expected):
    with mg.profile() as profile:
        take(7)  # in no frame
        program(leaf(3))
        with profile.pause():
            program(leaf(3))
    take(11)
    assert table(profile, "operation") == expected
    took = sum(row[-1] for row in expected.values())
    assert str(profile).startswith(f"{took + 7:.3f} ms in the block, of them {took:.3f} in operations")


@pytest.mark.parametrize(("model", "expected"), [
    (nn.Sequential(Block(Slow()), Slow()), {"": (1, 70, 90, 0), "0": (1, 50, 60, 60),
                                            "0.inner": (1, 20, 30, 50), "1": (1, 20, 30, 50)}),
    (nn.Sequential(Block(Slow(), again=True)), {"": (1, 50, 80, 0), "0": (1, 50, 80, 60),
                                                "0.inner": (2, 20, 50, 70)}),
], ids=["nested", "computed-again"])
@pytest.mark.parametrize("named", [True, False])
def test_modules_with_what_is_in_them(model, expected, named):
    with mg.profile(model if named else None) as profile:
        model(leaf(3)).backward(np.ones(3))
    top = type(model).__name__
    assert table(profile, "module") == {
        (path if named else f"{top}.{path}") if path else top: row for path, row in expected.items()}


def test_named_spans_and_what_happens_in_them():
    @inspect.span("outer")
    def outer(x):
        take(1)
        with inspect.span("data"):
            take(5)
            y = slow(x)
        with inspect.span("outer"):  # within itself
            pause(y)
        return y

    outer(leaf(3))  # of what is outside of the block, nothing is told
    with mg.profile() as profile:
        outer(leaf(3)).backward(np.ones(3))
    assert table(profile, "span") == {"outer": (2, 36, 0, 11), "data": (1, 25, 0, 25), "backward": (1, 0, 30, 30)}


def test_a_gpu_is_waited_for_around_each_frame(stand_in):
    x = leaf(3, device="cuda:0")
    start = mg.ones(3, device="cuda:0")
    stand_in.synchronizations.clear()
    with mg.profile() as profile:
        slow(x).backward(start)
    assert stand_in.synchronizations.total() == 6  # the operation, its rule, and the span "backward" around that
    assert table(profile, "operation") == {"slow": (1, 20, 30, 50)}


def test_the_events_of_the_trace_lie_in_each_other(tmp_path, device, clock):
    clock.tick = 1000
    model, step = training_step(device)
    with mg.profile(model) as profile, inspect.span("step"):
        step()
    profile.save(tmp_path / "trace.json")
    events, found, stack = json.loads((tmp_path / "trace.json").read_text(encoding="utf-8"))["traceEvents"], set(), []
    assert len(events) == len(profile.spans)
    for event in sorted(events, key=lambda event: (event["ts"], -event["dur"])):
        begin, end = event["ts"], event["ts"] + event["dur"]
        while stack and stack[-1][0] <= begin:
            stack.pop()
        assert 0 <= begin <= end <= (stack[-1][0] if stack else profile.elapsed * 1e6)
        found.add((event["name"], event["cat"], stack[-1][1] if stack else None))
        stack.append((end, event["name"]))
    assert found >= {("step", "span", None), ("Transformer", "module", "step"), ("encoder", "module", "Transformer"),
                     ("linear", "operation", "encoder.layers.0.feed_forward.inner"),
                     ("backward", "span", "step"), ("linear (backward)", "operation", "backward")}
