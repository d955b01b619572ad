"""Memory runs out: one line says what did not fit and what helps, which does; the last checkpoint is intact."""

import gc
import re
import weakref

import numpy as np
import pytest

from tests.transformer import runs
from tests.transformer.shortage import UNABLE, failing, too_much
from transformer.model import Transformer
from transformer.training.checkpoints import load_run
from transformer.training.loop import TrainingError
from transformer.training.out_of_memory import (
    AverageDoesNotFit,
    BatchDoesNotFit,
    DecodingDoesNotFit,
    LossDoesNotFit,
    UpdateDoesNotFit,
    describe,
)
from transformer.training.packed import packed_loss
from transformer.training.run_folder import numbered
from transformer.translator import Translator

OPTIONS = {"steps": 6, "schedule": "constant"}


def ended(out, **changes):
    """The one line with which a run ends."""
    with pytest.raises(TrainingError) as caught:
        runs.run(out, **{**OPTIONS, **changes})
    assert "\n" not in str(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None, "nothing keeps the arrays alive"
    return str(caught.value)


def batch(rows, whole, columns=4, steps=6):
    return BatchDoesNotFit(rows, columns, steps, whole)


SHORTER = "shorter sentences or "
LOWER = "a lower --batch-tokens (it is 64; a larger --accumulate keeps the size of an update) or "


@pytest.mark.parametrize(("error", "changes", "when", "now", "anew"), [
    (batch(8, 8), {}, "at step 4: a batch of 8 sentences × 4 source and 6 target tokens did not fit",
     "--micro-batches 2 or more, up to 8, which", LOWER),
    (batch(4, 8), {"micro_batches": 2}, "at step 4: a part of a batch, 4 of its 8 sentences × ",
     "--micro-batches 4 or more, up to 8, which", LOWER),
    (batch(2, 3), {"micro_batches": 2}, "at step 4: a part", "--micro-batches 3, which", LOWER),
    (UpdateDoesNotFit(), {}, "at step 4: the step of the optimizer did not fit", "", ""),
    (LossDoesNotFit(batch(8, 8, 2, 4)), {}, "after step 3: the loss of the validation: a batch of 8 sentences",
     "--micro-batches 4, which", LOWER),  # of 16 of the 64 tokens: half of 8 sentences × 4
    (LossDoesNotFit(batch(1, 1)), {}, "after step 3: the loss", "", SHORTER),
    (DecodingDoesNotFit(3), {}, "after step 3: the validation, which decodes 3 sentences at a time, did not fit",
     "--valid-sentences 1 (it is 3)", ""),
    (DecodingDoesNotFit(1), {}, "after step 3: the validation, which decodes 1 sentence at", "", SHORTER),
    (AverageDoesNotFit(), {"average": 2}, "after step 3: the average of the last checkpoints", "--average 1 (it is 2)",
     ""),
    (MemoryError("full."), {}, "after step 3 (full)", "", ""),
], ids=str)
def test_what_is_said(error, changes, when, now, anew):
    """What a run that goes on may change, and what one that begins anew; of the device, where there is another."""
    model = Transformer(runs.config())
    for resumable in (True, False):
        said = describe(error, model, runs.options(**changes), 3, resumable)
        assert said.startswith(f"out of memory {when}")
        assert f"; the model has {model.num_parameters():,} parameters, which" in said
        begin, go_on = ("begin anew with", "go on with --resume") if resumable else ("take", "give")
        assert said.endswith(f"{begin} {anew}a smaller model")
        assert f"; {go_on} {now}" in said if now else f"; {begin} {anew}" in said


@pytest.mark.parametrize(("place", "status", "what"), [
    ("transformer.training.parallel_gradients.packed_loss", "", "at step 1: a batch of .* did not fit"),
    ("transformer.model.Transformer.loss", "cudaErrorMemoryAllocation", "at step 1: a batch of .* did not fit"),
    ("minigrad.optim.AdamW.rule", "", "at step 1: the step of the optimizer did not fit"),
    ("minigrad.optim.clip_grad_norm_", "CUDA_ERROR_OUT_OF_MEMORY", "at step 1: the step of the optimizer did not fit"),
    ("transformer.translator.packed_loss", "", "after step 4: the loss of the validation: a batch of 3 .* did not fit"),
    ("transformer.translator.beam_search", "", "after step 4: the validation, which decodes 3 .* did not fit"),
    ("transformer.training.trainer.Trainer.save", "CUBLAS_STATUS_ALLOC_FAILED", "after step 4"),
    ("transformer.training.trainer.load_checkpoint", "", "after step 6: the average .* did not fit"),
    ("transformer.training.trainer.Trainer.plan", "", "in setting up the run"),
])
def test_where_memory_runs_out(place, status, what, tmp_path, monkeypatch):
    """NumPy says so by MemoryError, CUDA by the status in other errors."""
    monkeypatch.setattr(place, failing(RuntimeError(f"{status}: it is full.")) if status else too_much)
    told = rf"\({status}: it is full\)" if status else UNABLE
    assert re.match(rf"out of memory {what} {told}", ended(tmp_path, epochs=3, valid_pairs=runs.VALID[:3], threads=2,
                                                                 average=2))


def test_other_errors_of_cuda_are_not_about_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(Transformer, "loss", failing(RuntimeError("cudaErrorIllegalAddress: an illegal address")))
    with pytest.raises(RuntimeError, match=r"^cudaErrorIllegalAddress"):
        runs.run(tmp_path)


def test_the_run_goes_on_from_the_last_checkpoint(tmp_path, monkeypatch):
    """With the numbers of the batch that was computed; then as if it had never been stopped."""
    def at_step_5(model, source, labels, *arguments, **keywords):
        seen.append((*source.shape, labels.shape[1]))
        return packed_loss(model, source, labels, *arguments, **keywords) if len(seen) <= 4 * 2 else too_much()

    seen, out = [], tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr("transformer.training.parallel_gradients.packed_loss", at_step_5)
        said = ended(out)
    assert "at step 5: a batch of {} sentences × {} source and {} target tokens".format(*seen[-1]) in said
    assert "cuda" not in said
    assert said.endswith("(the last checkpoint, 00000004, is intact)")
    assert numbered(out) == ["00000004"]
    runs.run(out, resume=True, **OPTIONS)
    runs.run(tmp_path / "whole", **OPTIONS)
    assert runs.contents(out) == runs.contents(tmp_path / "whole")


def peak(stand_in, out, **changes):
    """The most memory that a run takes on the stand-in."""
    gc.collect()  # what earlier tests left behind
    stand_in.memory.clear()
    runs.run(out, **changes, device="cuda")
    return stand_in.memory.held[0]


def test_a_batch_that_a_gpu_has_no_room_for(stand_in, tmp_path):
    """From the checkpoint the run goes on in parts, with the memory that there is."""
    out = tmp_path / "run"
    shared = {"model": {"d_ff": 2000, "dropout": 0.0}, "steps": 3, "schedule": "constant", "valid_sentences": 1}
    sizes = {parts: peak(stand_in, tmp_path / str(parts), **shared, micro_batches=parts) for parts in (1, 4)}
    assert sizes[4] < 0.9 * sizes[1]
    runs.interrupted(out, 1, **shared, device="cuda")
    before = runs.snapshot(out)
    stand_in.memory.clear()
    stand_in.memory.limit = (sizes[1] + sizes[4]) // 2
    said, amount = ended(out, **shared, resume=True, device="cuda"), r"[\d.]+ [kM]B"
    assert re.search(rf"did not fit \(Out of memory .* take {amount}, cuda:0 has {amount}, of which the pool "
                     rf"held {amount}, with {amount} in use; go on with --resume --micro-batches 2 or more", said), said
    assert said.endswith("(the last checkpoint, 00000001-interrupted, is intact)")
    assert runs.snapshot(out) == before
    runs.run(out, resume=True, **shared, device="cuda", micro_batches=4)
    for name, array in runs.parameters(tmp_path / "1").items():
        if not name.endswith("key.bias"):  # its gradient is 0 but for rounding, of which Adam makes full steps
            np.testing.assert_allclose(runs.parameters(out)[name], array, rtol=0, atol=1e-5, err_msg=name)


def test_a_model_for_which_a_gpu_is_too_small(stand_in, tmp_path):
    """Its parameters, gradients and moments alone are more than there is: no smaller batch helps."""
    model = {"d_ff": 4000, "dropout": 0.0}
    stand_in.memory.limit = 4 * sum(p.data.nbytes for p in Transformer(runs.config(**model)).parameters())
    said = ended(tmp_path, model=model, device="cuda", micro_batches=64)
    assert "at step 1: the step of the optimizer" in said
    assert "; give --device cpu, or take a smaller model (there is no checkpoint yet)" in said


def test_a_run_that_cannot_begin_or_go_on(stand_in, tmp_path):
    """The folder stays as it was."""
    out, shared = tmp_path / "run", {"device": "cuda"}
    what, elsewhere = r"out of memory in setting up the run \(Out of memory", "--device cpu"
    stand_in.memory.limit = 3000
    assert re.match(f"{what}.*; give {elsewhere}, or take a smaller model", ended(out, **shared))
    assert not out.exists()
    stand_in.memory.clear()
    runs.interrupted(out, 2, **OPTIONS, **shared)
    before = runs.snapshot(out)
    stand_in.memory.clear()
    stand_in.memory.limit = 3000
    said = ended(out, resume=True, **shared)
    assert re.match(f"{what}.*; go on with --resume {elsewhere}, or begin anew with a smaller model", said)
    assert runs.snapshot(out) == before


def test_a_finished_run_is_finished(device, tmp_path, monkeypatch):
    """When its best model is loaded, the trainer's memory is free; if that is not enough, the run is none the worse."""
    alive, load = [], Translator.load

    def loading(*arguments, **options):
        assert len(alive) == 6
        assert not any(reference() for references in alive for reference in references)
        too_much()

    runs.after_update(monkeypatch, lambda trainer: alive.append(
        [weakref.ref(x) for x in (trainer, trainer.model, trainer.optimizer)]))
    monkeypatch.setattr(Translator, "load", loading)
    said = ended(tmp_path, device=device)
    assert re.match("the run is finished, and its best checkpoint, 0000000[46], is intact; but there is too little "
                    f"memory to load it {UNABLE}", said)
    assert said.endswith("where there is more memory" if device == "cpu" else "with --device cpu")
    assert load_run(tmp_path, "latest")[0].progress["step"] == 6
    assert load(tmp_path).translate(["a"])
