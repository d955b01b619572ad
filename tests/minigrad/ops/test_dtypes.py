"""Which dtype a result has: numbers are weak, integers never widen a float, functions of integers give float32."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, ops

from tests.minigrad.ops import rows
from tests.minigrad.ops.row import host

FLOATS = F16, F32, F64 = np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64)
INTEGERS = I32, I64, U8, BOOL = np.dtype(np.int32), np.dtype(np.int64), np.dtype(np.uint8), np.dtype(np.bool_)
NUMBERS = [2, 2.5, True, np.float64(2.5), np.float32(2.5), np.float16(2.5), np.longdouble(2.5), np.int64(2),
           np.bool_(True)]

BINARY = {
    **{name: op for name, (op, _) in rows.BINARY.items()},
    "floor_divide": mg.floor_divide,
    "where": lambda x, y: mg.where((x if isinstance(x, Tensor) else y) > 0, x, y),
}
JOINING = {
    "matmul": lambda x, y: x @ y,
    "concatenate": lambda x, y: mg.concatenate([x, y]),
    "stack": lambda x, y: mg.stack([x, y]),
    "clip": lambda x, y: mg.clip(x, y, y),
}


def ones(dtype, device):
    return Tensor(np.array([1, 1, 1]), dtype=dtype, device=device, requires_grad=dtype.kind == "f")


def check_dtypes(op, pair, expected):
    """The dtype of the result; each gradient, recorded or not, has that of its own operand."""
    out = op(*pair)
    assert out.dtype == expected
    tensors = [x for x in pair if isinstance(x, Tensor) and x.requires_grad]
    for create_graph in (False, True) if out.requires_grad else ():
        found = mg.grad(op(*pair).sum(), tensors, create_graph=create_graph)
        assert [gradient.dtype for gradient in found] == [x.dtype for x in tensors]


@pytest.mark.parametrize("name", BINARY)
def test_numbers_are_weak(name, device):
    for dtype in FLOATS:
        for number in NUMBERS:
            check_dtypes(BINARY[name], (ones(dtype, device), number), dtype)
            check_dtypes(BINARY[name], (number, ones(dtype, device)), dtype)


@pytest.mark.parametrize("name", BINARY | JOINING)
def test_integers_never_widen_a_float(name, device):
    for dtype in FLOATS:
        for integer in INTEGERS:
            check_dtypes((BINARY | JOINING)[name], (ones(dtype, device), ones(integer, device)), dtype)
            check_dtypes((BINARY | JOINING)[name], (ones(integer, device), ones(dtype, device)), dtype)


@pytest.mark.parametrize("name", BINARY | JOINING)
def test_the_wider_float_wins_and_gradients_keep_their_own(name, device):
    for first in FLOATS:
        for second in FLOATS:
            pair = ones(first, device), ones(second, device)
            check_dtypes((BINARY | JOINING)[name], pair, np.result_type(first, second))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_results_of_integers_are_numpys_but_float32_in_place_of_float64(device):
    for row in rows.ROWS:
        if row.name.startswith("x ** c("):  # some are negative
            continue
        arrays = [(np.abs(np.rint(np.nan_to_num(array, posinf=9, neginf=-9))) + 1).astype(np.int64)
                  for array in row.arrays]
        out, expected = row.op(*[Tensor(a, device=device) for a in arrays]), np.asarray(row.reference(*arrays)).dtype
        assert out.dtype == (F32 if expected.kind == "f" else expected), row.name
        assert not out.requires_grad


FLOATING = {
    "mean": mg.mean,
    "x + np.float64": lambda x: x + np.float64(0.5),
    "x * list": lambda x: x * [0.5, 1.5, 2.5],
    "x @ list": lambda x: x @ [0.5, 1.5, 2.5],
    "x ** 0.5": lambda x: x ** 0.5,
    "clip above": lambda x: mg.clip(x, max=np.float64(0.5)),
    "where": lambda x: mg.where(x > 0, x, 0.5),
    "where of numbers": lambda x: mg.where(x > 0, 1.0, 0.5),
}
WHOLE = {
    "x + 1": lambda x: x + 1,
    "x * list": lambda x: x * [3, 3, 3],
    "clip": lambda x: mg.clip(x, 0, 2),
    "where of numbers": lambda x: mg.where(x > 0, 1, 2),
}


def test_floating_results_of_integers_are_float32(device):
    for name, function in FLOATING.items():
        assert {function(ones(integer, device)).dtype for integer in INTEGERS} == {F32}, name


def test_integers_stay_integers(device):
    for name, function in WHOLE.items():
        assert function(ones(I64, device)).dtype == I64, name


def test_a_loss_over_a_mask_stays_float32(device):
    """``loss / mask.sum()``: an integer tensor of no dimensions is no weak number, and widens nothing either."""
    x = Tensor([1.0, 2, 3], device=device, requires_grad=True)
    mask = Tensor([True, False, True], device=device)
    loss = (x * mask).sum() / mask.sum()
    loss.backward()
    assert loss.dtype == x.grad.dtype == F32
    np.testing.assert_array_equal(host(x.grad), [0.5, 0, 0.5])


@pytest.mark.parametrize("name", [name for name in BINARY if name != "where"])
def test_lists_become_tensors(name, device):
    x = Tensor([2.0, 2, 2], device=device, requires_grad=True)
    for values in ([1, 2, 3], [[True], [True]]):
        for found, expected in ((BINARY[name](x, values), BINARY[name](x, Tensor(values, device=device))),
                                (BINARY[name](values, x), BINARY[name](Tensor(values, device=device), x))):
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(host(found), host(expected))


def test_comparisons_are_made_in_the_dtype_of_the_floating_tensor(device):
    """0.1 is float32 beside a float32 tensor, and so are integers that have more digits than float32."""
    x = Tensor([0.1, 2.0**24], device=device)
    for number in (0.1, np.float64(0.1), [0.1, 2**24 + 1]):
        assert host(ops.equal(x, number))[0]
        assert not host(ops.less(x, number))[0]
    integers = Tensor(np.array([1, 2**24 + 1]), device=device)
    for requires_grad in (False, True):
        assert host(ops.equal(x.detach().requires_grad_(requires_grad), integers)).tolist() == [False, True]


def test_sums_of_integers_do_not_overflow(device):
    assert mg.sum(Tensor(np.full(3, 2**30, np.int32), device=device)).item() == 3 * 2**30
    assert mg.sum(Tensor([True] * 300, device=device)).item() == 300
