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
