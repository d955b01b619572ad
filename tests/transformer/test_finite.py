"""Weights that are not finite, and finite ones whose results are not: nothing is decoded; an error names the cause."""

import numpy as np
import pytest

from minigrad import Tensor

from tests.transformer.decoding_models import EOS, peaked_model, random_sources
from tests.transformer.digits import PAIRS
from transformer.decode import beam_search, greedy
from transformer.explore.translation import explain
from transformer.finite import NotFinite, first_not_finite
from transformer.translator import Translator

NAME = "decoder.layers.0.feed_forward.inner.weight"
SOURCES = random_sources(0)


@pytest.mark.parametrize(("dtype", "bad"), [(np.float16, np.nan), (np.float32, np.inf), (np.float64, -np.inf)])
def test_the_first_that_is_not_finite(device, dtype, bad):
    large = np.full((3, 40), np.finfo(dtype).max)  # its square overflows
    tensors = {"large": large, "none": large[:0], "ids": np.array([1, 2]), "number": dtype(1)}
    tensors = {name: Tensor(value, device=device) for name, value in tensors.items()}
    assert first_not_finite({}) is first_not_finite(tensors) is None
    wrong = large.copy()
    wrong[2, 39] = bad
    wrong = Tensor(wrong, device=device)
    assert first_not_finite({**tensors, "wrong": wrong.data, "after": wrong}) == "wrong"


def one_element(model, value):
    dict(model.named_parameters())[NAME].data[1, 2] = value


def large_logits(model):
    weight = model.projection.weight.data
    weight[...] = np.copysign(np.finfo(np.float32).max, weight)


BROKEN = {
    "nan": (lambda model: one_element(model, np.nan), NAME),
    "huge": (large_logits, "finite, but too large"),
}
broken = pytest.mark.parametrize(("spoil", "cause"), BROKEN.values(), ids=BROKEN)


@broken
def test_nothing_is_decoded(spoil, cause):
    model = peaked_model(0, dtype=np.float32)
    spoil(model)
    with pytest.raises(NotFinite, match=cause) as caught:
        beam_search(model, SOURCES, 3)
    assert "\n" not in str(caught.value)


def test_tokens_without_probability_are_no_error_beside_one_that_has_it():
    model = peaked_model(0)
    model.projection.weight.data[...], model.projection.bias.data[...] = 0.0, -np.inf
    model.projection.bias.data[EOS] = 1.0
    assert [h.ids for h in greedy(model, SOURCES)] == [[]] * len(SOURCES)
    assert [[h.ids for h in row] for row in beam_search(model, SOURCES, 3, 2)] == [[[]]] * len(SOURCES)
    model.projection.bias.data[EOS] = -np.inf
    with pytest.raises(NotFinite):
        greedy(model, SOURCES)


@broken
def test_a_translator_gives_no_loss_and_an_explanation_no_page(run, spoil, cause):
    translator = Translator.load(run)
    spoil(translator.model)
    for work in (lambda: translator.loss(PAIRS), lambda: translator.evaluate(*zip(*PAIRS, strict=True)),
                 lambda: explain(translator, PAIRS[0][0])):
        with pytest.raises(NotFinite, match=cause):
            work()
    if cause == NAME:  # in float64 the loss of a given target is finite where logits are huge
        with pytest.raises(NotFinite, match=cause):
            explain(translator, *PAIRS[0])
