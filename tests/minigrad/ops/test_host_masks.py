"""What is no operand, a mask, a condition, a target, an index: a NumPy array or a list goes to the tensor's device.

A *Tensor* stays where it was put: a mask or a target of one device beside an input of another is an error, which names
the remedy. (Indices are checked on the host, and sent, in either form.)
"""

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor
from minigrad import functional as F

MASK = np.array([[True, False, True], [False, True, True]])
HALF = np.tril(np.ones((2, 2), bool))
X = np.arange(6.0).reshape(2, 3)
TARGET = X[::-1] / 5

# name: a function of x (2, 3) and the mask or target; that array
MASKS = {
    "where": (lambda x, mask: mg.where(mask, x, 0.0), MASK),
    "masked_fill": (lambda x, mask: x.masked_fill(mask, 7.0), MASK),
    "attention": (lambda x, mask: F.scaled_dot_product_attention(x, x, x, mask), HALF),
    "attention with weights": (lambda x, mask: F.scaled_dot_product_attention(x, x, x, mask, return_weights=True)[0],
                               HALF),
    "attention, dropped": (lambda x, mask: F.scaled_dot_product_attention(x, x, x, dropout_p=0.5, dropped=mask), HALF),
    "dropout_with_mask": (lambda x, mask: F.dropout_with_mask(x, mask, 0.5), MASK),
    "mse_loss": (F.mse_loss, TARGET),
}
INDICES = {
    "gather": (lambda x, index: x.gather(1, index), np.array([[2, 0, 1], [1, 1, 0]])),
    "cross_entropy": (F.cross_entropy, np.array([2, 0])),
    "embedding": (lambda x, ids: F.embedding(ids, x), np.array([1, 0])),
}


def gradient_of(function, given, device):
    x = Tensor(X, device=device, requires_grad=True)
    out = function(x, given)
    (out * out).sum().backward()
    assert out.device == x.grad.device == device
    return out.numpy(), x.grad.numpy()


@pytest.mark.parametrize("name", [*MASKS, *INDICES])
def test_an_array_is_sent_to_the_device_of_the_tensor(name, gpu, form):
    """And so is an index that is a tensor."""
    function, array = {**MASKS, **INDICES}[name]
    for given in (array, Tensor(array)) if name in INDICES else (array,):
        for there, here in zip(gradient_of(function, given, gpu), gradient_of(function, given, "cpu"), strict=True):
            np.testing.assert_allclose(there, here, rtol=1e-12, atol=0)


@pytest.mark.parametrize("name", MASKS)
def test_a_tensor_elsewhere_is_an_error_that_names_the_remedy(name, stand_in):
    function, given = MASKS[name]
    x, mask = Tensor(X, device="cuda:0"), Tensor(given)
    with pytest.raises(ValueError, match=r"operands on .*\.to\(device\)") as caught:
        function(x, mask)
    assert "cuda:0" in str(caught.value)
    assert "cpu" in str(caught.value)
    assert function(x, mask.to("cuda:0")).device == "cuda:0"
