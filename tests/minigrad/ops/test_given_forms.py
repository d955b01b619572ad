"""What is no operand, a mask, a condition, a target, an index: in every form, on every device.

An array or a list goes to the tensor's device. A *Tensor* stays where it was put: a mask or a target of one device
beside an input of another is an error, which names the remedy. (Indices are checked on the host, and sent, in either
form.)
"""

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor
from minigrad import functional as F

from tests.minigrad.ops.row import function, table

X = np.arange(6.0).reshape(2, 3)
# Calls of x (2, 3) and of the mask, target or index y; that array.
NAMES = {**vars(F), **vars(mg.ops), "X": X, "MASK": np.array([[True, False, True], [False, True, True]]),
         "HALF": np.tril(np.ones((2, 2), bool)), "attend": F.scaled_dot_product_attention, "array": np.array}
MASKS = table("""
    where(y, x, 0.0)                                    MASK
    x.masked_fill(y, 7.0)                               MASK
    attend(x, x, x, y)                                  HALF
    attend(x, x, x, dropout_p=0.5, dropped=y)           HALF
    dropout_with_mask(x, y, 0.5)                        MASK
    mse_loss(x, y)                                      X[::-1] / 5
""", NAMES)
INDICES = table("""
    x[y]                        array([1, 0, 1])
    x.take(y, axis=0)           array([[1], [1]])
    x.gather(1, y)              array([[2, 0, 1], [1, 1, 0]])
    cross_entropy(x, y)         array([2, 0])
    embedding(y, x)             array([[1, 0], [1, 1]])
    embedding(y, x)             array([], int)
""", NAMES)


def gradient_of(call, given, device):
    x = Tensor(X, device=device, requires_grad=True)
    out = function(call, NAMES)(x, given)
    (out * out).sum().backward()
    assert out.device == x.grad.device == device
    return out.numpy(), x.grad.numpy()


@pytest.mark.parametrize(("call", "array"), [*MASKS, *INDICES])
def test_every_form_is_sent_to_the_device_of_the_tensor(call, array, gpu, form):
    forms = [array, Tensor(array, device=gpu)]
    if array.dtype.kind != "b":
        forms.append(array.tolist() if array.size else array)
    if array.dtype.kind == "i":
        forms += [array.astype(np.uint8), Tensor(array)]
    expected = gradient_of(call, array, "cpu")
    for given in forms:
        for there, here in zip(gradient_of(call, given, gpu), expected, strict=True):
            np.testing.assert_allclose(there, here, rtol=1e-12, atol=0)


@pytest.mark.parametrize(("call", "array"), MASKS)
def test_a_tensor_elsewhere_is_an_error_that_names_the_remedy(call, array, stand_in):
    x, mask = Tensor(X, device="cuda:0"), Tensor(array)
    with pytest.raises(ValueError, match=r"operands on (cpu and cuda:0|cuda:0 and cpu).*\.to\(device\)"):
        function(call, NAMES)(x, mask)
