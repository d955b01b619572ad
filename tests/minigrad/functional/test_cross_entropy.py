"""cross_entropy and nll_loss in closed form, normalised by the rows that count."""

import numpy as np
import pytest
import scipy.special
from hypothesis import given, settings
from hypothesis import strategies as st

from minigrad import Tensor, fused, grad
from minigrad import functional as F

from tests.minigrad.ops.row import leaf

RNG = np.random.default_rng(21)


def closed_form(logits, targets, ignored, smoothing):
    """The loss of each row and its gradient, with q = (1 - ε) onehot + ε / C:  -Σ q log p,  p - q."""
    log_p = scipy.special.log_softmax(logits, axis=-1)
    classes = logits.shape[-1]
    counted = targets != ignored
    q = np.full(logits.shape, smoothing / classes)
    place = np.where(counted, targets, 0)[..., None]
    np.put_along_axis(q, place, np.take_along_axis(q, place, -1) + 1 - smoothing, -1)
    losses = np.where(counted, -(q * log_p).sum(axis=-1), 0)
    return losses, np.where(counted[..., None], np.exp(log_p) - q, 0), counted.sum()


@settings(derandomize=True, deadline=None, max_examples=60)
@given(rows=st.integers(0, 6), classes=st.integers(1, 7), smoothing=st.sampled_from([0.0, 0.05, 0.5, 1.0]),
       ignored=st.sampled_from([-100, -1, 0]), enabled=st.booleans(), seed=st.integers(0, 99))
def test_closed_form(rows, classes, smoothing, ignored, enabled, seed):
    """Ignored rows add nothing, and do not count in the mean."""
    rng = np.random.default_rng(seed)
    logits = rng.uniform(-30, 30, size=(rows, classes))
    targets = np.where(rng.random(rows) < 0.3, ignored, rng.integers(0, classes, rows))
    losses, slopes, count = closed_form(logits, targets, ignored, smoothing)
    for reduction, value, slope in (("none", losses, slopes), ("sum", losses.sum(), slopes),
                                    ("mean", losses.sum() / max(count, 1), slopes / max(count, 1))):
        x = leaf(logits)
        with fused(enabled):
            loss = F.cross_entropy(x, targets, ignored, reduction, smoothing)
            half = F.nll_loss(F.log_softmax(Tensor(logits)), targets, ignored, reduction)
        np.testing.assert_allclose(loss.numpy(), value, rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(grad(loss.sum(), x).numpy(), slope, rtol=1e-11, atol=1e-13)
        if not smoothing:
            np.testing.assert_allclose(half.numpy(), value, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize(("function", "options"), [(F.cross_entropy, {}), (F.cross_entropy, {"label_smoothing": 0.1}),
                                                  (F.nll_loss, {})])
def test_an_ignored_row_may_hold_anything(form, function, options, device):
    """NaN in what is padding: its loss and its gradient are 0, and the other rows are as they are without it."""
    targets, logits = np.array([1, -100, 0, -100, -100]), RNG.normal(size=(5, 3))
    spoilt = logits.copy()
    spoilt[1], spoilt[3], spoilt[4] = ([value, 0, value] for value in (np.nan, np.inf, -np.inf))
    results = []
    for values in (logits, spoilt):
        x = Tensor(values, device=device, requires_grad=True)
        with np.errstate(invalid="ignore"):  # the forward of NumPy says so of inf - inf
            loss = function(x, targets, reduction="none", **options)
            ordinary = grad(loss.sum(), x, retain_graph=True)
            recorded = grad((loss * loss).sum(), x, create_graph=True)
            results.append([loss, ordinary, recorded, grad(recorded.sum(), x)])
    for clean, dirty in zip(*results, strict=True):
        np.testing.assert_array_equal(dirty.numpy(), clean.numpy())
    assert (results[1][1].numpy()[[1, 3, 4]] == 0).all()


# A model that is nearly sure, beside logits of any size; targets whose exponential is 0, or denormal.
SURE = [[14.5, 0.5, 0.0, 0.25], [0.0, -14.0, 0.5, 1.0]]
LOGITS = [*(np.add(SURE, offset) for offset in (0, 50, -50, 300, -1000)),
          *(np.array([row]) for row in ([-200.0, 200], [-103.75, -20], [-103.0, -43], [-87.5, 0]))]


@pytest.mark.parametrize("logits", LOGITS)
def test_the_loss_keeps_its_digits_wherever_the_logits_lie(form, logits):
    x, targets = leaf(logits, dtype=np.float32), np.array([0, 3])[:len(logits)]
    loss = F.cross_entropy(x, targets, reduction="sum")
    expected, slopes, _ = closed_form(x.numpy().astype(np.float64), targets, -1, 0.0)
    np.testing.assert_allclose(loss.item(), expected.sum(), rtol=2e-6)
    np.testing.assert_allclose(grad(loss, x).numpy(), slopes, rtol=1e-4, atol=2e-7)
