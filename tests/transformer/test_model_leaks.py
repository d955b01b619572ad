"""What the model must not see of padding: what stands there; test_models.py has later tokens."""

import numpy as np
import pytest

import minigrad

from tests.transformer.tiny import BOS, LABELS, PAD, SOURCE, VOCABULARY, assert_same, backward, tiny_model
from transformer import shift_right

BOTH_WAYS = pytest.mark.parametrize(("norm", "fused"), [("pre", True), ("post", False)],
                                    ids=["pre-norm, fused", "post-norm, by steps"])


@BOTH_WAYS
def test_what_stands_at_padding_changes_nothing_bit_for_bit(norm, fused, device):
    """The embedding of the padding id is all that the model could see of it."""
    model = tiny_model(device=device, norm=norm)
    tables = [model.encoder.embedding.table.weight, model.decoder.embedding.table.weight]

    def results():
        logits = model(SOURCE, shift_right(LABELS, BOS)).numpy()[LABELS != PAD]
        return logits, model.loss(SOURCE, LABELS, 0.1).item(), backward(model, lambda: model.loss(SOURCE, LABELS, 0.1))

    with minigrad.fused(fused):
        logits, loss, gradients = results()
        for table in tables:
            np.testing.assert_array_equal(table.grad.numpy()[PAD], 0)
            values = table.numpy().copy()
            values[PAD] = np.random.default_rng(3).normal(0, 100, 8)
            table.copy_(values)
        other_logits, other_loss, other_gradients = results()
    np.testing.assert_array_equal(other_logits, logits)
    assert other_loss == loss
    # Atomic additions give the embedding of a token that occurs twice a sum of no fixed order.
    assert_same(other_gradients, gradients, 0 if device == "cpu" else 1e-14)


def test_another_padding_id_is_as_good():
    """Ids 0 and 10 change their names, and their rows in every table: nothing else changes."""
    model, other = tiny_model(), tiny_model(pad_id=10)
    swap = np.arange(VOCABULARY)
    swap[[0, 10]] = [10, 0]
    state = {name: t.numpy() for name, t in model.state_dict().items()}
    for name in ("encoder.embedding.table.weight", "decoder.embedding.table.weight", "projection.weight"):
        state[name] = state[name][swap]
    other.load_state_dict(state)
    assert other.loss(swap[SOURCE], swap[LABELS], 0.1).item() == pytest.approx(
        model.loss(SOURCE, LABELS, 0.1).item(), rel=1e-13
    )


@BOTH_WAYS
def test_sentences_that_are_all_padding_give_no_nan_and_change_no_others(norm, fused, device):
    model = tiny_model(device=device, norm=norm, dropout=0.0)
    source = np.concatenate([SOURCE, np.full((1, 5), PAD)])
    labels = np.concatenate([LABELS, np.full((1, 4), PAD)])
    with minigrad.fused(fused):
        logits = model(source, shift_right(labels, BOS)).numpy()
        assert np.isfinite(logits).all()
        gradients = backward(model, lambda: model.loss(source, labels, 0.1))
        assert_same(gradients, backward(model, lambda: model.loss(SOURCE, LABELS, 0.1)))

        empty_source = np.array([[PAD] * 5, SOURCE[1]])  # no source, but something to say
        gradients = backward(model, lambda: model.loss(empty_source, LABELS, 0.1))
        assert all(np.isfinite(gradient).all() for gradient in gradients.values())

        nothing = model.loss(source[2:], labels[2:], 0.1)
        assert nothing.item() == 0
        gradients = backward(model, lambda: model.loss(source[2:], labels[2:], 0.1))
        assert all((gradient == 0).all() for gradient in gradients.values())
