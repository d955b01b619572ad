"""NaN, infinities, signed zeros, ties, kinks and poles: values against NumPy's, gradients against closed forms."""

import itertools
import math
import warnings
from collections.abc import Callable

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, func

from tests.minigrad.ops.row import Row, function, host, table
from tests.minigrad.ops.rows import ELEMENTWISE, ROWS

INF, NAN = math.inf, math.nan
NAMES = {**vars(mg.functional), **vars(mg.ops)}
DIFFERENTIABLE = [row for row in ROWS if row.differentiable]

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's own, and about the same values

# --- Every operation, against its reference --------------------------------------------------------

OTHERWISE = "argsort"  # NumPy's own need not keep the order of equal elements


def with_one(value: float) -> Callable[[np.ndarray], np.ndarray]:
    def function(array):
        array = array.copy()
        array.reshape(-1)[array.size // 2:array.size // 2 + 1] = value
        return array

    return function


SPECIAL = {
    "a NaN": with_one(NAN), "an ∞": with_one(INF), "a -∞": with_one(-INF),
    "all NaN": lambda x: np.full_like(x, NAN), "all ∞": lambda x: np.full_like(x, INF),
    "all -∞": lambda x: np.full_like(x, -INF),
    "zeros": lambda x: np.where(np.arange(x.size).reshape(x.shape) % 2, 0.0, -0.0),
}


def special_arrays(row: Row):
    for name, change in SPECIAL.items():
        for i in [i for i, x in enumerate(row.arrays) if x.dtype.kind == "f"]:
            yield f"{name} in operand {i}", [change(x) if i == j else x for j, x in enumerate(row.arrays)]


def warned(f, *arguments):
    """What a function returns, and the kinds of RuntimeWarning that it gave: "invalid", "divide", "overflow"."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = f(*arguments)
    return result, {str(warning.message).split()[0] for warning in caught}


every_row = pytest.mark.parametrize("row", [row for row in ROWS if not row.name.startswith(OTHERWISE)], ids=str)


@every_row
def test_values_and_warnings_are_numpys(row, device):
    for name, arrays in special_arrays(row):
        expected, allowed = warned(row.reference, *arrays)
        if device != "cpu" and row.ops[0] in ("floor_divide", "remainder") and "∞" in name:
            continue  # CuPy's own: see docs/gpu.md
        found, ours = warned(row.op, *[Tensor(x, device=device) for x in arrays])
        if np.shape(expected) != found.shape:  # of rows that choose places by the values
            continue
        np.testing.assert_allclose(host(found), expected, rtol=1e-12, atol=1e-12, err_msg=name)
        blas = {"invalid"} if row.ops[0] == "matmul" else set()  # at times
        assert device != "cpu" or ours <= allowed | blas, name


# --- Gradients, by closed forms and conventions ----------------------------------------------------

G = [1.0, 2.0, 4.0]  # the gradients of the three elements of an output; of one alone, the first

# f, x, its value, and the gradient that G becomes: ties share it, what is not chosen gets 0 even of an infinite one
FORMS = """
    logsumexp(x)                [1, nan, 2]          nan             [nan] * 3
    logsumexp(x)                [inf, nan, 0]        nan             [nan] * 3
    logsumexp(x)                [1, inf, -inf]       inf             [0, 1, 0]
    logsumexp(x, 0, True)       [inf, 1, inf]        [inf]           [0.5, 0, 0.5]
    logsumexp(x)                [1, -inf, 1]         1 + log(2)      [0.5, 0, 0.5]
    logsumexp(x)                [-inf] * 3           -inf            [0, 0, 0]
    max(x)                      [nan, inf, nan]      nan             [0.5, 0, 0.5]
    max(x)                      [1, 3, 3]            3               [0, 0.5, 0.5]
    min(x)                      [3, nan, -inf]       nan             [0, 1, 0]
    relu(x)                     [nan, -inf, inf]     [nan, 0, inf]   [1, 0, 4]
    abs(x)                      [nan, -inf, -0.0]    [nan, inf, 0]   [nan, -2, 0]
    maximum(x, 0)               [nan, -inf, inf]     [nan, 0, inf]   [1, 0, 4]
    minimum(x, 0)               [nan, -inf, inf]     [nan, -inf, 0]  [1, 2, 0]
    maximum(x, nan)             [1, -inf, nan]       [nan] * 3       [1, 2, 4]
    clip(x, 0, 1)               [nan, -inf, inf]     [nan, 0, 1]     [1, 0, 0]
    clip(c(1.0, x), x, None)    [nan, -inf, inf]     [nan, 1, inf]   [1, 0, 4]
    clip(c(1.0, x), None, x)    [nan, -inf, inf]     [nan, -inf, 1]  [1, 2, 0]
    clip(c([4.0, 9, 0], x), 2, x)                   [3, 9, 1]  [3, 9, 1]  [1, 0, 4]
    clip(c([1.0, 2, 0], x), x, c([9.0, 9, 1], x))   [2, 2, 2]  [2, 2, 1]  [1, 0, 0]
    norm(x)                     [0, 0, 0]            0               [0, 0, 0]
    norm(x)                     [300, 400, 0]        500             [0.6, 0.8, 0]
    std(x)                      [300, -300]          300             [0.5, -0.5]
    var(x, correction=3)        [3, 5]               inf             [-inf, inf]
    0.0 ** x                    [-1, 0, 2]           [inf, 1, 0]     [-inf, 0, 0]
    c(0.0, x) ** x              [-1, 0, 2, nan]      [inf, 1, 0, nan]  [-inf, 0, 0, nan]
    sort(x)                     [3, nan, 1]          [1, 3, nan]     [2, 4, 1]
    sqrt(relu(x))               [-1, 4, 9]           [0, 2, 3]       [0, 1 / 2, 2 / 3]
    sqrt(maximum(x, 0))         [-1, 4, 9]           [0, 2, 3]       [0, 1 / 2, 2 / 3]
    sqrt(max(x, axis=0))        [-1, 0, -1]          0               [0, inf, 0]
"""


def gradient_of(f, x, recorded=False):
    """The value of a function, and the gradient that G becomes, or its beginning."""
    out = f(x)
    g = np.resize(G, out.shape).astype(x.dtype)
    return out, mg.grad(out, x, Tensor(g, device=x.device), create_graph=recorded)


def check_closed_form(f, values, expected, gradient, dtype, device, **digits):
    x = Tensor(np.array(values, dtype), device=device, requires_grad=True)
    for recorded in (False, True):
        out, found = gradient_of(function(f, NAMES), x, recorded)
        assert (out.shape, out.dtype, found.dtype) == (np.shape(expected), dtype, dtype)
        np.testing.assert_allclose(host(out), expected, **digits)
        np.testing.assert_allclose(host(found), gradient, **digits)


every_float = pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])


@every_float
@pytest.mark.parametrize(("f", "values", "expected", "gradient"), table(FORMS))
def test_closed_forms(f, values, expected, gradient, dtype, device):
    check_closed_form(f, values, expected, gradient, dtype, device, rtol=4 * np.finfo(dtype).eps)


@pytest.mark.parametrize(("f", "values", "expected"), table("""
    logsumexp(x)        [1, -inf, 1]            [-0.75, 0, 0.75]
    logsumexp(x)        [-inf, -inf, -inf]      [0, 0, 0]
    logsumexp(x)        [inf, 1, inf]           [0, 0, 0]
    max(x * x)          [1, nan, 2]             [0, 4, 0]
    relu(x) * x         [nan, -1, 2]            [2, 0, 32]
    std(x)              [2, 2, 2]               [0, 0, 0]
    softmax(x) * x      3                       0
"""))
def test_second_derivatives(f, values, expected, device):
    x = Tensor(np.array(values, float), device=device, requires_grad=True)
    _, first = gradient_of(function(f, NAMES), x, recorded=True)
    second = mg.grad(first, x, Tensor(np.resize(G, x.shape), device=device))
    np.testing.assert_allclose(host(second), expected, rtol=1e-12)


# f, a place, and the values of f, f', f'', f''' there
PLACES = """
    x ** 2                  0       [0, 0, 2, 0]
    x ** 0                  0       [1, 0, 0, 0]
    x ** 2.5                0       [0, 0, 0]
    c(0.0, x) ** x          2       [0, 0, 0, 0]
    x ** c(0.0, x)          0       [1, 0, 0, 0]
    x ** c(3.0, x) * x      0       [0, 0, 0, 0, 24]
    sigmoid(x) + tanh(x)    -1e4    [-1, 0, 0]
    sigmoid(x)              -40     [exp(-40)] * 4
    log1p(x)                1e-20   [1e-20, 1, -1, 2]
    expm1(x)                -40     [-1, exp(-40), exp(-40), exp(-40)]
    erfc(x)                 9.0     [erfc(9), *(n * 2 / sqrt(pi) * exp(-81) for n in (-1, 18, -322))]
    logsumexp(c([1.0, 1.0], x) * x)   1000    [1000 + log(2)]
    relu(x)                 0       [0, 0, 0, 0]
    abs(x)                  0       [0, 0, 0, 0]
    maximum(x, 0)           0       [0, 0.5, 0, 0]
    minimum(x, 0)           0       [0, 0.5, 0, 0]
    clip(x, 0, 1)           1       [1, 1, 0, 0]
    x * x % x               2.5     [1.25, 2 * 2.5 - 2, 2, 0]
    log2(x)                 0       [-inf, inf]
    log(x)                  -2      [nan, -0.5]
    sqrt(x)                 0       [0, inf]
    x ** 0.5                0       [0, inf]
    3 / x                   0       [inf, -inf]
    7 % x                   0       [nan, -inf]
"""


@pytest.mark.parametrize(("f", "place", "expected"), table(PLACES))
def test_derivatives_to_third_order(f, place, expected, device):
    """Only a gradient of exactly 0 is kept at 0: the slope of a true singularity is infinite."""
    x = Tensor(np.array(float(place)), device=device, requires_grad=True)
    y = function(f)(x)
    for value in expected:
        np.testing.assert_allclose(y.item(), value, rtol=1e-12, atol=1e-25)
        y = mg.grad(y, x, create_graph=True) if y.requires_grad else Tensor(0.0, device=device)


def test_the_mixed_second_derivative_of_a_power_where_the_exponent_or_the_base_is_zero(device):
    """d²(xʸ)/dx dy = xʸ⁻¹ (1 + y log x), which is 1/x at y = 0, and -∞ at x = 0 for 0 < y ≤ 1; in either order."""
    x = Tensor([2.0, 0.5, 3.0, 0.0, 0.0, 0.0, 0.0], dtype=np.float64, device=device, requires_grad=True)
    y = Tensor([0.0, 0.0, 1.0, 0.5, 1.0, 1.5, -1.0], dtype=np.float64, device=device, requires_grad=True)
    by_x, by_y = mg.grad((x ** y).sum(), [x, y], create_graph=True)
    expected = [0.5, 2.0, 1 + np.log(3.0), -INF, -INF, 0, INF]
    np.testing.assert_allclose(host(mg.grad(by_x.sum(), y, retain_graph=True)), expected, rtol=1e-14)
    np.testing.assert_allclose(host(mg.grad(by_y.sum(), x)), expected, rtol=1e-14)


# --- A gradient of exactly 0 stays 0 where a slope is infinite or not a number, to every order -------

# f, its condition, which 2 satisfies, and places that do not
GUARDED = """
    log(x)              "x > 0"   [0.0, -0.0, -1, nan]
    log2(x)             "x > 0"   [0.0, -1]
    log10(x)            "x > 0"   [0.0, -1]
    log1p(x)            "x > -1"  [-1, -2, nan]
    sqrt(x)             "x > 0"   [0.0, -0.0, -1, nan]
    x ** 0.5            "x > 0"   [0.0, -0.0, -1, nan]
    x ** 1.5            "x > 0"   [0.0, -1]
    x ** -1             "x != 0"  [0.0, -0.0]
    x ** c(0.5, x)      "x > 0"   [0.0, -1]
    x ** x              "x > 0"   [0.0, -1.5]
    1 / x               "x != 0"  [0.0, -0.0]
    sqrt(log(x))        "x > 1"   [1, 0.5, 0, -1]
"""


@pytest.mark.parametrize(("f", "condition", "outside"), table(GUARDED))
def test_where_keeps_a_gradient_of_zero(f, condition, outside, device):
    """``where(x > 0, log(x), 0)``: the derivatives are log's where x > 0, and exactly 0 elsewhere, to third order."""
    guarded = function(f"where({condition}, {f}, 0)")
    x = Tensor(np.array([*outside, 2], float), device=device, requires_grad=True)
    alone = Tensor(np.array([2.0]), device=device, requires_grad=True)
    y, expected = guarded(x), function(f)(alone)
    for _ in range(3):
        y, expected = mg.grad(y.sum(), x, create_graph=True), mg.grad(expected.sum(), alone, create_graph=True)
        assert host(y).tolist() == [0] * len(outside) + host(expected).tolist()
    x = Tensor(np.array([*outside, 2], np.float32), device=device, requires_grad=True)
    guarded(x).sum().backward()  # where nothing is recorded
    assert host(x.grad)[:-1].tolist() == [0] * len(outside)


PAIRS = {
    "x / y": [(0.0, 0.0), (1.0, 0.0), (INF, 0.0), (NAN, 0.0)],
    "x ** y": [(0.0, 0.0), (0.0, -1.0), (-1.5, 0.5), (NAN, 1.0)],
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
    for f, *_ in table(GUARDED):
        x = Tensor(np.array(2.0), requires_grad=True)
        y = function(f)(x)
        first = mg.grad((y - y.detach()) ** 2 / 2, x, create_graph=True)
        slope = mg.grad(function(f)(x), x)
        np.testing.assert_allclose(mg.grad(first, x).item(), slope.item() ** 2, rtol=1e-12, err_msg=f)


# --- Every way to differentiate finds the same -------------------------------------------------------

SWEEP = [0.0, -0.0, 1, -1, 1.2, -1.2, -2, 1e300, -1e-300, INF, -INF, NAN]
OF_EACH_ELEMENT = [row for row in ELEMENTWISE if row.differentiable
                   and {array.shape for array in row.arrays} == {row.op(*row.tensors()).shape}]


def of_one_operand(row, i, g):
    """The row as a function of its operand i alone, and the gradient of that as another, from the gradient g."""
    operands = [Tensor(x) for x in row.arrays]

    def function(x):
        return row.op(*operands[:i], x, *operands[i + 1:])

    return function, lambda x: func.vjp(function, x)[1](g)


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


# --- Of a number -------------------------------------------------------------------------------------

# Of x = 2: a value, and its slope.
REDUCED = {**dict.fromkeys(["sum", "mean", "max", "min", "logsumexp", "norm"], (2, 1)),
           **dict.fromkeys(["var", "std"], (0, 0)), **dict.fromkeys(["argmax", "argmin"], (0, None)),
           **dict.fromkeys(["any", "all"], (True, None))}


@pytest.mark.parametrize("name", REDUCED)
def test_a_number_may_be_reduced_over_its_axis_0(name, device):
    """As in PyTorch, and by some functions in NumPy; nothing is left of it, also with keepdims."""
    reduce, (value, slope) = getattr(mg, name), REDUCED[name]
    axes = [0, -1, None, *([] if name.startswith("arg") else [()])]
    for axis, keepdims, dtype in itertools.product(axes, [False, True], [np.float64, np.float16]):
        x = Tensor(np.array(2, dtype), device=device, requires_grad=True)
        out = reduce(x, axis, keepdims=keepdims)
        assert (out.shape, out.item()) == ((), value)
        if slope is not None:
            first = mg.grad(out, x, create_graph=True)
            assert first.item() == mg.grad(first * x, x).item() == slope
    for axis, error in ((1, IndexError), ([0], TypeError), (0.0, TypeError)):
        with pytest.raises(error, match=f"^{name}: "):
            reduce(x, axis)
