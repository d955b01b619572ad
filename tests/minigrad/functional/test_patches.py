"""unfold, fold and pad of images against loops over their definitions."""

import itertools

import numpy as np
import pytest

from minigrad import Tensor, nn
from minigrad import functional as F

RNG = np.random.default_rng(71)
OPTIONS = [(2, 1, 0, 1), ((3, 2), (2, 1), (1, 2), (2, 3)), (4, 1, 1, 2), ((1, 3), 2, (0, 1), 1)]


def pair(size):
    return size if isinstance(size, tuple) else (size, size)


def patches(x, size, dilation, padding, stride):
    """The definition, a patch at a time."""
    (kh, kw), (dh, dw), (ph, pw), (sh, sw) = map(pair, (size, dilation, padding, stride))
    x = np.pad(x, ((0, 0), (0, 0), (ph, ph), (pw, pw)))
    rows = range(0, x.shape[2] - dh * (kh - 1), sh)
    columns = range(0, x.shape[3] - dw * (kw - 1), sw)
    return np.stack([x[:, :, r:r + dh * (kh - 1) + 1:dh, c:c + dw * (kw - 1) + 1:dw].reshape(len(x), -1)
                     for r, c in itertools.product(rows, columns)], axis=-1)


@pytest.mark.parametrize("options", OPTIONS)
def test_unfold_is_its_definition_and_fold_its_transpose(options, device):
    x = RNG.normal(size=(2, 3, 7, 6))
    found = F.unfold(Tensor(x, device=device), *options)
    expected = patches(x, *options)
    np.testing.assert_array_equal(found.numpy(), expected)
    y = RNG.normal(size=expected.shape)
    folded = F.fold(Tensor(y, device=device), (7, 6), *options)
    assert folded.shape == x.shape
    np.testing.assert_allclose((folded.numpy() * x).sum(), (expected * y).sum(), rtol=1e-11)


def test_patches_and_a_linear_layer_are_a_convolution_in_two_dimensions():
    x, layer = RNG.normal(size=(2, 3, 6, 4)), nn.Linear(12, 5)
    out = layer(F.unfold(x, 2, stride=2).mT)  # (N, L, C·2·2) -> (N, L, 5)
    kernel = layer.weight.numpy().reshape(5, 3, 2, 2)
    for row, column in itertools.product(range(3), range(2)):
        patch = x[:, :, 2 * row:2 * row + 2, 2 * column:2 * column + 2]
        expected = np.einsum("nchw,ochw->no", patch, kernel) + layer.bias.numpy()
        np.testing.assert_allclose(out.numpy()[:, 2 * row + column], expected, rtol=1e-6)


@pytest.mark.parametrize(("mode", "numpys"), [("constant", "constant"), ("reflect", "reflect"), ("replicate", "edge"),
                                              ("circular", "wrap")])
def test_pad_begins_with_the_last_axis(mode, numpys, device):
    x = RNG.normal(size=(2, 3, 4))
    found = F.pad(Tensor(x, device=device), (1, 2, 0, 1), mode)
    np.testing.assert_array_equal(found.numpy(), np.pad(x, ((0, 0), (0, 1), (1, 2)), numpys))


def test_pad_by_less_than_nothing_cuts_off():
    x = RNG.normal(size=(2, 5))
    np.testing.assert_array_equal(F.pad(x, (-1, 1), value=7).numpy(), np.pad(x[:, 1:], ((0, 0), (0, 1)),
                                                                            constant_values=7))


@pytest.mark.parametrize(("mode", "found"), [("constant", "bc00"), ("reflect", "bcba"), ("replicate", "bccc"),
                                             ("circular", "bcbc")])
def test_what_is_cut_off_is_reflected_but_does_not_go_around(mode, found):
    letters = Tensor([ord(c) for c in "abc"])
    assert "".join(map(chr, F.pad(letters, (-1, 2), mode, ord("0")).tolist())) == found


def test_an_axis_that_is_cut_off_whole_may_be_padded_again():
    assert F.pad(Tensor([[1.0, 2, 3]]), (2, -3), "replicate").tolist() == [[1, 1]]
