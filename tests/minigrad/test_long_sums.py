"""Sums of many terms keep the digits of their dtype, over any axis and into any place; float16 rounds once."""

import re

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor
from minigrad import functional as F
from minigrad.functional.normalization import _rms_norm

from tests.minigrad.ops.row import function, host, table

ROWS, COLUMNS = 200_003, 3
BOUND = {np.float32: 1e-6, np.float16: 1.01 * 2.0**-11}  # of the largest element; float16 is to round once
SIZES = [(np.float32, ROWS), (np.float16, 50_003)]


def draw(dtype, rows):
    """Numbers in [0, 1), so that all sums are large beside their terms; of float16 no sum is beyond its end."""
    return np.random.default_rng(0).random((rows, COLUMNS)).astype(dtype)


def near(actual, exact, dtype):
    actual = actual if isinstance(actual, np.ndarray) else host(actual)
    assert actual.dtype == dtype
    assert actual.shape == exact.shape
    np.testing.assert_allclose(actual.astype(np.float64), exact, rtol=0, atol=BOUND[dtype] * np.abs(exact).max())


# --- over an axis ----------------------------------------------------------------------------------


NAMES = {**vars(F), **vars(mg.ops), "np": np, "move": np.moveaxis, "pairs": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
         "COLUMNS": COLUMNS}
LAYOUTS = table("""
    x                                                           0
    x[None]                                                     1
    pairs(x)                                                    -2
    x[:50_000].reshape(50, -1, COLUMNS)                         (0, 1)
    move(x[:200_000].reshape(-1, 10, COLUMNS), 2, 1).copy()     (0, 2)
""")
OVER_AN_AXIS = """
    sum(x, y)                               np.sum(x, y)
    mean(x, y)                              np.mean(x, y)
    var(x, y)                               np.var(x, y)
    norm(x, y)                              np.sqrt((x * x).sum(y))
    exp(logsumexp(x - 10.0, y))             np.exp(x - 10).sum(y)
    cumsum(x, y)                            np.cumsum(x, y)
    log_softmax(x, y)                       x - np.log(np.exp(x).sum(y, keepdims=True))
"""


@pytest.mark.parametrize(("layout", "axis"), LAYOUTS)
@pytest.mark.parametrize("line", OVER_AN_AXIS.strip().splitlines())
def test_over_an_axis(line, layout, axis):
    operation, reference = (function(call, NAMES) for call in map(str.strip, line.strip().split("  ", 1)))
    if isinstance(axis, tuple) and re.search("cumsum|softmax", line):  # of one axis
        return
    sizes = SIZES if layout == "x" and not re.search("exp|softmax", line) else SIZES[:1]  # of float16 terms are rounded
    for dtype, rows in sizes:
        x = function(layout, NAMES)(draw(dtype, rows))
        near(operation(Tensor(x), axis), reference(x.astype(np.float64), axis), dtype)


# --- over rows, in gradients and products -----------------------------------------------------------------------


def gradient(f, weight_shape, x):
    weight = Tensor(np.zeros(weight_shape, x.dtype), requires_grad=True)
    out = f(weight)
    out.backward(Tensor(x.reshape(out.shape)))
    return weight.grad


OVER_ROWS = """
    x + Tensor(zeros)                                   (3,)
    linear(Tensor(zeros[:, :2]), Tensor(zeros[:3, :2]), x)      (3,)
    layer_norm(Tensor(zeros), Tensor(zeros[0] + 1), x)          (3,)
    rms_norm(Tensor(zeros + 1), x, 0.0)                 (3,)
    tile(x, (len(zeros), 1))                            (3,)
    repeat(x, len(zeros), axis=0)                       (1, 3)
"""


@pytest.mark.parametrize(("call", "shape"), table(OVER_ROWS))
@pytest.mark.parametrize(("dtype", "rows"), SIZES)
def test_over_rows(call, shape, dtype, rows):
    """What is shared by many rows has the sum of their gradients."""
    x = draw(dtype, rows)
    shared = function(call, {**NAMES, "Tensor": Tensor, "zeros": np.zeros_like(x), "rms_norm": _rms_norm})
    near(gradient(shared, shape, x).reshape(3), x.sum(axis=0, dtype=np.float64), dtype)


# --- into places -----------------------------------------------------------------------------------


# Of a table x, at ids in 0, 1, 2: three sums for each column.
INTO_PLACES = """
    embedding(ids, x)                           (3, 3)
    x[ids]                                      (3, 3)
    x[ids * 7]                                  (50, 3)
    x[columns, [0, 1, 2]]                       (3, 3)
    x[columns * 3 + np.arange(3)]               (9,)
    gather(x, 0, columns)                       (3, 3)
"""


@pytest.mark.parametrize(("call", "shape"), table(INTO_PLACES))
@pytest.mark.parametrize(("dtype", "rows"), SIZES)
def test_into_places(call, shape, dtype, rows):
    x, ids = draw(dtype, rows), np.sort(np.random.default_rng(1).integers(0, 3, rows))
    ids[::2] = np.random.default_rng(2).permutation(ids[::2])  # some beside each other, some apart
    exact = np.stack([np.bincount(ids, x[:, j].astype(np.float64)) for j in range(COLUMNS)], axis=1)
    pick = function(call, {**NAMES, "ids": ids, "columns": np.repeat(ids[:, None], COLUMNS, axis=1)})
    found = host(gradient(pick, shape, x)).reshape(-1, COLUMNS)
    near(found[::7][:3] if len(found) > 3 else found, exact, dtype)


# --- float16: sums keep the accuracy of float32 until they are rounded, once -----------------------


OPERATIONS = ("sum(x, y)", "var(x, y)", "logsumexp(x, y)", "cumsum(x, y)", "norm(x, axis=y)", "softmax(x, y)",
              "log_softmax(x, y)", "layer_norm(x.swapaxes(y, 1))", "rms_norm(x.swapaxes(y, 1), eps=1e-6)",
              "matmul(x.T / 4, x)")


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("call", OPERATIONS)
@pytest.mark.parametrize("factor", [1, 8])
def test_a_definition_rounds_once(call, axis, factor):
    """Also where squares, or the sum of exponentials, are beyond 65504."""
    x = draw(np.float16, 4096) * np.float16(factor)
    if any(name in call for name in ("norm", "var", "std")):
        x[0] = 100 * factor
    out, exact = (function(call, NAMES)(Tensor(x.astype(dtype)), axis).data for dtype in (np.float16, np.float64))
    assert out.dtype == np.float16
    np.testing.assert_allclose(out, exact.astype(np.float16), rtol=2.0**-10, atol=1e-6)


WIDE = draw(np.float16, 4).reshape(2, 6) * np.float16(800)  # whose squares are beyond the end of float16
ALIKE = np.zeros((1, 70_000), np.float16)  # whose exponentials add up to more
MANY = np.tile(np.float16([1, 3]), 1 << 16)  # more than 65504, the largest float16; the reciprocal is one, too


@pytest.mark.parametrize(("call", "values"), table("""
    layer_norm(x)                   WIDE
    rms_norm(x, eps=1e-6)           WIDE
    softmax(x) * 512                ALIKE
    cross_entropy(x, [1])           ALIKE
    var(x) * 512                    MANY
    cross_entropy(stack([1 - x, x * 0], 1), np.ones(len(x), int)) * 512     MANY
""", {"WIDE": WIDE, "ALIKE": ALIKE, "MANY": MANY}))
def test_what_overflows_inside_a_definition_does_so_in_no_form(call, values, form, device):
    found, f = [], function(call, NAMES)
    for dtype in (np.float16, np.float64):
        x = Tensor(values.astype(dtype), device=device, requires_grad=True)
        out = f(x)
        g, v = (Tensor(np.linspace(-1, 1.01, t.size).reshape(t.shape).astype(dtype), device=device) for t in (out, x))
        first = mg.grad(out, x, g, create_graph=True)
        slope = mg.func.jvp(f, (x.detach(),), (v,))[1]
        found.append([out, mg.grad(out, x, g, retain_graph=True), first, mg.grad(first, x, v), slope])
    for half, exact in zip(*found, strict=True):
        assert half.dtype == np.float16
        size = np.abs(exact.numpy()).max()
        np.testing.assert_allclose(half.numpy() / size, exact.numpy() / size, atol=2e-2)  # some are subnormal
