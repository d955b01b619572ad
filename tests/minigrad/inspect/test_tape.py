"""The tape as data and as text: order, lines, shapes, what is saved for which rule, gradients, modules."""

import gc
import threading
import weakref

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, inspect, nn
from minigrad import functional as F
from minigrad.engine.interpreters import interpreters

from tests.minigrad.inspect.recording import leaf, names, record
from tests.minigrad.inspect.steps import training_step


def rows(text):
    """The lines of operations, as lists of cells."""
    return [line.split() for line in text.splitlines() if line.lstrip()[:1].isdigit() and "in the order" not in line]


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
    assert entry.line.file == __file__
    assert "THIS LINE" in entry.line.source
    assert entry.line.function == "run"
    assert entry.inputs == [("x", (2, 3)), ("y", (3, 4))]
    assert (entry.shape, entry.dtype) == ((2, 4), np.float64)
    arrays = {kept.name: (kept.shape, kept.nbytes, kept.rules) for kept in entry.kept if kept.nbytes}
    assert arrays == {"x": ((2, 3), 48, ("y",)), "y": ((3, 4), 96, ("x",))}
    assert entry.gradient_norm == pytest.approx(2 * np.sqrt(8))
    assert [tape.leaves[number].tensor is tensor for (_, number), tensor in zip(entry.parents, (x, w), strict=True)] \
        == [True, True]


def test_only_what_rules_ask_for_is_saved():
    x = leaf(4)
    y = Tensor(np.ones(4))
    tape = record(lambda: (x * y).sum())
    product = next(entry for entry in tape.entries.values() if entry.name == "mul")
    assert [(kept.name, kept.rules) for kept in product.kept] == [("y", ("x",))]
    assert [shape for _, shape in product.inputs] == [(4,), (4,)]  # constants are inputs, too
    assert [name for name, _ in product.parents] == ["x"]


def test_joint_rules_and_their_saved_values():
    x = leaf(2, 5, 4)
    tape = record(lambda: F.scaled_dot_product_attention(x, x, Tensor(np.ones((2, 5, 4)))))
    (entry,) = tape.entries.values()
    kept = {one.name: one for one in entry.kept}
    assert kept["weights"].shape == (2, 5, 5)
    assert kept["weights"].rules == ("query", "key")
    assert kept["mask"].rules == ()  # for the composition, under create_graph
    text = tape.text(width=400)
    assert "weights (2,5,5) 400 B, query 320 B" in text
    assert "→∂query∂key; " not in text  # both: all of those that need one
    assert "→∂all; mask→create_graph" in text


def test_variadic_operations():
    x, y = leaf(2), leaf(3)
    tape = record(lambda: mg.concatenate([x, Tensor(np.ones(1)), y]).sum().backward())
    entry = next(entry for entry in tape.entries.values() if entry.name == "concatenate")
    assert [name for name, _ in entry.parents] == ["xs[0]", "xs[2]"]
    assert [shape for _, shape in entry.inputs] == [(2,), (1,), (3,)]


def test_the_text_of_a_plain_program():
    x = leaf(2, 3)
    text = str(record(lambda: mg.exp(x @ x.T).sum().backward()))
    found = rows(text)
    assert [row[:2] for row in found] == [["1", "sum"], ["2", "exp"], ["3", "matmul"], ["4", "transpose"]]
    assert all("test_tape:" in row[2] for row in found)
    assert "(2,3) (3,2) → (2,2) f64" in text
    assert "out 32 B→∂x" in text
    assert "y 48 B" in text
    assert found[0][-1] == "1.00e+00"
    assert "──" not in text  # no modules, no headings
    assert text.splitlines()[0].startswith("4 operations, in the order in which the backward fired them")


def test_what_no_backward_came_by_is_said():
    x = leaf(3)

    def run():
        unused = mg.sin(x)
        mg.exp(x).sum().backward()
        return unused

    text = str(record(run))
    assert [row[1] for row in rows(text)] == ["sum", "exp", "sin"]
    assert "not reached" in text.splitlines()[-4]


def test_the_second_order_is_on_the_tape(device):
    x = leaf(3, device=device)

    def run():
        (first,) = mg.grad(mg.tanh(x).sum(), [x], create_graph=True)
        (first * first).sum().backward()

    tape = record(run)
    tanh = next(entry for entry in tape.entries.values() if entry.name == "tanh")
    assert tanh.times == 2
    inside = [entry for entry in tape.entries.values() if entry.inside == tanh.number]
    assert inside
    assert all(entry.fired is not None for entry in inside)
    text = str(tape)
    assert "recorded by the backward of tanh" in text
    assert "×2" in text


def test_an_expanded_composition_fires_in_the_place_of_the_fused_operation():
    x = leaf(3, 4)

    def run():
        (first,) = mg.grad(F.layer_norm(x).sum(), [x], create_graph=True)
        (first * first).sum().backward()

    tape = record(run)
    fused = next(entry for entry in tape.entries.values() if entry.name == "layer_norm")
    expanded = [entry.name for entry in tape.entries.values() if entry.inside == fused.number]
    assert {"sqrt", "div", "mean"} <= set(expanded)


@pytest.mark.parametrize("fused", [True, False])
def test_a_training_step_grouped_by_module(device, fused):
    model, step = training_step(device)
    with mg.fused(fused):
        tape = record(step, model=model)
    fired = [entry for entry in tape.entries.values() if entry.fired is not None]
    assert all(np.isfinite(entry.gradient_norm) for entry in fired)
    paths = {entry.call.path for entry in tape.entries.values() if entry.call is not None}
    assert {"encoder.layers.0.self_attention.query", "decoder.norm", "projection"} <= paths
    assert {leaf.name for leaf in tape.leaves.values()} == {name for name, _ in model.named_parameters()}
    text = tape.text(count=None, width=120)
    assert "── encoder.layers.0.self_attention.query (Linear)" in text
    assert max(len(line) for line in text.splitlines()) <= 120
    assert len(rows(text)) >= len(tape.entries)
    if not fused:
        assert "›softmax:" in text  # the line of the composition


def test_without_a_model_parameters_are_named_from_the_outermost_class():
    layer = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
    tape = record(lambda: layer(Tensor(np.ones((2, 3), np.float32))).sum().backward())
    assert {one.name for one in tape.leaves.values()} == {"Sequential.0.weight", "Sequential.0.bias"}
    assert {entry.call.path for entry in tape.entries.values() if entry.call} == {"Sequential.0", "Sequential.1"}


def test_a_long_tape_is_abbreviated():
    def run():
        x = leaf(2)
        for _ in range(50):
            x = x * 2
        x.sum().backward()

    tape = record(run)
    text = tape.text(count=10)
    assert [row[0] for row in rows(text)] == ["1", "2", "3", "4", "5", "47", "48", "49", "50", "51"]
    assert "41 more" in text
    assert len(rows(tape.text(count=None))) == 51


def test_a_tensor_that_was_recorded_before():
    x = leaf(3)
    loss = mg.exp(x * 2).sum()
    tape = inspect.tape(loss)
    assert names(tape) == ["sum", "exp", "mul"]
    text = str(tape)
    assert "record_tape()" in text  # how to see more
    assert "made at " not in text.splitlines()[7]
    loss.backward()
    after = inspect.tape(loss)
    assert all(entry.kept is None for entry in after.entries.values())
    assert "freed" in str(after)
    assert "|gradient|  " not in str(after)  # what .grad holds need not be from this graph
    assert [one.gradient_norm for one in after.leaves.values()] == [None]


def test_names_of_parameters_for_a_recorded_tensor():
    model = nn.Linear(3, 2)
    loss = model(Tensor(np.ones((1, 3), np.float32))).sum()
    assert {one.name for one in inspect.tape(loss, model).leaves.values()} == {"weight", "bias"}


def test_what_cannot_be_shown():
    with pytest.raises(TypeError, match="a tensor expected, got float"):
        inspect.tape(1.0)
    with pytest.raises(ValueError, match="nothing was recorded"):
        inspect.tape(Tensor([1.0]))


def test_operations_from_before_the_block_appear_when_they_fire():
    y = mg.exp(leaf(3))
    tape = record(lambda: y.sum().backward())
    assert names(tape) == ["sum", "exp"]
    assert tape.in_firing_order()[1].line is None


def test_recording_does_not_wait_for_the_device(stand_in):
    model, step = training_step("cuda:0")
    step()
    stand_in.synchronizations.clear()
    step()
    alone = dict(stand_in.synchronizations)
    stand_in.synchronizations.clear()
    with inspect.record_tape(model), inspect.op_hook(after=lambda e: None), inspect.memory_meter():
        step()
    assert dict(stand_in.synchronizations) == alone


def test_a_tape_keeps_no_values_alive():
    gc.disable()
    try:
        with inspect.record_tape() as tape:
            x = leaf(3)
            loss = mg.exp(x * 2).sum()
            loss.backward()
        node, data, parameter = weakref.ref(loss._node), weakref.ref(loss._data), weakref.ref(x)
        del loss, x
        assert (node(), data(), parameter()) == (None, None, None)
        assert "exp" in str(tape)
        gone = weakref.ref(tape)
        del tape
        assert gone() is None
    finally:
        gc.enable()


def test_an_exception_ends_the_recording():
    with pytest.raises(ValueError, match="add"), inspect.record_tape() as tape:
        mg.exp(leaf(2)) + leaf(3)
    assert interpreters() == ()
    mg.exp(leaf(2))
    assert names(tape) == ["exp"]


def test_other_threads_are_not_recorded():
    with inspect.record_tape() as tape:
        thread = threading.Thread(target=lambda: mg.exp(leaf(2)))
        thread.start()
        thread.join()
    assert tape.entries == {}
