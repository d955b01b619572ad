"""Memory of a GPU, and sums of float16 products."""

import threading

import numpy as np
import pytest

from minigrad.device import asarray_on
from minigrad.device.memory import memory_use
from minigrad.precision.gpu import float32_sums

WHOLE_SUMS = 16  # of cublasMath_t


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


# --- sums of products -----------------------------------------------------------------------------


def test_sums_of_float16_products_stay_whole_in_the_block_of_this_thread_and_device(stand_in):
    cuda, found = stand_in.cupy.cuda, []

    def mode():
        return cuda.cublas.getMathMode(cuda.get_cublas_handle())

    cuda.cublas.setMathMode(cuda.get_cublas_handle(), cuda.cublas.CUBLAS_TENSOR_OP_MATH)
    with cuda.Device(1), float32_sums("cuda:0"):
        assert mode() == 0
        with cuda.Device(0), float32_sums("cuda"), float32_sums("cpu"):
            assert mode() == cuda.cublas.CUBLAS_TENSOR_OP_MATH | WHOLE_SUMS
            thread = threading.Thread(target=lambda: found.append(mode()))
            thread.start()
            thread.join()
    with pytest.raises(KeyError), float32_sums("cuda"):
        raise KeyError
    assert mode() == cuda.cublas.CUBLAS_TENSOR_OP_MATH  # what was there before
    assert found == [0]
    cuda.cublas.setMathMode(cuda.get_cublas_handle(), cuda.cublas.CUBLAS_DEFAULT_MATH)
