"""Sums of many terms keep the digits of their dtype, over any axis and into any place."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor
from minigrad import functional as F
from minigrad.functional.more.rms_norm import _rms_norm

from tests.minigrad.ops.row import host

ROWS, COLUMNS = 200_003, 3
BOUND = {np.float32: 1e-6, np.float16: 1.01 * 2.0**-11}  # of the largest element; float16 is to round once
SIZES = [(np.float32, ROWS), (np.float16, 50_003)]


def draw(dtype, rows):
    """Numbers in [0, 1), so that all sums are large beside their terms; of float16 no sum is beyond its end."""
    numbers = np.random.default_rng(0).random((rows, COLUMNS))
    return numbers.astype(dtype)


def near(actual, exact, dtype):
    actual = actual if isinstance(actual, np.ndarray) else host(actual)
    assert actual.dtype == dtype
    assert actual.shape == exact.shape
    np.testing.assert_allclose(actual.astype(np.float64), exact, rtol=0, atol=BOUND[dtype] * np.abs(exact).max())


# --- over an axis ----------------------------------------------------------------------------------


LAYOUTS = {  # of (rows, columns), and the axis of the rows in it
    "leading": (lambda x: x, 0),
    "middle": (lambda x: x.reshape(1, *x.shape), 1),
    "leading, strided": (lambda x: np.repeat(x, 2, axis=1)[:, ::2], -2),
    "two axes": (lambda x: x[:50_000].reshape(50, -1, COLUMNS), (0, 1)),
    "not neighbours": (lambda x: np.moveaxis(x[:200_000].reshape(-1, 10, COLUMNS), 2, 1).copy(), (0, 2)),
}

OVER_AN_AXIS = {
    "sum": (mg.sum, np.sum),
    "mean": (mg.mean, np.mean),
    "var": (mg.var, np.var),
    "std": (mg.std, np.std),
    "norm": (lambda x, axis: mg.norm(x, axis), lambda x, axis: np.sqrt((x * x).sum(axis=axis))),
    "exp logsumexp": (lambda x, axis: mg.exp(mg.logsumexp(x - 10.0, axis)),
                      lambda x, axis: np.exp(x - 10).sum(axis=axis)),
    "cumsum": (mg.cumsum, np.cumsum),
    "softmax": (lambda x, axis: F.softmax(x * 0.125, axis),
                lambda x, axis: np.exp(x / 8) / np.exp(x / 8).sum(axis=axis, keepdims=True)),
    "log_softmax": (F.log_softmax, lambda x, axis: x - np.log(np.exp(x).sum(axis=axis, keepdims=True))),
}
ONE_AXIS = ("cumsum", "softmax", "log_softmax")
ROUNDED_BEFORE = ("exp logsumexp", "softmax", "log_softmax")  # of float16 the terms are

CASES = [(name, layout, dtype, rows) for name in OVER_AN_AXIS for layout in LAYOUTS for dtype, rows in SIZES
         if not (name in ONE_AXIS and isinstance(LAYOUTS[layout][1], tuple))
         and not (dtype is np.float16 and (name in ROUNDED_BEFORE or layout != "leading"))]


@pytest.mark.parametrize(("name", "layout", "dtype", "rows"), CASES)
def test_over_an_axis(name, layout, dtype, rows):
    operation, reference = OVER_AN_AXIS[name]
    arrange, axis = LAYOUTS[layout]
    x = arrange(draw(dtype, rows))
    near(operation(Tensor(x), axis), reference(x.astype(np.float64), axis=axis), dtype)


def test_a_mean_of_more_ones_than_float32_counts():
    """From 2²⁴ on a total in float32 does not grow by ones."""
    x = mg.from_numpy(np.ones((2**24 + 2**22, 2), np.float32))
    np.testing.assert_array_equal(host(x.mean(0)), 1)


def test_gradients_of_variances_and_running_sums():
    x = draw(np.float32, ROWS)
    t = Tensor(x, requires_grad=True)
    exact = x.astype(np.float64)
    near(mg.grad(mg.var(t, 0), t, Tensor(np.full(COLUMNS, ROWS, np.float32))), 2 * (exact - exact.mean(axis=0)),
         np.float32)
    near(mg.grad(mg.cumsum(t, 0), t, Tensor(x)), exact[::-1].cumsum(axis=0)[::-1], np.float32)


# --- over rows, in gradients and products -----------------------------------------------------------------------


def gradient(function, weight_shape, x):
    weight = Tensor(np.zeros(weight_shape, x.dtype), requires_grad=True)
    out = function(weight)
    out.backward(Tensor(x.reshape(out.shape)))
    return weight.grad


OVER_ROWS = {
    "what is broadcast": lambda x: gradient(lambda w: w + Tensor(np.zeros_like(x)), COLUMNS, x),
    "broadcast_to": lambda x: gradient(lambda w: mg.broadcast_to(w, x.shape), COLUMNS, x),
    "linear's bias": lambda x: gradient(
        lambda w: F.linear(Tensor(np.zeros((len(x), 2), x.dtype)), Tensor(np.zeros((COLUMNS, 2), x.dtype)), w),
        COLUMNS, x),
    "layer_norm's bias": lambda x: gradient(
        lambda w: F.layer_norm(Tensor(x), Tensor(np.ones(COLUMNS, x.dtype)), w), COLUMNS, x),
    "rms_norm's weight": lambda x: gradient(lambda w: _rms_norm(Tensor(np.ones_like(x)), w, 0.0), COLUMNS, x),
    "tile": lambda x: gradient(lambda w: mg.tile(w, (len(x), 1)), COLUMNS, x),
    "repeat": lambda x: gradient(lambda w: mg.repeat(w, len(x), axis=0), (1, COLUMNS), x)[0],
}


@pytest.mark.parametrize("name", OVER_ROWS)
@pytest.mark.parametrize(("dtype", "rows"), SIZES)
def test_over_rows(name, dtype, rows):
    x = draw(dtype, rows)
    near(OVER_ROWS[name](x), x.sum(axis=0, dtype=np.float64), dtype)


# --- into places -----------------------------------------------------------------------------------


def columns_of(ids):
    return np.repeat(ids[:, None], COLUMNS, axis=1)


INTO_PLACES = {  # of x at ids in 0, 1, 2: three sums for each column
    "embedding": lambda x, ids: gradient(lambda w: F.embedding(ids, w), (3, COLUMNS), x),
    "x[rows]": lambda x, ids: gradient(lambda w: w[ids], (3, COLUMNS), x),
    "x[rows] of a table of which few are used": lambda x, ids: gradient(lambda w: w[ids * 7], (50, COLUMNS), x)[:15:7],
    "x[row, column]": lambda x, ids: gradient(lambda w: w[columns_of(ids), np.arange(COLUMNS)], (3, COLUMNS), x),
    "x[places]": lambda x, ids: gradient(lambda w: w[columns_of(ids) * COLUMNS + np.arange(COLUMNS)], 9, x).reshape(
        3, COLUMNS),
    "take": lambda x, ids: gradient(lambda w: mg.take(w, ids, axis=0), (3, COLUMNS), x),
    "gather": lambda x, ids: gradient(lambda w: mg.gather(w, 0, columns_of(ids)), (3, COLUMNS), x),
}


@pytest.mark.parametrize("name", INTO_PLACES)
@pytest.mark.parametrize(("dtype", "rows"), SIZES)
def test_into_places(name, dtype, rows):
    x, ids = draw(dtype, rows), np.sort(np.random.default_rng(1).integers(0, 3, rows))
    ids[::2] = np.random.default_rng(2).permutation(ids[::2])  # some beside each other, some apart
    exact = np.stack([np.bincount(ids, x[:, j].astype(np.float64)) for j in range(COLUMNS)], axis=1)
    near(INTO_PLACES[name](x, ids), exact, dtype)


def test_into_places_on_every_device(device):
    """2,048 is the largest number to which float16 can add 1."""
    ids, ones = np.zeros(3000, int), Tensor(np.ones((3000, 2), np.float16), device=device)
    table = Tensor(np.zeros((2, 2), np.float16), device=device, requires_grad=True)
    mg.take(table, ids, axis=0).backward(ones)
    for sums in (table.grad[0], mg.cumsum(ones, 0)[-1]):
        np.testing.assert_array_equal(host(sums), [3000, 3000])
