"""Losses of classes and pooling against PyTorch itself, where it is installed: values, gradients, second gradients."""

import itertools

import numpy as np
import pytest

from minigrad import Tensor, grad
from minigrad import functional as F

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.slow

RNG = np.random.default_rng(71)


def same(name, array, **options):
    """The value, the gradient of a quadratic in it, and the gradient of that gradient's square."""
    x, other = Tensor(array, requires_grad=True), torch.tensor(array, requires_grad=True)
    theirs = {key: torch.tensor(value) if isinstance(value, np.ndarray) else value for key, value in options.items()}
    out, expected = getattr(F, name)(x, **options), getattr(torch.nn.functional, name)(other, **theirs)
    assert out.shape == tuple(expected.shape)
    np.testing.assert_allclose(out.numpy(), expected.detach().numpy(), rtol=1e-11, atol=1e-13)
    start = np.random.default_rng(72).normal(size=out.shape)
    total, their_total = (out * Tensor(start)).sum(), (expected * torch.tensor(start)).sum()
    once = grad(total + total * total, x, create_graph=True)
    (their_once,) = torch.autograd.grad(their_total + their_total * their_total, other, create_graph=True)
    twice = grad((once * once).sum(), x)
    (their_twice,) = torch.autograd.grad((their_once * their_once).sum(), other)
    for one, another in ((once, their_once), (twice, their_twice)):
        scale = max(1.0, np.abs(one.numpy()).max(initial=0.0))
        np.testing.assert_allclose(one.numpy(), another.detach().numpy(), rtol=1e-9, atol=1e-12 * scale)


@pytest.mark.parametrize(("reduction", "weight", "ignored"),
                         list(itertools.product(("mean", "sum", "none"), (None, RNG.uniform(0.2, 2, 5)), (-100, 2))))
def test_class_targets(form, reduction, weight, ignored):
    x = RNG.normal(size=(6, 5)) * 2
    options = {"target": np.array([0, 2, 4, ignored, 2, 3]), "weight": weight, "ignore_index": ignored,
               "reduction": reduction}
    for smoothing in (0.0, 0.1, 1.0):
        same("cross_entropy", x, label_smoothing=smoothing, **options)
    same("nll_loss", x, **options)


@pytest.mark.parametrize(("ceil_mode", "padding"), list(itertools.product((False, True), (0, 1, 2))))
def test_pooling(ceil_mode, padding):
    """Where PyTorch refuses, so do we."""
    x, compared = RNG.normal(size=(2, 3, 8)), 0
    for size, stride, option in itertools.product((1, 2, 3, 4), (None, 1, 2, 3, 5), (1, 2, 3)):
        options = {"kernel_size": size, "stride": stride, "padding": padding, "ceil_mode": ceil_mode}
        calls = [("max_pool1d", {**options, "dilation": option}),
                 ("avg_pool1d", {**options, "count_include_pad": option == 1})]
        for name, given in calls:
            try:
                getattr(torch.nn.functional, name)(torch.tensor(x), **given)
            except RuntimeError:
                with pytest.raises(ValueError, match=name):
                    getattr(F, name)(Tensor(x), **given)
                continue
            compared += 1
            same(name, x, **given)
    assert compared >= 25
