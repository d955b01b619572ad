"""Device names, transfers, namespaces, and the few operations that NumPy and CuPy spell differently."""

import timeit
from pathlib import Path

import numpy as np
import pytest

from minigrad.device import devices, xp

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("given", "canonical"), [("cpu", "cpu"), ("cuda", "cuda:0"), ("cuda:0", "cuda:0"), ("cuda:12", "cuda:12")]
)
def test_device_names_are_canonical(given, canonical):
    assert devices.parse_device(given) == canonical


@pytest.mark.parametrize(
    "name", ["gpu", "cuda:x", "cuda:-1", "cuda:", "CPU", "cpu:0", "cuda:01", "cuda:1 ", "cuda:٣", ""]
)
def test_other_device_names_are_refused_and_the_allowed_ones_named(name):
    with pytest.raises(ValueError, match=r"'cpu', 'cuda' or 'cuda:N'") as error:
        devices.parse_device(name)
    assert repr(name) in str(error.value)


@pytest.mark.parametrize("device", [0, None, np.zeros(2)])
def test_a_device_is_a_string(device):
    with pytest.raises(TypeError, match=type(device).__name__):
        devices.parse_device(device)


@pytest.mark.parametrize("value", [np.zeros(3), np.float32(1), np.ma.zeros(2), 1.5, 2, True, 1j])
def test_numpy_serves_host_arrays_and_numbers(value):
    assert xp(value) is np
    assert devices.is_host(value)
    assert devices.device_of(value) == "cpu"
    assert devices.is_array(value) == isinstance(value, np.ndarray)


@pytest.mark.parametrize("value", [[1.0], None, "cpu", (1,), np.ndarray])
def test_what_is_no_array_has_no_namespace(value):
    assert not devices.is_array(value)
    assert not devices.is_host(value)
    with pytest.raises(TypeError, match=type(value).__name__):
        xp(value)


def test_the_namespace_is_found_fast_enough_for_every_operation():
    array = np.zeros(3)
    microseconds = min(timeit.repeat(lambda: xp(array), number=10_000, repeat=5)) * 100
    assert microseconds < 2


def test_the_round_trip_keeps_values_and_dtype(device):
    host = np.arange(6, dtype=np.float32).reshape(2, 3).T
    there = devices.to_device(host, device)
    assert devices.device_of(there) == device
    assert devices.is_host(there) == (device == "cpu")
    assert xp(there) is devices.module_for(device)
    back = devices.to_numpy(there)
    assert type(back) is np.ndarray
    assert back.dtype == np.float32
    np.testing.assert_array_equal(back, host)


def test_moving_to_the_same_device_returns_the_same_array(device):
    array = devices.asarray_on(device, [1.0, 2.0])
    assert devices.to_device(array, device) is array
    assert devices.asarray_on(device, array) is array
    assert devices.asarray_on(device, array, array.dtype) is array


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


@pytest.mark.parametrize(
    ("data", "dtype", "expected"),
    [
        ([1, 2], None, np.int64),
        ([1, 2], np.float32, np.float32),
        (3.0, None, np.float64),
        (np.int8(1), None, np.int8),
    ],
)
def test_asarray_on(device, data, dtype, expected):
    array = devices.asarray_on(device, data, dtype)
    assert array.dtype == expected
    assert devices.device_of(array) == device
    np.testing.assert_array_equal(devices.to_numpy(array), data)


def test_synchronize_waits_for_a_gpu_only(stand_in):
    devices.synchronize("cpu")
    assert stand_in.synchronizations.total() == 0
    devices.synchronize("cuda:1")
    assert stand_in.synchronizations == {"synchronize": 1}


def test_erf_is_scipys(device):
    special = pytest.importorskip("scipy.special")
    x = np.linspace(-3, 3, 13)
    result = devices.erf(devices.asarray_on(device, x))
    assert devices.device_of(result) == device
    np.testing.assert_allclose(devices.to_numpy(result), special.erf(x), rtol=1e-14)


def test_special_functions_of_an_array_that_is_not_on_the_current_gpu(stand_in):
    for function in (devices.erf, devices.expit):
        result = function(devices.asarray_on("cuda:1", np.zeros(2, np.float16)))
        assert devices.device_of(result) == "cuda:1"
        assert result.dtype == np.float16
