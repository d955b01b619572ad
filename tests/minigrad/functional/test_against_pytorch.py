"""Losses of classes, norms, grouped queries, convolution and pooling against PyTorch itself, where it is installed.

Values, gradients and second gradients over a grid of options, in float64.
"""

import itertools
import math

import numpy as np
import pytest

from minigrad import Tensor, grad
from minigrad import functional as F

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.slow

RNG = np.random.default_rng(71)
X, Y = RNG.normal(size=(3, 4)) * 2, RNG.normal(size=(3, 4))
WEIGHT = RNG.uniform(0.5, 2, size=4)


def same(name, *arrays, first=(), **options):
    """The value, the gradient of a quadratic in it, and the gradient of that gradient's square.

    PyTorch's function of this name has the same options, but for those that it takes `first`, after the input.
    """
    ours = [Tensor(array, requires_grad=True) for array in arrays]
    other = [torch.tensor(array, requires_grad=True) for array in arrays]
    theirs = {key: torch.tensor(value) if isinstance(value, np.ndarray) else value for key, value in options.items()}
    out = getattr(F, name)(*ours, **options)
    expected = getattr(torch.nn.functional, name)(other[0], *first, *other[1:], **theirs)
    assert out.shape == tuple(expected.shape)
    np.testing.assert_allclose(out.numpy(), expected.detach().numpy(), rtol=1e-11, atol=1e-13)
    start = np.random.default_rng(72).normal(size=out.shape)
    total, their_total = (out * Tensor(start)).sum(), (expected * torch.tensor(start)).sum()
    once = grad(total + total * total, ours, create_graph=True)
    their_once = torch.autograd.grad(their_total + their_total * their_total, other, create_graph=True)
    twice = grad(sum((g * g).sum() for g in once), ours)
    their_twice = torch.autograd.grad(sum((g * g).sum() for g in their_once), other)
    for one, another in zip((*once, *twice), (*their_once, *their_twice), strict=True):
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


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_vectors(axis):
    same("cosine_similarity", X, Y, dim=axis)
    for p in (1, 2, 3, 1.5, math.inf):
        same("normalize", X, p=p, dim=axis)


@pytest.mark.parametrize("eps", [None, 0.1])
def test_rms_norm(form, eps):
    same("rms_norm", X, WEIGHT, first=((4,),), eps=eps)
    same("rms_norm", X[None], first=((4,),), eps=eps)


@pytest.mark.parametrize("shared", [1, 2, 3, 6])
@pytest.mark.parametrize("mask", ["none", "causal", "full", "by head"])
def test_grouped_queries(form, shared, mask):
    """True means "may attend" in PyTorch's boolean masks of this function, too."""
    arrays = [RNG.normal(size=shape) for shape in ((2, 6, 3, 5), (2, shared, 4, 5), (2, shared, 4, 2))]
    allowed = {"full": RNG.random((2, 6, 3, 4)) < 0.7, "by head": RNG.random((6, 1, 4)) < 0.7}.get(mask)
    if allowed is not None:
        allowed[..., 0] = True  # where a query sees nothing they differ
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        same("scaled_dot_product_attention", *arrays, attn_mask=allowed, is_causal=mask == "causal", scale=0.4,
             enable_gqa=True)


@pytest.mark.filterwarnings("ignore:Using padding='same':UserWarning")  # PyTorch tells of a copy that it makes
@pytest.mark.parametrize(("channels", "groups"), [((3, 2), 1), ((4, 6), 2), ((3, 3), 3)])
@pytest.mark.parametrize("padding", [0, 1, 3, "same", "valid"])
def test_conv1d(form, channels, groups, padding):
    for size, stride, dilation in itertools.product((1, 2, 3), (1, 2, 3), (1, 2)):
        if padding == "same" and stride > 1:
            continue
        arrays = [RNG.normal(size=shape)
                  for shape in ((2, channels[0], 7), (channels[1], channels[0] // groups, size), channels[1:])]
        same("conv1d", *arrays, stride=stride, padding=padding, dilation=dilation, groups=groups)


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
