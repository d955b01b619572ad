"""The stand-in for CuPy refuses what a GPU would refuse, and counts what it would wait for and be sent."""

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


# --- Refusals

REFUSED = {
    "conversion": (TypeError, lambda cp, x: np.asarray(x)),
    "a host operand": (TypeError, lambda cp, x: x * HOST),
    "a host array in a list": (TypeError, lambda cp, x: cp.concatenate([x, HOST])),
    "a host array to be added": (TypeError, lambda cp, x: cp.add.at(x, 0, HOST[0])),
    "a list": (TypeError, lambda cp, x: x * [1, 2, 3]),
    "a fill by a host array": (ValueError, lambda cp, x: x.__setitem__(0, HOST[0])),
    "a name of NumPy's": (AttributeError, lambda cp, x: cp.errstate),
    "where": (TypeError, lambda cp, x: cp.sum(x, where=x > 0)),
    "an axis of a number": (np.exceptions.AxisError, lambda cp, x: x.sum().sum(axis=0)),
    "an integer out of range": (IndexError, lambda cp, x: x[2]),
    "a reduction that CuPy lacks": (AttributeError, lambda cp, x: cp.maximum.reduce(x)),
    "atomic addition of int64": (TypeError, lambda cp, x: cp.add.at(cp.zeros(2, np.int64), cp.asarray([0]), 1)),
    "another GPU's array": (ValueError, lambda cp, x: x + elsewhere(cp)),
}


def elsewhere(cupy):
    with cupy.cuda.Device(1):
        return cupy.ones(3)


@pytest.mark.parametrize(("error", "use"), REFUSED.values(), ids=REFUSED)
def test_it_refuses_what_cupy_refuses(cupy, array, error, use):
    with pytest.raises(error):
        use(cupy, array)
    np.testing.assert_array_equal(array.get(), HOST)


# --- Views, indices and devices


def test_integer_arrays_out_of_range_wrap_around(cupy, array):
    index = cupy.asarray([2, -3, 5])
    np.testing.assert_array_equal(array[None, :, index].get(), HOST[None, :, [2, 0, 2]])
    np.testing.assert_array_equal(cupy.take(array, index, axis=0).get(), HOST[[0, 1, 1]])
    np.testing.assert_array_equal(cupy.take_along_axis(array, cupy.asarray([[3], [4]]), 1).get(), [[0], [4]])


def test_views_share_memory_and_copies_do_not(cupy, array):
    broadcast = cupy.broadcast_to(array, (4, 2, 3))
    for view in (array[0], array[0, 1], array.mT, array.reshape(-1), array[:, ::2], array.swapaxes(0, 1), broadcast):
        assert view.base is array
        view[...] = 7
    assert (array.get() == 7).all()
    for fresh in (array[[0, 1]], array.copy(), array + 0, cupy.array(array), copy.deepcopy(array)):
        fresh[...] = -1
        assert fresh.base is None
    assert (array.get() == 7).all()
    assert cupy.asarray(array) is array
    before = array
    array += 1
    assert array is before


def test_the_current_device_holds_what_is_made(cupy, array):
    with cupy.cuda.Device(1):
        other, moved, empty = cupy.ones(3), cupy.array(array), cupy.zeros((0, 3))
        assert array.T.device.id == 0  # a view starts no kernel
    assert (other.device.id, moved.device.id, array.device.id) == (1, 1, 0)
    assert {view.device.id for view in (empty.reshape(-1), empty.T, empty[:, 0], empty[:0])} == {1}
    assert cupy.zeros(1).device == cupy.cuda.Device(0)
    with pytest.raises(cupy.cuda.runtime.CUDARuntimeError), cupy.cuda.Device(2):
        pass


# --- What waits, and what is sent
