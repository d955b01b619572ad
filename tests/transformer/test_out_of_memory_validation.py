"""Memory runs out in a validation: for the loss of all pairs, in decoding some, or for averaging at the end."""

import re

import pytest

from tests.transformer import runs
from tests.transformer.shortage import OPTIONS, UNABLE, ended, followed, too_much
from transformer.decode import beam_search
from transformer.model import Transformer
from transformer.training.checkpoints import load_run


@pytest.mark.parametrize("resumable", [True, False])
def test_the_loss_of_the_validation_does_not_fit(resumable, stand_in, tmp_path):
    """Of all pairs, however few are decoded."""
    long = [(" ".join(["a"] * 60),) * 2] * 8
    shared = {"model": {"dropout": 0.0, "max_length": 64}, "train_pairs": runs.PAIRS[:4], "valid_pairs": long,
              "batch_tokens": 512, "steps": 2, "valid_every": 2, "valid_sentences": 1, "accumulate": 1,
              "device": "cuda"}
    if resumable:
        runs.interrupted(tmp_path, 1, **{**OPTIONS, **shared})
    stand_in.memory.clear()
    stand_in.memory.limit = 600_000
    said = ended(tmp_path, resume=resumable, **shared)
    assert re.match("out of memory after step 2: the loss of the validation: a batch of 8 sentences × 61 source and 61 "
                    r"target tokens did not fit \(Out of memory allocating ", said), said
    now, new = ("go on with --resume", "begin anew with") if resumable else ("give", "take")
    assert (f"; {now} --micro-batches 3, which divides such a batch, too, or {new} a lower --batch-tokens (it is "
            "512; a larger --accumulate keeps the size of an update) or a smaller model (") in said
    followed(tmp_path, said, **shared)


def test_a_pair_to_validate_on_does_not_fit(tmp_path, monkeypatch):
    loss = Transformer.loss
    monkeypatch.setattr(Transformer, "loss", lambda model, *arguments, **keywords: (
        loss(model, *arguments, **keywords) if model.training else too_much()))
    said = ended(tmp_path, valid_pairs=[("a b", "a")])
    assert ": the loss of the validation: a batch of 1 sentence × 3 source and 2 target tokens did not fit (" in said
    assert "; take shorter sentences or a smaller model (" in said


@pytest.mark.parametrize("resumable", [True, False])
def test_decoding_for_the_validation_does_not_fit(resumable, tmp_path, monkeypatch):
    """More than one sentence, and then none."""
    if resumable:
        runs.interrupted(tmp_path, 3, **OPTIONS)
    before = runs.snapshot(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr("transformer.translator.beam_search", lambda model, source, *arguments: (
            too_much() if len(source) > 1 else beam_search(model, source, *arguments)))
        said = ended(tmp_path, resume=resumable)
        assert re.match("out of memory after step 4: the validation, which decodes 3 sentences at a time, did not fit "
                        f"{UNABLE}; the model has ", said)
        now, new = ("go on with --resume", "begin anew with") if resumable else ("give", "take")
        assert f"; {now} --valid-sentences 1 (it is 3), or {new} a smaller model (" in said
        assert runs.snapshot(tmp_path) == before or not resumable
        assert followed(tmp_path, said)["valid_sentences"] == 1
    assert load_run(tmp_path, "latest")[0].progress["step"] == 6
    monkeypatch.setattr("transformer.translator.beam_search", too_much)
    said = ended(tmp_path / "none", valid_sentences=1)
    assert "the validation, which decodes 1 sentence at a time, did not fit" in said
    assert "; take shorter sentences or a smaller model (" in said


def test_sixty_four_sentences_are_decoded_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr("transformer.translator.beam_search", too_much)
    assert "; give --valid-sentences 32 (it is 100), or " in ended(tmp_path, valid_pairs=runs.VALID * 20,
                                                                  valid_sentences=100)


def test_the_average_does_not_fit(tmp_path, monkeypatch):
    inner = load_run
    monkeypatch.setattr("transformer.training.trainer.load_run", lambda out, which: (
        inner(out, which) if which == "latest" else too_much()))
    said = ended(tmp_path, average=2)
    assert re.match(f"out of memory after step 6: the average of the last checkpoints did not fit {UNABLE}; ", said)
    assert "; go on with --resume --average 1 (it is 2), or begin anew with a smaller model (" in said
    followed(tmp_path, said, average=2)
