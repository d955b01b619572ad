"""autocast on a GPU: what runs in float16 and what in float32, derivatives of any order, attention's softmax."""

from contextlib import nullcontext

import numpy as np
import pytest

import minigrad as mg
from minigrad import DeviceError, Tensor, autocast, grad, nn
from minigrad import functional as F
from minigrad.func import checkpoint

from tests.minigrad.ops.row import function, table

HALF, SINGLE, DOUBLE = (np.dtype(name) for name in ("float16", "float32", "float64"))
IDS, MASK = np.array([1, 0, 3]), np.array([[True, False, True], [False] * 3, [True] * 3])


def tensors(device, *shapes, dtype=SINGLE, seed=0):
    draw = np.random.default_rng(seed)
    return [Tensor(draw.standard_normal(shape).astype(dtype), device=device, requires_grad=True) for shape in shapes]


NAMES = {**vars(F), "matmul": mg.matmul, "attend": F.scaled_dot_product_attention, "heads": F.multi_head_attention,
         "IDS": IDS, "MASK": MASK}
# What runs in float16, with the shapes of its inputs.
PRODUCTS = """
    linear(x, y, z)             (2, 3, 4), (5, 4), (5,)
    matmul(x, y)                (2, 3, 4), (4, 5)
    attend(x, y, z, MASK)       [(2, 3, 4)] * 3
    heads(x, y, z, 2, MASK)     [(2, 3, 4)] * 3
    attend(x, y, z)             (2, 3, 4), (3, 4), (3, 4)
"""
# What runs in float32.
WIDE = """
    softmax(x)                                                  [(3, 4)]
    log_softmax(x)                                              [(3, 4)]
    layer_norm(x, y, z)                                         (3, 4), (4,), (4,)
    rms_norm(x, y)                                              (3, 4), (4,)
    cross_entropy(input=x, target=IDS, reduction="none")        [(3, 4)]
    nll_loss(x, IDS)                                            [(3, 4)]
    mse_loss(x, target=y)                                       (3, 4), (3, 4)
"""


every_case = pytest.mark.parametrize(("call", "shapes", "dtype"), [
    *((*case, HALF) for case in table(PRODUCTS)), *((*case, SINGLE) for case in table(WIDE))])


def outcome(f, inputs, cast=None):
    """The output and the gradients for a fixed gradient of the output; `cast`: of inputs that were cast by hand."""
    with autocast() if cast is None else nullcontext():
        out = f(*[x if cast is None else x.astype(cast) for x in inputs])
    draw = np.random.default_rng(1).standard_normal(out.shape).astype(out.dtype)
    return out, grad(out, inputs, Tensor(draw, device=out.device))


# --- What is cast


@pytest.mark.parametrize(("precision", "expected"), [("float16", HALF), ("float32", SINGLE), (None, SINGLE)])
def test_an_operation_runs_in_what_it_declares(precision, expected, gpu):
    """Its inputs are cast, what is no input is not; the output has that dtype, the gradient that of the tensor."""
    seen = []

    @mg.primitive(precision=precision)
    def scaled(x, by, factors):
        seen.append((x.dtype, by.dtype, factors.dtype))
        return x * by

    scaled.gradient(x=lambda g, by: g * by, by=lambda g, x: g * x)
    (x, by), factors = tensors(gpu, (2,), (2,)), np.ones(2, np.float32)
    with autocast():
        out = scaled(x, by, factors)
    assert seen == [(expected, expected, SINGLE)]
    assert out.dtype == expected
    assert [id(parent) for parent in out._node.parents] == [id(x), id(by)]  # no cast in between
    assert {g.dtype for g in grad(out.sum(), [x, by])} == {SINGLE}


@pytest.mark.parametrize("given", [HALF, SINGLE], ids=str)
@every_case
def test_values_and_gradients_are_those_of_inputs_cast_by_hand(call, shapes, dtype, given, form, gpu):
    """To float16 for products, to float32 for softmax, norms and losses; gradients have the inputs' dtype."""
    inputs, f = tensors(gpu, *shapes, dtype=given), function(call, NAMES)
    in_steps = ("attend" in call and (not form or "MASK" not in call)) or ("heads" in call and not form)
    tolerance = 4e-3 if in_steps else 0  # between the steps, the weights of attention are float32 here
    (out, gradients), (same, by_hand) = outcome(f, inputs), outcome(f, inputs, dtype)
    assert out.dtype == same.dtype == dtype
    assert [g.dtype for g in gradients] == [g.dtype for g in by_hand] == [given] * len(inputs)
    for found, expected in zip([out, *gradients], [same, *by_hand], strict=True):
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=0, atol=tolerance)


@pytest.mark.parametrize(("call", "dtype"), table("""
    x @ wide                DOUBLE
    x @ many                SINGLE
    linear(x, many.mT)      SINGLE
    x @ y.data              HALF
""", {"HALF": HALF, "SINGLE": SINGLE, "DOUBLE": DOUBLE}))
def test_beside_float64_or_integers_nothing_is_cast_and_arrays_are_cast_along(call, dtype, form, gpu):
    (x, y), (wide,) = tensors(gpu, (3, 4), (4, 5)), tensors(gpu, (4, 5), dtype=DOUBLE)
    f = function(call, {**NAMES, "wide": wide, "many": Tensor(np.full((4, 5), 70_000), device=gpu)})
    with autocast():
        found = f(x, y)
    assert found.dtype == dtype
    np.testing.assert_allclose(found.numpy(), f(x, y).numpy(), rtol=1e-6 if dtype != HALF else 0.02, atol=0.01)


# --- The switch


@every_case
def test_the_host_has_no_mixed_precision(call, shapes, dtype, form):
    with autocast(), pytest.raises(DeviceError, match=r"^autocast: mixed precision needs a GPU; "):
        function(call, NAMES)(*tensors("cpu", *shapes))


# --- With the rest of the engine


def check_same(found, expected):
    for g, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(g.numpy(), other.numpy())


@every_case
def test_second_derivatives(call, shapes, dtype, gpu):
    """First ones that can be differentiated are those that cannot; second ones are near those of float32."""
    inputs, (point,) = tensors(gpu, *shapes), tensors(gpu, (1,), seed=3)

    def twice(cast):
        with autocast() if cast else nullcontext():
            out = (function(call, NAMES)(*inputs) * 1.0).astype(np.float32)
        out = (out * out * point).sum()
        first = grad(out, inputs, retain_graph=True)
        with autocast() if cast else nullcontext():
            again = grad(out, inputs, create_graph=True)
        for g, other in zip(first, again, strict=True):
            assert g.dtype == other.dtype == SINGLE
            np.testing.assert_allclose(other.numpy(), g.numpy(), rtol=0, atol=0.01 * np.abs(g.numpy()).max() + 1e-12)
        return grad(sum((g * g).sum() for g in again), inputs)

    for g, expected in zip(twice(True), twice(False), strict=True):
        assert g.dtype == SINGLE
        expected = expected.numpy()
        np.testing.assert_allclose(g.numpy(), expected, rtol=0, atol=0.02 * np.abs(expected).max() + 1e-12)


def test_a_checkpoint_is_computed_again_as_it_was(gpu):
    """Whether the pass runs in the block or not."""
    model = nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 4)).to(gpu)
    (x,) = tensors(gpu, (3, 6))
    leaves = [x, *model.parameters()]
    for forward, backward in ((autocast, nullcontext), (nullcontext, autocast)):
        with forward():
            plain, again = (F.cross_entropy(out, IDS) for out in (model(x), checkpoint(model, x)))
        assert plain.item() == again.item()
        expected = grad(plain, leaves)
        with backward():
            check_same(grad(again, leaves), expected)


# --- Attention in float16


@pytest.mark.parametrize(("length", "factor", "tolerance"), [(4096, 0.1, {"rtol": 2e-3}), (3, 40.0, {"atol": 0.02})])
def test_the_softmax_between_the_products_is_that_of_float32(length, factor, tolerance, form, gpu):
    """Weights of 1/4096 sum to 1; scores may be in the thousands, while exp overflows float16 beyond 11."""
    q, k, v = tensors(gpu, (1, 2, 8), (1, length, 8), (1, length, 8))
    q, k, v = q * factor, k * max(factor, 1.0), v + 1.0
    with autocast():
        out = F.scaled_dot_product_attention(q, k, v)
    exact = F.scaled_dot_product_attention(*[t.astype(np.float16).astype(np.float64) for t in (q, k, v)])
    np.testing.assert_allclose(out.numpy(), exact.numpy(), **tolerance)
