"""Where formulas have a zero in the denominator, a kink, a tie or an infinity: to third order, without warnings."""

import math

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor

from tests.minigrad.ops.row import host


def derivatives(function, x, order, device):
    """f(x) and its derivatives up to `order`, for a function of one number."""
    x = Tensor(np.array(float(x)), device=device, requires_grad=True)
    y = function(x)
    values = [y.item()]
    for _ in range(order):
        y = mg.grad(y, x, create_graph=True) if y.requires_grad else Tensor(0.0, device=device)
        values.append(y.item())
    return values


# name: function, place, the values of f, f', f'', f''' there
PLACES = {
    "x**2 at 0": (lambda x: x ** 2, 0, [0, 0, 2, 0]),
    "x**3 at 0": (lambda x: x ** 3, 0, [0, 0, 0, 6]),
    "x**4 at 0": (lambda x: x ** 4, 0, [0, 0, 0, 0]),
    "x**0 at 0": (lambda x: x ** 0, 0, [1, 0, 0, 0]),
    "x**1 at 0": (lambda x: x ** 1, 0, [0, 1, 0, 0]),
    "x**2 at -1": (lambda x: x ** 2, -1, [1, -2, 2, 0]),
    "x**3 at -2": (lambda x: x ** 3, -2, [-8, 12, -12, 6]),
    "x**-1 at 2": (lambda x: x ** -1, 2, [0.5, -0.25, 0.25, -0.375]),
    "x**2.5 at 0": (lambda x: x ** 2.5, 0, [0, 0, 0]),
    "x*x at 0": (lambda x: x * x, 0, [0, 0, 2, 0]),
    "0**x at 2": (lambda x: 0.0 ** x, 2, [0, 0, 0, 0]),
    "0**x at 2, the 0 a tensor": (lambda x: Tensor(np.array(0.0), device=x.device) ** x, 2, [0, 0, 0, 0]),
    "2**x at 1": (lambda x: 2 ** x, 1, [2 * math.log(2) ** n for n in range(4)]),
    "1/x at 2": (lambda x: 1 / x, 2, [0.5, -0.25, 0.25, -0.375]),
    "x/x at 3": (lambda x: x / x, 3, [1, 0, 0, 0]),
    "log at 1": (mg.log, 1, [0, 1, -1, 2]),
    "sqrt at 1": (mg.sqrt, 1, [1, 0.5, -0.25, 0.375]),
    "sqrt of a square at -3": (lambda x: mg.sqrt(x * x), -3, [3, -1, 0, 0]),
    "tanh at 0": (mg.tanh, 0, [0, 1, 0, -2]),
    "sigmoid at 0": (mg.sigmoid, 0, [0.5, 0.25, 0, -0.125]),
    "erf at 0": (mg.erf, 0, [0, 2 / math.sqrt(math.pi), 0, -4 / math.sqrt(math.pi)]),
    "exp at 0": (mg.exp, 0, [1, 1, 1, 1]),
    "relu at 0": (mg.relu, 0, [0, 0, 0, 0]),
    "abs at 0": (abs, 0, [0, 0, 0, 0]),
    "maximum of a tie": (lambda x: mg.maximum(x, 0), 0, [0, 0.5, 0, 0]),
    "minimum of a tie": (lambda x: mg.minimum(x, 0), 0, [0, 0.5, 0, 0]),
    "maximum of x and x": (lambda x: mg.maximum(x, x), 3, [3, 1, 0, 0]),
    "clip on its upper bound": (lambda x: mg.clip(x, 0, 1), 1, [1, 1, 0, 0]),
    "clip on its lower bound": (lambda x: mg.clip(x, 0, 1), 0, [0, 1, 0, 0]),
    "clip beyond it": (lambda x: mg.clip(x, 0, 1), 1.5, [1, 0, 0, 0]),
    "sum of squares to a power, at 0": (lambda x: (x * x + 1) ** 0.5, 0, [1, 0, 1, 0]),
    "power by a tensor, at 0": (lambda x: x ** Tensor(np.array(2.0), device=x.device), 0, [0, 0, 2, 0]),
    "power 0 by a tensor, at 0": (lambda x: x ** Tensor(np.array(0.0), device=x.device), 0, [1, 0, 0, 0]),
}


@pytest.mark.parametrize(("function", "place", "expected"), PLACES.values(), ids=PLACES)
def test_derivatives_to_third_order(function, place, expected, device):
    found = derivatives(function, place, len(expected) - 1, device)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)


def test_a_true_singularity_is_infinite(device):
    """Only a gradient of exactly 0 is kept at 0: the slope of log, sqrt and 1/x at 0 is what it is."""
    with np.errstate(divide="ignore"):
        assert derivatives(mg.log, 0, 1, device) == [-math.inf, math.inf]
        assert derivatives(mg.sqrt, 0, 1, device) == [0, math.inf]
        assert derivatives(lambda x: 1 / x, 0, 1, device) == [math.inf, -math.inf]
        assert derivatives(lambda x: x ** 0.5, 0, 1, device) == [0, math.inf]


# --- Ties: the gradient is shared among the elements that attain the extreme ------------------------


@pytest.mark.parametrize("name", ["max", "min"])
def test_ties_share_the_gradient_of_an_extreme(name, device):
    sign = 1 if name == "max" else -1
    x = Tensor(sign * np.array([[1.0, 3, 3], [2, 2, 2], [0, 5, 4]]), device=device, requires_grad=True)
    getattr(x, name)(axis=1).backward(Tensor([6.0, 6.0, 6.0], device=device))
    np.testing.assert_array_equal(host(x.grad), [[0, 3, 3], [2, 2, 2], [0, 6, 0]])
    x.grad = None
    getattr(x, name)().backward()
    np.testing.assert_array_equal(host(x.grad), [[0, 0, 0], [0, 0, 0], [0, 1, 0]])
    x.grad = None
    getattr(x, name)(axis=(0, 1), keepdims=True).sum().backward()
    np.testing.assert_array_equal(host(x.grad), [[0, 0, 0], [0, 0, 0], [0, 1, 0]])


@pytest.mark.parametrize("op", [mg.maximum, mg.minimum])
def test_ties_halve_the_gradient_of_a_pair(op, device):
    x, y = (Tensor(values, device=device, requires_grad=True) for values in ([1.0, 2, 3], [[2.0, 2, 2]]))
    op(x, y).backward(Tensor([[2.0, 4, 8]], device=device))
    wins = [2, 2, 0] if op is mg.minimum else [0, 2, 8]
    np.testing.assert_array_equal(host(x.grad), wins)
    np.testing.assert_array_equal(host(y.grad), [np.array([2, 4, 8]) - wins])


def test_argmax_takes_the_first_of_a_tie(device):
    x = Tensor([[1.0, 3, 3], [0, 0, -1]], device=device)
    assert host(mg.argmax(x, 1)).tolist() == [1, 0]
    assert host(mg.argmin(x, 1)).tolist() == [0, 2]
    assert host(mg.argmax(x, 0, keepdims=True)).tolist() == [[0, 0, 0]]
    assert mg.argmax(x).item() == 1


# --- Infinities ------------------------------------------------------------------------------------


def test_logsumexp_of_rows_of_minus_infinity(device):
    values = np.array([[-math.inf, -math.inf], [-math.inf, 1.0], [1000.0, 1000.0], [-1e4, -1e4 - 1]])
    x = Tensor(values, device=device, requires_grad=True)
    out = mg.logsumexp(x, axis=1)
    expected = [-math.inf, 1, 1000 + math.log(2), -1e4 + math.log1p(math.exp(-1))]
    np.testing.assert_allclose(host(out), expected, rtol=1e-15)
    weights = [1 / (1 + math.exp(-1)), 1 / (1 + math.exp(1))]
    softmax = np.array([[0, 0], [0, 1], [0.5, 0.5], weights])
    (gradient,) = mg.grad(out, [x], Tensor(np.ones(4), device=device), create_graph=True)
    np.testing.assert_allclose(host(gradient), softmax, rtol=1e-12)
    second = mg.grad((gradient * Tensor([1.0, 2.0], device=device)).sum(), x)
    slope = softmax * (np.array([1, 2]) - (softmax * [1, 2]).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(host(second), slope, rtol=1e-11, atol=1e-15)  # of 1e4, the last digits are lost


def test_sigmoid_and_tanh_do_not_overflow(device):
    x = Tensor([-1e4, -100.0, 100.0, 1e4], device=device, requires_grad=True)
    out = mg.sigmoid(x)
    assert host(out).tolist() == [0, 0, 1, 1]
    (out.sum() + mg.tanh(x).sum()).backward()
    assert host(x.grad).tolist() == [0, 0, 0, 0]


def test_masked_positions_at_minus_infinity(device):
    """exp(where(mask, x, -inf)): the masked elements give 0, and 0 for a gradient."""
    x = Tensor(np.array([1.0, 2.0]), device=device, requires_grad=True)
    out = mg.exp(mg.masked_fill(x, Tensor([False, True], device=device), -math.inf))
    first = mg.grad(out.sum(), x, create_graph=True)
    second = mg.grad(first.sum(), x)
    for values in (out, first, second):
        np.testing.assert_allclose(host(values), [math.e, 0], rtol=1e-14)


# --- Empty arrays ----------------------------------------------------------------------------------

EMPTY = {
    "exp": mg.exp,
    "x * 2 + 1": lambda x: x * 2 + 1,
    "relu": mg.relu,
    "sum": mg.sum,
    "sum over 0": lambda x: x.sum(axis=0),
    "sum over 1": lambda x: x.sum(axis=1, keepdims=True),
    "mean over 1": lambda x: x.mean(axis=1),
    "max over 1": lambda x: x.max(axis=1),
    "logsumexp over 1": lambda x: x.logsumexp(axis=1),
    "cumsum": lambda x: x.cumsum(0),
    "reshape": lambda x: x.reshape(3, 0),
    "transpose": lambda x: x.T,
    "broadcast_to": lambda x: mg.broadcast_to(x, (2, 0, 3)),
    "concatenate": lambda x: mg.concatenate([x, x]),
    "stack": lambda x: mg.stack([x, x]),
    "split": lambda x: x.split(2, axis=1)[1],
    "pad": lambda x: mg.pad(x, ((1, 0), (0, 1))),
    "flip": lambda x: x.flip(),
    "tril": mg.tril,
    "matmul": lambda x: x.T @ x,
    "einsum": lambda x: mg.einsum("ij,ik->jk", x, x),
    "getitem": lambda x: x[:, 1:],
    "getitem mask": lambda x: x[x > 0],
    "getitem none": lambda x: x[[]],
    "take": lambda x: x.take([0, 0], axis=1),
    "gather": lambda x: x.gather(1, np.zeros((0, 2), np.int64)),
    "scatter_add": lambda x: mg.scatter_add(x, 1, np.zeros((0, 2), np.int64), x[:, :2]),
    "where": lambda x: mg.where(x > 0, x, -x),
}


@pytest.mark.parametrize("function", EMPTY.values(), ids=EMPTY)
def test_empty_arrays(function, device):
    x = Tensor(np.zeros((0, 3)), device=device, requires_grad=True)
    out = function(x)
    (gradient,) = mg.grad(out, [x], Tensor(np.ones(out.shape), device=device), create_graph=True)
    assert out.dtype == gradient.dtype == np.float64
    assert gradient.shape == (0, 3)


@pytest.mark.parametrize(("exponent", "derivatives"), [(2.0, [0, 0, 6]), (3.0, [0, 0, 0, 24])])
def test_power_by_a_tensor_inside_a_product_that_vanishes_at_zero(exponent, derivatives):
    """``x**n * x``: its factor is 0 at 0, too, and so is the gradient that reaches the power."""
    x = Tensor(np.array(0.0), requires_grad=True)
    out = x ** Tensor(np.array(exponent)) * x
    for expected in derivatives:
        out = mg.grad(out, x, create_graph=True)
        assert out.item() == expected


def test_the_mixed_second_derivative_of_a_power_at_exponent_zero(device):
    """d²(xʸ)/dx dy = xʸ⁻¹ (1 + y log x), which is 1/x at y = 0; the same in either order."""
    x = Tensor([2.0, 0.5, 3.0], dtype=np.float64, device=device, requires_grad=True)
    y = Tensor([0.0, 0.0, 1.0], dtype=np.float64, device=device, requires_grad=True)
    by_x, by_y = mg.grad((x ** y).sum(), [x, y], create_graph=True)
    expected = [0.5, 2.0, 1 + np.log(3.0)]
    np.testing.assert_allclose(host(mg.grad(by_x.sum(), y, retain_graph=True)), expected, rtol=1e-14)
    np.testing.assert_allclose(host(mg.grad(by_y.sum(), x)), expected, rtol=1e-14)


def test_a_norm_below_one_beside_a_zero(device):
    x = Tensor([0.0, 4.0, -9.0], dtype=np.float64, device=device, requires_grad=True)
    norm = mg.norm(x, 0.5, 0)  # (2 + 3)²
    np.testing.assert_allclose(host(norm), 25.0)
    np.testing.assert_allclose(host(mg.grad(norm, x)), [0, 5 / 2, -5 / 3])
