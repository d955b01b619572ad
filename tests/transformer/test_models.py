"""What holds for every model of the table: gradients, no look at padding or at later tokens, the cache."""

import numpy as np
import pytest

import minigrad
from minigrad import nn, no_grad

from tests.transformer.models import IDS, MODELS, translating
from tests.transformer.tiny import assert_same, backward
from transformer.decode import Cache

every_model = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS.keys())
CACHED = MODELS | {"no layers": translating(num_decoder_layers=0)}
every_cached_model = pytest.mark.parametrize("make", CACHED.values(), ids=CACHED.keys())


# --- The loss and its gradient --------------------------------------------------------------------


@every_model
def test_the_loss_has_the_gradient_of_finite_differences(make):
    """Two texts of unequal lengths, padding and causal masks, label smoothing, dropout with frozen masks."""
    minigrad.gradcheck(*make(dropout=0.2).along(), atol=1e-8)


@pytest.mark.parametrize("fused", [True, False], ids=["fused", "by steps"])
def test_second_derivatives_of_the_whole_loss(fused, device):
    with minigrad.fused(fused):
        minigrad.gradgradcheck(*MODELS["as Llama"](device, dropout=0.2).along())


# --- What no model sees ---------------------------------------------------------------------------


@every_model
@pytest.mark.parametrize("fused", [True, False], ids=["fused", "by steps"])
def test_a_text_has_the_loss_and_the_gradient_that_it_has_alone(make, fused):
    """So no padding is seen."""
    example = make()
    with minigrad.fused(fused):
        alone = [backward(example.model, lambda row=row: example.loss([row], "sum")) for row in (0, 1)]
        assert_same(backward(example.model, lambda: example.loss(reduction="sum")),
                    {name: value + alone[1][name] for name, value in alone[0].items()})
        assert example.loss(reduction="sum").item() == pytest.approx(
            sum(example.loss([row], "sum").item() for row in (0, 1)), rel=1e-13)


@every_model
@pytest.mark.parametrize("fused", [True, False], ids=["fused", "by steps"])
def test_no_output_sees_a_later_token(make, fused, device):
    example = make(device)
    for t in (1, 8, 14):
        changed = IDS.copy()
        changed[:, t:] = 13 - changed[:, t:]  # 5 to 10, no two alike
        with minigrad.fused(fused), no_grad():
            before, after = (example.forward(ids, **example.beside()).numpy() for ids in (IDS, changed))
        np.testing.assert_array_equal(after[:, :t], before[:, :t])
        assert (after[:, t:] != before[:, t:]).any(axis=-1).all()


# --- The cache ------------------------------------------------------------------------------------


@every_cached_model
@pytest.mark.parametrize("fused", [True, False], ids=["fused", "by steps"])
def test_the_logits_are_those_of_the_whole_text(make, fused, device):
    """For several tokens, for one, for one, and for the rest; and without a cache."""
    example, cache = make(device), Cache()
    with minigrad.fused(fused), no_grad(), nn.evaluating():
        beside = example.beside()
        expected = example.forward(IDS, **beside, cache=Cache()).numpy()
        np.testing.assert_allclose(example.forward(IDS, **beside).numpy(), expected, rtol=0, atol=1e-12)
        found = [example.forward(IDS[:, :end], **beside, cache=cache).numpy() for end in (4, 5, 6, 15)]
    np.testing.assert_allclose(np.concatenate(found, axis=1), expected, rtol=0, atol=1e-12)
    assert cache.length == 15


@every_cached_model
def test_each_hypothesis_follows_its_own_past(make, device):
    """Random parents for 20 steps, between one and five hypotheses; texts leave, and one comes twice."""
    example, rng, cache = make(device), np.random.default_rng(3), Cache()
    ids, texts = IDS[:, None, :4], np.arange(3)
    with no_grad(), nn.evaluating():
        beside = example.beside()

        def logits(ids, rows, cache):
            chosen = {name: None if x is None else x[rows] for name, x in beside.items()}
            return example.forward(ids, **chosen, cache=cache).numpy()[:, -1]

        for step in range(20):
            batch, hypotheses, length = ids.shape
            flat = ids.reshape(-1, length)
            expected = logits(flat, np.repeat(texts, hypotheses), Cache())  # one that has read nothing
            np.testing.assert_allclose(logits(flat, texts, cache), expected, rtol=0, atol=1e-12)
            keep = np.array({6: [2, 0, 2, 1], 12: [3, 1, 2], 15: [0]}.get(step, range(batch)))
            parents = rng.integers(0, hypotheses, (len(keep), (1, 5, 5, 3, 1)[step % 5]))
            cache.select(keep, parents)
            ids = np.concatenate([ids[keep[:, None], parents], rng.integers(3, 9, (*parents.shape, 1))], axis=2)
            texts = texts[keep]
