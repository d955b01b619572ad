"""The stand-in for CuPy refuses what a GPU would refuse, and counts what it would wait for and be sent."""

import copy

import numpy as np
import pytest

HOST = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def names(stand_in):
    cupy = stand_in.cupy
    with cupy.cuda.Device(1):
        elsewhere = cupy.ones(3)
    return {"cp": cupy, "x": cupy.asarray(HOST), "np": np, "HOST": HOST, "elsewhere": elsewhere, "copy": copy}


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
    ValueError              x + elsewhere
    RuntimeError            cp.cuda.Device(2).__enter__()
"""


@pytest.mark.parametrize("line", REFUSED.strip().splitlines())
def test_it_refuses_what_cupy_refuses(names, line):
    error, use = line.split(maxsplit=1)
    with pytest.raises(eval(error)):  # noqa: S307 - of our own writing
        eval(use, names)  # noqa: S307
    np.testing.assert_array_equal(names["x"].get(), HOST)


# What each is, and whether it looks at the memory of x: an index that is out of range wraps around.
ARRAYS = """
    x[None, :, cp.asarray([2, -3, 5])]              HOST[None, :, [2, 0, 2]]        False
    cp.take(x, cp.asarray([2, -3]), axis=0)         HOST[[0, 1]]                    False
    copy.deepcopy(x)                                HOST                            False
    x[0, 1]                                         HOST[0, 1]                      True
    cp.broadcast_to(x, (4, 2, 3))                   np.stack([HOST] * 4)            True
"""


@pytest.mark.parametrize("line", ARRAYS.strip().splitlines())
def test_views_share_memory_and_copies_do_not(names, line):
    use, expected, shared = filter(None, map(str.strip, line.split("   ")))
    array = eval(use, names)  # noqa: S307
    np.testing.assert_array_equal(array.get(), eval(expected, names))  # noqa: S307
    assert (array.base is names["x"]) == eval(shared)  # noqa: S307
    array[...] = 7
    assert (7 in names["x"].get()) == eval(shared)  # noqa: S307


def test_the_current_device_holds_what_is_made(names):
    cupy, array = names["cp"], names["x"]
    with cupy.cuda.Device(1):
        moved, empty, view = cupy.array(array), cupy.zeros((0, 3)), array.T  # a view starts no kernel
    devices = [part.device.id for part in (moved, empty[:, 0], names["elsewhere"], view, array, cupy.zeros(1))]
    assert devices == [1, 1, 1, 0, 0, 0]
