"""Pictures of what stands for other things: checkpoints, fused operations, modules as one box."""

import pytest

from minigrad import Tensor, inspect
from minigrad.inspect.table import shape_text

from tests.minigrad.inspect.steps import training_step
from tests.minigrad.inspect.tapes import attention_tape, checkpoint_tape, expansion_tape, step_tape


def connected(picture):
    """How many parts the picture falls into."""
    group = {box.number: box.number for box in picture.boxes}

    def top(number):
        while group[number] != number:
            number = group[number]
        return number

    for edge in picture.edges:
        group[top(edge.source.number)] = top(edge.target.number)
    return len({top(box.number) for box in picture.boxes})


def test_a_picture_of_checkpoints_is_in_one_piece():
    """What is computed again stands between what the checkpoint was given and the checkpoint."""
    tape = checkpoint_tape()
    drawn = inspect.draw(tape).picture
    assert connected(drawn) == 1
    assert [frame.title for frame in drawn.frames].count("checkpoint (computed again)") == 4
    points = [box for box in drawn.boxes if box.title == "checkpoint"]
    assert len(points) == 4
    for point in points:
        (edge,) = [edge for edge in drawn.edges if edge.target is point]
        assert point.inputs == ["computed again"]
        assert edge.source.call.path == "checkpoint (computed again)"
        assert edge.source.norm == pytest.approx(point.norm)


def test_an_expanded_composition_is_connected_to_the_fused_operation():
    drawn = inspect.draw(expansion_tape()).picture
    fused = next(box for box in drawn.boxes if box.title == "layer_norm")
    assert fused.inputs[-1] == "composition"
    assert len([edge for edge in drawn.edges if edge.target is fused]) == len(fused.inputs)


def test_to_a_depth_modules_are_one_box_each():
    tape = step_tape()
    drawn = inspect.draw(tape, depth=1)
    boxes = {box.title: box for box in drawn.picture.boxes}
    assert {box.title for box in boxes.values() if box.kind == "module"} == {"encoder", "decoder", "projection"}
    assert [frame.title for frame in drawn.picture.frames] == ["Transformer"]
    entries = [entry for entry in tape.entries.values() if entry.call is not None]
    ends = {name: max((entry for entry in entries if entry.call.path.startswith(name)), key=lambda e: e.number)
            for name in ("encoder", "decoder", "projection")}
    for name, source in (("decoder", "encoder"), ("projection", "decoder")):
        assert boxes[name].norm == ends[name].gradient_norm
        assert boxes[name].inputs == [shape_text(ends[source].shape)]
        assert f"|g| in {ends[source].gradient_norm:.2e}" in boxes[name].details
        assert f"|g| out {ends[name].gradient_norm:.2e}" in boxes[name].details
        assert f"→ {shape_text(ends[name].shape)} f32" in boxes[name].details
        assert [edge.source.title for edge in drawn.picture.edges if edge.target is boxes[name]] == [source]
    model, _ = training_step()
    counted = [int(text.split()[0].replace(",", "")) for box in boxes.values() for text in box.details
               if text.endswith("parameters")]
    assert sum(counted) == model.num_parameters()
    assert boxes["encoder"].details[0] == "Encoder"
    assert drawn.dot.count("subgraph cluster_") == 1


def test_depth_goes_from_the_outermost_module_to_every_operation():
    tape = step_tape()
    counts = [len(inspect.draw(tape, depth=depth).picture.boxes) for depth in range(8)]
    assert counts == sorted(counts)
    assert counts[0] < 8
    assert counts[-1] == len(inspect.draw(tape).picture.boxes)
    (whole,) = [box for box in inspect.draw(tape, depth=0).picture.boxes if box.kind == "module"]
    assert whole.title == "Transformer"
    assert whole.inputs == []


def test_a_tensor_that_enters_a_module_several_times_enters_its_box_once():
    drawn = inspect.draw(attention_tape(), depth=0).picture
    (module,) = [box for box in drawn.boxes if box.kind == "module"]
    assert module.inputs == ["(2,5,8)"]
    assert [(edge.source.title, edge.target.title) for edge in drawn.edges] \
        == [("leaf", "MultiHeadAttention"), ("MultiHeadAttention", "sum")]


def test_a_depth_that_cannot_be_drawn():
    tape = attention_tape(backward=False)
    for depth in (1.0, True, "1"):
        with pytest.raises(TypeError, match="draw: depth must be an integer or None, got"):
            inspect.draw(tape, depth=depth)
    with pytest.raises(ValueError, match="draw: depth must be at least 0, got -1"):
        inspect.draw(tape, depth=-1)
    with pytest.raises(ValueError, match="draw: depth needs a tape"):
        inspect.draw(Tensor([1.0], requires_grad=True) * 2, depth=1)
