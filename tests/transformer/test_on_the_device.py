"""A run and its translations are the same on every device: the updates that training makes, and what its files hold.

All in float64, where only rounding differs, and without dropout, but where a test says otherwise.
"""

import numpy as np
import pytest

import minigrad
from minigrad import Tensor
from minigrad.device import asarray_on, device_of

from tests.conftest import DEVICES
from tests.transformer import runs
from tests.transformer.decoding_models import peaked_model, prefer, random_sources
from tests.transformer.tiny import SOURCE, tiny_model
from transformer.decode import beam_search, greedy

ELSEWHERE = pytest.mark.parametrize("device", DEVICES[1:], indirect=True)
# Clipping that clips, a schedule that moves, decay, smoothing, and two batches in every update.
OPTIONS = {"steps": 20, "clip_norm": 0.5, "weight_decay": 0.01, "label_smoothing": 0.1, "schedule": "cosine"}
TOLERANCE = 1e-9  # of losses and of parameters


class Run:
    """A trainer, and the losses of its batches."""

    def __init__(self, out, device, **changes):
        self.trainer = runs.new_trainer(out, device=device, **{"model": {"dropout": 0.0}, **OPTIONS, **changes})
        self.trainer.model.to(dtype=np.float64)
        self.groups = self.trainer.groups()
        self.losses = []
        compute = self.trainer.gradients.of

        def recorded(*arguments):
            total = compute(*arguments)
            self.losses.append(total)
            return total

        self.trainer.gradients.of = recorded

    def update(self, steps):
        for _ in range(steps):
            self.trainer.update(next(self.groups))
        return self

    def resume(self):
        self.trainer.restore()
        self.groups = self.trainer.groups()
        return self

    @property
    def parameters(self):
        """By name, but for the key biases: their gradient is 0 plus rounding, which Adam scales up to whole steps."""
        named = self.trainer.model.named_parameters()
        return {name: np.array(p.numpy()) for name, p in named if not name.endswith("key.bias")}

    def assert_like(self, other):
        losses, expected = ([float(total) for total in run.losses] for run in (self, other))
        np.testing.assert_allclose(losses, expected, rtol=TOLERANCE)
        found = self.parameters
        assert found.keys() == other.parameters.keys()
        for name, value in other.parameters.items():
            np.testing.assert_allclose(found[name], value, rtol=0, atol=TOLERANCE, err_msg=name)


# ------------------------------------------------------------------ ten updates


@ELSEWHERE
@pytest.mark.parametrize("changes", [
    {"model": {"dropout": 0.2, "share_embeddings": False, "tie_output": False}, "clip_norm": 0.0},
    {"model": {"dropout": 0.0, "norm": "post", "activation": "gelu"}},
], ids=["pre-norm, untied, dropout", "post-norm, three-way tied, gelu, clipped"])
def test_ten_updates(changes, device, tmp_path, same_masks):
    here, there = (Run(tmp_path / name, where, **changes).update(10)
                   for name, where in (("here", "cpu"), ("there", device)))
    assert len(here.losses) > 10, "several batches in an update"
    assert all(device_of(total) == device for total in there.losses)
    trained = there.trainer.model
    assert {t.device for p in trained.parameters() for t in (p, p.grad)} == {device}
    there.assert_like(here)
    key_bias = dict(trained.named_parameters())["encoder.layers.0.self_attention.key.bias"].numpy()
    assert abs(key_bias).max() < 0.1


def test_updates_on_another_device_than_the_current_one(stand_in, tmp_path, same_masks):
    here, there = (Run(tmp_path / where, where, model={"dropout": 0.2}).update(2) for where in ("cpu", "cuda:1"))
    there.assert_like(here)
    assert stand_in.cupy.cuda.Device().id == 0


def test_an_array_as_mask_is_sent_to_the_model_and_a_tensor_elsewhere_is_refused(stand_in):
    model, mask = tiny_model(np.float32, "cuda").eval(), np.ones((1, 1, 1, SOURCE.shape[1]), bool)
    mask[..., -1] = False
    source = asarray_on("cuda", SOURCE)
    np.testing.assert_array_equal(model.encoder(source, mask).numpy(),
                                  model.encoder(source, asarray_on("cuda", mask)).numpy())
    with pytest.raises(ValueError, match=r"cpu and cuda:0"):
        model.encoder(source, Tensor(mask))


@ELSEWHERE
@pytest.mark.parametrize("order", ["begun there", "begun here"])
def test_a_run_goes_on_on_another_device(order, device, tmp_path, same_masks):
    first, second = (device, "cpu") if order == "begun there" else ("cpu", device)
    changes = {"model": {"dropout": 0.2}}
    stayed = Run(tmp_path / "stayed", "cpu", **changes).update(4)
    begun = Run(tmp_path / "moves", first, **changes).update(2)
    begun.trainer.save()
    resumed = Run(tmp_path / "moves", second, **changes).resume()
    assert runs.bits(resumed.parameters) == runs.bits(begun.parameters)
    resumed.update(2)
    resumed.losses[:0] = begun.losses
    resumed.assert_like(stayed)
    assert resumed.trainer.progress.step == 4
    assert resumed.trainer.scheduler.get_last_lr() == stayed.trainer.scheduler.get_last_lr()


# ------------------------------------------------------------------ decoding

WAYS = {
    "greedy": lambda model, sources: [[one] for one in greedy(model, sources)],
    "beam": lambda model, sources: beam_search(model, sources, 4, 3, alpha=0.9),
}


def decoded(way, device):
    """What a model on the device makes of a batch with padding."""
    model = prefer(peaked_model(4, norm="post", positions="learned"), eos=1.0).to(device)
    with minigrad.random.fork(5):
        return WAYS[way](model, random_sources(4))


@ELSEWHERE
@pytest.mark.parametrize("way", WAYS)
def test_the_same_translations(way, device):
    expected, found = (decoded(way, where) for where in ("cpu", device))
    assert len({len(h.ids) for row in found for h in row}) > 1, "of unequal lengths"
    assert [[h.ids for h in row] for row in found] == [[h.ids for h in row] for row in expected]
    scores = [[h.score for row in rows for h in row] for rows in (found, expected)]
    np.testing.assert_allclose(*scores, rtol=0, atol=1e-9)
