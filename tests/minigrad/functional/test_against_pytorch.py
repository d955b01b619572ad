"""Losses, norms, grouped queries, convolution and pooling against PyTorch itself, where it is installed.

Values, gradients and second gradients over a grid of options, in float64.
"""

import itertools
import math

import numpy as np
import pytest

from minigrad import Tensor, fused, grad
from minigrad import functional as F

torch = pytest.importorskip("torch")
theirs = torch.nn.functional

RNG = np.random.default_rng(71)
X, Y = RNG.normal(size=(3, 4)) * 2, RNG.normal(size=(3, 4))
P, Q, W = RNG.uniform(0.1, 0.9, size=(3, 4)), RNG.uniform(0.1, 0.9, size=(3, 4)), RNG.uniform(0.5, 2, size=4)
REDUCTIONS = ("mean", "sum", "none")


@pytest.fixture(params=[True, False], ids=["fused", "by steps"])
def form(request):
    with fused(request.param):
        yield


def same(our_function, their_function, *arrays):
    """The value, the gradient of a quadratic in it, and the gradient of that gradient's square."""
    ours = [Tensor(array, requires_grad=True) for array in arrays]
    other = [torch.tensor(array, requires_grad=True) for array in arrays]
    out, expected = our_function(*ours), their_function(*other)
    assert out.shape == tuple(expected.shape)
    np.testing.assert_allclose(out.numpy(), expected.detach().numpy(), rtol=1e-11, atol=1e-13)
    start = np.random.default_rng(72).normal(size=out.shape)
    total, their_total = (out * Tensor(start)).sum(), (expected * torch.tensor(start)).sum()
    first = grad(total + total * total, ours, create_graph=True)
    their_first = torch.autograd.grad(their_total + their_total * their_total, other, create_graph=True)
    second = grad(sum((g * g).sum() for g in first), ours)
    their_second = torch.autograd.grad(sum((g * g).sum() for g in their_first), other)
    for one, another in zip((*first, *second), (*their_first, *their_second), strict=True):
        scale = max(1.0, np.abs(one.numpy()).max(initial=0.0))
        np.testing.assert_allclose(one.numpy(), another.detach().numpy(), rtol=1e-9, atol=1e-12 * scale)


def numbers(array):
    return None if array is None else torch.tensor(array)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("shape", [(), (4,), (3, 4)])
def test_regression(reduction, shape):
    x, y = np.resize(X, shape), np.resize(Y, shape)
    for name, options in (("mse_loss", {}), ("l1_loss", {}), ("huber_loss", {"delta": 0.4}), ("huber_loss", {}),
                          ("smooth_l1_loss", {"beta": 0.4}), ("smooth_l1_loss", {"beta": 0}), ("smooth_l1_loss", {})):
        same(lambda a, b, n=name, o=options: getattr(F, n)(a, b, reduction, **o),
             lambda a, b, n=name, o=options: getattr(theirs, n)(a, b, reduction=reduction, **o), x, y)


@pytest.mark.parametrize(("reduction", "weight", "positive"), list(itertools.product(REDUCTIONS, (None, W), (None, W))))
def test_binary_cross_entropy(reduction, weight, positive):
    same(lambda x, t: F.binary_cross_entropy_with_logits(x, t, weight, reduction, positive),
         lambda x, t: theirs.binary_cross_entropy_with_logits(x, t, numbers(weight), reduction=reduction,
                                                              pos_weight=numbers(positive)), X, Q)
    same(lambda p, t: F.binary_cross_entropy(p, t, weight, reduction),
         lambda p, t: theirs.binary_cross_entropy(p, t, numbers(weight), reduction=reduction), P, Q)


@pytest.mark.parametrize("reduction", ["batchmean", "sum", "none"])
def test_kl_div(reduction):
    same(lambda x, t: F.kl_div(x, t, reduction), lambda x, t: theirs.kl_div(x, t, reduction=reduction), X, Q)
    same(lambda x, t: F.kl_div(x, t, reduction, True),
         lambda x, t: theirs.kl_div(x, t, reduction=reduction, log_target=True), X, Y)


@pytest.mark.parametrize(("reduction", "weight", "ignored"),
                         list(itertools.product(REDUCTIONS, (None, RNG.uniform(0.2, 2, 5)), (-100, 2))))
def test_class_targets(form, reduction, weight, ignored):
    x, ids = RNG.normal(size=(6, 5)) * 2, np.array([0, 2, 4, ignored, 2, 3])
    options = {"ignore_index": ignored, "reduction": reduction}
    for smoothing in (0.0, 0.1, 1.0):
        smoothed = {**options, "label_smoothing": smoothing}
        same(lambda x, o=smoothed: F.cross_entropy(x, ids, weight, **o),
             lambda x, o=smoothed: theirs.cross_entropy(x, numbers(ids), numbers(weight), **o), x)
    same(lambda x: F.nll_loss(x, ids, weight, **options),
         lambda x: theirs.nll_loss(x, numbers(ids), numbers(weight), **options), x)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_vectors(axis):
    same(lambda x, y: F.cosine_similarity(x, y, axis), lambda x, y: theirs.cosine_similarity(x, y, axis), X, Y)
    for p in (1, 2, 3, 1.5, math.inf):
        same(lambda x, p=p: F.normalize(x, p, axis), lambda x, p=p: theirs.normalize(x, p, axis), X)


@pytest.mark.parametrize("eps", [None, 0.1])
def test_rms_norm(form, eps):
    same(lambda x, w: F.rms_norm(x, w, eps), lambda x, w: theirs.rms_norm(x, (4,), w, eps), X, W)
    same(lambda x: F.rms_norm(x, eps=eps), lambda x: theirs.rms_norm(x, (4,), eps=eps), X[None])


@pytest.mark.parametrize("shared", [1, 2, 3, 6])
@pytest.mark.parametrize("mask", ["none", "causal", "full", "by head"])
def test_grouped_queries(form, shared, mask):
    """True means "may attend" in PyTorch's boolean masks of this function, too."""
    q, k, v = (RNG.normal(size=shape) for shape in ((2, 6, 3, 5), (2, shared, 4, 5), (2, shared, 4, 2)))
    allowed = {"full": RNG.random((2, 6, 3, 4)) < 0.7, "by head": RNG.random((6, 1, 4)) < 0.7}.get(mask)
    if allowed is not None:
        allowed[..., 0] = True  # where a query sees nothing they differ
    causal = mask == "causal"

    def reference(q, k, v):
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            return theirs.scaled_dot_product_attention(q, k, v, numbers(allowed), 0.0, causal, scale=0.4,
                                                       enable_gqa=True)

    same(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, allowed, 0.0, causal, 0.4, True), reference, q, k, v)


@pytest.mark.filterwarnings("ignore:Using padding='same':UserWarning")  # PyTorch tells of a copy that it makes
@pytest.mark.parametrize(("channels", "groups"), [((3, 2), 1), ((4, 6), 2), ((3, 3), 3)])
@pytest.mark.parametrize("padding", [0, 1, 3, "same", "valid"])
def test_conv1d(form, channels, groups, padding):
    for size, stride, dilation in itertools.product((1, 2, 3), (1, 2, 3), (1, 2)):
        if padding == "same" and stride > 1:
            continue
        arrays = [RNG.normal(size=shape)
                  for shape in ((2, channels[0], 7), (channels[1], channels[0] // groups, size), channels[1:])]
        options = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
        same(lambda x, w, b, o=options: F.conv1d(x, w, b, **o), lambda x, w, b, o=options: theirs.conv1d(x, w, b, **o),
             *arrays)


@pytest.mark.parametrize(("ceil_mode", "padding"), list(itertools.product((False, True), (0, 1, 2))))
def test_pooling(ceil_mode, padding):
    """Where PyTorch refuses, so do we."""
    x, compared = RNG.normal(size=(2, 3, 8)), 0
    for size, stride, option in itertools.product((1, 2, 3, 4), (None, 1, 2, 3, 5), (1, 2, 3)):
        calls = [("max_pool1d", (size, stride, padding, option, ceil_mode))]
        if option < 3:
            calls.append(("avg_pool1d", (size, stride, padding, ceil_mode, option == 1)))
        for name, arguments in calls:
            try:
                getattr(theirs, name)(torch.tensor(x), *arguments)
            except RuntimeError:
                with pytest.raises(ValueError, match=name):
                    getattr(F, name)(Tensor(x), *arguments)
                continue
            compared += 1
            same(lambda x, n=name, a=arguments: getattr(F, n)(x, *a),
                 lambda x, n=name, a=arguments: getattr(theirs, n)(x, *a), x)
    assert compared >= 25
