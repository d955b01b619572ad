"""What the decoder-only model refuses; test_models.py has the rest."""

import pytest

from minigrad import Tensor

from tests.transformer.models import MEMORY, TEXTS, language_model


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: language_model()([[0.5]]), TypeError, "LanguageModel: ids must be integers"),
    (lambda: language_model()([3, 4]), ValueError, r"LanguageModel: ids must have shape \(batch, length\), got \(2,\)"),
    (lambda: language_model()([[3] * 41]), ValueError, "41 tokens is longer than the model's 40 positions"),
    (lambda: language_model().loss(TEXTS, Tensor(TEXTS)), TypeError, "the targets are the ids themselves"),
    (lambda: language_model()(TEXTS, memory=MEMORY), TypeError, "a memory belongs to a model with cross_attention"),
    (lambda: language_model(cross_attention=True)(TEXTS), TypeError, "a memory belongs to a model with cross_att"),
])
def test_mistakes(call, error, message):
    with pytest.raises(error, match=message):
        call()
