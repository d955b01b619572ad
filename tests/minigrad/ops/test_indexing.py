"""Reading at places, against NumPy for any index that hypothesis finds; and ids that come as tensors."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays, basic_indices, integer_array_indices

import minigrad as mg
from minigrad import Tensor

from tests.minigrad.ops.row import host, normal

SEARCH = settings(derandomize=True, database=None, deadline=None, max_examples=100)


def check(index, shape):
    """``x[index]`` and its gradient: what NumPy reads, and where NumPy would add."""
    x = normal(*shape)
    expected = np.asarray(x[index])
    tensor = Tensor(x, requires_grad=True)
    out = tensor[index]
    np.testing.assert_array_equal(host(out), expected)
    g = normal(*expected.shape, seed=1)
    added = np.zeros(shape)
    np.add.at(added, index, g)
    first = mg.grad(out, tensor, g, retain_graph=True)
    recorded = mg.grad(out, tensor, Tensor(g, requires_grad=True), create_graph=True)
    for found in (first, recorded):
        np.testing.assert_allclose(host(found), added, rtol=1e-14, atol=1e-15)


@SEARCH
@given(st.data(), array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4))
def test_any_basic_index(data, shape):
    check(data.draw(basic_indices(shape, allow_newaxis=True, allow_ellipsis=True)), shape)


@SEARCH
@given(st.data(), array_shapes(min_dims=1, max_dims=3, max_side=4))
def test_any_integer_arrays(data, shape):
    result_shape = array_shapes(min_dims=0, max_dims=2, max_side=3)
    arrays_of_all = data.draw(integer_array_indices(shape, result_shape=result_shape))
    some = data.draw(st.integers(1, len(shape)))
    check(arrays_of_all[:some], shape)


@SEARCH
@given(st.data(), array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4))
def test_any_boolean_mask(data, shape):
    covered = data.draw(st.integers(1, len(shape)))
    check(data.draw(arrays(np.bool_, shape[:covered])), shape)


@SEARCH
@given(st.data(), array_shapes(min_dims=2, max_dims=4, min_side=1, max_side=3))
def test_any_mixture(data, shape):
    """Each axis by a number, a slice or an array of two places; here and there a new axis, at most one Ellipsis."""
    parts = []
    for n in shape:
        place = st.integers(-n, n - 1)
        slices = st.slices(n)
        several = st.lists(place, min_size=2, max_size=2).map(np.array)
        parts.append(data.draw(st.one_of(place, slices, several)))
    if data.draw(st.booleans()):
        parts.insert(data.draw(st.integers(0, len(parts))), None)
    if data.draw(st.booleans()):
        parts[data.draw(st.integers(0, len(parts) - 1))] = Ellipsis
    check(tuple(parts), shape)


@SEARCH
@given(st.data(), array_shapes(min_dims=1, max_dims=3, max_side=4))
def test_gather_is_the_transpose_of_scatter_add(data, shape):
    """⟨gather(x, i), v⟩ = ⟨x, scatter_add(0, i, v)⟩: each is the other's gradient."""
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    n = shape[axis]
    places = list(shape)
    places[axis] = data.draw(st.integers(1, 5))
    indices = data.draw(arrays(np.int64, tuple(places), elements=st.integers(-n, n - 1)))
    x, v = Tensor(normal(*shape), requires_grad=True), Tensor(normal(*places, seed=1), requires_grad=True)
    read = mg.gather(x, axis, indices)
    np.testing.assert_array_equal(host(read), np.take_along_axis(host(x), indices, axis))
    written = mg.scatter_add(Tensor(np.zeros(shape)), axis, indices, v)
    np.testing.assert_allclose((read * v).sum().item(), (x * written).sum().item(), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(host(mg.grad(read, x, host(v))), host(written), rtol=1e-14, atol=1e-15)
    np.testing.assert_array_equal(host(mg.grad(written, v, host(x))), host(read))


def test_an_index_whose_dtype_cannot_count_the_rows():
    x = Tensor(np.zeros((200, 3)), requires_grad=True)
    x[np.array([-1, 0, -1], np.int8)].sum().backward()
    np.testing.assert_array_equal(x.grad.numpy()[[0, 1, 199], 0], [1, 0, 2])


def test_indices_may_be_tensors_arrays_or_lists(device):
    x = Tensor(normal(4, 3), device=device)
    for dtype in (np.int32, np.int64, np.uint8):
        ids = np.array([[3, 0], [1, 1]], dtype)
        along = np.concatenate([ids, ids[:, :1]], axis=1)
        for form in (ids, ids.tolist(), Tensor(ids, device=device), Tensor(ids)):
            np.testing.assert_array_equal(host(x[form]), host(x)[ids])
            np.testing.assert_array_equal(host(mg.take(x, form, axis=0)), host(x)[ids])
        for form in (along, along.tolist(), Tensor(along, device=device), Tensor(along)):
            expected = np.take_along_axis(host(x), along.astype(np.int64), 0)
            np.testing.assert_array_equal(host(mg.gather(x, 0, form)), expected)
            added = mg.scatter_add(x, 0, form, Tensor(np.ones((2, 3)), device=device))
            counts = np.stack([np.bincount(column, minlength=4) for column in along.T], axis=1)
            np.testing.assert_allclose(host(added), host(x) + counts, rtol=1e-15)


def test_slicing_in_a_loop_adds_into_one_buffer(device):
    """Reading 1,000 slices adds 1,000 times into one array, and repeats within an index are counted."""
    x = Tensor(np.zeros((1000, 2)), device=device, requires_grad=True)
    total = x[0].sum()
    for i in range(1, 1000):
        total = total + (i + 1) * x[i].sum()
    total = total + x[[7, 7, 7], [0, 0, 1]].sum()
    total.backward()
    expected = np.repeat(np.arange(1.0, 1001)[:, None], 2, axis=1)
    expected[7] += [2, 1]
    np.testing.assert_array_equal(host(x.grad), expected)


def test_iteration_and_unpacking(device):
    x = Tensor([[1.0, 2], [3, 4]], device=device, requires_grad=True)
    first, second = x
    (first * second).sum().backward()
    np.testing.assert_array_equal(host(x.grad), [[3, 4], [1, 2]])
