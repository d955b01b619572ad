"""NaN, infinities and zeros in every functional: all bodies agree with the definitions, and these with closed forms."""

import math

import numpy as np
import pytest

from minigrad import Tensor, fused, grad
from minigrad import functional as F
from minigrad.kernels import only_definitions

from tests.minigrad.functional.table import CASES, Case
from tests.minigrad.ops.row import host

INF, NAN = math.inf, math.nan
SPECIAL = ([NAN], [INF], [-INF], [NAN, -INF, INF])

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


# --- Bodies ----------------------------------------------------------------------------------------


def value_and_gradients(case: Case, arrays):
    inputs = [Tensor(array, requires_grad=True) for array in arrays]
    out = case.function(*inputs)
    g = np.random.default_rng(17).normal(size=out.shape).astype(out.dtype)
    return [t.numpy() for t in (out, *grad(out, inputs, Tensor(g)))]


def special_inputs(case: Case, dtype):
    arrays = case.host_inputs(dtype)
    for i, array in enumerate(arrays):
        for values in SPECIAL:
            special = array.copy()
            places = special.reshape(-1)[1::2][:len(values)]
            places[:] = values[:len(places)]
            yield [special if i == j else other for j, other in enumerate(arrays)]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_bodies_meet_the_definitions_at_special_values(case):
    for arrays in special_inputs(case, np.float64):
        found = value_and_gradients(case, arrays)
        with only_definitions():
            expected = value_and_gradients(case, arrays)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-10)


# --- Closed forms ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_a_row_of_minus_infinity_costs_infinity(dtype, smoothing, device):
    """Its probabilities are 0, as of softmax, so its gradient is that of the targets, ``p - q = -q``, to any order."""
    q = np.array([0, 1, 0]) * (1 - smoothing) + smoothing / 3
    for form in (True, False):
        with fused(form):
            x = Tensor(np.full((1, 3), -INF, dtype), device=device, requires_grad=True)
            loss = F.cross_entropy(x, [1], label_smoothing=smoothing)
            assert loss.item() == INF
            plain = grad(loss, x, retain_graph=True)
            first = grad(loss, x, create_graph=True)
            second = grad(first.sum(), x, allow_unused=True)
        for gradient in (plain, first):
            np.testing.assert_allclose(host(gradient), -q[None], rtol=1e-3, atol=1e-7)
        assert second is None or not host(second).any()


@pytest.mark.parametrize(("logits", "loss", "gradient"), [
    ([0, -INF, 0], INF, [0.5, -1, 0.5]), ([-INF, 2, -INF], 0, [0, 0, 0]), ([NAN, 1, 2], NAN, [NAN] * 3),
    ([INF, 1, 2], NAN, [NAN] * 3)], ids=["target at -∞", "others at -∞", "NaN", "∞"])
def test_losses_of_some_infinite_logits(logits, loss, gradient, form):
    x = Tensor(np.array([logits], np.float32), requires_grad=True)
    out = F.cross_entropy(x, [1])
    np.testing.assert_array_equal(out.numpy(), loss)
    np.testing.assert_allclose(grad(out, x).numpy()[0], gradient, rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float64, np.float16])
@pytest.mark.parametrize("axis", [0, -1])
def test_the_softmax_of_a_number_is_1(axis, dtype, form):
    for function, expected in ((F.softmax, 1), (F.log_softmax, 0)):
        x = Tensor(np.array(3, dtype), requires_grad=True)
        out = function(x, axis=axis)
        first = grad(out * out, x, create_graph=True)
        assert (out.shape, out.item(), first.item()) == ((), expected, 0)
        assert grad(first * x, x).item() == 0
