"""The tape as data and as text: order, lines, shapes, what is saved for which rule, gradients, modules, checkpoints."""


import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, inspect, nn
from minigrad import functional as F
from minigrad.func import checkpoint

from tests.minigrad.inspect import programs
from tests.minigrad.inspect.programs import leaf, record, training_step


def names(tape):
    return [entry.name for entry in tape.in_firing_order()]


def entry_of(tape, name):
    return next(entry for entry in tape.entries.values() if entry.name == name)


def inside(tape, outer):
    return [entry for entry in tape.entries.values() if entry.inside == outer.number]


# --- Operations --------------------------------------------------------------------------------------------


def test_the_order_is_that_of_the_backward(device):
    x, order = leaf(2, 3, device=device), []
    with inspect.op_hook(before=lambda e: order.append(e.name) if e.phase == "backward" else None), \
         inspect.record_tape() as tape:
        y = mg.exp(x) * 2
        loss = (y + mg.tanh(y)).sum()
        before = names(tape)
        loss.backward()
    assert before == names(tape) == order == ["sum", "add", "tanh", "mul", "exp"]
    assert [entry.fired for entry in tape.in_firing_order()] == [1, 2, 3, 4, 5]


def test_what_an_entry_tells():
    x, w = leaf(2, 3), leaf(3, 4)

    def run():
        y = x @ w  # THIS LINE
        y.backward(np.full((2, 4), 2.0))

    tape = record(run)
    (entry,) = tape.entries.values()
    assert (entry.line.file, entry.line.function) == (__file__, "run")
    assert "THIS LINE" in entry.line.describe()
    assert (entry.inputs, entry.shape, entry.dtype) == ([("x", (2, 3)), ("y", (3, 4))], (2, 4), np.float64)
    assert entry.kept == [("y", 96, ("x",)), ("x", 48, ("y",))]
    assert entry.gradient_norm == pytest.approx(2 * np.sqrt(8))
    assert [tape.leaves[number].tensor for _, number in entry.parents] == [x, w]


def test_constants_are_inputs_but_no_parents_and_only_what_rules_ask_for_is_saved():
    x, ones = leaf(4), Tensor(np.ones(4))
    product = entry_of(record(lambda: x * ones), "mul")
    assert [(kept.name, kept.rules) for kept in product.kept] == [("y", ("x",))]
    assert product.inputs == [("x", (4,)), ("y", (4,))]
    assert [name for name, _ in product.parents] == ["x"]
    joined = entry_of(record(lambda: mg.concatenate([x, ones, leaf(3)])), "concatenate")
    assert [name for name, _ in joined.parents] == ["xs[0]", "xs[2]"]
    assert [shape for _, shape in joined.inputs] == [(4,), (4,), (3,)]


def test_joint_rules_and_their_saved_values():
    x = leaf(2, 5, 4)
    tape = record(lambda: F.scaled_dot_product_attention(x, x, Tensor(np.ones((2, 5, 4)))))
    (entry,) = tape.entries.values()
    kept = {one.name: one for one in entry.kept}
    assert (kept["weights"].nbytes, kept["weights"].rules) == (400, ("query", "key"))
    assert kept["value"].nbytes == 320


def test_what_rules_record_is_on_the_tape():
    tape = programs.second_order_tape()
    tanh = entry_of(tape, "tanh")
    assert inside(tape, tanh)
    assert all(entry.fired is not None for entry in inside(tape, tanh))
    tape = programs.expansion_tape()  # of layer_norm, in the place of the fused operation
    assert {"sqrt", "div", "mean"} <= {entry.name for entry in inside(tape, entry_of(tape, "layer_norm"))}


@pytest.mark.parametrize("fused", [True, False])
def test_a_training_step_grouped_by_module(device, fused):
    model, step = training_step(device)
    with mg.fused(fused):
        tape = record(step)
    fired = [entry for entry in tape.entries.values() if entry.fired is not None]
    assert all(np.isfinite(entry.gradient_norm) for entry in fired)
    assert {leaf.name for leaf in tape.leaves.values()} == {
        f"Transformer.{name}" for name, _ in model.named_parameters()}
    assert "── Transformer.projection (Linear)" in str(tape).splitlines()


def test_what_was_recorded_before_is_told_of_as_far_as_its_nodes_know():
    loss = mg.exp(nn.Linear(3, 2)(Tensor(np.ones((1, 3), np.float32))) * 2).sum()
    late = record(loss.backward)
    assert names(late) == ["sum", "exp", "mul", "linear"]
    assert {entry.line for entry in late.entries.values()} == {None}


def test_recording_does_not_wait_for_the_device(stand_in):
    _, step = training_step("cuda:0")
    step()
    stand_in.synchronizations.clear()
    step()
    alone = dict(stand_in.synchronizations)
    stand_in.synchronizations.clear()
    with inspect.record_tape(), inspect.op_hook(after=lambda e: None), inspect.memory_meter():
        step()
    assert dict(stand_in.synchronizations) == alone


# --- Checkpoints -------------------------------------------------------------------------------------------


def test_a_checkpoint_is_on_the_tape_where_it_is_computed_again():
    """Once, and connected to what stands for it; the first run is not there."""
    x = leaf(3)
    tape = record(lambda: (checkpoint(lambda t: mg.exp(mg.sin(t)), x * 2) * 3).sum().backward())
    assert [name for name in names(tape) if name != "gate"] == ["sum", "mul", "checkpoint", "exp", "sin", "mul"]
    point = entry_of(tape, "checkpoint")
    again = inside(tape, point)
    assert {"exp", "sin"} <= {entry.name for entry in again}
    assert point.line.file == __file__
    assert set(point.expansions) <= {entry.number for entry in again}


def test_nested_checkpoints_in_modules_keep_their_paths():
    tape, prefix = programs.checkpoint_tape(), "Checkpointed."
    assert names(tape).count("checkpoint") == 4
    linears = [entry for entry in tape.entries.values() if entry.name == "linear"]
    assert {entry.call.path for entry in linears} == {f"{prefix}blocks.0.0", f"{prefix}blocks.1.0"}
    for entry in linears:
        assert [call.kind for call in entry.call.chain].count("checkpoint (computed again)") == 2
    assert {one.name for one in tape.leaves.values()} == {
        None, *(f"{prefix}blocks.{name}" for name in ("0.0.weight", "0.0.bias", "1.0.bias"))}


def test_what_a_first_run_of_a_checkpoint_does_is_not_on_the_tape():
    x = leaf(3)

    def slope(t):
        inner = t.detach().requires_grad_()
        return t * mg.grad((inner ** 3).sum(), inner)

    def run():
        with pytest.raises(ValueError, match="add"):
            checkpoint(lambda t: mg.exp(t) + leaf(2), x)
        checkpoint(lambda t: mg.exp(t).detach(), x)  # gives no gradient
        checkpoint(mg.tanh, mg.sin(x))

    assert names(record(run)) == ["checkpoint", "sin"]
    tape = record(lambda: checkpoint(slope, x).sum().backward())
    assert names(tape).count("power") == 1


# --- Leaves and lines --------------------------------------------------------------------------------------


def test_a_leaf_has_the_gradient_of_the_last_backward_after_hooks_and_not_the_sum_of_all(device):
    w, other = leaf(4, device=device), leaf(2, device=device)
    (w * 2).sum().backward()  # before the block

    def run():
        (w * 2).sum().backward()
        w.register_hook(lambda g: g * 10)
        (w * w.detach() + w).sum().backward()
        mg.grad((other * 2).sum(), other)

    tape = record(run)
    first, second = tape.leaves.values()
    assert first.gradient_norm == pytest.approx(10 * np.linalg.norm(w.numpy() + 1))
    assert second.gradient_norm == pytest.approx(2 * np.sqrt(2))  # `grad` counts as well, though .grad is not touched
