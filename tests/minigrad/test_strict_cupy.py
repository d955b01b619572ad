"""The stand-in for CuPy is as strict as CuPy: each refusal here is one that a GPU would make."""

import copy

import numpy as np
import pytest

HOST = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def cupy(stand_in):
    return stand_in.cupy


@pytest.fixture
def array(cupy):
    return cupy.asarray(HOST)


class OptsOut:
    """As a Tensor does: no ufunc may take it, and the operator is left to it."""

    __array_ufunc__ = None
    __hash__ = None

    def answer(self, other):
        return "mine"

    __rmul__ = __radd__ = __rmatmul__ = __rpow__ = __rand__ = __eq__ = __gt__ = answer


def test_it_is_no_numpy_array(array):
    assert not isinstance(array, np.ndarray)
    for convert in (np.asarray, np.array, np.asanyarray):
        with pytest.raises(TypeError, match="Implicit conversion to a NumPy array is not allowed"):
            convert(array)
    assert isinstance(np.concatenate([array, array]), type(array))  # NumPy hands this over to CuPy
    with pytest.raises(TypeError):
        np.concatenate([array, HOST])
    with pytest.raises(TypeError, match=r"numpy\.block"):
        np.block([array, array])


@pytest.mark.parametrize(
    "use",
    [
        lambda cp, x: x * HOST,
        lambda cp, x: HOST * x,
        lambda cp, x: x @ HOST.T,
        lambda cp, x: x > HOST,
        lambda cp, x: cp.add(x, HOST),
        lambda cp, x: np.add(HOST, x),
        lambda cp, x: cp.where(x > 0, x, HOST),
        lambda cp, x: cp.where(HOST > 0, x, x),
        lambda cp, x: cp.sum(HOST),
        lambda cp, x: cp.concatenate([x, HOST]),
        lambda cp, x: cp.matmul(x, HOST.T),
        lambda cp, x: cp.einsum("ij,ij->", x, HOST),
        lambda cp, x: x.dot(HOST.T),
        lambda cp, x: x.__iadd__(HOST),
        lambda cp, x: cp.add(x, x, out=HOST.copy()),
        lambda cp, x: cp.add.at(x, 0, HOST[0]),
        lambda cp, x: cp.zeros_like(HOST),
        lambda cp, x: cp.exp([1.0, 2.0]),
        lambda cp, x: x * [1, 2, 3],
        lambda cp, x: x + None,
    ],
)
def test_it_refuses_host_operands(cupy, array, use):
    with pytest.raises(TypeError):
        use(cupy, array)
    np.testing.assert_array_equal(array.get(), HOST)


@pytest.mark.parametrize("scalar", [2, 2.0, True, np.float32(2), np.float64(2), np.int64(2)])
def test_it_takes_numbers_as_numpy_does(array, scalar):
    for result, expected in [(array * scalar, HOST * scalar), (scalar * array, scalar * HOST)]:
        assert result.dtype == expected.dtype
        np.testing.assert_array_equal(result.get(), expected)


def test_it_leaves_operators_to_a_class_that_opts_out_of_ufuncs(array):
    other = OptsOut()
    results = [
        array * other,
        array + other,
        array @ other,
        array**other,
        array & other,
        array == other,
        array < other,
    ]
    assert results == ["mine"] * 7
    with pytest.raises(TypeError):
        np.multiply(array, other)


def test_reductions_and_full_indices_stay_on_the_device(stand_in, array):
    for result in (
        array.sum(),
        array.max(),
        array[0, 1],
        stand_in.cupy.mean(array),
        array.sum() * 2,
        array[0] @ array[0],
    ):
        assert type(result) is stand_in.cupy.ndarray
        assert result.shape == ()
    assert stand_in.synchronizations.total() == 0


@pytest.mark.parametrize(
    "use",
    [
        lambda cp, x: cp.errstate,
        lambda cp, x: cp.vecdot,
        lambda cp, x: x.setflags,
        lambda cp, x: x.ctypes,
        lambda cp, x: x.flags.writeable,
        lambda cp, x: x.__index__,
        lambda cp, x: cp.random.default_rng(0).normal,
        lambda cp, x: cp.random.default_rng(0).choice,
        lambda cp, x: cp.linalg.multi_dot,
    ],
)
def test_names_that_cupy_lacks(cupy, array, use):
    with pytest.raises(AttributeError):
        use(cupy, array)


@pytest.mark.parametrize(
    "use",
    [
        lambda cp, x: cp.sum(x, where=x > 0),
        lambda cp, x: cp.max(x, initial=0),
        lambda cp, x: x.sum(initial=0),
        lambda cp, x: cp.exp(x, where=x > 0),
        lambda cp, x: cp.add(x, x, subok=True),
        lambda cp, x: cp.einsum("ij->j", x, out=x[0]),
        lambda cp, x: cp.take(x, x, 0, None, "clip"),
        lambda cp, x: cp.take(x, cp.asarray([0]), mode="clip"),
        lambda cp, x: cp.asarray(x, device="cuda:0"),
        lambda cp, x: cp.broadcast_to(x, (2, 2, 3), subok=True),
    ],
)
def test_keywords_that_cupy_lacks(cupy, array, use):
    with pytest.raises(TypeError):
        use(cupy, array)


def test_an_array_without_axes_is_reduced_over_none(array):
    """NumPy allows axis 0."""
    total = array.sum()
    assert total.sum().shape == total.max(axis=None).shape == ()
    for axis in (0, -1):
        with pytest.raises(np.exceptions.AxisError):
            total.sum(axis=axis)


def test_integer_arrays_out_of_range_wrap_around(cupy, array):
    index = cupy.asarray([2, -3, 5])
    np.testing.assert_array_equal(array[index].get(), HOST[[0, 1, 1]])
    np.testing.assert_array_equal(array[..., index].get(), HOST[:, [2, 0, 2]])
    np.testing.assert_array_equal(array[None, :, index].get(), HOST[None, :, [2, 0, 2]])
    np.testing.assert_array_equal(cupy.take(array, index, axis=0).get(), HOST[[0, 1, 1]])
    np.testing.assert_array_equal(cupy.take_along_axis(array, cupy.asarray([[3], [4]]), 1).get(), [[0], [4]])
    array[cupy.asarray([2])] = 9
    np.testing.assert_array_equal(array.get(), [[9, 9, 9], [3, 4, 5]])
    cupy.add.at(array, (cupy.asarray([2, 2]), 0), 1.0)
    np.testing.assert_array_equal(array.get(), [[11, 9, 9], [3, 4, 5]])
    with pytest.raises(IndexError, match="out of bounds"):
        array[2]


def test_indexing_otherwise_agrees_with_numpy(cupy):
    host = np.arange(24.0).reshape(2, 3, 4)
    array = cupy.asarray(host)
    rows, columns = np.array([[0], [1]]), np.array([2, 0])
    mask = host[0] > 3
    for index in (
        1,
        (..., -1),
        (slice(None), None, 1),
        (rows, columns),
        (rows, slice(None), columns),
        (slice(None), [0, 2]),
        (slice(None), mask),
        (0, mask),
        [],
        (Ellipsis, slice(None, None, -2)),
        (np.int64(1), 2, 3),
    ):
        there = index
        if isinstance(index, tuple):
            there = tuple(cupy.asarray(i) if isinstance(i, np.ndarray) else i for i in index)
        np.testing.assert_array_equal(array[there].get(), host[index])


def test_a_write_through_broadcast_to_reaches_the_original(cupy, array):
    view = cupy.broadcast_to(array, (4, 2, 3))
    view[1, 0, 0] = 8
    assert array.get()[0, 0] == 8
    assert view.base is array


def test_views_share_memory_and_copies_do_not(cupy, array):
    for view in (
        array[0],
        array[0, 1],
        array.T,
        array.mT,
        array.reshape(-1),
        array[:, ::2],
        array.swapaxes(0, 1),
    ):
        assert view.base is array
        view[...] = 7
    assert (array.get()[:, 1:] == 7).any()
    for fresh in (array[[0, 1]], array.copy(), array + 0, cupy.array(array), copy.deepcopy(array)):
        fresh[...] = -1
        assert fresh.base is None
    assert (array.get() >= 0).all()
    assert cupy.asarray(array) is array
    assert array.astype(np.float32, copy=False) is array


def test_the_current_device_holds_what_is_made(cupy, array):
    with cupy.cuda.Device(1):
        other = cupy.ones(3)
        moved = cupy.array(array)
        with pytest.raises(ValueError, match="different from the current device"):
            other + array
        with pytest.raises(ValueError, match="different from the current device"):
            array.sum()
        assert array.T.device.id == 0  # a view starts no kernel
    assert (other.device.id, moved.device.id, array.device.id) == (1, 1, 0)
    assert cupy.zeros(1).device == cupy.cuda.Device(0)
    with pytest.raises(cupy.cuda.runtime.CUDARuntimeError), cupy.cuda.Device(2):
        pass


def test_a_view_of_an_empty_array_is_where_that_is(cupy):
    with cupy.cuda.Device(1):
        empty = cupy.zeros((0, 3))
    for view in (empty.reshape(-1), empty.T, empty[:, 0], empty[:0], empty.T[1], cupy.broadcast_to(empty, (2, 0, 3))):
        assert view.device.id == 1
        assert view.base is empty


def test_scatter_add_knows_only_the_types_of_atomic_addition(cupy):
    for dtype in (np.int64, np.bool_, np.int8):
        with pytest.raises(TypeError, match="only supports"):
            cupy.add.at(cupy.zeros(2, dtype), cupy.asarray([0]), 1)
    counts = cupy.zeros(2, np.int32)
    cupy.add.at(counts, cupy.asarray([0, 0]), 1)
    assert counts.tolist() == [2, 0]


def test_the_largest_is_found_atomically_of_few_types(cupy):
    for dtype in (np.int64, np.float16):
        with pytest.raises(TypeError, match=r"maximum\.at only supports"):
            cupy.maximum.at(cupy.zeros(2, dtype), cupy.asarray([0]), cupy.ones(1, dtype))
    largest = cupy.zeros(2, np.uint64)
    cupy.maximum.at(largest, cupy.asarray([0, 0]), cupy.asarray(np.array([7, 3], np.uint64)))
    assert largest.tolist() == [7, 0]
    with pytest.raises(NotImplementedError, match=r"cupy_multiply\.at"):
        cupy.multiply.at(largest, cupy.asarray([0]), largest)


def test_ufunc_methods_exist_where_cupy_wrote_them(cupy, array):
    np.testing.assert_array_equal(cupy.add.reduce(array).get(), HOST.sum(axis=0))
    np.testing.assert_array_equal(cupy.multiply.accumulate(array, 1).get(), np.cumprod(HOST, axis=1))
    for use in (cupy.maximum.reduce, cupy.maximum.accumulate):
        with pytest.raises(NotImplementedError, match="cupy_maximum"):
            use(array)
    with pytest.raises(NotImplementedError, match="reduceat"):
        cupy.multiply.reduceat(array, cupy.asarray([0, 1]))


def test_a_host_array_is_assigned_where_an_index_array_says(stand_in, array):
    array[[1]] = HOST[0]
    np.testing.assert_array_equal(array.get(), HOST[[0, 0]])
    with pytest.raises(ValueError, match=r"non-scalar numpy\.ndarray cannot be used for fill"):
        array[0] = HOST[0]
    array[0] = np.array(3.0)  # a number
    assert (array[0].get() == 3).all()


def test_arithmetic_does_not_warn(cupy):
    zero = cupy.zeros(2)
    assert np.isnan((zero / zero).get()).all()
    assert np.isneginf(cupy.log(zero).get()).all()


@pytest.mark.parametrize(
    "use",
    [
        lambda xp, x: xp.maximum(x, 2.5) + -x,
        lambda xp, x: x**2 // 3 % 2,
        lambda xp, x: xp.matmul(x, x.T),
        lambda xp, x: xp.einsum("ij,kj->ik", x, x),
        lambda xp, x: xp.stack([x, x], axis=1),
        lambda xp, x: xp.pad(x, ((1, 0), (0, 2))),
        lambda xp, x: xp.flip(x, 1),
        lambda xp, x: xp.tril(x, -1),
        lambda xp, x: xp.cumsum(x, axis=1),
        lambda xp, x: xp.argmax(x, axis=1),
        lambda xp, x: xp.clip(x, 1, 3),
        lambda xp, x: xp.add(x, x, out=xp.empty_like(x)),
        lambda xp, x: xp.split(x, 3, axis=1)[1],
        lambda xp, x: xp.linalg.norm(x),
        lambda xp, x: x.var(axis=0, ddof=1, keepdims=True),
        lambda xp, x: xp.add.reduceat(x, xp.asarray([0, 2]), axis=1),
        lambda xp, x: xp.full((2, 2), xp.pi, dtype=xp.float32),
    ],
)
def test_it_computes_what_numpy_computes(cupy, array, use):
    result, expected = use(cupy, array), use(np, HOST.copy())
    assert type(result) is cupy.ndarray
    assert result.dtype == expected.dtype
    np.testing.assert_array_equal(result.get(), expected)


def test_in_place_operators_keep_the_array(array):
    before = array
    array += 1
    array *= array
    array /= 2.0
    assert array is before
    np.testing.assert_array_equal(array.get(), (HOST + 1) ** 2 / 2)
