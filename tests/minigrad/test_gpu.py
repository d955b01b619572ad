"""Memory of a GPU, the permission to multiply in TF32, and sums of float16 products."""

import threading

import numpy as np
import pytest

import minigrad
from minigrad.device import asarray_on
from minigrad.device.memory import memory_use
from minigrad.precision.gpu import float32_sums, tf32

TF32_MATH = 3  # of cublasMath_t
WHOLE_SUMS = 16


@pytest.mark.parametrize("index", [0, 1])
def test_memory_in_use_and_held(stand_in, index):
    name, other = f"cuda:{index}", memory_use(f"cuda:{1 - index}")
    first = memory_use(name)
    array = asarray_on(name, np.zeros(1000, np.float32))
    second = memory_use(name)
    del array
    third = memory_use(name)
    assert first.total == second.total == third.total == 16 * 2**30
    assert first.free - second.free == second.held - first.held == second.used - first.used == 4096
    assert third == second._replace(used=first.used)  # the pool keeps it
    assert memory_use(f"cuda:{1 - index}") == other
    assert not stand_in.synchronizations
    assert memory_use("cpu") is None


# --- TF32 -----------------------------------------------------------------------------------------


@pytest.fixture
def mode(stand_in):
    """Tells the mode of products that this thread begins on the current device."""
    cuda = stand_in.cupy.cuda
    return lambda: cuda.cublas.getMathMode(cuda.get_cublas_handle())


def test_off_by_default_on_in_the_block_and_put_back(stand_in, mode):
    assert mode() == 0
    with tf32("cuda"):
        with tf32("cuda:0"):
            assert mode() == TF32_MATH
        assert mode() == TF32_MATH
    assert mode() == 0
    with pytest.raises(KeyError), tf32("cuda"):
        raise KeyError
    assert mode() == 0
    cublas, handle = stand_in.cupy.cuda.cublas, stand_in.cupy.cuda.get_cublas_handle()
    cublas.setMathMode(handle, cublas.CUBLAS_TENSOR_OP_MATH)
    with tf32("cuda"):
        assert mode() == TF32_MATH
    assert mode() == cublas.CUBLAS_TENSOR_OP_MATH  # what was there before
    cublas.setMathMode(handle, cublas.CUBLAS_DEFAULT_MATH)


def test_it_is_of_this_thread_and_of_that_device_alone(stand_in, mode):
    found, first, second = [], stand_in.cupy.cuda.Device(0), stand_in.cupy.cuda.Device(1)
    with second, tf32("cuda:0"):
        assert mode() == 0
        with first:
            assert mode() == TF32_MATH
            thread = threading.Thread(target=lambda: found.append(mode()))
            thread.start()
            thread.join()
        assert stand_in.cupy.cuda.Device().id == 1
    assert found == [mode()] == [0]


def test_the_host_and_a_card_that_is_too_old_are_refused(stand_in, mode, monkeypatch):
    with pytest.raises(minigrad.DeviceError, match="cpu"), tf32("cpu"):
        pass
    with pytest.raises(minigrad.DeviceError, match=r"cuda:1 .*7\.5.*8\.0"), tf32("cuda:1"):
        pass
    with stand_in.cupy.cuda.Device(1):
        assert mode() == 0
    for capability in ("80", "90", "120"):
        monkeypatch.setattr(stand_in.cupy.cuda.Device, "compute_capability", capability)
        with tf32("cuda"):
            assert mode() == TF32_MATH


def test_sums_of_float16_products_stay_whole_in_the_block(mode):
    with float32_sums("cuda"):
        assert mode() == WHOLE_SUMS
        with tf32("cuda"), float32_sums("cuda"):
            assert mode() == TF32_MATH | WHOLE_SUMS
        assert mode() == WHOLE_SUMS
    assert mode() == 0
    with tf32("cuda"), float32_sums("cuda:0"), float32_sums("cpu"):
        assert mode() == TF32_MATH | WHOLE_SUMS
    assert mode() == 0
