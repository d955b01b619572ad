"""NaN, infinities and signed zeros in every operation: values against NumPy's, gradients against closed forms."""

import math
import warnings
from collections.abc import Callable

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor

from tests.minigrad.ops.row import Row, function, host
from tests.minigrad.ops.rows import ROWS

INF, NAN = math.inf, math.nan

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

# f, x, its value, and the gradient that G becomes
FORMS = [
    ("logsumexp(x)", [1, NAN, 2], NAN, [NAN, NAN, NAN]),
    ("logsumexp(x)", [-INF, NAN, -INF], NAN, [NAN, NAN, NAN]),
    ("logsumexp(x)", [INF, NAN, 0], NAN, [NAN, NAN, NAN]),
    ("logsumexp(x)", [1, INF, -INF], INF, [0, 1, 0]),
    ("logsumexp(x, 0, True)", [INF, 1, INF], [INF], [0.5, 0, 0.5]),
    ("logsumexp(x)", [1, -INF, 1], 1 + math.log(2), [0.5, 0, 0.5]),
    ("logsumexp(x)", [-INF] * 3, -INF, [0, 0, 0]),
    ("max(x)", [3, NAN, 5], NAN, [0, 1, 0]),
    ("max(x)", [NAN, INF, NAN], NAN, [0.5, 0, 0.5]),
    ("min(x)", [3, NAN, -INF], NAN, [0, 1, 0]),
    ("relu(x)", [NAN, -INF, INF], [NAN, 0, INF], [1, 0, 4]),
    ("abs(x)", [NAN, -INF, -0.0], [NAN, INF, 0], [NAN, -2, 0]),
    ("maximum(x, 0)", [NAN, -INF, INF], [NAN, 0, INF], [1, 0, 4]),
    ("minimum(x, 0)", [NAN, -INF, INF], [NAN, -INF, 0], [1, 2, 0]),
    ("maximum(x, nan)", [1, -INF, NAN], [NAN, NAN, NAN], [1, 2, 4]),
    ("clip(x, 0, 1)", [NAN, -INF, INF], [NAN, 0, 1], [1, 0, 0]),
    ("clip(c(1.0, x), x, None)", [NAN, -INF, INF], [NAN, 1, INF], [1, 0, 4]),
    ("clip(c(1.0, x), None, x)", [NAN, -INF, INF], [NAN, -INF, 1], [1, 2, 0]),
    ("where(x > 0, x, 0.0)", [NAN, -INF, INF], [0, 0, INF], [0, 0, 4]),
    ("norm(x, axis=0)", [3, NAN, 4], NAN, [NAN, NAN, NAN]),
    ("exp(x)", [NAN, -INF, INF], [NAN, 0, INF], [NAN, 0, INF]),
    ("tanh(x)", [NAN, -INF, INF], [NAN, -1, 1], [NAN, 0, 0]),
    ("sigmoid(x)", [NAN, -INF, INF], [NAN, 0, 1], [NAN, 0, 0]),
    ("0.0 ** x", [-1, 0, 2], [INF, 1, 0], [-INF, 0, 0]),
    ("c(0.0, x) ** x", [-1, 0, 2, NAN], [INF, 1, 0, NAN], [-INF, 0, 0, NAN]),
]


def gradient_of(f, x, recorded=False):
    """The value of a function, and the gradient that G becomes, or its beginning."""
    out = f(x)
    g = np.resize(G, out.shape).astype(x.dtype)
    return out, mg.grad(out, x, Tensor(g, device=x.device), create_graph=recorded)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize(("f", "values", "expected", "gradient"), FORMS)
def test_closed_forms(f, values, expected, gradient, dtype, device):
    x = Tensor(np.array(values, dtype), device=device, requires_grad=True)
    for recorded in (False, True):
        out, found = gradient_of(function(f), x, recorded)
        assert out.dtype == found.dtype == dtype
        np.testing.assert_allclose(host(out), expected, rtol=4 * np.finfo(dtype).eps)
        np.testing.assert_allclose(host(found), gradient, rtol=4 * np.finfo(dtype).eps)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("f", "values", "expected"), [
    ("logsumexp(x)", [1, -INF, 1], [-0.75, 0, 0.75]),  # p (g - p · g), p = [1/2, 0, 1/2]
    ("logsumexp(x)", [-INF, -INF, -INF], [0, 0, 0]),
    ("logsumexp(x)", [INF, 1, INF], [0, 0, 0]),
    ("logsumexp(x)", [1, NAN, 2], [NAN, NAN, NAN]),
    ("max(x * x)", [1, NAN, 2], [0, 4, 0]),
    ("relu(x) * x", [NAN, -1, 2], [2, 0, 32]),
])
def test_second_derivatives(f, values, expected, device):
    x = Tensor(np.array(values, float), device=device, requires_grad=True)
    _, first = gradient_of(function(f), x, recorded=True)
    np.testing.assert_allclose(host(mg.grad(first, x, Tensor(np.array(G), device=device))), expected, rtol=1e-12)
