"""Writing into arrays: scatter-add, and rows that are marked."""

import numpy as np
import pytest

from minigrad.device import devices
from minigrad.device.writing import add_at, fill_rows


@pytest.mark.parametrize("shape", [(4,), (4, 3), (4, 2, 3)])
def test_rows_are_filled_where_they_are_marked(device, shape):
    array = devices.asarray_on(device, np.full(shape, np.nan))
    fill_rows(array, devices.asarray_on(device, np.array([True, False, False, True])), 2.0)
    found = devices.to_numpy(array)
    assert (found[[0, 3]] == 2).all()
    assert np.isnan(found[[1, 2]]).all()


def test_to_fill_rows_does_not_wait_for_a_gpu(stand_in):
    for name in ("cuda:0", "cuda:1"):
        array, rows = devices.asarray_on(name, np.ones((3, 2))), devices.asarray_on(name, np.array([True, True, False]))
        fill_rows(array, rows, 0)
    assert not stand_in.synchronizations
    assert devices.to_numpy(array).tolist() == [[0, 0], [0, 0], [1, 1]]


def test_add_at_adds_once_for_each_occurrence(device):
    array = devices.asarray_on(device, np.zeros((3, 2), np.float32))
    index = devices.asarray_on(device, [2, 0, 2])
    add_at(array, index, devices.asarray_on(device, np.array([[1, 2], [3, 4], [5, 6]], np.float32)))
    np.testing.assert_array_equal(devices.to_numpy(array), [[3, 4], [0, 0], [6, 8]])


@pytest.mark.parametrize(
    ("shape", "index", "values_shape"),
    [
        ((5, 3), np.array([4, -5, 4, 0, -1]), (5, 3)),
        ((5, 3), np.array([[1, 1], [2, -4]], np.int32), (2, 2, 3)),
        ((4, 2, 3), np.array([3, 0, 3]), (2, 3)),
        ((4, 3), np.array(2), (3,)),
        ((4, 3), np.array([], np.int64), (0, 3)),
        ((4, 0), np.array([1, 1]), (2, 0)),
        ((4, 3), np.array([True, False, True, True]), (3, 3)),
        ((4, 3), (np.array([0, 0, 3]), slice(1, None)), (3, 2)),
        ((4,), np.array([0, 0, 3]), (3,)),
    ],
)
@pytest.mark.parametrize(("dtype", "order"), [("f4", "C"), ("f8", "F"), ("f2", "C"), ("i8", "C")])
def test_add_at_on_the_host_is_numpys(shape, index, values_shape, dtype, order):
    random = np.random.default_rng(0)
    expected = (8 * random.standard_normal(shape)).astype(dtype, order=order)
    values = (8 * random.standard_normal(values_shape)).astype(dtype)
    result = expected.copy(order)
    np.add.at(expected, index, values)
    add_at(result, index, values)
    np.testing.assert_allclose(result, expected, rtol=0, atol={"f4": 2e-6, "f8": 4e-15}.get(dtype, 0))
    assert result.dtype == dtype


def test_add_at_of_one_value_to_many_rows():
    array = np.zeros((3, 2))
    add_at(array, np.array([2, -1, 0]), 1.5)
    np.testing.assert_array_equal(array, [[1.5, 1.5], [0, 0], [3, 3]])


@pytest.mark.parametrize("index", [4, -5])
def test_add_at_refuses_rows_out_of_range(index):
    with pytest.raises(IndexError):
        add_at(np.zeros((4, 3)), np.array([index]), 1.0)
