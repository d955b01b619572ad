"""A wrong call, and what must be said of it."""

import numpy as np
import pytest

from minigrad import Tensor


def refused(call, kind, said):
    """The error of ``call(x, v)``, for x (2, 3) and v (3,) of float32, having checked its kind and its message."""
    x = Tensor(np.arange(6.0).reshape(2, 3), dtype=np.float32, requires_grad=True)
    v = Tensor(np.arange(3.0), dtype=np.float32, requires_grad=True)
    with pytest.raises(kind) as caught:
        call(x, v)
    message = str(caught.value)
    for part in said:
        assert part in message, message
    assert "\n" not in message
    return caught.value
