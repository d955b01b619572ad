"""timer: calls, self time and the table."""

import time

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, inspect, primitive

from tests.minigrad.inspect.steps import training_step


@primitive
def slow(x):
    time.sleep(0.02)
    return x * 1.0


@primitive
def _pause(x):
    time.sleep(0.01)
    return x * 1.0


_pause.gradient(x=lambda g: g)
slow.gradient(x=lambda g: _pause(g) if isinstance(g, Tensor) else (time.sleep(0.03), g)[1])


def test_calls_and_times_of_both_directions():
    x = Tensor(np.ones(3), requires_grad=True)
    with inspect.timer() as times:
        (slow(x) + slow(x)).sum().backward()
    row = times.operations["slow"]
    assert (row.forward_calls, row.backward_calls) == (2, 2)
    assert row.forward >= 0.04
    assert row.backward >= 0.06
    assert row.total == row.forward + row.backward
    assert times.total <= times.elapsed
    assert times.total > 0.1


def test_what_runs_inside_a_rule_is_counted_once():
    x = Tensor(np.ones(3), requires_grad=True)
    with inspect.timer() as times:
        mg.grad(slow(x).sum(), x, create_graph=True)
    assert times.operations["pause"].forward >= 0.01
    assert times.operations["slow"].backward < 0.01  # its rule only called pause
    assert times.total <= times.elapsed


def test_the_table_has_the_most_expensive_operation_first(device):
    _, step = training_step(device)
    with inspect.timer() as times:
        step()
    first, header, *rows = str(times).splitlines()
    assert "ms in operations, of" in first
    assert header.split() == ["operation", "forwards", "ms", "backwards", "ms", "ms", "in", "all", "share"]
    assert {"linear", "attention", "layer_norm"} <= {row.split()[0] for row in rows}
    shares = [float(row.split()[-1].rstrip("%")) for row in rows]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) == pytest.approx(100, abs=1)
    assert len({len(row) for row in (header, *rows)}) == 1  # aligned


def test_the_clock_stops_with_the_block():
    with inspect.timer() as times:
        mg.exp(Tensor([1.0]))
    elapsed = times.elapsed
    time.sleep(0.01)
    assert times.elapsed == elapsed


def test_the_results_are_those_without_a_timer(device):
    losses = []
    for watch in (False, True):
        mg.manual_seed(3)
        _, step = training_step(device)
        if watch:
            with inspect.timer(), inspect.memory_meter():
                step()
        else:
            step()
        losses.append(step().item())
    assert losses[0] == losses[1]
