"""A run and its translations are the same on every device: the updates that training makes, and what its files hold.

All in float64, where only rounding differs, and without dropout, but where a test says otherwise.
"""

import numpy as np
import pytest

from tests.conftest import DEVICES
from tests.transformer import runs
from tests.transformer.decoding_models import peaked_model, prefer, random_sources
from transformer import FeedForward, Transformer
from transformer.decode import beam_search, greedy

ELSEWHERE = pytest.mark.parametrize("device", DEVICES[1:], indirect=True)
# Clipping that clips, a schedule that moves, decay, smoothing, and two batches in every update.
OPTIONS = {"steps": 20, "clip_norm": 0.5, "weight_decay": 0.01, "label_smoothing": 0.1, "schedule": "cosine"}


def updated(out, device, steps, resume=None, **changes):
    """A trainer in float64 that made some updates."""
    trainer = runs.new_trainer(out, device=device, **{"model": {"dropout": 0.2}, **OPTIONS, **changes})
    trainer.model.to(dtype=np.float64)
    if resume:
        trainer.restore(resume)
    groups = trainer.groups()
    for _ in range(steps):
        trainer.update(next(groups))
    assert {t.device for p in trainer.model.parameters() for t in (p, p.grad)} == {device}
    return trainer


# ------------------------------------------------------------------ updates


def goes_on_elsewhere(first, second, folder, **changes):
    """Six updates on one device, a checkpoint, and four on another, with the same batches, are ten on the host."""
    stayed = updated(folder / "stayed", "cpu", 10, **changes)
    updated(folder / "moves", first, 6, **changes).save()
    resumed = updated(folder / "moves", second, 4, "latest", **changes)
    for name, parameter in stayed.model.named_parameters():
        if not name.endswith("key.bias"):  # its gradient is 0 plus rounding, which Adam scales up to whole steps
            found = dict(resumed.model.named_parameters())[name].numpy()
            np.testing.assert_allclose(found, parameter.numpy(), rtol=0, atol=1e-9, err_msg=name)
    assert resumed.progress.learning_rate == stayed.progress.learning_rate


@ELSEWHERE
@pytest.mark.parametrize(("there_first", "changes"), [
    (True, {"model": {"dropout": 0.2, "share_embeddings": False, "tie_output": False}, "clip_norm": 0.0}),
    (False, {"model": {"dropout": 0.2, "norm": "post", "activation": "gelu"}}),
], ids=["begun there: pre-norm, untied", "begun here: post-norm, three-way tied, gelu, clipped"])
def test_a_run_goes_on_on_another_device(there_first, changes, device, tmp_path, same_masks):
    goes_on_elsewhere(*(device, "cpu") if there_first else ("cpu", device), tmp_path, **changes)


def test_updates_on_another_device_than_the_current_one(stand_in, tmp_path, same_masks):
    goes_on_elsewhere("cuda:1", "cuda:1", tmp_path)
    assert stand_in.cupy.cuda.Device().id == 0


# ------------------------------------------------------------------ decoding


def decoded(device, **controls):
    """What a model on the device makes of a batch with padding, greedily and in a beam."""
    model = prefer(peaked_model(4, norm="post", positions="learned"), eos=1.0).to(device)
    rows = beam_search(model, random_sources(4), 4, 3, alpha=0.9, **controls)
    return [*greedy(model, random_sources(4), **controls), *(hypothesis for row in rows for hypothesis in row)]


def same(found, expected):
    assert [(h.ids, pytest.approx(h.score, abs=1e-9)) for h in expected] == [(h.ids, h.score) for h in found]


@ELSEWHERE
def test_the_same_translations(device):
    expected = decoded("cpu")
    assert len({len(h.ids) for h in expected}) > 1, "of unequal lengths"
    same(decoded(device), expected)


class RunAgain:
    """In the place of a `Recorder`: what would be recorded is run at each launch; the first `most` times."""

    def __init__(self, most):
        self.owners, self.shapes, self.most = set(), set(), most

    def record(self, function, arrays):
        def launch(*arrays):
            self.shapes.add(arrays[0].shape)
            found, function.func.__self__.cache.entries = function(*arrays), None
            return found

        self.most -= 1
        return launch if self.most >= 0 else None


@pytest.fixture
def recorder(request, stand_in, monkeypatch):
    """The stand-in is a card, on which this takes the place of the recorder."""
    recorder = RunAgain(request.param)
    monkeypatch.setattr("transformer.decode.recorded_steps.on_a_card", lambda model: model.device != "cpu")
    monkeypatch.setattr("transformer.decode.recorded_steps.recorder", lambda *place: recorder)
    return recorder


@pytest.mark.parametrize(("recorder", "shapes", "controls"), [
    (99, 4, {"min_length": 33}), (99, 4, {"repetition_penalty": 1.4, "no_repeat_ngram_size": 3}),
    (99, 4, {"prefix": [4, 5]}), (1, 1, {}),
], indirect=["recorder"])
def test_what_a_step_of_decoding_would_be_as_a_graph(recorder, shapes, controls):
    """It reads whole buffers, which grow at 32 tokens, and texts leave the batch late; without a graph it is run."""
    same(decoded("cuda", **controls), decoded("cpu", **controls))
    assert len(recorder.shapes) >= shapes


class Subclass(Transformer):
    pass


@pytest.mark.parametrize("change", [
    None,
    lambda model: setattr(model, "__class__", Subclass),
    lambda model: setattr(model, "decode", model.decode),
    lambda model: setattr(model.decoder.layers[0], "forward", model.decoder.layers[0].forward),
    lambda model: setattr(model.decoder.layers[0], "feed_forward", type("Own", (FeedForward,), {})(d_model=16, d_ff=4)),
], ids=["as defined", "a subclass", "another decode", "another forward", "a part of one's own"])
@pytest.mark.parametrize("recorder", [99], indirect=True)
def test_a_step_is_recorded_where_nothing_else_may_happen_in_it(change, recorder):
    model = peaked_model(4)
    if change:
        change(model)
    greedy(model.to("cuda", np.float64), random_sources(4))
    assert bool(recorder.shapes) == (change is None)
