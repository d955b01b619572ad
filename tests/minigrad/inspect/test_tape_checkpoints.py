"""Checkpoints on the tape: once, where they are computed again, under their modules."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, nn
from minigrad.func import checkpoint

from tests.minigrad.inspect.recording import leaf, names, record


def test_checkpoints_are_on_the_tape():
    """Once, where they are computed again, and connected to what stands for them; the first run is not there."""
    x = leaf(3)
    tape = record(lambda: (checkpoint(lambda t: mg.exp(mg.sin(t)), x * 2) * 3).sum().backward())
    assert all(entry.fired for entry in tape.entries.values())
    assert [name for name in names(tape) if name != "gate"] == ["sum", "mul", "checkpoint", "exp", "sin", "mul"]
    point = next(entry for entry in tape.entries.values() if entry.name == "checkpoint")
    again = [entry for entry in tape.entries.values() if entry.inside == point.number]
    assert {"exp", "sin"} <= {entry.name for entry in again}
    assert point.line.file == __file__
    assert set(point.expansions) <= {entry.number for entry in again}
    assert {entry.call.path for entry in again} == {"checkpoint (computed again)"}
    text = str(tape)
    assert "not reached" not in text
    assert text.count("── checkpoint (computed again)\n") == 1
    assert "recorded by the backward of checkpoint" not in text


def test_a_checkpoint_that_no_backward_came_by_is_one_operation():
    x = leaf(3)
    tape = record(lambda: checkpoint(lambda t: mg.exp(mg.sin(t)), x * 2).sum())
    assert names(tape) == ["sum", "checkpoint", "mul"]


def test_nested_checkpoints_in_modules_keep_their_paths():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList([nn.Sequential(nn.Linear(3, 3), nn.Tanh())])

        def forward(self, x):
            return checkpoint(lambda x: checkpoint(self.blocks[0], x) * 2, x)

    model, x = Model(), Tensor(np.ones((2, 3), np.float32))
    for options in ({"model": model}, {}):
        tape = record(lambda: model(x).sum().backward(), **options)
        assert "not reached" not in str(tape)
        assert names(tape).count("checkpoint") == 2
        (linear,) = [entry for entry in tape.entries.values() if entry.name == "linear"]
        path = "blocks.0.0" if options else "Model.blocks.0.0"
        assert linear.call.path == path
        assert [call.kind for call in linear.call.chain if call.kind.startswith("checkpoint")] \
            == ["checkpoint (computed again)"] * 2
        assert f"── {path} (Linear), checkpoint (computed again)\n" in str(tape)
        assert {one.name for one in tape.leaves.values()} == {f"{path}.weight", f"{path}.bias"}


def test_a_checkpoint_that_raises_or_gives_no_gradient_leaves_the_recording_whole():
    x = leaf(3)

    def run():
        with pytest.raises(ValueError, match="add"):
            checkpoint(lambda t: mg.exp(t) + leaf(2), x)
        checkpoint(lambda t: mg.exp(t).detach(), x)
        mg.sin(x)

    assert names(record(run)) == ["sin"]


def test_a_gradient_taken_inside_a_checkpoint_is_not_on_the_tape_twice():
    x = leaf(3)

    def slope(t):
        inner = t.detach().requires_grad_()
        return t * mg.grad((inner ** 3).sum(), inner)

    tape = record(lambda: checkpoint(slope, x).sum().backward())
    assert names(tape).count("power") == 1
    assert {entry.times for entry in tape.entries.values()} == {1}
