"""autocast: which operations run in float16 and which in float32, and that gradients arrive in their inputs' dtypes."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, autocast, einsum, fused, grad, parallel
from minigrad import functional as F
from minigrad.device import to_numpy
from minigrad.precision.autocast import autocasting

from tests.minigrad.autocast_cases import DOUBLE, GIVEN, HALF, PRODUCTS, SINGLE, WIDE, tensors


@pytest.fixture(params=[True, False], ids=["fused", "by steps"])
def form(request):
    with fused(request.param):
        yield request.param


def outcome(function, inputs, cast=None):
    """The output and the gradients for a fixed gradient of the output; `cast`: of inputs that were cast by hand."""
    with autocast(enabled=cast is None):
        out = function(*[x if cast is None else x.astype(cast) for x in inputs])
    draw = np.random.default_rng(1).standard_normal(out.shape).astype(out.dtype)
    return out, grad(out, inputs, Tensor(draw, device=out.device))


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
@pytest.mark.parametrize(("function", "shapes"), [(f, s) for f, *s in PRODUCTS.values()], ids=PRODUCTS)
def test_products_are_those_of_inputs_cast_to_float16(function, shapes, given, form, device, request):
    """Bit for bit: values and gradients are those of inputs cast by hand, and gradients have the inputs' dtype."""
    inputs = tensors(*shapes, dtype=given, device=device)
    (out, gradients), (same, by_hand) = outcome(function, inputs), outcome(function, inputs, HALF)
    assert out.dtype == same.dtype == HALF
    in_steps = "attention" in request.node.callspec.id and (not form or "broadcasts" in request.node.callspec.id)
    tolerance = 4e-3 if in_steps else 0  # between the steps, the weights of attention are float32 here
    np.testing.assert_allclose(to_numpy(out.data), to_numpy(same.data), rtol=0, atol=tolerance)
    for x, g, other in zip(inputs, gradients, by_hand, strict=True):
        assert g.dtype == other.dtype == x.dtype == given
        np.testing.assert_allclose(to_numpy(g.data), to_numpy(other.data), rtol=0, atol=tolerance)


@pytest.mark.parametrize("given", [HALF, SINGLE], ids=str)
@pytest.mark.parametrize(("function", "shapes"), [(f, s) for f, *s in WIDE.values()], ids=WIDE)
def test_softmax_norms_and_losses_are_those_of_inputs_cast_to_float32(function, shapes, given, form, device):
    inputs = tensors(*shapes, dtype=given, device=device)
    (out, gradients), (same, by_hand) = outcome(function, inputs), outcome(function, inputs, SINGLE)
    assert out.dtype == same.dtype == SINGLE
    if function is not WIDE["binary_cross_entropy"][0]:  # whose sigmoid, before it, runs in what it is given
        np.testing.assert_array_equal(to_numpy(out.data), to_numpy(same.data))
    for x, g, other in zip(inputs, gradients, by_hand, strict=True):
        assert g.dtype == other.dtype == x.dtype == given
        if function is not WIDE["binary_cross_entropy"][0]:
            np.testing.assert_array_equal(to_numpy(g.data), to_numpy(other.data))


@pytest.mark.parametrize("given", [HALF, SINGLE], ids=str)
@pytest.mark.parametrize(("function", "shapes"), [(f, s) for f, *s in GIVEN.values()], ids=GIVEN)
def test_everything_else_runs_in_what_it_is_given(function, shapes, given, form, device):
    inputs = tensors(*shapes, dtype=given, device=device)
    out, gradients = outcome(function, inputs)
    assert {out.dtype, *[g.dtype for g in gradients]} == {given}


@pytest.mark.parametrize("table", [PRODUCTS, WIDE, GIVEN])
def test_gradients_are_those_of_float32_within_the_accuracy_of_float16(table, form):
    for name, (function, *shapes) in table.items():
        inputs = tensors(*shapes)
        (_, gradients), (_, exact) = outcome(function, inputs), outcome(function, inputs, SINGLE)
        for g, expected in zip(gradients, exact, strict=True):
            largest = np.abs(expected.data).max()
            np.testing.assert_allclose(g.data, expected.data, rtol=0, atol=4e-3 * largest + 1e-12, err_msg=name)


@pytest.mark.parametrize("table", [PRODUCTS, WIDE, GIVEN])
def test_float64_is_left_alone(table, form):
    for function, *shapes in table.values():
        inputs = tensors(*shapes, dtype=DOUBLE)
        (out, gradients), (same, expected) = outcome(function, inputs), outcome(function, inputs, DOUBLE)
        np.testing.assert_array_equal(out.data, same.data)
        for g, other in zip(gradients, expected, strict=True):
            assert g.dtype == DOUBLE
            np.testing.assert_array_equal(g.data, other.data)


def test_beside_float64_or_integers_nothing_is_cast(form):
    (x,), (wide,) = tensors((3, 4)), tensors((4, 5), dtype=DOUBLE)
    many = Tensor(np.full((4, 5), 70_000))  # inf in float16
    with autocast():
        assert (x @ wide).dtype == DOUBLE
        assert (x @ many).dtype == einsum("ij,jk->ik", x, many).dtype == F.linear(x, many.mT).dtype == SINGLE
        assert (x @ many.tolist()).dtype == SINGLE
        np.testing.assert_array_equal((x @ many).data, x.data @ np.full((4, 5), 70_000, np.float32))


def test_arrays_and_lists_beside_a_tensor_are_cast_along(form):
    (x,) = tensors((3, 4))
    array = np.random.default_rng(0).standard_normal((4, 5)).astype(np.float32)
    with autocast():
        assert (x @ array).dtype == HALF
        np.testing.assert_array_equal((x @ array).data, (x @ Tensor(array)).data)


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


@pytest.mark.parametrize(
    ("dtype", "error", "message"),
    [
        ("bfloat16", ValueError, "no bfloat16, .*use 'float16' with minigrad.optim.GradScaler"),
        ("float32", ValueError, "must be 'float16', got 'float32'"),
        (np.float64, ValueError, "must be 'float16', got 'float64'"),
        ("cuda", ValueError, "got 'cuda'; the device is that of the tensors"),
        (None, ValueError, "got 'None'"),
        (len, TypeError, r"decorate a function: @autocast\(\)"),
        ([1], TypeError, r"must be 'float16', got \[1\]"),
    ],
)
def test_no_other_dtype(dtype, error, message):
    with pytest.raises(error, match=f"autocast: .*{message}"):
        autocast(dtype)
    assert not autocasting()


def test_threads_of_a_block_run_as_the_block_does():
    x, w = tensors((3, 4), (5, 4))
    with parallel.threads(2), autocast():
        outputs = parallel.run([lambda: F.linear(x, w)] * 4)
    assert [out.dtype for out in outputs] == [HALF] * 4
