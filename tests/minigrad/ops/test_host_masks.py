"""What is no operand, a mask, a condition, a target, an index: a NumPy array or a list goes to the tensor's device.

A *Tensor* stays where it was put: a mask or a target of one device beside an input of another is an error, which names
the remedy. (Indices are checked on the host, and sent, in either form.)
"""

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor
from minigrad import functional as F

from tests.minigrad.ops.row import function, table

MASK = np.array([[True, False, True], [False, True, True]])
HALF = np.tril(np.ones((2, 2), bool))
X = np.arange(6.0).reshape(2, 3)

# Calls of x (2, 3) and of the mask, target or index y; that array.
NAMES = {**vars(F), "where": mg.where, "attend": F.scaled_dot_product_attention, "MASK": MASK, "HALF": HALF, "X": X}
MASKS = table("""
    where(y, x, 0.0)                                    MASK
    x.masked_fill(y, 7.0)                               MASK
    attend(x, x, x, y)                                  HALF
    attend(x, x, x, y, return_weights=True)[0]          HALF
    attend(x, x, x, dropout_p=0.5, dropped=y)           HALF
    dropout_with_mask(x, y, 0.5)                        MASK
    mse_loss(x, y)                                      X[::-1] / 5
""", NAMES)
INDICES = table("""
    x.gather(1, y)              np.array([[2, 0, 1], [1, 1, 0]])
    cross_entropy(x, y)         np.array([2, 0])
    embedding(y, x)             np.array([1, 0])
""", {"np": np})


def gradient_of(call, given, device):
    x = Tensor(X, device=device, requires_grad=True)
    out = function(call, NAMES)(x, given)
    (out * out).sum().backward()
    assert out.device == x.grad.device == device
    return out.numpy(), x.grad.numpy()


@pytest.mark.parametrize(("call", "array"), [*MASKS, *INDICES])
def test_an_array_is_sent_to_the_device_of_the_tensor(call, array, gpu, form):
    """And so is an index that is a tensor."""
    for given in (array, Tensor(array)) if array.dtype.kind == "i" else (array,):
        for there, here in zip(gradient_of(call, given, gpu), gradient_of(call, given, "cpu"), strict=True):
            np.testing.assert_allclose(there, here, rtol=1e-12, atol=0)


@pytest.mark.parametrize(("call", "array"), MASKS)
def test_a_tensor_elsewhere_is_an_error_that_names_the_remedy(call, array, stand_in):
    x, mask = Tensor(X, device="cuda:0"), Tensor(array)
    with pytest.raises(ValueError, match=r"operands on .*\.to\(device\)") as caught:
        function(call, NAMES)(x, mask)
    assert "cuda:0" in str(caught.value)
    assert "cpu" in str(caught.value)
    assert function(call, NAMES)(x, mask.to("cuda:0")).device == "cuda:0"
