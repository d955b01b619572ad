"""NaN, infinities, ties and far ends in functionals: closed forms."""

import contextlib
import math

import numpy as np
import pytest
import scipy.special

from minigrad import Tensor, erf, erfc, grad, ones_like, stack
from minigrad import functional as F
from minigrad.kernels import only_definitions

from tests.minigrad.ops.row import function, table
from tests.minigrad.ops.test_special_values import check_closed_form, every_float

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

# f, x, its value, and the gradient that [1, 2, 4] becomes, or the first of it
FORMS = """
    softmax(x)              [-inf] * 3          [0, 0, 0]           [0, 0, 0]
    softmax(x)              [1, -inf, 1]        [0.5, 0, 0.5]       [-0.75, 0, 0.75]
    softmax(x)              [6e4, 0, -6e4]      [1, 0, 0]           [0, 0, 0]
    log_softmax(x)          [-inf] * 3          [-inf] * 3          [1, 2, 4]
    log_softmax(x)          [1, -inf, 1]        [-log(2), -inf, -log(2)]    [-2.5, 2, 0.5]
    cross_entropy(x, 1)     [0, -inf, 0]        inf                 [0.5, -1, 0.5]
    cross_entropy(x, 1)     [-inf, 2, -inf]     0                   [0, 0, 0]
    cross_entropy(x, 1)     [nan, 1, 2]         nan                 [nan] * 3
    cross_entropy(x, 1)     [3e4, -3e4, 0]      6e4                 [1, -1, 0]
    cross_entropy(x, 1)     [-inf] * 3          inf                 [0, -1, 0]
    cross_entropy(x, 1, label_smoothing=0.3)    [-inf] * 3    inf   [-0.1, -0.8, -0.1]
    layer_norm(x)           [7, 7, 7]           [0, 0, 0]           [e / (3 * sqrt(1e-5)) for e in (-4, -1, 5)]
    gelu(x)                 [nan, -1e3, 1e3]    [nan, 0, 1e3]       [nan, 0, 4]
    softmax(x)              3                   1                   0
    log_softmax(x)          3                   0                   0
"""


@every_float
@pytest.mark.parametrize(("f", "values", "expected", "gradient"), table(FORMS))
def test_closed_forms(f, values, expected, gradient, dtype, form, device):
    eps = np.finfo(dtype).eps
    check_closed_form(f, values, expected, gradient, dtype, device, rtol=8 * eps, atol=eps)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_row_is_the_same_wherever_its_scores_lie_and_whatever_other_rows_are(dtype, form):
    """Where sums of plain exponentials would leave the range, a row is shifted by its maximum: it, and no other."""
    x = (np.random.default_rng(3).integers(-64, 64, size=(3, 6)) / 16).astype(dtype)  # adding the offset is exact
    x[:, 0] = -60
    for offset in (0, 12, -12, 60, -60, 100, -100, 400, -400, 1000, -1000):
        z = F.softmax(Tensor(x + np.array([[0], [offset], [0]], dtype))).numpy()
        np.testing.assert_array_equal(z[[0, 2]], F.softmax(Tensor(x)).numpy()[[0, 2]])
        np.testing.assert_allclose(z, scipy.special.softmax(x.astype(np.float64), -1), rtol=80 * np.finfo(dtype).eps)


def test_the_slopes_of_gelu_and_the_error_functions_have_their_digits_far_out(form):
    far = np.linspace(-12.5, 12.5, 2001).astype(np.float32)
    x, exact = Tensor(far, requires_grad=True), far.astype(np.float64)
    below, bell = scipy.special.ndtr(exact), np.exp(-exact * exact / 2) / math.sqrt(2 * math.pi)
    np.testing.assert_allclose(F.gelu(x).numpy(), exact * below, rtol=1e-6)
    steep = 2 / math.sqrt(math.pi) * np.exp(-exact * exact) * (np.abs(exact) < 9)
    for f, expected in ((F.gelu, below + exact * bell), (erf, steep), (erfc, -steep)):
        for create_graph in (True, False):
            slope = grad(f(x).sum(), x, create_graph=create_graph).numpy() * (expected != 0)
            np.testing.assert_allclose(slope, expected, rtol=1e-6, atol=1e-7 * (f is F.gelu))


# The losses of two classes, of which the other has a logit of 0.
MAGNITUDES = """
    relu(x)
    tanh(x)
    silu(x)
    gelu(x)
    gelu(x, approximate="tanh")
    cross_entropy(stack([x, x * 0], -1), zeros(len(x), int), reduction="none")
    cross_entropy(stack([x, x * 0], -1), ones(len(x), int), reduction="none", label_smoothing=0.1)
    nll_loss(log_softmax(stack([x, x * 0], -1)), ones(len(x), int), reduction="none")
    mse_loss(x / 4, x * 0, reduction="none")
    softmax(stack([x, x * 0], -1))[:, 0]
"""


@every_float
@pytest.mark.parametrize("call", MAGNITUDES.strip().splitlines())
def test_all_magnitudes_have_finite_derivatives(call, dtype, form):
    """The gradient and the second one, also by the definition and where they are recorded, are those of float64."""
    kinds = np.finfo(dtype)
    sizes = np.geomspace(float(kinds.tiny), float(kinds.max) * 0.999, 100).astype(dtype)
    sizes = np.concatenate([sizes, np.geomspace(0.01, 1e4, 100).astype(dtype), [kinds.max]])
    values, tolerance = np.concatenate([-sizes, [0], sizes]), {2: 0.02, 4: 1e-5, 8: 1e-12}[kinds.dtype.itemsize]
    found = []
    for kind, definitions in ((np.float64, False), (dtype, False), (dtype, True)):
        with only_definitions() if definitions else contextlib.nullcontext():
            x = Tensor(values.astype(kind), requires_grad=True)
            out = function(call.strip(), {**vars(F), "stack": stack, "zeros": np.zeros, "ones": np.ones})(x)
            ones = ones_like(out)
            plain, recorded = grad(out, x, ones, retain_graph=True), grad(out, x, ones, create_graph=True)
            second = grad(recorded, x, ones_like(x)).numpy() if recorded.requires_grad else np.zeros(x.shape)
            found.append([plain.numpy(), recorded.numpy(), second])
    for kind in found:
        for one, exact in zip(kind, found[0], strict=True):
            assert np.isfinite(one).all()
            np.testing.assert_allclose(one, exact, rtol=tolerance, atol=tolerance)
