"""Memory of a GPU."""

import numpy as np
import pytest

from minigrad.device import asarray_on
from minigrad.device.memory import memory_use


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
