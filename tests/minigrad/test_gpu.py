"""Memory of a GPU."""

import numpy as np
import pytest

from minigrad.device import asarray_on
from minigrad.device.memory import pool_use


@pytest.mark.parametrize("index", [0, 1])
def test_memory_in_use_and_held(stand_in, index):
    name, other = f"cuda:{index}", pool_use(f"cuda:{1 - index}")
    used, held = pool_use(name)
    array = asarray_on(name, np.zeros(1000, np.float32))
    assert pool_use(name) == (used + 4096, held + 4096)
    del array
    assert pool_use(name) == (used, held + 4096)  # the pool keeps it
    assert pool_use(f"cuda:{1 - index}") == other
    assert not stand_in.synchronizations
