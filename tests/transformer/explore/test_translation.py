"""``explain``: the numbers of a trained model's translation, in float64."""

import numpy as np
import pytest

import minigrad as mg

from tests.transformer.digits import PAIRS
from transformer.explore.translation import cross_entropy_near_zero, double, explain
from transformer.translator import Translator

CROSS = "decoder.layers.0.cross_attention"


@pytest.fixture(scope="module")
def translator(run):
    return Translator.load(run)


@pytest.mark.parametrize("targets", [None, ["二 二", "三"]])
def test_the_loss_is_that_of_the_translator(translator, targets):
    """Per target token, of the model's own translation unless another is given."""
    sources = ["two", "one two three"]
    explanation = explain(translator, sources, targets)
    pairs = list(zip(sources, targets or [dict(PAIRS)[text] for text in sources], strict=True))
    assert explanation.loss == pytest.approx(translator.loss(pairs), rel=1e-4, abs=1e-6)  # computed in float32
    assert explanation.again().item() == pytest.approx(explanation.loss, rel=1e-9)
    assert explanation.title == "; ".join(f"{left} → {right}" for left, right in pairs)
    width = max(len(right.split()) for _, right in pairs) + 1
    for item, (_, right) in enumerate(pairs):
        written = [*right.split(), "<eos>"]
        assert explanation.tokens.target[item] == ["<bos>", *written, *["<pad>"] * width][:width]
        assert explanation.tokens.following[item] == [*written, *["<pad>"] * width][:width]


def test_every_gradient_is_right_and_the_translator_is_left_alone(translator):
    """Though the model is nearly sure, so that its gradients are small, and has others left from training."""
    model = translator.model.train()
    model.loss(np.array([[4, 5, 2]]), np.array([[6, 6, 2]])).backward()
    mg.manual_seed(3)
    state, left = mg.random.get_state(), model.projection.weight.grad.numpy().copy()
    explanation = explain(translator, ["one two three", "two"])
    assert explanation.loss < 0.05
    assert len(explanation.names) == 3
    assert max(check.error for name in explanation.names for found in explanation.checks(name).values()
               for check in found) < 1e-6
    assert (mg.random.get_state(), model.training, model.projection.weight.dtype) == (state, True, np.float32)
    np.testing.assert_array_equal(model.projection.weight.grad.numpy(), left)
    model.eval().zero_grad()


def test_the_loss_in_another_form_keeps_its_digits(translator):
    """Of logits so far apart that the usual form has none left."""
    model = double(translator.model)
    weight = model.projection.weight
    weight.copy_(weight.numpy() * 4)
    source = labels = np.array([[4, 5, 2], [6, 2, 0]])
    logits = model(source, [[1, 4, 5], [1, 6, 2]]).numpy().astype(np.longdouble)
    shifted = logits - np.take_along_axis(logits, labels[..., None], -1)
    others = np.exp(shifted).sum(-1) - 1
    expected = float(np.log1p(others)[labels != 0].sum() / 5)
    assert cross_entropy_near_zero(model, source, labels).item() == pytest.approx(expected, rel=1e-9)
    assert model.loss(source, labels).item() == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize(("token", "times"), [(2, 0), (4, 7)])
def test_a_model_that_writes_one_token_for_ever(translator, token, times):
    """Of nothing, the end is explained; what never ends is cut off where the model has no position left for the end."""
    stubborn = double(translator.model)
    norm, weight = stubborn.decoder.norm, stubborn.projection.weight
    norm.weight.copy_(np.zeros(32))
    norm.bias.copy_(np.ones(32))
    weight.copy_(np.where(np.arange(7)[:, None] == token, 1.0, np.zeros(32)))
    explanation = explain(Translator(stubborn, translator.source_tokenizer, translator.target_tokenizer), "one")
    written = translator.target_tokenizer.vocabulary.token_of(token)
    assert explanation.tokens.following == [[*[written] * times, "<eos>"]]


def test_wrong_use(translator):
    for arguments, message in ((("one", ["一", "二"]), "a target for each source"),
                               (("one", "一 " * 8), "a sequence of 9 tokens is longer than the model's 8")):
        with pytest.raises(ValueError, match=message):
            explain(translator, *arguments)
    assert explain(translator, "one " * 7, "一 " * 7).trace[CROSS].scores.shape[-2:] == (8, 8)  # just not too long
