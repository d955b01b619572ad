"""autocast: which operations run in float16 and which in float32, and that gradients arrive in their inputs' dtypes."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, autocast, einsum, grad
from minigrad import functional as F
from minigrad.device import to_numpy
from minigrad.precision.autocast import autocasting

from tests.minigrad.autocast_cases import DOUBLE, GIVEN, HALF, PRODUCTS, SINGLE, WIDE, tensors


def every_case(table):
    return pytest.mark.parametrize(("function", "shapes"), [(f, s) for f, *s in table.values()], ids=table)


def outcome(function, inputs, cast=None):
    """The output and the gradients for a fixed gradient of the output; `cast`: of inputs that were cast by hand."""
    with autocast(enabled=cast is None):
        out = function(*[x if cast is None else x.astype(cast) for x in inputs])
    draw = np.random.default_rng(1).standard_normal(out.shape).astype(out.dtype)
    return out, grad(out, inputs, Tensor(draw, device=out.device))


def check_that_it_casts(function, inputs, dtype, tolerance=0):
    """Values and gradients are those of inputs cast by hand to `dtype`; gradients have the inputs' dtype."""
    (out, gradients), (same, by_hand) = outcome(function, inputs), outcome(function, inputs, dtype)
    assert out.dtype == same.dtype == dtype
    np.testing.assert_allclose(to_numpy(out.data), to_numpy(same.data), rtol=0, atol=tolerance)
    for x, g, other in zip(inputs, gradients, by_hand, strict=True):
        assert g.dtype == other.dtype == x.dtype
        np.testing.assert_allclose(to_numpy(g.data), to_numpy(other.data), rtol=0, atol=tolerance)


# --- What is cast


@pytest.mark.parametrize(("precision", "expected"), [("float16", HALF), ("float32", SINGLE), (None, SINGLE)])
def test_an_operation_runs_in_what_it_declares(precision, expected):
    """Its inputs are cast, what is no input is not; the output has that dtype, the gradient that of the tensor."""
    seen = []

    @mg.primitive(precision=precision)
    def scaled(x, by, factors):
        seen.append((x.dtype, by.dtype, factors.dtype))
        return x * by

    scaled.gradient(x=lambda g, by: g * by, by=lambda g, x: g * x)
    (x, by), factors = tensors((2,), (2,)), np.ones(2, np.float32)
    with autocast():
        out = scaled(x, by, factors)
    assert seen == [(expected, expected, SINGLE)]
    assert out.dtype == expected
    assert [id(parent) for parent in out._node.parents] == [id(x), id(by)]  # no cast in between
    assert {g.dtype for g in grad(out.sum(), [x, by])} == {SINGLE}


@pytest.mark.parametrize("given", [HALF, SINGLE], ids=str)
@every_case(PRODUCTS)
def test_products_are_those_of_inputs_cast_to_float16(function, shapes, given, form, device, request):
    case = request.node.callspec.id
    in_steps = "attention" in case and (not form or "broadcasts" in case)
    tolerance = 4e-3 if in_steps else 0  # between the steps, the weights of attention are float32 here
    check_that_it_casts(function, tensors(*shapes, dtype=given, device=device), HALF, tolerance)


@pytest.mark.parametrize("given", [HALF, SINGLE], ids=str)
@every_case(WIDE)
def test_softmax_norms_and_losses_are_those_of_inputs_cast_to_float32(function, shapes, given, form, device):
    inputs = tensors(*shapes, dtype=given, device=device)
    if function is not WIDE["binary_cross_entropy"][0]:
        check_that_it_casts(function, inputs, SINGLE)
    else:  # its sigmoid, before it, runs in what it is given
        out, (gradient,) = outcome(function, inputs)
        assert (out.dtype, gradient.dtype) == (SINGLE, given)


@pytest.mark.parametrize("given", [HALF, SINGLE], ids=str)
@every_case(GIVEN)
def test_everything_else_runs_in_what_it_is_given(function, shapes, given):
    out, gradients = outcome(function, tensors(*shapes, dtype=given))
    assert {out.dtype, *[g.dtype for g in gradients]} == {given}


@every_case(PRODUCTS | WIDE)
def test_gradients_are_those_of_float32_within_the_accuracy_of_float16(function, shapes, form):
    inputs = tensors(*shapes)
    (_, gradients), (_, exact) = outcome(function, inputs), outcome(function, inputs, SINGLE)
    for g, expected in zip(gradients, exact, strict=True):
        largest = np.abs(expected.data).max()
        np.testing.assert_allclose(g.data, expected.data, rtol=0, atol=4e-3 * largest + 1e-12)


@every_case(PRODUCTS | WIDE)
def test_float64_is_left_alone(function, shapes, form):
    check_that_it_casts(function, tensors(*shapes, dtype=DOUBLE), DOUBLE)


def test_beside_float64_or_integers_nothing_is_cast_and_arrays_are_cast_along(form):
    (x,), (wide,), (y,) = tensors((3, 4)), tensors((4, 5), dtype=DOUBLE), tensors((4, 5))
    many = Tensor(np.full((4, 5), 70_000))  # inf in float16
    with autocast():
        assert (x @ wide).dtype == DOUBLE
        assert (x @ many).dtype == einsum("ij,jk->ik", x, many).dtype == F.linear(x, many.mT).dtype == SINGLE
        assert (x @ many.tolist()).dtype == SINGLE
        np.testing.assert_array_equal((x @ many).data, x.data @ np.full((4, 5), 70_000, np.float32))
        assert (x @ y.data).dtype == HALF
        np.testing.assert_array_equal((x @ y.data).data, (x @ y).data)


# --- The switch


def test_it_can_be_switched_off_inside():
    x, w = tensors((3, 4), (5, 4))
    with autocast():
        with autocast(enabled=False):
            assert F.linear(x, w).dtype == SINGLE
        with autocast(np.float16):
            assert F.linear(x, w).dtype == HALF
        assert F.linear(x, w).dtype == HALF
    assert F.linear(x, w).dtype == SINGLE
    assert autocast()(F.linear)(x, w).dtype == HALF


@pytest.mark.parametrize(("dtype", "error", "named"), [
    ("bfloat16", ValueError, "no bfloat16"), ("cuda", ValueError, "'cuda'"), (None, ValueError, "'None'"),
    (np.float64, ValueError, "float64"), (len, TypeError, r"@autocast\(\)"), ([1], TypeError, r"\[1\]"),
])
def test_no_other_dtype(dtype, error, named):
    with pytest.raises(error, match=f"autocast: .*{named}"):
        autocast(dtype)
    assert not autocasting()
