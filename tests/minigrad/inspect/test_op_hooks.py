"""op_hook: every operation once each way, nested where rules are operations, and nothing outside of the block."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, inspect
from minigrad import functional as F
from minigrad.engine.interpreters import interpreters
from minigrad.func import checkpoint

from tests.minigrad.inspect.programs import leaf, training_step


def events_of(function, **options):
    events = []
    with inspect.op_hook(after=events.append, **options):
        function()
    return events


def test_every_operation_is_told_of_before_and_after_both_ways(device):
    x, seen = leaf(2, 3, device=device), []
    with inspect.op_hook(lambda e: seen.append(("before", e.phase, e.name)),
                         lambda e: seen.append(("after", e.phase, e.name))):
        mg.exp(x * 2).sum().backward()
    names = ["mul", "exp", "sum"]
    expected = [(when, "forward", name) for name in names for when in ("before", "after")]
    expected += [(when, "backward", name) for name in names[::-1] for when in ("before", "after")]
    assert seen == expected


def test_an_event_has_what_went_in_and_came_out():
    x, w, events = leaf(2, 3), leaf(3, 4), []
    with inspect.op_hook(after=events.append):
        out = mg.masked_fill(x, np.array([True, False, True]), 7.0) @ w
        out.backward(np.ones((2, 4)))
        mg.concatenate([x, x])
    fill, product = (e for e in events if e.phase == "forward" and e.name in ("where", "matmul"))
    assert any(value is x for value in fill.inputs)
    assert any(isinstance(value, float) and value == 7.0 for value in fill.inputs)  # constants, too
    assert product.output is out
    assert product.node is out._node
    assert product.inputs[1] is w
    backward = next(e for e in events if e.phase == "backward" and e.name == "matmul")
    assert backward.node is out._node
    assert backward.output is None
    np.testing.assert_array_equal(backward.inputs[0], np.ones((2, 4)))
    assert [name for name, _ in backward.gradients] == ["x", "y"]
    np.testing.assert_allclose(backward.gradients[1][1], w.grad.numpy())
    assert events[-1].inputs[0] == (x, x)  # what is variadic is one tuple


def test_the_operations_of_a_rule_happen_inside_it():
    x = leaf(3)
    inner = [e for e in events_of(lambda: mg.grad(mg.tanh(x).sum(), x, create_graph=True)) if e.parent is not None]
    assert inner
    assert all(e.phase == "forward" and e.parent.phase == "backward" for e in inner)
    assert {e.parent.name for e in inner} >= {"tanh"}


def test_a_checkpoint_is_an_event_around_its_first_run_and_around_the_second():
    x = leaf(3)
    events = events_of(lambda: checkpoint(lambda t, *, factor: mg.exp(t) * factor, x, factor=2.0).sum().backward())
    first, second = ([e for e in events if e.name == "exp" and e.phase == "forward"])
    assert (first.parent.name, first.parent.phase, first.transient) == ("checkpoint", "forward", True)
    assert (second.parent.name, second.parent.phase, second.transient) == ("checkpoint", "backward", False)
    assert first.parent.node is second.parent.node
    assert first.parent.node.primitive.name == "checkpoint"
    assert [value for value in first.parent.inputs if not isinstance(value, Tensor)] == [2.0]
    assert not [e for e in events if e.phase == "backward" and (e.transient or e.parent is not None)]


@pytest.mark.parametrize("named", [True, False])
def test_an_event_names_its_module_both_ways(named):
    model, step = training_step()
    prefix = "" if named else "Transformer."  # else paths begin with the class of the outermost module
    seen = {(e.phase, e.module) for e in events_of(step, model=model if named else None)}
    for module in ("encoder.layers.0.self_attention.query", "decoder.layers.0.feed_forward.inner", "decoder.norm"):
        assert {("forward", prefix + module), ("backward", prefix + module)} <= seen


def test_what_a_hook_computes_is_not_told_of():
    x, seen, outer = leaf(2), [], []

    def after(event):
        seen.append(event.name)
        if event.output is not None:
            (event.output * 2).sum()

    with inspect.op_hook(after=lambda event: outer.append(event.name)), inspect.op_hook(after=after):
        mg.exp(x)
    assert seen == outer == ["exp"]


def test_blocks_nest():
    x, outer, inner = leaf(2), [], []
    with inspect.op_hook(after=lambda e: outer.append(e.name)):
        y = mg.exp(x)
        with inspect.op_hook(after=lambda e: inner.append(e.name)):
            z = y.sum()
        z.backward()
    assert inner == ["sum"]
    assert outer == ["exp", "sum", "sum", "exp"]


def test_an_operation_that_raises_is_told_of_without_an_output():
    def run():
        with pytest.raises(ValueError, match="add"):
            leaf(2) + leaf(3)
        mg.exp(leaf(2))

    failed, after = events_of(run)
    assert (failed.name, failed.output, failed.node) == ("add", None, None)
    assert (after.name, after.parent) == ("exp", None)


def test_an_error_in_a_hook_stops_the_computation_and_leaves_nothing_behind():
    x, seen = leaf(2), []

    def before(event):
        if event.name == "exp":
            raise RuntimeError("stop")

    with inspect.op_hook(after=seen.append):
        with pytest.raises(RuntimeError, match="stop"), inspect.op_hook(before=before):
            mg.exp(x * 2)
        mg.sin(x)
        assert len(interpreters()) == 1
    assert interpreters() == ()
    assert seen[-1].name == "sin"
    with pytest.raises(ValueError, match="before, after"), inspect.op_hook():
        pass


def test_gradients_can_be_left_alone():
    x = leaf(4, 2)
    events = events_of(lambda: x[1:].sum().backward(), gradients=False)
    assert [e.gradients for e in events if e.phase == "backward"] == [[], []]
    assert x.grad.tolist() == [[0, 0], [1, 1], [1, 1], [1, 1]]


def test_nothing_is_told_outside_of_the_block(monkeypatch):
    """The ways through the interpreters are not taken."""
    monkeypatch.setattr("minigrad.engine.primitive.interpret", None)
    monkeypatch.setattr("minigrad.engine.backward.interpret_rules", None)
    _, step = training_step()
    with inspect.op_hook(print):
        pass
    step()
    F.softmax(leaf(2)).sum().backward()
