"""float16: sums keep the accuracy of float32 until they are rounded, once."""


import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, matmul
from minigrad import functional as F

from tests.minigrad.ops.row import function, host, table


def draw(*shape, seed=0):
    """Numbers in [0, 1): all sums are large beside their terms, so that a short accumulator shows."""
    return np.random.default_rng(seed).random(shape).astype(np.float16)


def close(actual, exact):
    """It is the exact result, rounded to float16 once: by half a unit in the last place."""
    assert actual.dtype == np.float16
    np.testing.assert_allclose(actual.astype(np.float64), exact, rtol=1.01 * 2.0**-11, atol=0)


def test_a_product_of_4096_terms():
    x, y = draw(3, 4096), draw(4096, 5, seed=1)
    exact = x.astype(np.float64) @ y.astype(np.float64)
    x, y = Tensor(x), Tensor(y)
    for out in (matmul(x, y), F.linear(x, y.T)):
        close(out.data, exact)


NAMES = {**vars(F), **vars(mg.ops)}
OPERATIONS = ("sum(x, y)", "mean(x, y)", "var(x, y)", "std(x, y)", "logsumexp(x, y)", "cumsum(x, y)", "norm(x, axis=y)",
              "softmax(x, y)", "log_softmax(x, y)", "layer_norm(x.swapaxes(y, 1))",
              "rms_norm(x.swapaxes(y, 1), eps=1e-6)")


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("call", OPERATIONS)
@pytest.mark.parametrize("factor", [1, 8])
def test_a_definition_rounds_once(call, axis, factor):
    """Also where squares, or the sum of exponentials, are beyond 65504."""
    x = draw(4096, 7) * np.float16(factor)
    if any(name in call for name in ("norm", "var", "std")):
        x[0] = 100 * factor
    out, exact = (function(call, NAMES)(Tensor(x.astype(dtype)), axis).data for dtype in (np.float16, np.float64))
    assert out.dtype == np.float16
    np.testing.assert_allclose(out, exact.astype(np.float16), rtol=2.0**-10, atol=1e-6)


WIDE = draw(2, 8) * np.float16(800)  # whose squares are beyond the end of float16
ALIKE = np.zeros((1, 70_000), np.float16)  # whose exponentials add up to more


@pytest.mark.parametrize(("call", "values"), table("""
    layer_norm(x)                   WIDE
    rms_norm(x, eps=1e-6)           WIDE
    softmax(x) * 512                ALIKE
    log_softmax(x)                  ALIKE
    cross_entropy(x, [1])           ALIKE
""", {"WIDE": WIDE, "ALIKE": ALIKE}))
def test_what_overflows_inside_a_definition_does_so_in_no_form(call, values, form):
    found, f = [], function(call, NAMES)
    for dtype in (np.float16, np.float64):
        x = Tensor(values.astype(dtype), requires_grad=True)
        out = f(x)
        g, v = (Tensor(np.linspace(-1, 1.01, t.size).reshape(t.shape).astype(dtype)) for t in (out, x))
        first = mg.grad(out, x, g, create_graph=True)
        slope = mg.func.jvp(f, (x.detach(),), (v,))[1]
        found.append([out, mg.grad(out, x, g, retain_graph=True), first, mg.grad(first, x, v), slope])
    for half, exact in zip(*found, strict=True):
        assert half.dtype == np.float16
        size = np.abs(exact.numpy()).max()
        np.testing.assert_allclose(half.numpy() / size, exact.numpy() / size, atol=2e-2)  # some are subnormal


# --- float16 by the many ---------------------------------------------------------------------------


MANY = 1 << 17  # above 65504, the largest float16; its reciprocal is one, too


def leaf(values, device="cpu"):
    return Tensor(np.asarray(values, np.float16), device=device, requires_grad=True)


def test_the_mean_and_the_variance_of_many(device):
    x = leaf(np.tile([1.0, 3.0], MANY // 2), device)
    for reduction, value, slopes in ((mg.mean, 2, [1, 1]), (mg.var, 1, [-2, 2]), (mg.std, 1, [-1, 1])):
        out = reduction(x)
        assert (out.dtype, out.item()) == (np.float16, value)
        gradient = host(mg.grad(out * 1024, x))
        np.testing.assert_array_equal(gradient, np.tile(np.array(slopes) * (1024 / MANY), MANY // 2))
