"""How the decoder-only model begins, and what it refuses; test_models.py has the rest."""

import numpy as np
import pytest

from minigrad import Tensor

from tests.transformer.models import MEMORY, TEXTS, language_model


def test_with_sinusoids_embeddings_are_scaled_by_the_root_of_their_width():
    """Vaswani et al. 2017, section 3.4; learned positions have the size of the embeddings."""
    for positions, scale in (("sinusoidal", 4.0), ("learned", 1.0)):
        model, given = language_model(d_model=16, positions=positions).eval(), []
        model.layers[0].register_forward_pre_hook(lambda _, args, given=given: given.append(args[0]))
        model(TEXTS)
        expected = model.table(Tensor(TEXTS)) * scale + model.positions(len(TEXTS[0]))
        np.testing.assert_allclose(given[0].numpy(), expected.numpy(), rtol=1e-12)


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
