"""Device names, transfers, namespaces, writing into arrays, and what NumPy and CuPy spell differently."""

import numpy as np
import pytest

from minigrad.device import devices, xp
from minigrad.device.writing import add_at, fill_rows


def test_device_names_are_canonical_and_others_refused():
    names = ["cpu", "cuda", "cuda:0", "cuda:12"]
    assert [devices.parse_device(name) for name in names] == ["cpu", "cuda:0", "cuda:0", "cuda:12"]
    for name in ("gpu", "cuda:x", "cuda:-1", "cuda:", "CPU", "cpu:0", "cuda:01", "cuda:1 ", "cuda:٣"):
        with pytest.raises(ValueError, match=f"{name!r}; use 'cpu', 'cuda' or 'cuda:N'"):
            devices.parse_device(name)
    for device, named in ((0, "int"), (np.float16, "astype")):
        with pytest.raises(TypeError, match=named):
            devices.parse_device(device)


@pytest.mark.parametrize("value", [np.zeros(3), np.float32(1), np.ma.zeros(2), 1.5, 2, True, 1j])
def test_numpy_serves_host_arrays_and_numbers(value):
    assert (xp(value), devices.is_host(value), devices.device_of(value)) == (np, True, "cpu")
    assert devices.is_array(value) == isinstance(value, np.ndarray)


@pytest.mark.parametrize("value", [[1.0], None, "cpu", np.ndarray])
def test_what_is_no_array_has_no_namespace(value):
    assert not devices.is_array(value)
    assert not devices.is_host(value)
    with pytest.raises(TypeError, match=type(value).__name__):
        xp(value)


def test_the_round_trip_keeps_values_and_dtype(device):
    host = np.arange(6, dtype=np.float32).reshape(2, 3).T
    there = devices.to_device(host, device)
    assert devices.device_of(there) == device
    assert devices.is_host(there) == (device == "cpu")
    assert xp(there) is devices.module_for(device)
    assert devices.to_device(there, device) is there
    assert devices.asarray_on(device, there) is devices.asarray_on(device, there, there.dtype) is there
    back = devices.to_numpy(there)
    assert (type(back), back.dtype) == (np.ndarray, np.float32)
    np.testing.assert_array_equal(back, host)


def test_from_one_gpu_to_another(stand_in):
    first = devices.asarray_on("cuda:0", [1, 2, 3])
    second = devices.to_device(first, "cuda:1")
    assert (devices.device_of(first), devices.device_of(second)) == ("cuda:0", "cuda:1")
    assert devices.to_numpy(second).tolist() == [1, 2, 3]
    assert devices.device_of(devices.asarray_on("cuda:1", [1, 2], np.float32)) == "cuda:1"
    assert devices.device_of(devices.asarray_on("cuda:0", second, np.float32)) == "cuda:0"


def test_entering_the_device_of_an_array(stand_in):
    array = devices.asarray_on("cuda:1", [1.0, 2.0])
    with pytest.raises(ValueError, match="different from the current device"):
        array + 1
    with devices.on_device_of(array):
        made = array + xp(array).ones(2)
    assert devices.device_of(made) == "cuda:1"
    assert devices.on_device_of(np.zeros(2)) is devices.on_device_of(np.ones(3))


@pytest.mark.parametrize(("data", "dtype", "expected"), [
    ([1, 2], None, np.int64), ([1, 2], np.float32, np.float32), (3.0, None, np.float64), (np.int8(1), None, np.int8),
])
def test_asarray_on(device, data, dtype, expected):
    array = devices.asarray_on(device, data, dtype)
    assert (array.dtype, devices.device_of(array)) == (expected, device)
    np.testing.assert_array_equal(devices.to_numpy(array), data)


def test_synchronize_waits_for_a_gpu_only(stand_in):
    devices.synchronize("cpu")
    assert stand_in.synchronizations.total() == 0
    devices.synchronize("cuda:1")
    assert stand_in.synchronizations == {"synchronize": 1}


def test_erf_is_scipys(gpu):
    special = pytest.importorskip("scipy.special")
    x = np.linspace(-3, 3, 13)
    for where in ("cpu", gpu):
        result = devices.erf(devices.asarray_on(where, x))
        assert devices.device_of(result) == where
        np.testing.assert_allclose(devices.to_numpy(result), special.erf(x), rtol=1e-14)


# --- Writing into arrays


@pytest.mark.parametrize("shape", [(4,), (4, 2, 3)])
def test_rows_are_filled_where_they_are_marked_and_no_gpu_is_waited_for(shape, stand_in):
    for where in ("cpu", "cuda:0", "cuda:1"):
        array, rows = np.full(shape, np.nan), np.array([True, False, False, True])
        array, rows = devices.to_device(array, where), devices.to_device(rows, where)
        stand_in.clear()
        fill_rows(array, rows, 2.0)
        assert not stand_in.synchronizations
        found = devices.to_numpy(array)
        assert (found[[0, 3]] == 2).all()
        assert np.isnan(found[[1, 2]]).all()


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_add_at_adds_once_for_each_occurrence(device, dtype):
    array = devices.asarray_on(device, np.zeros((3, 2), dtype))
    index = devices.asarray_on(device, [2, 0, 2])
    add_at(array, index, devices.asarray_on(device, np.array([[1, 2], [3, 4], [5, -6]], dtype)))
    np.testing.assert_array_equal(devices.to_numpy(array), [[3, 4], [0, 0], [6, -4]])
