"""Elementwise operations where formulas lose digits, overflow, jump or end; their dtypes; empty arrays and numbers."""

import math

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor

from tests.minigrad.ops.row import host
from tests.minigrad.ops.rows_elementwise import FUNCTIONS
from tests.minigrad.ops.test_edges import derivatives

NAMES = [names.split()[0] for names in FUNCTIONS]
TINY, FAR = 1e-20, -40.0


# --- Derivatives -----------------------------------------------------------------------------------

# name: function, place, the values of f, f', f'', f''' there
PLACES = {
    "log1p near 0": (mg.log1p, TINY, [TINY, 1, -1, 2]),
    "expm1 near 0": (mg.expm1, TINY, [TINY, 1, 1, 1]),
    "expm1 far below 0": (mg.expm1, FAR, [-1, math.exp(FAR), math.exp(FAR), math.exp(FAR)]),
    "exp2 at 3": (mg.exp2, 3, [8 * math.log(2) ** n for n in range(4)]),
    "log2 at 8": (mg.log2, 8, [3, *(d / math.log(2) for d in (1 / 8, -1 / 64, 2 / 512))]),
    "log10 at 10": (mg.log10, 10, [1, *(d / math.log(10) for d in (1 / 10, -1 / 100, 2 / 1000))]),
    "square at 0": (mg.square, 0, [0, 0, 2, 0]),
    "reciprocal at -2": (mg.reciprocal, -2, [-1 / 2, -1 / 4, -2 / 8, -6 / 16]),
    "rsqrt at 4": (mg.rsqrt, 4, [1 / 2, -1 / 16, 3 / 128, -15 / 1024]),
    "sin at 0": (mg.sin, 0, [0, 1, 0, -1]),
    "cos at 0": (mg.cos, 0, [1, 0, -1, 0]),
    "tan at 0": (mg.tan, 0, [0, 1, 0, 2]),
    "tan beside its pole": (mg.tan, math.pi / 2 - 1e-3, [math.tan(math.pi / 2 - 1e-3),
                                                          1 / math.cos(math.pi / 2 - 1e-3) ** 2]),
    "asin at 0": (mg.asin, 0, [0, 1, 0, 1]),
    "asin close to 1": (mg.asin, 1 - 2**-40, [math.asin(1 - 2**-40), 1 / math.sqrt(2**-40 * (2 - 2**-40))]),
    "acos at 0": (mg.acos, 0, [math.pi / 2, -1, 0, -1]),
    "atan at 0": (mg.atan, 0, [0, 1, 0, -2]),
    "atan at 1": (mg.atan, 1, [math.pi / 4, 1 / 2, -1 / 2, 1 / 2]),
    "atan far out": (mg.atan, 1e200, [math.pi / 2, 0]),
    "sinh at 0": (mg.sinh, 0, [0, 1, 0, 1]),
    "cosh at 0": (mg.cosh, 0, [1, 0, 1, 0]),
    "asinh at 0": (mg.asinh, 0, [0, 1, 0, -1]),
    "asinh far out": (mg.asinh, -1e200, [math.asinh(-1e200), 1e-200]),
    "acosh at 5/3": (mg.acosh, 5 / 3, [math.log(3), 3 / 4, -(5 / 3) * (3 / 4) ** 3]),
    "atanh at 0": (mg.atanh, 0, [0, 1, 0, 2]),
    "sigmoid far below 0": (mg.sigmoid, FAR, [math.exp(FAR)] * 4),
    "logaddexp of x and 0 at 0": (lambda x: mg.logaddexp(x, 0), 0, [math.log(2), 1 / 2, 1 / 4, 0]),
    "logaddexp of x and x": (lambda x: mg.logaddexp(x, x), 3, [3 + math.log(2), 1, 0, 0]),
    "logaddexp far above": (lambda x: mg.logaddexp(x, 0), 1000, [1000, 1, 0, 0]),
    "logaddexp far below": (lambda x: mg.logaddexp(x, 0), -1000, [0, 0, 0, 0]),
    "hypot of 0 and 0": (lambda x: mg.hypot(x, 0), 0, [0, 0, 0, 0]),
    "hypot of 3 and 4": (lambda x: mg.hypot(x, 4), 3, [5, 3 / 5, 16 / 125, -144 / 3125]),
    "hypot of huge": (lambda x: mg.hypot(x, 4e200), 3e200, [5e200, 3 / 5]),
    "x % 3": (lambda x: x % 3, -1, [2, 1, 0, 0]),
    "x % -3": (lambda x: x % -3, 1, [-2, 1, 0, 0]),
    "7 % x": (lambda x: 7 % x, -2, [-1, 4, 0, 0]),
    "x**2 % x": (lambda x: x * x % x, 2.5, [1.25, 2 * 2.5 - 2, 2, 0]),
}


@pytest.mark.parametrize(("function", "place", "expected"), PLACES.values(), ids=PLACES)
def test_derivatives_to_third_order(function, place, expected, device):
    found = derivatives(function, place, len(expected) - 1, device)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-25)


@pytest.mark.parametrize("name", NAMES)
def test_the_third_derivative_is_the_slope_of_the_second(name):
    function, x, step = getattr(mg, name), 1.4 if name == "acosh" else 0.6, 1e-5
    below, above = (derivatives(function, x + side, 2, "cpu")[2] for side in (-step, step))
    assert derivatives(function, x, 3, "cpu")[3] == pytest.approx((above - below) / (2 * step), rel=1e-7, abs=1e-9)


@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")
@pytest.mark.parametrize(("name", "place", "value", "slope"), [
    ("asin", 1, math.pi / 2, math.inf), ("asin", -1, -math.pi / 2, math.inf),
    ("acos", 1, 0, -math.inf), ("acos", -1, math.pi, -math.inf),
    ("acosh", 1, 0, math.inf), ("atanh", 1, math.inf, math.inf), ("atanh", -1, -math.inf, math.inf),
    ("log1p", -1, -math.inf, math.inf), ("log2", 0, -math.inf, math.inf), ("log10", 0, -math.inf, math.inf),
    ("rsqrt", 0, math.inf, -math.inf), ("reciprocal", 0, math.inf, -math.inf),
])
def test_a_true_singularity_is_infinite(name, place, value, slope, device):
    assert derivatives(getattr(mg, name), place, 1, device) == [pytest.approx(value, rel=1e-15), slope]


def test_sigmoid_keeps_its_digits_and_does_not_warn(device):
    x = Tensor([-1e4, -80, -20, 20, 1e4], device=device, requires_grad=True)
    out = mg.sigmoid(x)
    np.testing.assert_allclose(host(out), [0, math.exp(-80), math.exp(-20), 1, 1], rtol=1e-6)
    out.sum().backward()
    np.testing.assert_allclose(host(x.grad), [0, math.exp(-80), math.exp(-20), 0, 0], rtol=1e-6, atol=1e-8)


# --- Two operands ----------------------------------------------------------------------------------

CORNERS = [(1.0, 1.0), (1.0, -1.0), (-1.0, -1.0), (-1.0, 1.0), (0.0, 1.0), (0.0, -1.0), (1.0, 0.0), (-1.0, 0.0),
           (-0.0, -1.0), (3e-200, 4e-200), (-3e200, 4e200)]


def test_atan2_in_all_quadrants_and_on_the_axes(device):
    values = np.array(CORNERS)
    y, x = (Tensor(values[:, i], device=device, requires_grad=True) for i in (0, 1))
    out = mg.atan2(y, x)
    np.testing.assert_allclose(host(out), [math.atan2(*pair) for pair in CORNERS], rtol=1e-15)
    dy, dx = mg.grad(out.sum(), [y, x], create_graph=True)
    r = np.hypot(*values.T)
    np.testing.assert_allclose(host(dy), values[:, 1] / r / r, rtol=1e-15)
    np.testing.assert_allclose(host(dx), -values[:, 0] / r / r, rtol=1e-15)
    few = slice(0, 9)  # the squares of the others' radii are beyond float64
    mixed = mg.grad(dy[few].sum(), [y, x])
    y0, x0 = values[few].T
    np.testing.assert_allclose(host(mixed[0])[few], -2 * x0 * y0 / r[few] ** 4, rtol=1e-14)
    np.testing.assert_allclose(host(mixed[1])[few], (y0**2 - x0**2) / r[few] ** 4, rtol=1e-14, atol=1e-15)


def test_gradients_at_the_origin_are_zero(device):
    for function in (mg.atan2, mg.hypot):
        y, x = (Tensor(np.zeros(2), device=device, requires_grad=True) for _ in range(2))
        total = function(y, x).sum()
        for _ in range(3):
            gradients = mg.grad(total, [y, x], create_graph=True)
            assert all(host(g).tolist() == [0, 0] for g in gradients)
            total = gradients[0].sum() + gradients[1].sum()


def test_hypot_does_not_overflow_in_half_precision(device):
    x = Tensor(np.array([300.0, 30000.0], np.float16), device=device, requires_grad=True)
    for function, slopes in ((mg.hypot, [0.6, 0.6]), (mg.atan2, [4 / 5 / 500, 4 / 5 / 50000])):
        out = function(x, Tensor(np.array([400.0, 40000.0], np.float16), device=device))
        np.testing.assert_allclose(host(mg.grad(out.sum(), x)), slopes, rtol=4e-3, atol=1e-7)


def test_logaddexp_with_infinities(device):
    """The gradients are softmax weights; of two -inf, 0."""
    inf = math.inf
    x, y = (Tensor(np.array(values), device=device, requires_grad=True)
            for values in ([-inf, 0.0, -inf, inf, inf, 1e4], [0.0, -inf, -inf, 0.0, inf, 1e4 + 1]))
    out = mg.logaddexp(x, y)
    assert host(out).tolist() == [0, 0, -inf, inf, inf, pytest.approx(1e4 + 1 + math.log1p(math.exp(-1)), rel=1e-15)]
    first = mg.grad(out, [x, y], Tensor(np.ones(6), device=device), create_graph=True)
    weight = 1 / (1 + math.e)
    np.testing.assert_allclose(host(first[0]), [0, 1, 0, 1, 0.5, weight], rtol=1e-12)
    np.testing.assert_allclose(host(first[1]), [1, 0, 0, 0, 0.5, 1 - weight], rtol=1e-12)
    second = mg.grad(first[0].sum(), [x, y], create_graph=True)
    np.testing.assert_allclose(host(second[0])[:4], 0, atol=0)
    assert host(second[0])[5] == pytest.approx(weight * (1 - weight), rel=1e-11)
    assert host(second[1])[5] == pytest.approx(-weight * (1 - weight), rel=1e-11)
    third = mg.grad(second[0].sum(), x)
    assert host(third)[5] == pytest.approx(weight * (1 - weight) * (1 - 2 * weight), rel=1e-10)
    assert np.isfinite(host(third)).all()


def test_lerp_reaches_its_end(device):
    """``input + weight · (end - input)`` at weight 1 would be 0 here: 1e-20 is lost beside 1."""
    start, end = (Tensor(np.array([value]), device=device) for value in (1.0, 1e-20))
    for weight in (1, 1.0, Tensor(np.array([1.0]), device=device)):
        assert mg.lerp(start, end, weight).item() == 1e-20
        assert mg.lerp(start, end, 1 - weight).item() == 1


def test_remainder_has_the_sign_of_the_divisor(device):
    x, y = np.meshgrid([-7.0, -0.5, 0.0, 0.5, 7.0], [-3.0, -0.75, 0.75, 3.0])
    found = Tensor(x, device=device) % Tensor(y, device=device)
    np.testing.assert_array_equal(host(found), x - np.floor(x / y) * y)
    assert (host(Tensor([-7, 7], device=device) % 3).tolist(), host(7 // Tensor([-2, 2], device=device)).tolist()) == (
        [2, 1], [-4, 3])


# --- Clip, nan_to_num ------------------------------------------------------------------------------


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


def test_nan_to_num(device):
    x = Tensor(np.array([1.5, math.nan, math.inf, -math.inf], np.float32), device=device, requires_grad=True)
    largest = np.finfo(np.float32).max
    assert host(mg.nan_to_num(x)).tolist() == [1.5, 0, largest, -largest]
    out = x.nan_to_num(nan=-1, posinf=2, neginf=3)
    assert host(out).tolist() == [1.5, -1, 2, 3]
    gradient = mg.grad((out * out).sum(), x, create_graph=True)
    assert host(gradient).tolist() == [3, 0, 0, 0]
    assert host(mg.grad(gradient.sum(), x)).tolist() == [2, 0, 0, 0]
    assert host(mg.nan_to_num(Tensor([1, 2], device=device))).tolist() == [1, 2]


# --- Steps -----------------------------------------------------------------------------------------

STEPS = ["floor", "ceil", "trunc", "round", "sign"]


@pytest.mark.parametrize("name", STEPS)
def test_steps_carry_no_gradient_and_say_so(name, device):
    x = Tensor([0.4, -1.5], device=device, requires_grad=True)
    out = getattr(mg, name)(x)
    assert not out.requires_grad
    with pytest.raises(RuntimeError, match="backward"):
        out.sum().backward()
    straight_through = x + (out - x).detach()
    straight_through.sum().backward()
    assert host(straight_through).tolist() == pytest.approx(host(out).tolist(), abs=1e-6)
    assert host(x.grad).tolist() == [1, 1]


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8])
def test_steps_of_integers(name, dtype, device):
    x = Tensor(np.array([0, 3], dtype), device=device)
    out = getattr(mg, name)(x)
    assert out.dtype == dtype
    assert host(out).tolist() == ([0, 1] if name == "sign" else [0, 3])


def test_halves_are_rounded_to_even(device):
    x = Tensor([0.5, 1.5, 2.5, -0.5, -1.5, 0.25], device=device)
    assert host(mg.round(x)).tolist() == [0, 2, 2, 0, -2, 0]
    assert host(x.round(1)).tolist() == pytest.approx([0.5, 1.5, 2.5, -0.5, -1.5, 0.2])
    assert host(mg.round(Tensor([1234, -1250], device=device), -2)).tolist() == [1200, -1200]


# --- Names, dtypes, shapes -------------------------------------------------------------------------


def test_numpy_and_pytorch_names_are_the_same_objects():
    for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh"):
        assert getattr(mg, f"arc{name}") is getattr(mg, f"a{name}")
    assert mg.arctan2 is mg.atan2


TWO = {
    "hypot": mg.hypot, "atan2": mg.atan2, "logaddexp": mg.logaddexp, "%": lambda x, y: x % y, "//": lambda x, y: x // y,
    "lerp": lambda x, y: mg.lerp(x, y, 0.25), "lerp by y": lambda x, y: mg.lerp(x, x, y),
    "addcmul": lambda x, y: mg.addcmul(x, y, y, value=0.5), "addcdiv": lambda x, y: mg.addcdiv(x, y, y, value=0.5),
    "clip": lambda x, y: mg.clip(x, y, y),
}


@pytest.mark.parametrize("name", TWO)
def test_only_a_wider_float_widens_a_float(name, device):
    x = Tensor([2.0, 3.0], device=device)
    for y in (Tensor([1, 2], device=device), Tensor([True, True], device=device), 2, 0.5, np.float64(2), True):
        assert TWO[name](x, y).dtype == np.float32
    assert TWO[name](x, x.astype(np.float16)).dtype == np.float32
    assert TWO[name](x.astype(np.float16), x.astype(np.float64)).dtype == np.float64


@pytest.mark.parametrize("name", [*NAMES, "sigmoid"])
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.bool_])
def test_floating_functions_of_integers_are_float32(name, dtype, device):
    x = Tensor(np.array([1, 1], dtype), device=device)
    if name in ("atanh", "square"):
        x = x - x if dtype != np.bool_ else ~x  # not at its pole
    expected = dtype if name == "square" else np.float32
    assert getattr(mg, name)(x).dtype == expected


@pytest.mark.parametrize("name", [*NAMES, "hypot", "atan2", "logaddexp", "remainder", "clip"])
@pytest.mark.parametrize("shape", [(), (1,), (0,), (2, 0, 3)])
def test_empty_arrays_and_numbers(name, shape, device):
    function, two = getattr(mg, name), name not in NAMES
    x = Tensor(np.full(shape, 1.5 if name == "acosh" else 0.5), device=device, requires_grad=True)
    out = function(x, 0.3) if two else function(x)
    (first,) = mg.grad(out, [x], Tensor(np.ones(shape), device=device), create_graph=True)
    assert out.shape == first.shape == shape
    assert out.dtype == first.dtype == np.float64
    if first.requires_grad:
        assert mg.grad(first.sum(), x).shape == shape


BROADCASTING = {
    "hypot": mg.hypot, "atan2": mg.atan2, "logaddexp": mg.logaddexp, "remainder": mg.remainder,
    "lerp": lambda x, y: mg.lerp(x, y, x), "addcmul": lambda x, y: mg.addcmul(x, y, y),
    "addcdiv": lambda x, y: mg.addcdiv(x, x, y), "clip": lambda x, y: mg.clip(x, y, y + 1),
}


@pytest.mark.parametrize("name", BROADCASTING)
def test_operands_broadcast(name, device):
    x = Tensor(np.array([[0.8], [1.3]]), device=device, requires_grad=True)
    y = Tensor(np.array([[-0.7, 0.9, 1.1]]), device=device, requires_grad=True)
    assert BROADCASTING[name](x, y).shape == BROADCASTING[name](y, x).shape == (2, 3)
    assert mg.gradcheck(BROADCASTING[name], [x, y])
    assert mg.gradcheck(BROADCASTING[name], [y, x])
