"""op_hook: every operation once each way, nested where rules are operations, and nothing outside of the block."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import inspect
from minigrad.engine.interpreters import interpreters
from minigrad.func import checkpoint

from tests.minigrad.inspect.programs import leaf, training_step


def events_of(function):
    events = []
    with inspect.op_hook(after=events.append):
        function()
    return events


def test_every_operation_is_told_of_before_and_after_both_ways(device):
    x, seen = leaf(2, 3, device=device), []
    with inspect.op_hook(lambda e: seen.append(("before", e.phase, e.name)),
                         lambda e: seen.append(("after", e.phase, e.name))):
        mg.exp(x * 2).sum().backward()
    assert seen == [(when, phase, name)
                    for phase, names in (("forward", ["mul", "exp", "sum"]), ("backward", ["sum", "exp", "mul"]))
                    for name in names for when in ("before", "after")]


def test_an_event_has_what_went_in_and_came_out():
    x, w, events = leaf(2, 3), leaf(3, 4), []
    with inspect.op_hook(after=events.append):
        out = mg.where(np.array([True, False, True]), x, 7.0) @ w
        out.backward(np.ones((2, 4)))
        mg.concatenate([x, x])
    fill, product, backward, *_, variadic = events
    assert fill.inputs[1:] == (x, 7.0)  # constants, too
    assert (product.output, product.node, product.inputs[1]) == (out, out._node, w)
    assert (backward.phase, backward.output, backward.node) == ("backward", None, out._node)
    np.testing.assert_array_equal(backward.inputs[0], np.ones((2, 4)))
    assert [name for name, _ in backward.gradients] == ["x", "y"]
    np.testing.assert_allclose(backward.gradients[1][1], w.grad.numpy())
    assert variadic.inputs[0] == (x, x)


def test_a_checkpoint_is_an_event_around_its_first_run_and_around_the_second():
    x = leaf(3)
    events = events_of(lambda: checkpoint(lambda t, *, factor: mg.exp(t) * factor, x, factor=2.0).sum().backward())
    first, second = ([e for e in events if e.name == "exp" and e.phase == "forward"])
    assert (first.module, second.module) == ("", "checkpoint (computed again)")
    around = [(e.phase, e.name) for e in events if e.name in ("checkpoint", "exp")]
    assert around == [("forward", "exp"), ("forward", "checkpoint"), ("forward", "exp"), ("backward", "checkpoint"),
                      ("backward", "exp")]


def test_an_event_names_its_module_both_ways():
    _, step = training_step()
    seen, prefix = {(e.phase, e.module) for e in events_of(step)}, "Transformer."
    for module in ("encoder.layers.0.self_attention.query", "decoder.layers.0.feed_forward.inner", "decoder.norm"):
        assert {("forward", prefix + module), ("backward", prefix + module)} <= seen


def test_blocks_nest_and_what_a_hook_computes_is_not_told_of():
    x, outer, inner = leaf(2), [], []

    def after(event):
        inner.append(event.name)
        event.output * 2

    with inspect.op_hook(after=lambda event: outer.append(event.name)):
        y = mg.exp(x)
        with inspect.op_hook(after=after):
            z = y.sum()
        z.backward()
    assert (inner, outer) == (["sum"], ["exp", "sum", "sum", "exp"])


def test_what_raises_is_told_of_and_ends_with_its_error():
    x, seen = leaf(2), []

    def before(event):
        if event.name == "exp":
            raise RuntimeError("stop")

    with inspect.op_hook(after=seen.append):
        with pytest.raises(ValueError, match="add"):
            x + leaf(3)
        with pytest.raises(RuntimeError, match="stop"), inspect.op_hook(before=before):
            mg.exp(x)
        mg.sin(x)
        assert len(interpreters()) == 1
    assert interpreters() == ()
    assert [(e.name, e.output is None, e.node is None) for e in seen] == [
        ("add", True, True), ("exp", True, True), ("sin", False, False)]
    with pytest.raises(ValueError, match="before, after"), inspect.op_hook():
        pass


def test_outside_of_the_block_nothing_goes_through_the_interpreters(monkeypatch):
    monkeypatch.setattr("minigrad.engine.primitive.interpret", None)
    monkeypatch.setattr("minigrad.engine.backward.interpret_rules", None)
    _, step = training_step()
    with inspect.op_hook(print):
        pass
    step()
