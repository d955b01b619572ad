"""The tape as data and as text: order, lines, shapes, what is saved, gradients, modules, checkpoints."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import inspect
from minigrad.func import checkpoint

from tests.minigrad.inspect.programs import leaf, record, training_step


def entries(tape):
    """The latest first."""
    return [entry for _, entry in sorted(tape.entries.items(), reverse=True)]


def names(tape):
    return [entry.name for entry in entries(tape)]


def entry_of(tape, name):
    return next(entry for entry in entries(tape) if entry.name == name)


# --- Operations --------------------------------------------------------------------------------------------


def test_the_order_is_that_of_the_backward(device):
    def run():
        y = mg.exp(leaf(2, 3, device=device)) * 2
        (y + mg.tanh(y)).sum().backward()

    tape = record(run)
    assert names(tape) == ["sum", "add", "tanh", "mul", "exp"]
    rows = [line.split()[1] for line in str(tape).splitlines() if line[:1].isdigit() and "→" in line]
    assert rows == names(tape)


def test_what_an_entry_tells():
    x, w = leaf(2, 3), leaf(3, 4)

    def run():
        y = x @ w
        y.backward(np.full((2, 4), 2.0))

    tape = record(run)
    (entry,) = tape.entries.values()
    assert entry.line == f"test_tape:{run.__code__.co_firstlineno + 1}"
    assert (entry.inputs, entry.shape, entry.dtype) == ([(2, 3), (3, 4)], (2, 4), np.float64)
    assert sorted(entry.saved) == [("x", 48), ("y", 96)]
    assert entry.gradient_norm == pytest.approx(2 * np.sqrt(8))
    assert [tape.leaves[number] for _, number in entry.parents] == [x, w]
    assert f"{np.linalg.norm(w.grad.numpy()):.2e}" in str(tape)


@pytest.mark.parametrize("fused", [True, False])
def test_a_training_step_grouped_by_module(device, fused):
    model, step = training_step(device)
    with mg.fused(fused):
        tape = record(step)
    norms = [entry.gradient_norm for entry in entries(tape) if entry.gradient_norm is not None]
    assert np.isfinite([float(norm) for norm in norms]).all()
    assert {tape.name_of(number) for number in tape.leaves} == {
        f"Transformer.{name}" for name, _ in model.named_parameters()}
    assert "── Transformer.projection" in str(tape).splitlines()


def test_recording_does_not_wait_for_the_device(stand_in):
    _, step = training_step("cuda:0")
    step()
    stand_in.synchronizations.clear()
    step()
    alone = dict(stand_in.synchronizations)
    stand_in.synchronizations.clear()
    with inspect.record_tape(), inspect.memory_meter():
        step()
    assert dict(stand_in.synchronizations) == alone


# --- Checkpoints -------------------------------------------------------------------------------------------


def test_a_checkpoint_is_on_the_tape_where_it_is_computed_again():
    """Once; the first run is not there."""
    x = leaf(3)
    tape = record(lambda: (checkpoint(lambda t: mg.exp(mg.sin(t)), x * 2) * 3).sum().backward())
    assert [name for name in names(tape) if name != "gate"] == ["exp", "sin", "sum", "mul", "checkpoint", "mul"]
    assert entry_of(tape, "exp").heading == "recorded by the backward of checkpoint"
    assert entry_of(tape, "checkpoint").line.startswith("test_tape:")
