"""What a Tensor is: constructors and dtypes, weak scalars, what it refuses; the ways out, copies and pickles."""

import copy
import pickle

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor

from tests.minigrad.ops.row import every_fact, leaf, table

# --- Constructors


@pytest.mark.parametrize(("data", "kind"), table("""
    1                           np.int64
    1.5                         np.float32
    True                        np.bool_
    [1, 2]                      np.int64
    [1, 2.5]                    np.float32
    []                          np.float32
    [np.float64(1), 2]          np.float32
    np.float64(1)               np.float64
    [Tensor([1, 2]), Tensor([3, 4])]    np.int64
    [2**63 - 1, -(2**63)]       np.int64
    np.zeros(2, np.float16)     np.float16
    np.zeros(2)                 np.float64
    np.zeros(2, np.int8)        np.int8
    Tensor([0, 1], dtype=np.int8)           np.int8
    Tensor(np.zeros(2), dtype=np.float16)   np.float16
""", {"np": np}))
def test_what_is_given_decides_the_dtype(data, kind):
    t = Tensor(eval(data))  # noqa: S307 - of our own writing
    assert (t.dtype, type(t.data)) == (kind, np.ndarray)


def test_the_constructor_copies_and_from_numpy_shares():
    array = np.zeros(3)
    copied, shared = Tensor(array), mg.from_numpy(array)
    again, cast = Tensor(shared), Tensor(array, dtype=np.float64)
    array[0] = 7
    np.testing.assert_array_equal(shared.numpy(), [7, 0, 0])
    for t in (copied, again, cast):
        np.testing.assert_array_equal(t.numpy(), [0, 0, 0])


def test_to_a_device_and_a_dtype(device):
    x = leaf([1.0, 2.0], dtype=np.float32)
    moved = x.to(device, np.float64)
    assert (moved.dtype, moved.device) == (np.float64, Tensor([1.0], device=device).device)
    assert moved.to(np.float64) is moved.to(device) is moved.to(device, np.float64) is moved
    assert x.to(dtype=np.dtype("float16")).dtype == np.float16
    (moved * 3.0).sum().backward()
    assert (x.grad.dtype, x.grad.device, x.grad.tolist()) == (np.float32, "cpu", [3.0, 3.0])


# --- Filled with numbers


FILLED = """
    mg.zeros((2, 3), device=device)                     [[0, 0, 0]] * 2         np.float32
    mg.ones(2, np.int32, device)                        [1, 1]                  np.int32
    mg.full(2, 7.0, device=device, dtype=bool)          [True, True]            bool
    mg.zeros_like(x)                                    [[0, 0, 0]]             np.int32
    mg.full_like(x, 7)                                  [[7, 7, 7]]             np.int32
    mg.full_like(x, 0.5, dtype=np.float64)              [[0.5, 0.5, 0.5]]       np.float64
    mg.full((2, 2), [1.5, 2.5], device=device)          [[1.5, 2.5]] * 2        np.float32
    mg.eye(2, 3, dtype=np.int64, device=device)         [[1, 0, 0], [0, 1, 0]]  np.int64
    mg.linspace(0, 1, 5, device=device)                 [0, 0.25, 0.5, 0.75, 1]     np.float32
    mg.linspace(2.0, Tensor(-2.0), 3, np.float64, device)   [2, 0, -2]          np.float64
"""


@pytest.mark.parametrize("where", ["cpu", "cuda:0", "cuda:1"])
@pytest.mark.parametrize(("call", "values", "dtype"), table(FILLED, {"np": np}))
def test_what_is_filled_is_made_where_it_will_be(call, values, dtype, where, stand_in):
    x = Tensor([[1, 2, 3]], dtype=np.int32, device=where)
    stand_in.clear()
    made = eval(call, {"mg": mg, "np": np, "Tensor": Tensor, "x": x, "device": where})  # noqa: S307
    assert (made.dtype, made.device, made.requires_grad) == (dtype, where, False)
    assert not stand_in.uploads or "[" in call or "linspace" in call
    np.testing.assert_array_equal(made.numpy(), values)


# --- Beside arrays, and the ways out


NAMES = {"mg": mg, "np": np, "pickle": pickle, "Tensor": Tensor, "leaf": leaf, "t": Tensor([1.0, 2.0]),
         "x": leaf([1.0, 2.0]), "deep": Tensor([[1.0, 2.0], [3.0, 4.0]]), "array": np.array([3.0, 4.0], np.float32)}


@every_fact("""
    (array * t).tolist() == (t * array).tolist() == [3, 8]
    (array - t).tolist() == [2, 2]
    (array @ t).item() == 11
    isinstance(array > t, Tensor)
    mg.grad((array * x).sum(), x).tolist() == [3, 4]
    np.shares_memory(np.asarray(t), t.data) and not np.asarray(t).flags.writeable
    not np.shares_memory(np.array(t), t.data) and np.array(t).flags.writeable
    not np.shares_memory(np.asarray(t, dtype=np.float64), t.data)
    np.shares_memory(t.numpy(), t.data) and not t.numpy().flags.writeable and t.data.flags.writeable
    not (x * 1).numpy().flags.writeable
    np.shares_memory(np.from_dlpack(t), t.data)
    np.shares_memory(mg.from_dlpack(t.data).data, t.data)
    float(leaf(1.5)) == 1.5
    f"{leaf(1.23456):5.1f}" == "  1.2"
    [10, 20, 30][Tensor(1)] == 20
    isinstance(Tensor(2).item(), int)
    [row.tolist() for row in deep] == deep.tolist() == [[1, 2], [3, 4]]
    Tensor([1.0]).requires_grad_().is_leaf and not (x * 2).is_leaf
    repr(pickle.loads(pickle.dumps(t.astype(np.float16)))) == repr(t.astype(np.float16))
    not Tensor(0)
""")
def test_beside_arrays_and_on_the_way_out(fact):
    assert eval(fact, NAMES)  # noqa: S307 - of our own writing


# --- Copies


def test_copies_of_leaves():
    x = leaf([1.0, 2.0], dtype=np.float32)
    (x * 3).sum().backward()
    (other, same), shallow = copy.deepcopy([x, x]), copy.copy(x)
    assert other is same
    assert (other.grad.tolist(), shallow.grad, x.grad.tolist()) == ([3, 3], None, [3, 3])
    assert not np.shares_memory(other.grad.data, x.grad.data)
    for duplicate in (other, shallow):
        assert (type(duplicate), duplicate.requires_grad, duplicate.tolist()) == (Tensor, True, [1, 2])
        assert not np.shares_memory(duplicate.data, x.data)
    y = (x * x).sum()
    other[...] = 5.0
    y.backward()  # the copy has a tick of its own
