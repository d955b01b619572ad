"""The sequence-to-sequence model: its loss, its ids, and what it refuses; test_models.py has its formula."""

import math
from dataclasses import replace

import numpy as np
import pytest

import minigrad
from minigrad import functional as F
from minigrad import nn

from tests.transformer.tiny import BOS, LABELS, PAD, SOURCE, assert_same, backward, tiny_config, tiny_model
from transformer import Transformer, causal_mask, padding_mask, shift_right

# ------------------------------------------------------------------ the loss


@pytest.mark.parametrize("fused", [True, False])
def test_the_loss_is_the_smoothed_cross_entropy_over_the_number_of_real_tokens(fused):
    model, real = tiny_model(), LABELS != PAD
    with minigrad.fused(fused):
        logits = model(SOURCE, shift_right(LABELS, BOS))[real]
        for smoothing in (0.0, 0.1):
            expected = F.cross_entropy(logits, LABELS[real], label_smoothing=smoothing).item()
            assert model.loss(SOURCE, LABELS, smoothing).item() == pytest.approx(expected, rel=1e-13)
            assert model.loss(SOURCE, LABELS, smoothing, "sum").item() == pytest.approx(7 * expected, rel=1e-13)


def test_initial_parameters_follow_the_design():
    model = Transformer(tiny_model(d_model=64, d_ff=256).config)
    for name, parameter in model.named_parameters():
        values = parameter.numpy()
        if name.endswith("table.weight"):
            assert values.std() == pytest.approx(64**-0.5, rel=0.1)
        elif "norm.weight" in name:
            assert (values == 1).all()
        elif values.ndim == 1:
            assert (values == 0).all()
        else:  # Xavier-uniform
            bound = math.sqrt(6 / sum(values.shape))
            assert 0.95 * bound < abs(values).max() <= bound


def test_the_model_is_its_stacks_with_their_masks():
    model, target = tiny_model(), shift_right(LABELS, BOS)
    memory_mask = padding_mask(SOURCE)
    memory = model.encoder(source=SOURCE, mask=memory_mask)
    mask = padding_mask(target) & causal_mask(target.shape[1])
    hidden = model.decoder(target=target, memory=memory, mask=mask, memory_mask=memory_mask)
    np.testing.assert_array_equal(model.logits(hidden).numpy(), model(SOURCE, target).numpy())


# ------------------------------------------------------------------ ids


@pytest.mark.parametrize(("source", "target", "error", "message"), [
    ([[4, 3, -1]], [[8]], IndexError, "source ids: id -1 "),
    ([[4]], [[8, 9]], IndexError, "target ids: id 9 "),
    ([[4.0]], [[8]], TypeError, "source ids must be integers"),
    ([4], [[8]], ValueError, r"source ids.* \(1,\)"),
    ([[4]], [[8], [8]], ValueError, r"same batch.* 1 and 2 sentences"),
], ids=str)
def test_ids_out_of_range_are_refused_by_name(source, target, error, message, device):
    """And those of other types and shapes."""
    model = Transformer(replace(tiny_config(), source_vocab_size=5, target_vocab_size=9)).to(device)
    for call in (model, model.loss):
        with pytest.raises(error, match=message):
            call(source, target)
    assert model([[4]], [[8]]).shape == (1, 1, 9)


@pytest.mark.parametrize("fused", [True, False], ids=["fused", "by steps"])
@pytest.mark.parametrize("sizes", [((2, 0), (2, 4)), ((2, 5), (2, 0)), ((0, 5), (0, 4)), ((2, 0), (2, 0))], ids=str)
def test_empty_sequences_and_batches_are_no_trouble(sizes, fused):
    model, (source, labels) = tiny_model(), (np.full(shape, 5) for shape in sizes)
    with minigrad.fused(fused):
        gradients = backward(model, lambda: model.loss(source, labels, 0.1))
        assert (model.loss(source, labels, 0.1).item() > 0) == (labels.size > 0)
    assert all(np.isfinite(gradient).all() for gradient in gradients.values())


@pytest.mark.parametrize(("norm", "fused"), [("pre", True), ("post", False)],
                         ids=["pre-norm, fused", "post-norm, by steps"])
def test_sentences_that_are_all_padding_give_no_nan_and_change_no_others(norm, fused, device):
    model = tiny_model(device=device, norm=norm)
    source, labels = (np.concatenate([ids, np.full_like(ids[:1], PAD)]) for ids in (SOURCE, LABELS))

    def gradients(source, labels):
        return backward(model, lambda: model.loss(source, labels, 0.1))

    with minigrad.fused(fused):
        assert np.isfinite(model(source, shift_right(labels, BOS)).numpy()).all()
        assert_same(gradients(source, labels), gradients(SOURCE, LABELS))
        no_source, nothing = gradients(source[[2, 1]], LABELS), gradients(source[2:], labels[2:])
        assert all(np.isfinite(gradient).all() for gradient in no_source.values())
        assert not any(gradient.any() for gradient in nothing.values())
        assert model.loss(source[2:], labels[2:], 0.1).item() == 0


def test_a_model_that_is_not_drawn_leaves_the_random_state():
    """Every part of it is drawn by an initialiser."""
    before = minigrad.random.get_state()
    with nn.no_init():
        Transformer(tiny_config(output_bias=True, positions="learned"))
    assert minigrad.random.get_state() == before
