"""Every operator and method of Tensor does what the operation of its name does, by NumPy's or PyTorch's arguments."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, ops

from tests.minigrad.ops.row import host, positive

X = positive(2, 3)

# Methods whose function has another name or takes its arguments in another form.
OWN = """
    x.reshape(3, 2)         mg.reshape(x, (3, 2))
    x.reshape((3, 2))       mg.reshape(x, (3, 2))
    x.transpose(1, 0)       mg.transpose(x, (1, 0))
    x.transpose((1, 0))     mg.transpose(x, (1, 0))
    x.to("cpu")             ops.to_device(x, "cpu")
    x.clone()               x * 1
    abs(x - 1)              mg.abs(x - 1)
    [1.0, 2.0] @ x          Tensor([1.0, 2.0]) @ x
    +x                      x
    True & (x > 1)          x > 1
    False | (x > 1)         x > 1
"""


@pytest.mark.parametrize("line", OWN.strip().splitlines())
def test_a_method_is_a_function_of_another_name(line):
    x = Tensor(X, requires_grad=True)
    found, expected = (eval(call, {"x": x, "mg": mg, "ops": ops, "np": np, "Tensor": Tensor})  # noqa: S307
                       for call in map(str.strip, line.strip().split("  ", 1)))
    assert found.dtype == expected.dtype
    assert found.requires_grad == expected.requires_grad
    np.testing.assert_array_equal(host(found), host(expected))
    if found.requires_grad:
        np.testing.assert_array_equal(*(host(mg.grad(out.sum(), x)) for out in (found, expected)))


def test_operations_are_methods_and_functions_of_minigrad():
    """All of them; methods are those whose first parameter is x."""
    assert not hasattr(Tensor, "where")
    assert not hasattr(Tensor, "stack")
    assert all(getattr(mg, name) is op for name, op in ops.OPERATIONS.items() if name != "zeros_like")
