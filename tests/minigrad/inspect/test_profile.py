"""profile: calls and own times, by operation, module and named span, exact by a clock that operations move."""

import re

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, inspect, nn
from minigrad.func import checkpoint

from tests.minigrad.inspect.clock import clock, pause, slow, take  # noqa: F401 - `clock` is a fixture
from tests.minigrad.inspect.profiled import leaf, ms
from tests.minigrad.inspect.steps import training_step

pytestmark = pytest.mark.usefixtures("clock")


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


def quiet(x):
    with mg.no_grad():
        slow(x)


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (lambda x: (slow(x) + slow(x)).sum().backward(), {"slow": (2, 40, 2, 60), "add": (1, 0, 1, 0),
                                                          "sum": (1, 0, 1, 0)}),
        (quiet, {"slow": (1, 20, 0, 0)}),
        (lambda x: mg.grad(slow(x), x, Tensor(np.ones(3)), create_graph=True),
         {"slow": (1, 20, 1, 0), "pause": (1, 10, 0, 0)}),  # what runs in a rule counts once
        (lambda x: checkpoint(slow, x).backward(np.ones(3)), {"checkpoint": (1, 0, 1, 0), "slow": (2, 40, 1, 30)}),
        (lambda x: checkpoint(lambda y: checkpoint(slow, pause(y)), x).backward(np.ones(3)),
         {"checkpoint": (3, 0, 2, 0), "pause": (2, 20, 1, 0), "slow": (3, 60, 1, 30)}),
    ],
    ids=["both-ways", "no-grad", "create-graph", "checkpoint", "nested-checkpoints"],
)
def test_own_times_of_operations(program, expected):
    with mg.profile() as profile:
        program(leaf())
    assert ms(profile) == expected
    total = sum(row[1] + row[3] for row in expected.values())
    assert profile.total * 1e3 == pytest.approx(total, abs=1e-9)
    assert profile.elapsed * 1e3 == pytest.approx(total, abs=1e-9)


def test_what_a_checkpoint_computes_again_is_told_apart():
    with mg.profile() as profile:
        checkpoint(slow, pause(leaf())).backward(np.ones(3))
    assert profile.recomputed == 0.020
    assert [(s.name, s.recomputed) for s in profile.spans if s.kind == "operation" and s.name != "gate"] == [
        ("pause", False), ("slow", False), ("checkpoint", False), ("slow", True)]
    assert "20 for checkpoints, again" in str(profile)


@pytest.mark.parametrize("fused", [True, False])
def test_a_composition_shows_its_steps(fused):
    with mg.fused(fused), mg.profile() as profile:
        mg.functional.softmax(leaf(2, 3)).sum().backward()
    names = set(profile.operations)
    assert ("softmax" in names) is fused
    assert ({"exp", "div"} <= names) is not fused
    assert profile.operations["sum"].backward_calls == profile.operations["sum"].forward_calls > 0


@pytest.mark.parametrize("named", [True, False])
def test_modules_with_what_is_in_them(named):
    model = nn.Sequential(Block(Slow()), Slow())
    top, prefix = "Sequential", "" if named else "Sequential."
    with mg.profile(model if named else None) as profile:
        model(leaf()).backward(np.ones(3))
    rows = {path: (row.calls, *(round(value * 1e3, 9) for value in (row.forward, row.own, row.backward, row.total)))
            for path, row in profile.modules.items()}
    assert rows == {
        top: (1, 70, 0, 90, 160),
        f"{prefix}0": (1, 50, 30, 60, 110),
        f"{prefix}0.inner": (1, 20, 20, 30, 50),
        f"{prefix}1": (1, 20, 20, 30, 50),
    }
    assert list(rows)[:2] == [top, f"{prefix}0"]  # the most expensive first


def test_what_is_computed_again_belongs_to_its_modules():
    model = nn.Sequential(Block(Slow(), again=True))
    with mg.profile(model) as profile:
        model(leaf()).backward(np.ones(3))
    rows = {path: (row.calls, round(row.forward * 1e3, 9), round(row.own * 1e3, 9), round(row.backward * 1e3, 9))
            for path, row in profile.modules.items()}
    assert rows == {"Sequential": (1, 70, 0, 60), "0": (1, 70, 30, 60), "0.inner": (2, 40, 40, 30)}


def test_a_module_within_itself_counts_once():
    class Twice(nn.Module):
        def forward(self, x, again=True):
            return self(slow(x), again=False) if again else x

    with mg.profile() as profile:
        Twice()(leaf())
    row = profile.modules["Twice"]
    assert (row.calls, row.forward, row.own) == (2, 0.020, 0.020)


def test_the_operations_of_a_rule_belong_to_the_backward_of_its_module():
    model, x = Slow(), leaf()
    with mg.profile() as profile:
        mg.grad(model(x), x, Tensor(np.ones(3)), create_graph=True)
    row = profile.modules["Slow"]
    assert (row.forward, row.own, row.backward) == (0.020, 0.020, 0.010)


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

    with mg.profile() as profile:
        outer(leaf()).backward(np.ones(3))
    rows = {name: (row.calls, round(row.total * 1e3, 9), round(row.own * 1e3, 9))
            for name, row in profile.named.items()}
    assert rows == {"outer": (2, 36, 1), "data": (1, 25, 5), "backward": (1, 30, 0)}
    assert profile.named["data"].bytes == 24


def test_nothing_is_told_of_spans_outside_of_the_block():
    with inspect.span("nobody"):
        pass
    with mg.profile() as profile:
        pass
    assert profile.spans == []
    assert profile.text().count("\n") == 3  # the summary, and an empty table


def test_watching_is_in_no_row(clock):  # noqa: F811
    """Looking at the clock takes time here; every nanosecond is a span's own, or watching's, or outside of all."""
    model, x = nn.Sequential(Block(Slow(), again=True)), leaf()
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


def test_own_times_of_a_training_step_are_no_more_than_it_took(device, clock):  # noqa: F811
    _, step = training_step(device)
    clock.tick = 1
    with mg.profile() as profile:
        step()
    own, watching = (sum(getattr(span, name) for span in profile.spans) for name in ("own", "watching"))
    assert 0 < own + watching <= round(profile.elapsed * 1e9)
    assert min(span.own for span in profile.spans) > 0
    assert 0 < profile.total < profile.elapsed


def test_the_tables(device, clock):  # noqa: F811
    model, step = training_step(device)
    clock.tick = 1000
    with mg.profile(model) as profile:
        step()
    summary, operations, modules, spans = str(profile).split("\n\n")
    number = r"[\d.]+"
    assert re.fullmatch(rf"{number} ms in the block, of them {number} in operations \({number} forward, {number} "
                        rf"backward\) and {number} in watching\n{number} kB made by operations, at most {number} kB of "
                        rf"it at a time(; the whole process held {number} .B at its peak)?{{}}".format(
                            "" if device == "cpu" else rf"\nthe pool of {device} held {number} .B, of which at most "
                            rf"{number} .B was in use"), summary)
    assert operations.splitlines()[0].split() == [
        "operation", "forwards", "ms", "bytes", "backwards", "ms", "bytes", "ms", "in", "all", "share"]
    shares = [float(line.split()[-1].rstrip("%")) for line in operations.splitlines()[1:]]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) == pytest.approx(100, abs=1)
    assert modules.splitlines()[0].split() == ["module", "calls", "forward", "ms", "of", "it", "own", "backward", "ms",
                                               "ms", "in", "all", "bytes"]
    assert {"Transformer", "encoder", "decoder"} <= {line.split()[0] for line in modules.splitlines()}
    assert modules.splitlines()[-1] == f"… {len(profile.modules) - 20} more"
    assert spans.splitlines()[0].split() == ["span", "calls", "ms", "of", "it", "own", "of", "the", "block", "bytes"]
    assert {line.split()[0]: line.split()[1] for line in spans.splitlines()[1:]} == {
        "backward": "1", "clip_grad_norm_": "1", "AdamW.step": "1"}
    for part in (operations, spans):
        assert len({len(line) for line in part.splitlines()}) == 1  # aligned


def test_rows_that_are_not_shown_are_summed():
    with mg.profile() as profile:
        slow(leaf()).backward(np.ones(3))
        pause(leaf())
        mg.exp(leaf())
    lines = profile.text(count=1).splitlines()
    assert [line.split() for line in lines[3:6]] == [
        ["operation", "forwards", "ms", "bytes", "backwards", "ms", "bytes", "ms", "in", "all", "share"],
        ["slow", "1", "20", "24", "B", "1", "30", "24", "B", "50", "83.3%"],
        ["…", "2", "more", "2", "10", "48", "B", "0", "0.000", "0", "B", "10", "16.7%"]]
    assert "more" not in profile.text(count=None)


def test_the_results_are_those_without_a_profile(device):
    losses = []
    for watch in (False, True):
        mg.manual_seed(3)
        model, step = training_step(device)
        if watch:
            with mg.profile(model), inspect.memory_meter():
                step()
        else:
            step()
        losses.append(step().item())
    # On a GPU the sums of atomic additions, an embedding's gradient, differ from run to run in their last bits.
    assert losses[0] == (losses[1] if device == "cpu" else pytest.approx(losses[1], rel=1e-6))


@pytest.mark.parametrize(("synchronize", "waits"), [(True, 6), (False, 0)])
def test_a_gpu_is_waited_for_around_each_span(stand_in, synchronize, waits):
    x = leaf(device="cuda:0")
    start = mg.ones(3, device="cuda:0")
    stand_in.synchronizations.clear()
    with mg.profile(synchronize=synchronize) as profile:
        slow(x).backward(start)
    assert stand_in.synchronizations.total() == waits  # the operation, its rule, and the span "backward" around that
    assert ms(profile) == {"slow": (1, 20, 1, 30)}
