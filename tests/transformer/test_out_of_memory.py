"""Memory runs out: one line says what did not fit and what helps, which does; the last checkpoint is intact."""

import gc
import re
import shutil
import weakref

import numpy as np
import pytest

from tests.transformer import runs
from tests.transformer.shortage import OPTIONS, UNABLE, ended, failing, followed, too_much
from transformer.model import Transformer
from transformer.training.checkpoints import load_run, numbered
from transformer.training.packed import packed_loss
from transformer.translator import Translator


def peak(stand_in, out, **changes):
    """The most memory that a run takes on the stand-in."""
    gc.collect()  # what earlier tests left behind
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
        rf"{count:,} parameters, which with their gradients and Adam's two moments take {amount}, cuda:0 has {amount}, "
        rf"of which the pool held {amount}, with {amount} in use; go on with --resume --micro-batches 2 or more, up to "
        rf"{number}, which makes the same updates of smaller parts, or begin anew with a lower --batch-tokens \(it is "
        r"64; a larger --accumulate keeps the size of an update\) or a smaller model \(the last checkpoint, "
        r"00000001-interrupted, is intact\)", said), said
    assert runs.snapshot(out) == before
    other = shutil.copytree(out, tmp_path / "other")
    assert followed(out, said, **shared, device="cuda")["micro_batches"] in (2, 4)
    runs.run(other, resume=True, **shared, device="cpu")
    for folder in (out, other):
        for name, array in runs.parameters(tmp_path / "1").items():
            if not name.endswith("key.bias"):  # its gradient is 0 but for rounding, of which Adam makes full steps
                np.testing.assert_allclose(runs.parameters(folder)[name], array, rtol=0, atol=1e-5, err_msg=name)


def test_a_batch_that_the_host_has_no_room_for(tmp_path, monkeypatch):
    """The numbers are of the part that was computed; before a checkpoint nothing is said about going on."""
    def at_step_5(model, source, labels, *arguments, **keywords):
        seen.append((source.shape, labels.shape))
        if len(seen) > 4 * 2:
            too_much()
        return packed_loss(model, source, labels, *arguments, **keywords)

    seen = []
    monkeypatch.setattr("transformer.training.parallel_gradients.packed_loss", at_step_5)
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
    assert re.search(r"; give --micro-batches 6( or more, up to \d+)?, which ", said)
    assert "--resume" not in said
    assert said.endswith("(there is no checkpoint yet)")
    monkeypatch.undo()
    runs.run(tmp_path / "late", resume=True, **OPTIONS)
    runs.run(tmp_path / "whole", **OPTIONS)
    assert runs.contents(tmp_path / "late") == runs.contents(tmp_path / "whole")


THREE = [("a b", "a b")] * 3  # one batch, of which the second of two parts has two sentences


def test_a_sentence_cannot_be_divided(tmp_path, monkeypatch):
    def at_most(rows):
        monkeypatch.setattr(Transformer, "loss", lambda model, source, *arguments, **keywords: (
            too_much() if len(source) > rows else loss(model, source, *arguments, **keywords)))

    loss = Transformer.loss
    runs.interrupted(tmp_path / "three", 1, train_pairs=THREE, **OPTIONS)
    at_most(0)
    said = ended(tmp_path / "one", train_pairs=runs.PAIRS[:1], micro_batches=2)
    assert ": a batch of 1 sentence × " in said
    assert "; take shorter sentences or a smaller model (there is no checkpoint yet)" in said
    shared = {"train_pairs": THREE, "resume": True}
    at_most(1)
    assert "--resume --micro-batches 2 or more, up to 3, which" in ended(tmp_path / "three", **shared)
    assert "--resume --micro-batches 3, which" in ended(tmp_path / "three", **shared, micro_batches=2)
    at_most(0)
    said = ended(tmp_path / "three", **shared, micro_batches=3)
    assert ": a part of a batch, 1 of its 3 sentences × " in said
    assert "; begin anew with shorter sentences or a smaller model (the last checkpoint, " in said


@pytest.mark.parametrize("what", ["AdamW.update", "clip_grad_norm_"])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("resumable", [True, False])
def test_the_optimizer_has_no_room(what, threads, resumable, tmp_path, monkeypatch):
    """Smaller batches would not help."""
    if resumable:
        runs.interrupted(tmp_path, 3, **OPTIONS, threads=threads)
    monkeypatch.setattr(f"minigrad.optim.{what}", too_much)
    said = ended(tmp_path, resume=resumable, threads=threads)
    step, way = (4, "begin anew with") if resumable else (1, "take")
    assert re.match(rf"out of memory at step {step}: the step of the optimizer did not fit {UNABLE}; the model has "
                    rf"[\d,]+ parameters, which with their gradients and Adam's two moments take [\d.]+ kB; {way} a "
                    r"smaller model \(", said), said


def test_an_optimizer_that_a_gpu_has_no_room_for(stand_in, tmp_path):
    model = {"d_ff": 4000, "dropout": 0.0}
    stand_in.memory.limit = 5 * sum(p.data.nbytes for p in Transformer(runs.config(**model)).parameters())
    said = ended(tmp_path / "run", model=model, device="cuda", micro_batches=64)
    assert ": the step of the optimizer did not fit (Out of memory allocating " in said
    assert "; give --device cpu, or take a smaller model (there is no checkpoint yet)" in said
    assert "--micro-batches" not in said
    followed(tmp_path / "run", said, model=model)


def test_a_model_for_which_a_gpu_is_too_small(stand_in, tmp_path):
    """Its parameters, gradients and moments alone are more than there is: no smaller batch helps."""
    model = {"d_ff": 4000, "dropout": 0.0}
    stand_in.memory.limit = 2 * sum(p.data.nbytes for p in Transformer(runs.config(**model)).parameters())
    said = ended(tmp_path, model=model, device="cuda")
    assert re.search(r"a batch of \d+ sentences × .*; give --device cpu, or take a smaller model \(", said), said
    assert "--micro-batches" not in said


STATUSES = ["cudaErrorMemoryAllocation: out of memory", "CUDA_ERROR_OUT_OF_MEMORY: out of memory",
            "CUBLAS_STATUS_ALLOC_FAILED"]


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize(("place", "what"), [
    ("transformer.model.transformer.Transformer.loss", r"at step 1: a batch of \d+ sentences × .* did not fit"),
    ("minigrad.optim.AdamW.update", "at step 1: the step of the optimizer did not fit"),
    ("transformer.training.trainer.Trainer.save", "after step 4"),
    ("transformer.translator.beam_search", "after step 4: the validation, which decodes 3 .* did not fit"),
    ("transformer.training.trainer.Trainer.plan", "in setting up the run"),
])
def test_cuda_has_other_names_for_it(place, what, status, tmp_path, monkeypatch):
    monkeypatch.setattr(place, failing(RuntimeError(status)))
    assert re.match(rf"out of memory {what} \({status}\)", ended(tmp_path, epochs=3))


def test_other_errors_of_cuda_are_not_about_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(Transformer, "loss", failing(RuntimeError("cudaErrorIllegalAddress: an illegal address")))
    with pytest.raises(RuntimeError, match=r"^cudaErrorIllegalAddress"):
        runs.run(tmp_path)


# ----------------------------------------------------------------- before the first update, and after the last


@pytest.mark.parametrize("precision", ["float32", "tf32"])
def test_a_run_that_cannot_begin_or_go_on(precision, stand_in, tmp_path):
    """The folder stays as it was."""
    shared = {"device": "cuda", "precision": precision}
    out, elsewhere = tmp_path / "run", "--device cpu" + " --precision float32" * (precision == "tf32")
    stand_in.memory.limit = 3000
    number, amount = r"[\d,]+", r"[\d.]+ kB"
    said = (rf"out of memory in setting up the run \(Out of memory allocating {number} bytes \(allocated so far: "
            rf"{number} bytes\)\), cuda:0 has 3 kB, of which the pool held {amount}, with {amount} in use; ")
    assert re.fullmatch(rf"{said}give {elsewhere}, or take a smaller model \(there is no checkpoint yet\)",
                        ended(out, **shared))
    assert not out.exists()
    stand_in.memory.clear()
    runs.interrupted(out, 2, **OPTIONS, **shared)
    before = runs.snapshot(out)
    stand_in.memory.clear()
    stand_in.memory.limit = 3000
    assert re.fullmatch(rf"{said}go on with --resume {elsewhere}, or begin anew with a smaller model \(the last "
                        r"checkpoint, 00000002-interrupted, is intact\)", ended(out, resume=True, **shared))
    assert runs.snapshot(out) == before
    runs.run(out, resume=True, **OPTIONS, device="cpu", precision="float32")


def test_a_finished_run_is_finished(device, tmp_path, monkeypatch):
    """When its best model is loaded, the trainer's memory is free; if that is not enough, the run is none the worse."""
    alive, load = [], Translator.load

    def loading(*arguments):
        assert len(alive) == 6
        assert not any(reference() for references in alive for reference in references)
        too_much()

    runs.after_update(monkeypatch, lambda trainer: alive.append(
        [weakref.ref(x) for x in (trainer, trainer.model, trainer.optimizer)]))
    monkeypatch.setattr(Translator, "load", loading)
    said = ended(tmp_path, device=device)
    where = "where there is more memory" if device == "cpu" else "with --device cpu"
    assert re.match("the run is finished, and its best checkpoint, 0000000[46], is intact; but there is too little "
                    f"memory to load it {UNABLE}", said)
    assert said.endswith(f"; use it {where}")
    assert load_run(tmp_path, "latest")[0].progress["step"] == 6
    assert load(tmp_path).translate(["a"])
