"""cross_entropy and nll_loss: what is ignored, and logits of any size. Values by formulas: see test_values.py."""

import numpy as np
import pytest
import scipy.special

from minigrad import Tensor, grad
from minigrad import functional as F

from tests.minigrad.ops.row import leaf


@pytest.mark.parametrize(("function", "options"), [(F.cross_entropy, {}), (F.cross_entropy, {"label_smoothing": 0.1}),
                                                  (F.nll_loss, {})])
def test_an_ignored_row_may_hold_anything(form, function, options, device):
    """NaN in what is padding: its loss and its gradient are 0, and the other rows are as they are without it."""
    targets, spoilt, results = np.array([1, -100, 0, -100, -100]), [1, 3, 4], []
    for worst in ([1.0, 2.0, 3.0], [np.nan, np.inf, -np.inf]):
        logits = np.random.default_rng(21).normal(size=(5, 3))
        logits[spoilt, 1] = worst
        x = Tensor(logits, device=device, requires_grad=True)
        with np.errstate(invalid="ignore"):  # the forward of NumPy says so of inf - inf
            loss = function(x, targets, reduction="none", **options)
            ordinary = grad(loss.sum(), x, retain_graph=True)
            recorded = grad((loss * loss).sum(), x, create_graph=True)
            results.append([t.numpy() for t in (loss, ordinary, recorded, grad(recorded.sum(), x))])
    for clean, dirty in zip(*results, strict=True):
        np.testing.assert_array_equal(dirty, clean)
    assert not results[1][1][spoilt].any()


# A model that is nearly sure, beside logits of any size; targets whose exponential is 0, or denormal.
SURE = [[14.5, 0.5, 0.0, 0.25], [0.0, -14.0, 0.5, 1.0]]
LOGITS = [*(np.add(SURE, offset) for offset in (0, 50, -50, 300, -1000)),
          *(np.array([row]) for row in ([-200.0, 200], [-103.75, -20], [-103.0, -43], [-87.5, 0]))]


@pytest.mark.parametrize("logits", LOGITS)
def test_the_loss_keeps_its_digits_wherever_the_logits_lie(form, logits):
    x, targets = leaf(logits, dtype=np.float32), np.array([0, 3])[:len(logits)]
    loss = F.cross_entropy(x, targets, reduction="sum")
    exact, hot = x.numpy().astype(np.float64), np.eye(x.shape[-1])[targets]
    slopes = scipy.special.softmax(exact, -1) - hot
    np.testing.assert_allclose(loss.item(), -(scipy.special.log_softmax(exact, -1) * hot).sum(), rtol=2e-6)
    np.testing.assert_allclose(grad(loss, x).numpy(), slopes, rtol=1e-4, atol=2e-7)
