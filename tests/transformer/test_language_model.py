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


@pytest.mark.parametrize("targets", [TEXTS, TEXTS.tolist(), Tensor(TEXTS)], ids=["array", "lists", "tensor"])
def test_the_loss_takes_no_targets(targets):
    with pytest.raises(TypeError, match="the targets are the ids themselves"):
        language_model().loss(TEXTS, targets)


@pytest.mark.parametrize("options", [{}, {"cross_attention": True}], ids=["a memory for nobody", "no memory"])
def test_a_memory_belongs_to_cross_attention(options):
    with pytest.raises(TypeError, match="a memory belongs to a model with cross_attention=True"):
        language_model(**options)(TEXTS, **({} if options else {"memory": MEMORY}))
