"""A gradient of exactly 0 stays 0 where a slope is infinite or not a number, to every order; and the price of that."""

import math

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor

from tests.minigrad.ops.row import function, host

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # log(0) itself warns, as in NumPy


# f, its condition, which 2 satisfies, and places that do not
GUARDED = [
    ("log(x)", "x > 0", [0.0, -0.0, -1, math.nan]),
    ("log2(x)", "x > 0", [0.0, -1]),
    ("log10(x)", "x > 0", [0.0, -1]),
    ("log1p(x)", "x > -1", [-1, -2, math.nan]),
    ("sqrt(x)", "x > 0", [0.0, -0.0, -1, math.nan]),
    ("x ** 0.5", "x > 0", [0.0, -0.0, -1, math.nan]),
    ("x ** 1.5", "x > 0", [0.0, -1]),
    ("x ** -1", "x != 0", [0.0, -0.0]),
    ("x ** c(0.5, x)", "x > 0", [0.0, -1]),
    ("x ** c(-1.0, x)", "x != 0", [0.0, -0.0]),
    ("x ** x", "x > 0", [0.0, -1.5]),
    ("1 / x", "x != 0", [0.0, -0.0]),
    ("x / (x * x)", "x != 0", [0.0, -0.0]),
    ("sqrt(log(x))", "x > 1", [1, 0.5, 0, -1]),
]


@pytest.mark.parametrize(("f", "condition", "outside"), GUARDED)
def test_where_keeps_a_gradient_of_zero(f, condition, outside, device):
    """``where(x > 0, log(x), 0)``: the derivatives are log's where x > 0, and exactly 0 elsewhere, to third order."""
    guarded = function(f"where({condition}, {f}, 0)")
    x = Tensor(np.array([*outside, 2], float), device=device, requires_grad=True)
    alone = Tensor(np.array([2.0]), device=device, requires_grad=True)
    y, expected = guarded(x), function(f)(alone)
    for _ in range(3):
        y, expected = mg.grad(y.sum(), x, create_graph=True), mg.grad(expected.sum(), alone, create_graph=True)
        assert host(y).tolist() == [0] * len(outside) + host(expected).tolist()
        assert np.isfinite(host(expected)).all()
    x = Tensor(np.array([*outside, 2], np.float32), device=device, requires_grad=True)
    guarded(x).sum().backward()  # where nothing is recorded
    assert host(x.grad)[:-1].tolist() == [0] * len(outside)
    assert host(x.grad)[-1] != 0


PAIRS = {
    "x / y": [(0.0, 0.0), (1.0, 0.0), (math.inf, 0.0), (math.nan, 0.0)],
    "x ** y": [(0.0, 0.0), (0.0, -1.0), (-1.5, 0.5), (math.nan, 1.0)],
    "x % y": [(1.0, 0.0), (0.0, 0.0)],
}


@pytest.mark.parametrize("f", PAIRS)
def test_both_operands_keep_a_gradient_of_zero(f, device):
    x, y = (Tensor(np.array(operand), device=device, requires_grad=True) for operand in zip(*PAIRS[f], strict=True))
    total = function(f"where(c(False, x), {f}, 0)")(x, y).sum()
    for _ in range(3):
        gradients = mg.grad(total, [x, y], create_graph=True)
        assert all(not host(g).any() for g in gradients)
        total = gradients[0].sum() + gradients[1].sum()
        if not total.requires_grad:  # the slopes of a remainder are steps
            break


def test_a_gradient_of_zero_is_no_obstacle_to_a_second_derivative():
    """At an ordinary place where the gradient happens to be 0, the second derivative is that of the function."""
    for f, _, _ in GUARDED:
        x = Tensor(np.array(2.0), requires_grad=True)
        y = function(f)(x)
        first = mg.grad((y - y.detach()) ** 2 / 2, x, create_graph=True)
        slope = mg.grad(function(f)(x), x)
        np.testing.assert_allclose(mg.grad(first, x).item(), slope.item() ** 2, rtol=1e-12, err_msg=f)


def test_the_price_of_the_convention():
    """``0 · ∞`` is 0 here: right where the factor vanishes faster than the slope grows, wrong where as fast."""
    x = Tensor(np.array(0.0), requires_grad=True)
    assert mg.grad(x * mg.sqrt(x), x).item() == 0
    assert mg.grad(mg.sqrt(x) ** 2, x).item() == 0  # mathematically 1


def test_a_product_is_not_covered():
    """Nor is the factor of a product: log(0) is -∞ itself, not a slope. It is the logarithm that has to be guarded."""
    p = Tensor(np.array([0.0, 0.5]), requires_grad=True)
    assert np.isnan(host(mg.grad(mg.where(p > 0, p * mg.log(p), 0).sum(), p))).tolist() == [True, False]
    found = mg.grad((p * mg.where(p > 0, mg.log(p), 0)).sum(), p)
    np.testing.assert_allclose(host(found), [0, math.log(0.5) + 1], rtol=1e-15)


def test_an_overflow_is_not_covered():
    """``0 · ∞`` of an overflow is NaN, as the docstring of exp says; guarding the argument as well mends it."""
    x = Tensor(np.array([0.5, 2000.0]), requires_grad=True)
    found = mg.grad(mg.where(x < 1, mg.exp(x), 0).sum(), x)
    assert np.isnan(host(found)).tolist() == [False, True]
    guarded = mg.where(x < 1, mg.exp(mg.where(x < 1, x, 0)), 0)
    np.testing.assert_allclose(host(mg.grad(guarded.sum(), x)), [math.exp(0.5), 0], rtol=1e-15)


# --- What is not chosen gets 0, whatever the gradient ------------------------------------------------

@pytest.mark.parametrize(("chosen", "values", "places"), [
    (mg.relu, [-1.0, 4.0], [0]), (lambda x: mg.maximum(x, 0), [-1.0, 4.0], [0]),
    (lambda x: mg.max(x, axis=0), [-1.0, 0.0], [0]), (lambda x: mg.min(x, axis=0), [0.0, 1.0], [1])],
    ids=["relu", "maximum", "max", "min"])
def test_an_infinite_gradient_reaches_the_chosen_element_alone(chosen, values, places, device):
    x = Tensor(values, dtype=np.float64, device=device, requires_grad=True)
    for create_graph in (False, True):
        gradient = host(mg.grad(mg.sqrt(chosen(x)).sum(), x, create_graph=create_graph))
        np.testing.assert_array_equal(gradient[places], 0)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("worst", [1e30, np.inf, np.nan])
def test_large_arrays_are_no_different(dtype, worst):
    """Where a product stands for `where`: beside gradients that are infinite, NaN, or too large to be squared."""
    rng = np.random.default_rng(0)
    x, g = rng.normal(size=(80, 90)).astype(dtype), rng.normal(size=(80, 90)).astype(dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        g[3, 4], g[5, 6], x[3, 4], x[5, 6] = dtype(worst), dtype(worst), 1.0, -1.0
        tensor = Tensor(x, requires_grad=True)
        for view in (lambda a: a, lambda a: a.T):
            found = mg.grad(mg.relu(tensor if view(x) is x else tensor.T), tensor, view(g))
            np.testing.assert_array_equal(host(found), np.where(x > 0, g, 0), strict=True)


@pytest.mark.parametrize("choose", [mg.relu, lambda x: mg.where(x > 0, x, 0), lambda x: mg.clip(x, 0, 1)],
                         ids=["relu", "where", "clip"])
def test_large_arrays_warn_of_nothing(choose):
    """Nor is there anything to warn of, where an infinite gradient goes to what was chosen."""
    x = Tensor(np.linspace(-0.5, 0.5, 5000), requires_grad=True)
    g = np.where(np.arange(5000) % 2, np.inf, 1e300)
    with np.errstate(all="raise"):
        found = mg.grad(choose(x), x, g)
    np.testing.assert_array_equal(host(found), np.where(x.numpy() > 0, g, 0))
