"""The decoder-only model: its loss, its gradient, and that no token sees a later one."""

import numpy as np
import pytest

import minigrad
from minigrad import Tensor
from minigrad import functional as F

from tests.transformer.differences import check_gradients, directions
from tests.transformer.tiny import jitter
from transformer.model.language_model import LanguageModel

TEXTS = np.array([[5, 3, 9, 7, 2], [8, 4, 2, 0, 0]])  # unequal lengths; 0 is padding
MODELS = {
    "as GPT-2": {"activation": "gelu_tanh", "num_layers": 2},
    "post-norm, sinusoidal": {"norm": "post", "positions": "sinusoidal"},
    "a projection of its own, no biases": {"tie_output": False, "bias": False},
    "rotary, grouped queries": {"positions": "rotary", "num_heads": 4, "num_kv_heads": 2},
    "with a memory": {"cross_attention": True},
}
MEMORY = Tensor(np.random.default_rng(1).normal(size=(2, 3, 8)), requires_grad=True)
every_model = pytest.mark.parametrize("options", MODELS.values(), ids=MODELS.keys())


def memory_for(options, rows=slice(None)):
    return {"memory": MEMORY[rows]} if options.get("cross_attention") else {}


def language_model(**options):
    sizes = {"d_model": 8, "num_heads": 2, "num_layers": 1, "d_ff": 12, "max_length": 16, "pad_id": 0}
    with minigrad.random.fork(4):
        model = LanguageModel(11, **sizes | options)
    jitter(model)
    return model.to(dtype=np.float64)


@every_model
def test_the_loss_has_the_gradient_of_finite_differences(options):
    """A batch of unequal lengths, with dropout whose masks are the same at every evaluation."""
    model = language_model(dropout=0.2, **options)
    more = memory_for(options)
    check_gradients(lambda: model.loss(TEXTS, label_smoothing=0.1, **more),
                    dict(model.named_parameters()) | ({"memory": MEMORY} if more else {}),
                    lambda gradient, rng: directions(gradient, rng, entries=0, dense=1))


@every_model
def test_the_loss_is_that_of_each_text_alone(options):
    model = language_model(**options).eval()
    logits = [F.log_softmax(model([text], **memory_for(options, slice(row, row + 1))).numpy()[0])
              for row, text in enumerate([[5, 3, 9, 7, 2], [8, 4, 2]])]
    expected = -np.concatenate([logits[0][np.arange(4), [3, 9, 7, 2]], logits[1][np.arange(2), [4, 2]]])
    for reduction in ("mean", "sum"):
        found = model.loss(TEXTS, reduction=reduction, **memory_for(options)).item()
        assert found == pytest.approx(getattr(expected, reduction)(), rel=1e-12)


@every_model
def test_no_token_sees_a_later_one(options):
    model = language_model(**options).eval()
    changed = TEXTS.copy()
    changed[:, 3:] = 10
    before, after = (model(texts, **memory_for(options)).numpy() for texts in (TEXTS, changed))
    np.testing.assert_array_equal(before[:, :3], after[:, :3])
    assert (before[:, 3:] != after[:, 3:]).all()


@pytest.mark.parametrize(("ids", "error", "message"), [
    ([[0.5]], TypeError, "LanguageModel: ids must be integers"),
    ([3, 4], ValueError, r"LanguageModel: ids must have shape \(batch, length\), got \(2,\)"),
    ([[3, 11]], IndexError, "11"),
    ([[3] * 17], ValueError, "17 tokens is longer than the model's 16 positions"),
], ids=str)
def test_mistakes(ids, error, message):
    with pytest.raises(error, match=message):
        language_model()(ids)


@pytest.mark.parametrize("targets", [TEXTS, TEXTS.tolist(), Tensor(TEXTS)], ids=["array", "lists", "tensor"])
def test_the_loss_takes_no_targets(targets):
    with pytest.raises(TypeError, match="the targets are the ids themselves"):
        language_model().loss(TEXTS, targets)


@pytest.mark.parametrize("options", [{}, {"cross_attention": True}], ids=["a memory for nobody", "no memory"])
def test_a_memory_belongs_to_cross_attention(options):
    with pytest.raises(TypeError, match="a memory belongs to a model with cross_attention=True"):
        language_model(**options)(TEXTS, **({} if options else {"memory": MEMORY}))
