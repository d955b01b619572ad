"""What a Tensor is: constructors and dtypes, weak scalars, the ways out, what it refuses."""

import copy
import pickle

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor

FLOATS = [np.float16, np.float32, np.float64]
INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8]


def leaf(*values):
    return Tensor(list(values), requires_grad=True)


# --- Constructors


@pytest.mark.parametrize(("data", "dtype", "shape"), [
    (1, np.int64, ()), (1.5, np.float32, ()), (True, np.bool_, ()), ([1, 2], np.int64, (2,)),
    ([1, 2.5], np.float32, (2,)), ([[True], [False]], np.bool_, (2, 1)), ([], np.float32, (0,)),
    ([[], []], np.float32, (2, 0)), ((1, 2), np.int64, (2,)), ([np.float64(1), 2], np.float32, (2,)),
    (np.float64(1), np.float64, ()), (np.int8(1), np.int8, ()), ([Tensor([1, 2]), Tensor([3, 4])], np.int64, (2, 2)),
    ([2**63 - 1, -(2**63)], np.int64, (2,)),
])
def test_numbers_and_lists(data, dtype, shape):
    t = Tensor(data)
    assert t.dtype == dtype
    assert t.shape == shape
    assert type(t.data) is np.ndarray


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, np.bool_])
def test_an_array_keeps_its_dtype(dtype):
    assert Tensor(np.zeros(2, dtype)).dtype == dtype
    assert Tensor(Tensor(np.zeros(2, dtype))).dtype == dtype
    assert Tensor([0, 1], dtype=dtype).dtype == dtype
    assert Tensor(np.zeros(2), dtype=dtype).dtype == dtype
    assert mg.from_numpy(np.zeros(2, dtype)).dtype == dtype


def test_the_constructor_copies_and_from_numpy_shares():
    array = np.zeros(3)
    copied, shared = Tensor(array), mg.from_numpy(array)
    again, cast = Tensor(shared), Tensor(array, dtype=np.float64)
    array[0] = 7
    np.testing.assert_array_equal(shared.numpy(), [7, 0, 0])
    for t in (copied, again, cast):
        np.testing.assert_array_equal(t.numpy(), [0, 0, 0])


@pytest.mark.parametrize(("data", "error", "message"), [
    ("text", TypeError, "boolean, integer or floating"), (None, TypeError, "boolean, integer or floating"),
    (1j, TypeError, "complex128"), ([2**70], TypeError, "object"), ([2**63], OverflowError, "does not fit int64"),
    ([[1, 2], [3]], ValueError, "no regular shape"), (np.array(["a"]), TypeError, "boolean, integer or floating"),
    ({1: 2}, TypeError, "object"),
])
def test_what_is_no_tensor(data, error, message):
    with pytest.raises(error, match=message):
        Tensor(data)


@pytest.mark.parametrize("dtype", [complex, object, "U3", "datetime64[s]"])
def test_dtypes_that_are_refused(dtype):
    with pytest.raises(TypeError, match="boolean, integer or floating"):
        Tensor([1], dtype=dtype)
    with pytest.raises(TypeError, match="boolean, integer or floating"):
        Tensor([1]).astype(dtype)
    if dtype is complex:
        for make in (mg.from_numpy, mg.from_dlpack):
            with pytest.raises(TypeError, match="boolean, integer or floating"):
                make(np.zeros(2, complex))
    with pytest.raises(TypeError, match=r"from_numpy: expected a numpy\.ndarray, got list"):
        mg.from_numpy([1])


def test_filled_tensors():
    assert mg.zeros((2, 3)).dtype == np.float32
    np.testing.assert_array_equal(mg.ones(2, dtype=np.int32).numpy(), [1, 1])
    np.testing.assert_array_equal(mg.full((1, 2), 2.5).numpy(), [[2.5, 2.5]])
    assert mg.full((), 3.0, requires_grad=True).requires_grad
    assert mg.arange(3).dtype == np.int64
    np.testing.assert_array_equal(mg.arange(1, 7, 2).numpy(), [1, 3, 5])
    assert mg.arange(0.0, 1.0, 0.5).dtype == np.float32
    assert mg.arange(3, dtype=np.float64).dtype == np.float64


@pytest.mark.parametrize("dtype", [*INTEGERS, np.bool_])
def test_only_floating_tensors_may_require_gradients(dtype):
    with pytest.raises(TypeError, match=f"only floating tensors.*{np.dtype(dtype)}"):
        Tensor([0, 1], dtype=dtype, requires_grad=True)
    t = Tensor([0, 1], dtype=dtype)
    with pytest.raises(TypeError, match="only floating tensors"):
        t.requires_grad = True
    with pytest.raises(TypeError, match="only floating tensors"):
        t.requires_grad_()
    assert not t.requires_grad


def test_requires_grad_can_be_changed_on_leaves_only():
    t = Tensor([1.0]).requires_grad_()
    assert t.requires_grad
    assert t.is_leaf
    y = t * 2
    assert not y.is_leaf
    with pytest.raises(RuntimeError, match=r"\.detach\(\)"):
        y.requires_grad = False
    t.requires_grad = False
    assert not (t * 2).requires_grad


def test_integers_and_comparisons_cut_the_graph_by_nature():
    x = leaf(1.0, 2.0)
    for cut in (x.astype(np.int64), x > 1, x.argmax(), x == x, mg.sign(x), x.detach()):
        assert not cut.requires_grad
    assert x.astype(np.float64).requires_grad


# --- Weak scalars


SCALARS = [2, 2.5, True, np.float64(2.5), np.float32(2.5), np.int64(2), np.float16(2), np.bool_(True), np.sqrt(64)]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("scalar", SCALARS, ids=repr)
def test_python_and_numpy_scalars_are_weak(dtype, scalar):
    t = Tensor([1.0, 2.0], dtype=dtype)
    for y in (t * scalar, scalar * t, t + scalar, scalar - t, t / scalar, scalar / t, t**scalar, mg.maximum(t, scalar),
              mg.where(t > scalar, t, scalar), mg.where(t > scalar, scalar, t)):
        assert isinstance(y, Tensor)
        assert y.dtype == dtype


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("other", [*INTEGERS, np.bool_])
def test_integers_and_booleans_never_widen_a_float(dtype, other):
    t, n = Tensor([1.0, 2.0], dtype=dtype), Tensor([1, 0], dtype=other)
    for y in (t * n, n * t, t + n, n - t, n / t, t / Tensor(3), t.sum() / (n.sum() + 1), t * n.numpy(), t**n):
        assert y.dtype == dtype


@pytest.mark.parametrize("number", [np.float64(0.5), np.float32(0.5), np.sqrt(0.25)], ids=repr)
@pytest.mark.parametrize("dtype", FLOATS)
def test_numpy_scalars_as_options_are_weak(dtype, number):
    t = Tensor([[0.25, 1.0]], dtype=dtype)
    for y in (t.clip(number), mg.pad(t, ((0, 0), (1, 1)), number), mg.functional.layer_norm(t, eps=number),
              mg.functional.scaled_dot_product_attention(t, t, t, scale=number), t.masked_fill(t > 1, number),
              mg.functional.dropout(t, number), mg.functional.cross_entropy(t, np.array([0]), label_smoothing=number)):
        assert y.dtype == dtype


def test_lists_become_tensors_first():
    t = Tensor([1.0, 2.0])
    for y in (t + [1, 2], [1.5, 2] * t, t @ [1, 2], t - [[1.0, 2.0]], [1, 2] @ t):
        assert y.dtype == np.float32
    assert (Tensor([1, 2]) + [1, 2]).dtype == np.int64
    assert (Tensor([1, 2]) * 1.5).dtype == np.float32
    assert (Tensor([1, 2]) / 2).dtype == np.float32


def test_arrays_on_either_side():
    t, array = Tensor([1.0, 2.0]), np.array([3.0, 4.0], np.float32)
    for y, expected in ((array * t, [3, 8]), (t * array, [3, 8]), (array - t, [2, 2]), (array / t, [3, 2]),
                        (array @ t, 11), (array**t, [3, 16])):
        assert isinstance(y, Tensor)
        np.testing.assert_array_equal(y.numpy(), expected)
    x = leaf(1.0, 2.0)
    (array * x).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [3, 4])
    with pytest.raises(TypeError, match="Tensor"):
        array *= t
    assert isinstance(array > t, Tensor)


@pytest.mark.parametrize("operand", ["2", object(), {1}, [None]])
def test_other_operands_are_a_type_error(operand):
    for compute in (lambda: leaf(1.0) + operand, lambda: operand * leaf(1.0)):
        with pytest.raises(TypeError):
            compute()


# --- The ways out


@pytest.mark.parametrize("function", [np.exp, np.add.reduce, np.isnan, lambda t: np.add(t, 1), lambda t: np.multiply(1, t)])
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
        np.asarray(recorded.detach())


def test_numpy_is_a_read_only_view():
    for t in (Tensor([1.0, 2.0]), leaf(1.0, 2.0), leaf(1.0, 2.0) * 1):
        view = t.numpy()
        assert np.shares_memory(view, t.data)
        with pytest.raises(ValueError, match="read-only"):
            view[0] = 3
        assert t.data.flags.writeable
    shared = t.detach()
    shared[0] = 9.0
    np.testing.assert_array_equal(view, [9, 2])


def test_numbers():
    assert float(leaf(1.5)) == 1.5
    assert int(Tensor([[2.0]])) == 2
    assert [10, 20, 30][Tensor(1)] == 20
    assert Tensor([1.5]).item() == 1.5
    assert isinstance(Tensor(2).item(), int)
    assert Tensor([[1, 2], [3, 4]]).tolist() == [[1, 2], [3, 4]]
    for convert in (float, int, lambda t: t.item()):
        with pytest.raises(ValueError, match=r"exactly one element, the shape is \(2,\)"):
            convert(Tensor([1.0, 2.0]))
    with pytest.raises(TypeError, match="only integer tensors can be an index"):
        [1, 2][Tensor(1.0)]


def test_truth():
    assert Tensor([2.0])
    assert not Tensor(0)
    for t in (Tensor([1.0, 2.0]), Tensor([])):
        with pytest.raises(ValueError, match=r"ambiguous; use \.any\(\) or \.all\(\)"):
            bool(t)


def test_length_and_iteration():
    t = Tensor([[1.0, 2.0], [3.0, 4.0]])
    assert len(t) == 2
    assert [row.tolist() for row in t] == [[1, 2], [3, 4]]
    for use in (len, iter):
        with pytest.raises(TypeError, match="0-d"):
            use(Tensor(1.0))
    x = leaf(1.0, 2.0)
    a, b = x
    (a * b).backward()
    np.testing.assert_array_equal(x.grad.numpy(), [2, 1])


def test_comparison_is_elementwise_and_the_hash_is_identity():
    a, b = Tensor([1.0, 2.0]), Tensor([1.0, 3.0])
    np.testing.assert_array_equal((a == b).numpy(), [True, False])
    np.testing.assert_array_equal((a != b).numpy(), [False, True])
    table = {a: "a", b: "b"}
    assert table[a] == "a"
    assert table[b] == "b"
    assert len({a, b, a}) == 2
    assert hash(a) != hash(Tensor([1.0, 2.0]))


def test_dlpack_shares_memory_both_ways():
    t = Tensor([1.0, 2.0])
    array = np.from_dlpack(t)
    assert np.shares_memory(array, t.data)
    assert np.shares_memory(mg.from_dlpack(array).data, t.data)
    with pytest.raises(BufferError, match=r"\.detach\(\)"):
        np.from_dlpack(leaf(1.0))


# --- repr and format


def test_repr_shows_shape_dtype_device_and_op():
    assert repr(Tensor([1.0, 2.0])) == "Tensor([1., 2.], shape=(2,), dtype=float32, device=cpu)"
    x = leaf(1.0)
    assert repr(x) == "Tensor([1.], shape=(1,), dtype=float32, device=cpu, requires_grad=True)"
    assert repr(mg.exp(x)).endswith("shape=(1,), dtype=float32, device=cpu, op=exp)")
    big = repr(Tensor(np.zeros((1000, 1000))))
    assert "..." in big
    assert len(big) < 1000


def test_format():
    assert f"{Tensor(1.23456):.2f}" == "1.23"
    assert f"{leaf(2.0):5.1f}" == "  2.0"
    assert f"{Tensor([1, 2])}" == repr(Tensor([1, 2]))
    with pytest.raises(ValueError, match="exactly one element"):
        format(Tensor([1.0, 2.0]), ".2f")


# --- Copies


def test_deepcopy():
    x = leaf(1.0, 2.0)
    (x * 3).sum().backward()
    other, same = copy.deepcopy([x, x])
    assert other is same
    assert other.requires_grad
    np.testing.assert_array_equal(other.grad.numpy(), [3, 3])
    assert not np.shares_memory(other.data, x.data)
    assert not np.shares_memory(other.grad.data, x.grad.data)
    y = (x * x).sum()
    other[...] = 5.0
    y.backward()  # the copy has a tick of its own
    with pytest.raises(RuntimeError, match=r"\.detach\(\)"):
        copy.deepcopy(x * 2)
    with pytest.raises(TypeError, match=r"\.detach\(\) to share.*deepcopy"):
        copy.copy(x)


def test_clone_is_recorded_and_detach_shares():
    x = leaf(1.0, 2.0)
    clone, detached = x.clone(), x.detach()
    assert not np.shares_memory(clone.data, x.data)
    assert np.shares_memory(detached.data, x.data)
    assert not detached.requires_grad
    (clone * 3).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [3, 3])
    assert Tensor([1, 2]).clone().dtype == np.int64


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.bool_])
def test_detached_tensors_serialise_as_arrays(dtype):
    t = Tensor(np.array([[0, 1], [1, 0]], dtype))
    back = pickle.loads(pickle.dumps(t))  # noqa: S301 - of our own making
    assert isinstance(back, Tensor)
    assert back.dtype == dtype
    np.testing.assert_array_equal(back.numpy(), t.numpy())
    x = leaf(1.0)
    for recorded in (x, x * 2):
        with pytest.raises(TypeError, match=r"requires a gradient cannot be serialised; use \.detach\(\)"):
            pickle.dumps(recorded)


def test_slots_leave_no_room_for_misspelt_attributes():
    with pytest.raises(AttributeError):
        leaf(1.0).requires_gard = True
