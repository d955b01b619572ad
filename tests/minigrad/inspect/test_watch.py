"""Watchers: everything that runs, before and after, both ways, nested as it runs, and nothing outside of the block."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, nn
from minigrad.engine.node import Node
from minigrad.engine.watch import Watcher, span, watch, watchers
from minigrad.func import checkpoint

from tests.minigrad.inspect.programs import leaf


def name_of(what):
    """As an event is written here: an operation by its name, its rules after a d, a module by its class."""
    if isinstance(what, Node):
        return f"d{what.primitive.name}"
    return what if isinstance(what, str) else getattr(what, "name", type(what).__name__)


class Events(Watcher):
    """Everything that it is told of."""

    def __init__(self):
        self.seen, self.names = [], []

    def before(self, what, given):
        self.names.append(f"{name_of(what)}(")

    def after(self, what, given, made):
        self.names.append(")")
        self.seen.append((what, given, made))

    def __str__(self):
        return " ".join(self.names).replace("( )", "()")


def events_of(function, *args):
    events = Events()
    with watch(events):
        function(*args)
    assert watchers() == ()
    return events


@pytest.mark.parametrize(("program", "expected"), [
    (lambda x: mg.exp(x * 2).sum().backward(), "mul() exp() sum() backward( dsum() dexp() dmul() )"),
    (lambda x: nn.Sequential(nn.ReLU())(x), "Sequential( ReLU( relu() ) )"),
    (lambda x: checkpoint(mg.exp, x).sum().backward(),
     "checkpoint( exp() gate() ) sum() backward( dsum() dcheckpoint( exp() gate() ) dgate() dexp() )"),
    (lambda x: mg.grad(mg.sin(x), x, mg.ones(3, np.float64), create_graph=True),
     "sin() backward( dsin( cos() mul() ) )"),
    (span("outer")(mg.no_grad()(mg.exp)), "outer( exp() )"),
    (lambda x: mg.exp(x.data), ""),  # of arrays
], ids=["both-ways", "modules", "checkpoint", "create-graph", "span", "arrays"])
def test_what_runs_in_what(program, expected):
    assert str(events_of(program, leaf(3))) == expected


@pytest.mark.parametrize("buffers", [True, False])
def test_every_gradient_of_a_parent_is_seen_and_a_buffer_only_as_a_sum(buffers):
    class Sums(Watcher):
        def after(self, what, given, made):
            if name_of(what) == "dgetitem":
                sums.append(float(made[0].sum()))

    x, watcher, sums = Tensor([1.0, 2.0], requires_grad=True), Sums(), []
    watcher.buffers = buffers
    with watch(watcher):
        (x[0] + x[1]).backward()
    assert (sums, x.grad.tolist()) == ([1.0, 2.0 if buffers else 1.0], [1.0, 1.0])
