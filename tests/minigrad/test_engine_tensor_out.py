"""The ways out of a Tensor: NumPy, numbers, text, other libraries, copies and pickles."""

import copy
import pickle

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor


def leaf(*values):
    return Tensor(list(values), requires_grad=True)


@pytest.mark.parametrize("function", [np.exp, np.add.reduce, lambda t: np.multiply(1, t)])
def test_numpy_functions_are_refused_and_never_cut_the_graph(function):
    for t in (leaf(1.0), Tensor([1.0])):
        with pytest.raises(TypeError):
            function(t)


def test_asarray_of_detached_tensors_only():
    t = Tensor([1.0, 2.0])
    for array in (np.asarray(t), np.asarray(t, dtype=np.float32)):
        assert np.shares_memory(array, t.data)
        assert not array.flags.writeable
    for array in (np.array(t), np.asarray(t, dtype=np.float64), np.array(t, copy=True)):
        assert not np.shares_memory(array, t.data)
        array[0] = 5
    np.testing.assert_array_equal(t.numpy(), [1, 2])
    x = leaf(1.0)
    for recorded in (x, x * 2):
        with pytest.raises(TypeError, match=r"\.detach\(\)\.numpy\(\)"):
            np.asarray(recorded)


def test_numpy_is_a_read_only_view():
    for t in (Tensor([1.0, 2.0]), leaf(1.0, 2.0) * 1):
        view = t.numpy()
        assert np.shares_memory(view, t.data)
        assert not view.flags.writeable
        assert t.data.flags.writeable


def test_numbers_truth_and_length():
    assert float(leaf(1.5)) == 1.5
    assert f"{leaf(1.23456):5.1f}" == "  1.2"
    assert [10, 20, 30][Tensor(1)] == 20
    assert isinstance(Tensor(2).item(), int)
    t = Tensor([[1.0, 2.0], [3.0, 4.0]])
    assert len(t) == 2
    assert [row.tolist() for row in t] == t.tolist() == [[1, 2], [3, 4]]
    assert Tensor([2.0])
    assert not Tensor(0)
    for use, error, said in ((float, ValueError, r"one element.*\(2, 2\)"), (bool, ValueError, "ambiguous"),
                             (lambda t: [1, 2][t[0, 0]], TypeError, "float32"),
                             (lambda t: iter(t[0, 0]), TypeError, "0-d"), (lambda t: len(t[0, 0]), TypeError, "0-d")):
        with pytest.raises(error, match=said):
            use(t)


def test_comparison_is_elementwise_and_the_hash_is_identity():
    a, b = Tensor([1.0, 2.0]), Tensor([1.0, 3.0])
    np.testing.assert_array_equal((a == b).numpy(), [True, False])
    np.testing.assert_array_equal((a != b).numpy(), [False, True])
    assert {a: "a", b: "b"}[b] == "b"
    assert len({a, b, a, Tensor([1.0, 2.0])}) == 3


def test_dlpack_shares_memory_both_ways():
    t = Tensor([1.0, 2.0])
    array = np.from_dlpack(t)
    assert np.shares_memory(array, t.data)
    assert np.shares_memory(mg.from_dlpack(array).data, t.data)
    with pytest.raises(BufferError, match=r"\.detach\(\)"):
        np.from_dlpack(leaf(1.0))


# --- Text


def test_repr_shows_shape_dtype_device_and_op():
    assert repr(Tensor([1.0, 2.0])) == "Tensor([1., 2.], shape=(2,), dtype=float32, device=cpu)"
    x = leaf(1.0)
    assert repr(x) == "Tensor([1.], shape=(1,), dtype=float32, device=cpu, requires_grad=True)"
    assert repr(mg.exp(x)).endswith("shape=(1,), dtype=float32, device=cpu, op=exp)")
    big = repr(Tensor(np.zeros((1000, 1000))))
    assert "..." in big
    assert len(big) < 1000


# --- Copies


def test_copies_of_leaves():
    x = leaf(1.0, 2.0)
    (x * 3).sum().backward()
    other, same = copy.deepcopy([x, x])
    shallow = copy.copy(x)
    assert other is same
    np.testing.assert_array_equal(other.grad.numpy(), [3, 3])
    assert not np.shares_memory(other.grad.data, x.grad.data)
    assert shallow.grad is None
    assert x.grad is not None
    for duplicate in (other, shallow):
        assert type(duplicate) is Tensor
        assert duplicate.requires_grad
        assert not np.shares_memory(duplicate.data, x.data)
        np.testing.assert_array_equal(duplicate.data, x.data)
    y = (x * x).sum()
    other[...] = 5.0
    y.backward()  # the copy has a tick of its own
    for function in (copy.copy, copy.deepcopy):
        with pytest.raises(RuntimeError, match=r"\.detach\(\)"):
            function(x * 2)


def test_clone_is_recorded_and_detach_shares():
    x = leaf(1.0, 2.0)
    clone, detached = x.clone(), x.detach()
    assert not np.shares_memory(clone.data, x.data)
    assert np.shares_memory(detached.data, x.data)
    assert not detached.requires_grad
    (clone * 3).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [3, 3])
    assert Tensor([1, 2]).clone().dtype == np.int64


@pytest.mark.parametrize("dtype", [np.float64, np.bool_])
def test_detached_tensors_serialise_as_arrays(dtype):
    t = Tensor(np.array([[0, 1], [1, 0]], dtype))
    back = pickle.loads(pickle.dumps(t))  # noqa: S301 - of our own making
    assert isinstance(back, Tensor)
    assert back.dtype == dtype
    np.testing.assert_array_equal(back.numpy(), t.numpy())
    for recorded in (leaf(1.0), leaf(1.0) * 2):
        with pytest.raises(TypeError, match=r"\.detach\(\)"):
            pickle.dumps(recorded)
