"""Memory runs out: one line says what did not fit and what to lower; the last checkpoint is intact, a run goes on."""

import re
import shutil

import numpy as np
import pytest

from tests.transformer import runs
from tests.transformer.commands import SMALL, call, contents, refused
from transformer.checkpoints import load_run, numbered
from transformer.model import Transformer
from transformer.train import TrainingError
from transformer.translator import Translator

OPTIONS = {"steps": 6, "schedule": "constant"}
UNABLE = r"\(Unable to allocate .* for an array with shape \(10000000, 10000000\) and data type float64\)"


def too_much(*arguments, **keywords):
    """More than any machine can address."""
    return np.zeros((10**7, 10**7))


def ended(out, **changes):
    """The one line with which a run ends."""
    with pytest.raises(TrainingError) as caught:
        runs.run(out, **{**OPTIONS, **changes})
    assert "\n" not in str(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None, "nothing keeps the arrays alive"
    return str(caught.value)


def peak(stand_in, out, **changes):
    """The most memory that a run takes on the stand-in."""
    stand_in.memory.clear()
    runs.run(out, **changes, device="cuda")
    return stand_in.memory.held[0]


# ----------------------------------------------------------------- an update


def test_a_batch_that_a_gpu_has_no_room_for(stand_in, tmp_path):
    """From the checkpoint the run goes on in parts, with the memory that there is, and without them elsewhere."""
    out, model = tmp_path / "run", {"d_ff": 2000, "dropout": 0.0}
    shared = {"model": model, "steps": 3, "schedule": "constant", "valid_sentences": 1}
    sizes = {parts: peak(stand_in, tmp_path / str(parts), **shared, micro_batches=parts) for parts in (1, 4)}
    assert sizes[4] < 0.9 * sizes[1]
    runs.interrupted(out, 1, **shared, device="cuda")
    before = runs.snapshot(out)
    stand_in.memory.clear()
    stand_in.memory.limit = (sizes[1] + sizes[4]) // 2
    said = ended(out, **shared, resume=True, device="cuda")
    number, amount = r"[\d,]+", r"[\d.]+ [kM]B"
    count = sum(parameter.size for parameter in Transformer(runs.config(**model)).parameters())
    assert re.fullmatch(
        rf"out of memory at step [23]: a batch of {number} sentences × {number} source and {number} target tokens did "
        rf"not fit \(Out of memory allocating {number} bytes \(allocated so far: {number} bytes\)\); the model has "
        rf"{count:,} parameters, cuda:0 has {amount}, of which the pool held {amount}, with {amount} in use; go on "
        r"with --resume --micro-batches 2, which makes the same updates of smaller parts, or begin anew with a lower "
        r"--batch-tokens \(it is 64; a larger --accumulate keeps the size of an update\) or a smaller model \(the last "
        r"checkpoint, 00000001-interrupted, is intact\)", said), said
    assert runs.snapshot(out) == before
    other = shutil.copytree(out, tmp_path / "other")
    runs.run(out, resume=True, micro_batches=4, **shared, device="cuda")
    runs.run(other, resume=True, **shared, device="cpu")
    for folder in (out, other):
        for name, array in runs.parameters(tmp_path / "1").items():
            if not name.endswith("key.bias"):  # its gradient is 0 but for rounding, of which Adam makes full steps
                np.testing.assert_allclose(runs.parameters(folder)[name], array, rtol=0, atol=1e-5, err_msg=name)


def test_a_batch_that_the_host_has_no_room_for(tmp_path, monkeypatch):
    """The numbers are of the part that was computed; before a checkpoint nothing is said about going on."""
    loss = Transformer.loss

    def at_step_5(model, source, labels, *arguments, **keywords):
        if model.training:
            seen.append((source.shape, labels.shape))
            if len(seen) > 4 * 2:
                too_much()
        return loss(model, source, labels, *arguments, **keywords)

    seen = []
    monkeypatch.setattr(Transformer, "loss", at_step_5)
    said = ended(tmp_path / "late")
    (sentences, source), (_, target) = seen[-1]
    batch = f"a batch of {sentences} sentences × {source} source and {target} target tokens"
    assert re.match(f"out of memory at step 5: {batch} did not fit {UNABLE}; the model has ", said)
    assert "cuda" not in said
    assert said.endswith("(the last checkpoint, 00000004, is intact)")
    assert numbered(tmp_path / "late") == ["00000004"]
    seen = [None] * 100
    said = ended(tmp_path / "early", micro_batches=3)
    assert "out of memory at step 1: " in said
    assert "; give --micro-batches 6, which " in said
    assert "--resume" not in said
    assert said.endswith("(there is no checkpoint yet)")
    monkeypatch.undo()
    runs.run(tmp_path / "late", resume=True, **OPTIONS)
    runs.run(tmp_path / "whole", **OPTIONS)
    assert runs.contents(tmp_path / "late") == runs.contents(tmp_path / "whole")


def test_a_sentence_cannot_be_divided(tmp_path, monkeypatch):
    monkeypatch.setattr(Transformer, "loss", too_much)
    said = ended(tmp_path, train_pairs=runs.PAIRS[:1], micro_batches=2)
    assert "a part of a batch, 1 sentence × " in said
    assert "leave out the longest sentences, or use a smaller model" in said
    assert "--micro-batches" not in said


@pytest.mark.parametrize("threads", [1, 2])
def test_the_optimizer_has_no_room(threads, tmp_path, monkeypatch):
    monkeypatch.setattr("minigrad.optim.AdamW.update", too_much)
    said = ended(tmp_path, threads=threads)
    assert re.match(f"out of memory at step 1: the update did not fit {UNABLE}; the model has ", said)


# ----------------------------------------------------------------- validation and decoding


@pytest.mark.parametrize("resumable", [True, False])
def test_a_validation_that_does_not_fit(resumable, tmp_path, monkeypatch):
    if resumable:
        runs.interrupted(tmp_path, 3, **OPTIONS)
    before = runs.snapshot(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(Translator, "translate", too_much)
        said = ended(tmp_path, resume=resumable)
    assert re.match(f"out of memory after step 4: the validation did not fit {UNABLE}; the model has ", said)
    allowed = ", which --resume allows" if resumable else ""
    assert f"; give --valid-sentences (it is 3) a number below 64{allowed}, or use a smaller model (" in said
    if resumable:
        assert runs.snapshot(tmp_path) == before
        runs.run(tmp_path, resume=True, valid_sentences=1, **OPTIONS)
        assert load_run(tmp_path, "latest")[0].progress["step"] == 6


def test_fewer_sentences_to_decode_take_less_memory(run, stand_in):
    """For the loss, too, which the same command computes."""
    translator = Translator.load(run, "cuda")
    pairs, held = [("one two three", "一 二 三")] * 64, []
    for batch_size in (64, 2):
        stand_in.memory.clear()
        translator.evaluate(pairs, batch_size=batch_size)
        held.append(stand_in.memory.held[0])
    assert held[1] < 0.5 * held[0]


@pytest.mark.parametrize(("command", "given", "lower"), [
    ("translate", [], "lower --batch-size (it is 64)"),
    ("translate", ["--batch-size", 8, "--beam", 4], "lower --batch-size (it is 8) or --beam (it is 4)"),
    ("translate", ["--batch-size", 1, "--beam", 3], "lower --beam (it is 3)"),
    ("translate", ["--batch-size", 1], "take a shorter text or a smaller model"),
    ("evaluate", ["--batch-size", 9], "lower --batch-size (it is 9)"),
    ("explain", ["one two", "--text"], "take a shorter text or a smaller model"),
])
def test_commands_that_decode(command, given, lower, run, tmp_path, monkeypatch):
    monkeypatch.setattr(Transformer, "encode", too_much)
    monkeypatch.setattr(Transformer, "loss", too_much)
    files = []
    if command == "evaluate":
        for side, text in (("source", "one two\n"), ("target", "一 二\n")):
            (tmp_path / side).write_text(text, encoding="utf-8")
            files += [f"--{side}", tmp_path / side]
    said = refused(command, run, *files, *given, standard_input="one two\n" if command == "translate" else None)
    assert re.match(rf"Error: out of memory {UNABLE}; ", said)
    assert said.rstrip().endswith(f"; {lower}")


def test_the_command_that_trains(tmp_path, monkeypatch):
    """Its checkpoint is as it was, and its line is one."""
    out = tmp_path / "run"
    assert call("train", *SMALL, "--steps", 2, "--out", out).exit_code == 0
    before = contents(out)
    monkeypatch.setattr(Transformer, "loss", too_much)
    result = call("train", "--resume", "--out", out, "--steps", 3, "--quiet")
    assert result.exit_code == 2
    assert re.fullmatch(r"Error: out of memory at step 3: a batch of .*; go on with --resume --micro-batches 2, .*\n",
                        result.stderr)
    assert {path: data for path, data in contents(out).items() if path.suffix != ".png"} == \
        {path: data for path, data in before.items() if path.suffix != ".png"}
