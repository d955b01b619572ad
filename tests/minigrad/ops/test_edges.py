"""Where formulas lose digits, overflow, jump or end: poles, kinks, ties and infinities, without warnings."""

import itertools
import math

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, func

from tests.minigrad.ops.row import function, host
from tests.minigrad.ops.rows import ELEMENTWISE, ROWS

INF, NAN = math.inf, math.nan
TINY, FAR = 1e-20, -40.0
DENSITY = 2 / math.sqrt(math.pi) * math.exp(-81.0)  # of 2 erfc at 9
ERFC_OF_9 = [4.13703174651381e-37, -DENSITY, 18 * DENSITY, -322 * DENSITY]


def derivatives(f, x, order, device):
    """f(x) and its derivatives up to `order`, for a function of one number."""
    x = Tensor(np.array(float(x)), device=device, requires_grad=True)
    y = f(x)
    values = [y.item()]
    for _ in range(order):
        y = mg.grad(y, x, create_graph=True) if y.requires_grad else Tensor(0.0, device=device)
        values.append(y.item())
    return values


# f, a place, the values of f, f', f'', f''' there
PLACES = [
    ("x ** 2", 0, [0, 0, 2, 0]),
    ("x ** 3", 0, [0, 0, 0, 6]),
    ("x ** 0", 0, [1, 0, 0, 0]),
    ("x ** 1", 0, [0, 1, 0, 0]),
    ("x ** 3", -2, [-8, 12, -12, 6]),
    ("x ** -1", 2, [0.5, -0.25, 0.25, -0.375]),
    ("x ** 2.5", 0, [0, 0, 0]),
    ("0.0 ** x", 2, [0, 0, 0, 0]),
    ("c(0.0, x) ** x", 2, [0, 0, 0, 0]),
    ("2 ** x", 1, [2 * math.log(2) ** n for n in range(4)]),
    ("x ** c(0.0, x)", 0, [1, 0, 0, 0]),
    ("x ** c(3.0, x) * x", 0, [0, 0, 0, 0, 24]),
    ("sqrt(x * x)", -3, [3, -1, 0, 0]),
    ("sigmoid(x) + tanh(x)", -1e4, [-1, 0, 0]),
    ("sigmoid(x)", FAR, [math.exp(FAR)] * 4),
    ("log1p(x)", TINY, [TINY, 1, -1, 2]),
    ("expm1(x)", TINY, [TINY, 1, 1, 1]),
    ("erfc(x)", 9.0, ERFC_OF_9),
    ("expm1(x)", FAR, [-1, math.exp(FAR), math.exp(FAR), math.exp(FAR)]),
    ("relu(x)", 0, [0, 0, 0, 0]),
    ("abs(x)", 0, [0, 0, 0, 0]),
    ("maximum(x, 0)", 0, [0, 0.5, 0, 0]),
    ("minimum(x, 0)", 0, [0, 0.5, 0, 0]),
    ("clip(x, 0, 1)", 1, [1, 1, 0, 0]),
    ("clip(x, 0, 1)", 0, [0, 1, 0, 0]),
    ("7 % x", -2, [-1, 4, 0, 0]),
    ("x * x % x", 2.5, [1.25, 2 * 2.5 - 2, 2, 0]),
]


@pytest.mark.parametrize(("f", "place", "expected"), PLACES)
def test_derivatives_to_third_order(f, place, expected, device):
    found = derivatives(function(f), place, len(expected) - 1, device)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-25)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("f", "place", "value", "slope"), [
    ("log1p(x)", -1, -INF, INF), ("log2(x)", 0, -INF, INF), ("log(x)", 0, -INF, INF), ("log(x)", -2, NAN, -0.5),
    ("sqrt(x)", 0, 0, INF), ("sqrt(x)", -1, NAN, NAN), ("x ** 0.5", 0, 0, INF), ("x ** -1", 0, INF, -INF),
    ("3 / x", 0, INF, -INF), ("x / 0.0", 1, INF, INF), ("7 % x", 0, NAN, -INF),
])
def test_a_true_singularity_is_infinite(f, place, value, slope):
    """Only a gradient of exactly 0 is kept at 0, and only its value: in forward mode the slope is the same."""
    np.testing.assert_allclose(derivatives(function(f), place, 1, "cpu"), [value, slope], rtol=1e-15)
    x, one = Tensor([float(place)]), Tensor([1.0])
    np.testing.assert_array_equal(func.jvp(function(f), (x,), (one,))[1].numpy(), [slope])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_quotient_of_infinities_has_one_slope():
    for x, y in itertools.product([0.0, 1.0, INF, -INF, NAN], [INF, -INF]):
        divisor = Tensor([y], requires_grad=True)
        backward = mg.grad(x / divisor, divisor)
        forward = func.jvp(lambda y, x=x: x / y, (Tensor([y]),), (Tensor([1.0]),))[1]
        np.testing.assert_array_equal(forward.numpy(), backward.numpy())


def test_the_slope_is_the_derivative_of_a_gradient_of_zero():
    w, x = Tensor([0.0], requires_grad=True), Tensor([0.0], requires_grad=True)
    by_x = mg.grad(w * mg.sqrt(x), x, create_graph=True)
    assert by_x.item() == 0
    with np.errstate(divide="ignore"):
        assert mg.grad(by_x, w).item() == INF


SWEEP = [0.0, -0.0, 1, -1, 1.2, -1.2, -2, 1e300, -1e-300, INF, -INF, NAN]
DIFFERENTIABLE = [row for row in ROWS if row.differentiable]
OF_EACH_ELEMENT = [row for row in ELEMENTWISE if row.differentiable
                   and {array.shape for array in row.arrays} == {row.op(*row.tensors()).shape}]


def of_one_operand(row, i, g):
    """The row as a function of its operand i alone, and the gradient of that as another, from the gradient g."""
    operands = [Tensor(x) for x in row.arrays]

    def function(x):
        return row.op(*operands[:i], x, *operands[i + 1:])

    return function, lambda x: func.vjp(function, x)[1](g)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("row", OF_EACH_ELEMENT, ids=str)
def test_every_way_to_differentiate_finds_the_same(row):
    """Reverse and forward mode and Jacobians, of the function and of its slope; and `hvp`."""
    for i, array in enumerate(row.arrays):
        ones = Tensor(np.ones_like(array))
        function, slope = of_one_operand(row, i, ones)
        for places in np.reshape(SWEEP, (-1, *array.shape)):
            x = Tensor(places)
            for f in (function, slope):
                expected = func.vjp(f, x)[1](ones).numpy()
                jacobian = func.jacobian(f)(x).numpy().reshape(x.size, x.size)
                for found in (func.jvp(f, (x,), (ones,))[1].numpy(), np.diag(jacobian).reshape(x.shape)):
                    np.testing.assert_allclose(found, expected, rtol=1e-12)
            np.testing.assert_allclose(func.hvp(lambda x, f=function: f(x).sum(), x, ones).numpy(), expected)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("row", DIFFERENTIABLE, ids=str)
def test_forward_mode_is_the_jacobian_where_an_operand_is_zero(row):
    for i, array in enumerate(row.arrays):
        x, operands = Tensor(np.zeros_like(array)), row.tensors()
        out = row.op(*operands[:i], x, *operands[i + 1:])
        g, t = (np.random.default_rng(i).normal(size=shape) for shape in (out.shape, x.shape))
        for f in of_one_operand(row, i, Tensor(g)):
            jacobian = func.jacobian(f)(x).numpy()
            expected = np.tensordot(jacobian, t, array.ndim)
            np.testing.assert_allclose(func.jvp(f, (x,), (Tensor(t),))[1].numpy(), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_the_mixed_second_derivative_of_a_power_where_the_exponent_or_the_base_is_zero(device):
    """d²(xʸ)/dx dy = xʸ⁻¹ (1 + y log x), which is 1/x at y = 0, and -∞ at x = 0 for 0 < y ≤ 1; in either order."""
    x = Tensor([2.0, 0.5, 3.0, 0.0, 0.0, 0.0, 0.0], dtype=np.float64, device=device, requires_grad=True)
    y = Tensor([0.0, 0.0, 1.0, 0.5, 1.0, 1.5, -1.0], dtype=np.float64, device=device, requires_grad=True)
    by_x, by_y = mg.grad((x ** y).sum(), [x, y], create_graph=True)
    expected = [0.5, 2.0, 1 + np.log(3.0), -INF, -INF, 0, INF]
    np.testing.assert_allclose(host(mg.grad(by_x.sum(), y, retain_graph=True)), expected, rtol=1e-14)
    np.testing.assert_allclose(host(mg.grad(by_y.sum(), x)), expected, rtol=1e-14)


# --- Kinks, ties and steps: the gradient is shared among the elements that attain the extreme -------


def test_clip_by_tensors_gives_the_gradient_to_whoever_won(device):
    x = Tensor([1.0, 2.0, 3.0, 4.0, 5.0, 0.0], device=device, requires_grad=True)
    low = Tensor([2.0], device=device, requires_grad=True)
    high = Tensor([9.0, 9.0, 3.0, 3.0, 9.0, 1.0], device=device, requires_grad=True)  # the last is below the minimum
    out = mg.clip(x, low, high)
    assert host(out).tolist() == [2, 2, 3, 3, 5, 1]
    out.backward(Tensor([1.0, 2.0, 4.0, 8.0, 16.0, 32.0], device=device))
    assert host(x.grad).tolist() == [0, 2, 4, 0, 16, 0]
    assert host(low.grad).tolist() == [1]
    assert host(high.grad).tolist() == [0, 0, 0, 8, 0, 32]
    assert host(mg.clip(x, [0, 0, 0, 0, 0, 1], None)).tolist() == [1, 2, 3, 4, 5, 1]


@pytest.mark.parametrize(("name", "sign"), [("max", 1), ("min", -1)])
def test_ties_share_the_gradient_of_an_extreme(name, sign, device):
    x = Tensor(sign * np.array([[1.0, 3, 3], [2, 2, 2], [0, 5, 4]]), device=device, requires_grad=True)
    rows = mg.grad(getattr(x, name)(axis=1), x, Tensor([6.0, 6.0, 6.0], device=device))
    np.testing.assert_array_equal(host(rows), [[0, 3, 3], [2, 2, 2], [0, 6, 0]])


def test_halves_are_rounded_to_even(device):
    x = Tensor([0.5, 1.5, 2.5, -0.5, -1.5, 0.25], device=device)
    assert host(mg.round(x)).tolist() == [0, 2, 2, 0, -2, 0]
    assert host(x.round(1)).tolist() == pytest.approx([0.5, 1.5, 2.5, -0.5, -1.5, 0.2])
    assert host(mg.round(Tensor([1234, -1250], device=device), -2)).tolist() == [1200, -1200]


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
