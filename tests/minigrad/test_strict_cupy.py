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

REFUSED = """
    TypeError               np.asarray(x)
    TypeError               x * HOST
    TypeError               cp.concatenate([x, HOST])
    TypeError               cp.add.at(x, 0, HOST[0])
    TypeError               x * [1, 2, 3]
    ValueError              x.__setitem__(0, HOST[0])
    AttributeError          cp.errstate
    TypeError               cp.sum(x, where=x > 0)
    IndexError              x.sum().sum(axis=0)
    IndexError              x[2]
    AttributeError          cp.maximum.reduce(x)
    TypeError               cp.add.at(cp.zeros(2, np.int64), cp.asarray([0]), 1)
    ValueError              x + elsewhere(cp)
"""


def elsewhere(cupy):
    with cupy.cuda.Device(1):
        return cupy.ones(3)


@pytest.mark.parametrize("line", REFUSED.strip().splitlines())
def test_it_refuses_what_cupy_refuses(cupy, array, line):
    error, use = line.split(maxsplit=1)
    with pytest.raises(eval(error)):  # noqa: S307 - of our own writing
        eval(use, {"cp": cupy, "x": array, "np": np, "HOST": HOST, "elsewhere": elsewhere})  # noqa: S307
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
