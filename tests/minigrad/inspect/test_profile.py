"""profile: calls and own times, by operation, module and named span, exact by a clock that operations move."""

import contextlib

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, inspect, nn, primitive
from minigrad.engine.interpreters import interpreters
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


def ms(profile):
    """Operation -> (calls, ms) forward and backward; but for "gate", which bundles the results of a checkpoint."""
    return {name: (row.calls, round(row.forward * 1e3, 9), row.backward_calls, round(row.backward * 1e3, 9))
            for name, row in profile.operations.items() if name != "gate"}


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


class WithinItself(nn.Module):
    def forward(self, x, again=True):
        return self(slow(x), again=False) if again else x


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (lambda x: (slow(x) + slow(x)).sum().backward(),
         {"slow": (2, 40, 2, 60), "add": (1, 0, 1, 0), "sum": (1, 0, 1, 0)}),
        (mg.no_grad()(slow), {"slow": (1, 20, 0, 0)}),
        (lambda x: mg.grad(slow(x), x, mg.ones(3, np.float64), create_graph=True),
         {"slow": (1, 20, 1, 0), "pause": (1, 10, 0, 0)}),  # what runs in a rule counts once
        (lambda x: checkpoint(lambda y: checkpoint(slow, pause(y)), x).backward(np.ones(3)),
         {"checkpoint": (3, 0, 2, 0), "pause": (2, 20, 1, 0), "slow": (3, 60, 1, 30)}),
    ],
    ids=["both-ways", "no-grad", "create-graph", "nested-checkpoints"],
)
def test_own_times_of_operations(program, expected):
    with mg.profile() as profile:
        program(leaf(3))
    assert ms(profile) == expected
    total = sum(row[1] + row[3] for row in expected.values())
    assert [1e3 * one for one in (profile.total, profile.elapsed)] == pytest.approx([total, total], abs=1e-9)


def backward(model, x):
    model(x).backward(np.ones(3))


def second(model, x):
    mg.grad(model(x), x, mg.ones(3, np.float64), create_graph=True)


@pytest.mark.parametrize(("model", "finish", "expected"), [
    (nn.Sequential(Block(Slow()), Slow()), backward, {"": (1, 70, 0, 90), "0": (1, 50, 30, 60),
                                                      "0.inner": (1, 20, 20, 30), "1": (1, 20, 20, 30)}),
    (nn.Sequential(Block(Slow(), again=True)), backward, {"": (1, 70, 0, 60), "0": (1, 70, 30, 60),
                                                          "0.inner": (2, 40, 40, 30)}),
    (WithinItself(), backward, {"": (2, 20, 20, 30)}),
    (Slow(), second, {"": (1, 20, 20, 10)}),
], ids=["nested", "computed-again", "within-itself", "create-graph"])
@pytest.mark.parametrize("named", [True, False])
def test_modules_with_what_is_in_them(model, finish, expected, named):
    with mg.profile(model if named else None) as profile:
        finish(model, leaf(3))
    top = type(model).__name__
    rows = {path: (row.calls, *(round(getattr(row, column) * 1e3, 9) for column in ("forward", "own", "backward")))
            for path, row in profile.modules.items()}
    assert rows == {(path if named else f"{top}.{path}") if path else top: row for path, row in expected.items()}


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
    rows = {name: (row.calls, round(row.total * 1e3, 9), round(row.own * 1e3, 9))
            for name, row in profile.named.items()}
    assert rows == {"outer": (2, 36, 1), "data": (1, 25, 5), "backward": (1, 30, 0)}


def test_watching_is_in_no_row(clock):
    """Looking at the clock takes time here; every nanosecond is a span's own, or watching's, or outside of all."""
    model, x = nn.Sequential(Block(Slow(), again=True)), leaf(3)
    clock.tick = 1
    with mg.profile() as profile, inspect.span("all"):
        model(x).backward(np.ones(3))
    whole = next(span for span in profile.spans if span.name == "all")
    own, watching = (sum(getattr(span, name) for span in profile.spans) for name in ("own", "watching"))
    assert own + watching == whole.end - whole.begin + whole.watching
    assert own + watching + 2 == round(profile.elapsed * 1e9)  # two looks: from the block's begin to the span's, and so
    slow_spans = [span.own for span in profile.spans if span.name == "slow" and span.kind == "operation"]
    assert slow_spans == [20_000_001] * 3  # one look
    assert 0 < watching < 1000


def test_a_gpu_is_waited_for_around_each_span(stand_in):
    x = leaf(3, device="cuda:0")
    start = mg.ones(3, device="cuda:0")
    stand_in.synchronizations.clear()
    with mg.profile() as profile:
        slow(x).backward(start)
    assert stand_in.synchronizations.total() == 6  # the operation, its rule, and the span "backward" around that
    assert ms(profile) == {"slow": (1, 20, 1, 30)}


def test_the_tables_of_a_training_step(device, clock):
    model, step = training_step(device)
    clock.tick = 1000
    with mg.profile(model) as profile:
        step()
    assert 0 < profile.total < profile.elapsed
    assert {name: row.calls for name, row in profile.named.items()} == {
        "backward": 1, "clip_grad_norm_": 1, "AdamW.step": 1}
    assert all(name in str(profile) for name in ("linear", "encoder", "AdamW.step"))


def test_a_pause_is_not_measured_and_its_time_is_not_the_block_s():
    others = []
    with inspect.op_hook(after=others.append), mg.profile() as profile:
        slow(leaf(3))
        with contextlib.suppress(KeyError), profile.pause():
            slow(leaf(3))
            take(500)
            raise KeyError
        slow(leaf(3))
    assert ms(profile) == {"slow": (2, 40, 0, 0)}
    assert len(others) == 3
    assert profile.elapsed == profile.total == 0.040


def fail(*_):
    take(2)
    raise RuntimeError("stop")


@primitive
def fails_forward(x):
    fail()


@primitive
def fails_backward(x):
    return x * 1.0


fails_backward.gradient(x=lambda g: fail())


class Fails(nn.Module):
    def forward(self, x):
        fail()


@pytest.mark.parametrize(("program", "expected"), [
    (lambda x: fails_backward(x).backward(np.ones(3)),
     [("operation", "fails_backward", 0), ("backward", "fails_backward", 2), ("span", "backward", 0)]),
    (Fails(), [("module", "Fails", 2)]),
    (inspect.span("around")(mg.no_grad()(fails_forward)), [("operation", "fails_forward", 2), ("span", "around", 0)]),
], ids=["rule", "module", "operation"])
def test_an_error_ends_what_it_ends_and_nothing_else(program, expected):
    with mg.profile() as outer:
        with pytest.raises(RuntimeError, match="stop"), mg.profile() as profile:
            program(leaf(3))
        take(100)
        slow(leaf(3))
    assert interpreters() == ()
    assert [(span.kind, span.name, span.own / 1e6) for span in profile.spans] == expected
    assert [(span.kind, span.name, span.own / 1e6) for span in outer.spans] == [*expected, ("operation", "slow", 20)]
    assert outer.spans[-1].parent is None
    assert (profile.elapsed, outer.elapsed) == (0.002, 0.122)
