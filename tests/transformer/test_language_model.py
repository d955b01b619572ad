"""What the decoder-only model refuses; test_models.py has the rest."""

import pytest

from minigrad import Tensor

from tests.transformer.models import MEMORY, TEXTS, language_model


@pytest.mark.parametrize(("ids", "error", "message"), [
    ([[0.5]], TypeError, "LanguageModel: ids must be integers"),
    ([3, 4], ValueError, r"LanguageModel: ids must have shape \(batch, length\), got \(2,\)"),
    ([[3, 11]], IndexError, "11"),
    ([[3] * 41], ValueError, "41 tokens is longer than the model's 40 positions"),
], ids=str)
def test_mistakes(ids, error, message):
    with pytest.raises(error, match=message):
        language_model()(ids)


@pytest.mark.parametrize(("call", "message"), [
    (lambda: language_model().loss(TEXTS, Tensor(TEXTS)), "the targets are the ids themselves"),
    (lambda: language_model()(TEXTS, memory=MEMORY), "a memory belongs to a model with cross_attention=True"),
    (lambda: language_model(cross_attention=True)(TEXTS), "a memory belongs to a model with cross_attention=True"),
], ids=["targets", "a memory for nobody", "no memory"])
def test_what_is_given_in_vain_or_missing(call, message):
    with pytest.raises(TypeError, match=message):
        call()
