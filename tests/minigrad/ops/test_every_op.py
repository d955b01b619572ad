"""What holds for every row of the table: values, gradients of both orders, strides, dtypes, memory."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, ops

from tests.minigrad.ops.row import host
from tests.minigrad.ops.rows import ROWS

DIFFERENTIABLE = [row for row in ROWS if row.differentiable]
RTOL, ATOL = {"rtol": 1e-13, "atol": 1e-14}, 1e-9

every_row = pytest.mark.parametrize("row", ROWS, ids=str)
every_differentiable_row = pytest.mark.parametrize("row", DIFFERENTIABLE, ids=str)


def cotangent(out):
    """A gradient for `out`, different in every place, as a host array."""
    return np.asarray(np.random.default_rng(5).normal(size=out.shape)).astype(out.dtype)


def gradients(out, tensors):
    return mg.grad(out, tensors, Tensor(cotangent(out), device=out.device))


def test_every_op_has_a_row():
    assert {name for row in ROWS for name in row.ops} == set(ops.__all__)


@every_row
def test_values(row):
    """They are NumPy's, in memory of their own, and the inputs stay as they were."""
    tensors = row.tensors()
    out = check_values(row, tensors)
    for tensor, array in zip(tensors, row.arrays, strict=True):
        np.testing.assert_array_equal(host(tensor), array)
    assert row.view or not any(np.shares_memory(out.data, tensor.data) for tensor in tensors)


def check_values(row, tensors):
    out, expected = row.op(*tensors), np.asarray(row.reference(*row.arrays))
    dtype = np.float64 if row.out_dtype is None else row.out_dtype
    assert (out.shape, out.dtype, out.requires_grad) == (expected.shape, dtype, row.differentiable)
    np.testing.assert_allclose(host(out), expected, **RTOL)
    return out


@every_differentiable_row
def test_gradient(row, computing_device):
    assert mg.gradcheck(row.op, row.tensors(computing_device), atol=ATOL)


@every_differentiable_row
def test_second_gradient(row, computing_device):
    assert mg.gradgradcheck(row.op, row.tensors(computing_device), atol=ATOL, rtol=1e-6)


def both_orders(row, device):
    """The gradients, and those of the sum of their squares: of tensors on `device`, and all of them there."""
    tensors = row.tensors(device)
    out = row.op(*tensors)  # to_device has it elsewhere
    first = mg.grad(out, tensors, Tensor(cotangent(out), device=out.device, requires_grad=True), create_graph=True)
    squares = [(gradient * gradient).sum() for gradient in first if gradient.requires_grad]
    second = mg.grad(squares, tensors, allow_unused=True) if squares else []
    assert {tensor.device for tensor in (*first, *second) if tensor is not None} == {device}
    return [*first, *second]


@every_row
def test_on_a_gpu_that_is_the_current_one_or_not(row, gpu):
    """Every array is made where the operands are; values and gradients of both orders are those of the host."""
    out = check_values(row, row.tensors(gpu))
    if not row.differentiable:
        assert out.device == gpu
        return
    for found, expected in zip(both_orders(row, gpu), both_orders(row, "cpu"), strict=True):
        assert (found is None) == (expected is None)
        if found is not None:
            np.testing.assert_allclose(host(found), host(expected), rtol=1e-11, atol=1e-12)


# --- Strides ---------------------------------------------------------------------------------------


LAYOUTS = {
    "transposed": lambda array: Tensor(array.T).T,
    "every other, backwards": lambda array: Tensor(np.flip(np.stack([array, array], axis=-1))).flip()[..., 0],
}


@every_differentiable_row
def test_strides_change_nothing(row):
    ordinary = row.tensors()
    expected = gradients(row.op(*ordinary), ordinary)
    for layout, laid_out in LAYOUTS.items():
        tensors = [laid_out(array).requires_grad_() for array in row.arrays]
        out = row.op(*tensors)
        np.testing.assert_allclose(host(out), row.reference(*row.arrays), **RTOL, err_msg=layout)
        for found, gradient in zip(gradients(out, tensors), expected, strict=True):
            np.testing.assert_allclose(host(found), host(gradient), **RTOL, err_msg=layout)


# --- Dtypes ----------------------------------------------------------------------------------------


@every_row
def test_dtype_is_kept(row, device):
    ordinary = row.tensors()
    exact = gradients(row.op(*ordinary), ordinary) if row.differentiable else []
    for dtype, tolerance in ((np.float32, 1e-5), (np.float16, 0.02)):
        tensors = row.tensors(device, dtype)
        out = row.op(*tensors)
        assert out.dtype == (dtype if row.out_dtype is None else row.out_dtype)
        for found, expected in zip(gradients(out, tensors) if exact else [], exact, strict=True):
            assert found.dtype == dtype
            np.testing.assert_allclose(host(found), host(expected), rtol=tolerance, atol=tolerance)


# --- Memory ----------------------------------------------------------------------------------------


@every_differentiable_row
def test_gradients_share_no_memory(row):
    tensors = row.tensors()
    out = row.op(*tensors)
    start = cotangent(out)
    out.backward(start, retain_graph=True)
    arrays = [start, out.data, *[t.data for t in tensors], *[t.grad.data for t in tensors]]
    arrays += [gradient.data for gradient in mg.grad(out, tensors, start)]
    for i, a in enumerate(arrays):
        if i >= 2:  # the output may be a view of an input
            assert not any(np.shares_memory(a, b) for b in arrays[i + 1:])
        assert i < 2 + len(tensors) or a.flags.writeable
