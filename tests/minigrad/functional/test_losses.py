"""The losses in closed form, and where they bend or end. Derivatives: see test_twins.py."""

import math

import numpy as np
import pytest
import scipy.special

from minigrad import Tensor, grad
from minigrad import functional as F

RNG = np.random.default_rng(61)
X, Y = RNG.normal(size=(3, 4)) * 2, RNG.normal(size=(3, 4))
D = X - Y
P = RNG.uniform(0.05, 0.95, size=(3, 4))
T = np.array([[1.0, 0.0, 0.3, 1.0], [0.0, 0.0, 1.0, 0.8], [0.5, 1.0, 0.0, 1.0]])
W = np.array([0.5, 2.0, 1.0, 0.1])


def leaf(values, dtype=np.float64):
    return Tensor(np.array(values, dtype), requires_grad=True)


def huber(delta):
    return scipy.special.huber(delta, D)


def bce(p, t):
    return -(scipy.special.xlogy(t, p) + scipy.special.xlog1py(1 - t, -p))


SIGMOID, POSITIVE = scipy.special.expit(X), W[::-1] + 1
LOSSES = {  # the loss of x, x, and by element: the values and the slopes
    "mse_loss": (lambda x, **o: F.mse_loss(x, Y, **o), X, D**2, 2 * D),
    "l1_loss": (lambda x, **o: F.l1_loss(x, Y, **o), X, np.abs(D), np.sign(D)),
    "huber_loss": (lambda x, **o: F.huber_loss(x, Y, delta=0.7, **o), X, huber(0.7), np.clip(D, -0.7, 0.7)),
    "smooth_l1_loss": (lambda x, **o: F.smooth_l1_loss(x, Y, beta=0.7, **o), X, huber(0.7) / 0.7,
                       np.clip(D / 0.7, -1, 1)),
    "binary_cross_entropy, weighted": (lambda p, **o: F.binary_cross_entropy(p, T, W, **o), P, bce(P, T) * W,
                                       W * (P - T) / (P * (1 - P))),
    "binary_cross_entropy_with_logits, weighted": (
        lambda x, **o: F.binary_cross_entropy_with_logits(x, T, W, pos_weight=POSITIVE, **o), X,
        -W * (POSITIVE * T * np.log(SIGMOID) + (1 - T) * np.log(1 - SIGMOID)),
        W * ((1 - T) * SIGMOID - POSITIVE * T * (1 - SIGMOID))),
    "kl_div": (lambda x, **o: F.kl_div(x, T, **o), X, scipy.special.xlogy(T, T) - T * X, -T),
    "kl_div of logarithms": (lambda x, **o: F.kl_div(x, Y, log_target=True, **o), X, np.exp(Y) * (Y - X), -np.exp(Y)),
}


@pytest.mark.parametrize(("loss", "x", "values", "slopes"), LOSSES.values(), ids=LOSSES)
def test_closed_form(loss, x, values, slopes):
    for reduction, value, slope in (("none", values, slopes), ("sum", values.sum(), slopes),
                                    ("mean", values.mean(), slopes / x.size)):
        leaf_x = leaf(x)
        out = loss(leaf_x, reduction=reduction)
        np.testing.assert_allclose(out.numpy(), value, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(grad(out.sum(), leaf_x).numpy(), slope, rtol=1e-11, atol=1e-14)
    np.testing.assert_array_equal(loss(Tensor(x)).numpy(), loss(Tensor(x), reduction="mean").numpy())


@pytest.mark.parametrize("target", [T.tolist(), T, Tensor(T), T > 0.5])
def test_targets_in_every_form(target, device):
    """What is no tensor is a constant in the input's dtype, sent to where the input is."""
    x = Tensor(X, dtype=np.float32, device=device, requires_grad=True)
    target = target.to(device) if isinstance(target, Tensor) else target
    values = np.asarray(target.numpy() if isinstance(target, Tensor) else target, np.float32)
    for loss, expected in ((F.mse_loss, ((X - values) ** 2).mean()),
                           (F.binary_cross_entropy_with_logits, bce(SIGMOID, values).mean())):
        out = loss(x, target)
        assert out.dtype == (np.float64 if isinstance(target, Tensor) else np.float32)
        assert out.device == device
        assert out.item() == pytest.approx(expected, rel=1e-5)


# --- Where they bend and end


@pytest.mark.parametrize("loss", [F.huber_loss, F.smooth_l1_loss])
def test_a_quadratic_has_its_curvature_at_zero_too(loss):
    x = leaf([0.0, 0.5, 3.0])
    first = grad(loss(x, np.zeros(3), "sum"), x, create_graph=True)
    np.testing.assert_array_equal(first.numpy(), [0, 0.5, 1])
    np.testing.assert_array_equal(grad(first.sum(), x).numpy(), [1, 1, 0])


def test_a_large_difference_does_not_overflow():
    far = float(np.finfo(np.float32).max) / 4
    x = leaf([far, -far], np.float32)
    for loss in (F.huber_loss, F.smooth_l1_loss, F.l1_loss):
        out = loss(x, np.zeros(2), "none")
        np.testing.assert_allclose(out.numpy(), [far, far], rtol=1e-3)
        np.testing.assert_array_equal(grad(out.sum(), x).numpy(), [1, -1])


@pytest.mark.parametrize("t", [0.0, 1.0])
def test_logits_of_a_thousand_and_losses_that_are_tiny(t):
    values = np.array([-1000.0, -40.0, 0.0, 40.0, 1000.0])
    x = leaf(values, np.float32)
    out = F.binary_cross_entropy_with_logits(x, np.full(5, t), reduction="none")
    z = values if t == 0 else -values
    np.testing.assert_allclose(out.numpy(), np.logaddexp(0, z), rtol=1e-6)
    first = grad(out.sum(), x, create_graph=True)
    np.testing.assert_allclose(first.numpy(), scipy.special.expit(z) * (1 if t == 0 else -1), rtol=1e-6)
    second = grad(first.sum(), x)
    np.testing.assert_allclose(second.numpy(), scipy.special.expit(z) * scipy.special.expit(-z), rtol=1e-5, atol=1e-16)


def test_probabilities_of_zero_and_one_and_near_them():
    """The logarithm stops at -100; its slope, where the answer is right, is the limit's, and else points away."""
    p = leaf([0.0, 1.0, 0.0, 1.0])
    out = F.binary_cross_entropy(p, [0, 1, 1, 0], reduction="none")
    np.testing.assert_array_equal(out.numpy(), [0, 0, 100, 100])
    np.testing.assert_allclose(grad(out.sum(), p).numpy(), [1, -1, -1e12, 1e12], rtol=1e-15)
    p = leaf([1e-10], np.float32)
    assert F.binary_cross_entropy(p, [0.0]).item() == pytest.approx(1e-10, rel=1e-6)


def test_kl_div_of_what_cannot_happen_is_zero():
    """0 · log 0 = 0, even where the other distribution excludes it too."""
    x, t = leaf([-math.inf, -1.0, -2.0]), leaf([0.0, 0.0, 1.0])
    out = F.kl_div(x, t, "none")
    np.testing.assert_array_equal(out.numpy(), [0, 0, 2])
    gx, gt = grad(out.sum(), [x, t])
    np.testing.assert_array_equal(gx.numpy(), [0, 0, -1])
    np.testing.assert_array_equal(gt.numpy(), [0, 0, 3])
    logarithms = leaf([-math.inf, -math.inf, 0.0])
    out = F.kl_div(x, logarithms, "none", log_target=True)
    np.testing.assert_array_equal(out.numpy(), [0, 0, 2])
    for g in grad(out.sum(), [x, logarithms]):
        assert np.isfinite(g.numpy()).all()


def test_the_mean_divergence_is_the_sum_over_the_batch():
    p, log_q = scipy.special.softmax(X, axis=-1), scipy.special.log_softmax(Y, axis=-1)
    divergences = scipy.special.rel_entr(p, np.exp(log_q)).sum(axis=-1)
    assert F.kl_div(Tensor(log_q), p, "batchmean").item() == pytest.approx(divergences.mean(), rel=1e-12)
