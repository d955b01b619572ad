"""Which dtype a result has: numbers are weak, integers never widen a float, functions of integers give float32."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, ops

from tests.minigrad.ops import rows
from tests.minigrad.ops.row import function, host

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


@pytest.mark.parametrize("name", BINARY | JOINING)
def test_integers_never_widen_a_float(name, device):
    """Nor does a number, nor a mask's ``.sum()``; of two floats the wider wins, and each gradient keeps its own."""
    op = (BINARY | JOINING)[name]
    for dtype in FLOATS:
        x = ones(dtype, device)
        others = [*(ones(other, device) for other in (*FLOATS, *INTEGERS))]
        if name in BINARY:
            others += [*NUMBERS, *(ones(integer, device).sum() for integer in INTEGERS)]
        for other in others:
            expected = np.result_type(x.dtype, other.dtype) if getattr(other, "requires_grad", False) else dtype
            for pair in ((x, other), (other, x)):
                assert op(*pair).dtype == expected
                tensors = [t for t in pair if isinstance(t, Tensor) and t.requires_grad]
                for create_graph in (False, True) if name != "floor_divide" else ():
                    found = mg.grad(op(*pair).sum(), tensors, create_graph=create_graph)
                    assert [gradient.dtype for gradient in found] == [t.dtype for t in tensors]


def test_tensors_are_joined_in_the_dtype_of_all(device):
    """Not in that of neighbours: in float16 the integer would be infinite."""
    parts = [Tensor(np.array([x], dtype), device=device) for x, dtype in ((2**30 + 1, int), (0.5, "e"), (0.25, "d"))]
    assert mg.concatenate(parts).tolist() == [2**30 + 1, 0.5, 0.25]


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


# Of a tensor of integers: a result that is float32, whatever the integers are; one that stays int64.
FLOATING = ("mean(x)", "x + np.float64(0.5)", "x @ [0.5, 1.5, 2.5]", "clip(x, max=np.float64(0.5))",
            "where(x > 0, x, 0.5)", "where(x > 0, 1.0, 0.5)")
WHOLE = "x + 1", "x * [3, 3, 3]", "clip(x, 0, 2)", "where(x > 0, 1, 2)", "sum(x)"


def test_floating_results_of_integers_are_float32(device):
    for call in FLOATING:
        assert {function(call)(ones(integer, device)).dtype for integer in INTEGERS} == {F32}
    for call in WHOLE:
        assert function(call)(ones(I64, device)).dtype == I64
    assert mg.sum(Tensor(np.full(3, 2**30, np.int32), device=device)).item() == 3 * 2**30
    assert mg.sum(Tensor([True] * 300, device=device)).item() == 300


def test_comparisons_are_made_in_the_dtype_of_the_floating_tensor(device):
    """0.1 is float32 beside a float32 tensor, and so are integers that have more digits than float32."""
    x = Tensor([0.1, 2.0**24], device=device)
    for number in (0.1, np.float64(0.1), [0.1, 2**24 + 1]):
        assert host(ops.equal(x, number))[0]
        assert not host(ops.less(x, number))[0]
    integers = Tensor(np.array([1, 2**24 + 1]), device=device)
    for requires_grad in (False, True):
        assert host(ops.equal(x.detach().requires_grad_(requires_grad), integers)).tolist() == [False, True]
