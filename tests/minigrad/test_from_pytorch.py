"""What people who come from PyTorch and NumPy type first: it works, or the error says what to type here."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, nn, optim


def test_to_a_device_and_a_dtype(device):
    x = Tensor([1.0, 2.0], requires_grad=True)
    moved = x.to(device, np.float64)
    assert (moved.dtype, moved.device) == (np.float64, Tensor([1.0], device=device).device)
    assert moved.to(np.float64) is moved.to(device) is moved.to(device, np.float64) is moved
    assert x.to(dtype=np.dtype("float16")).dtype == np.float16
    (moved * 3.0).sum().backward()
    assert (x.grad.dtype, x.grad.device, x.grad.tolist()) == (np.float32, "cpu", [3.0, 3.0])


def test_what_grad_cannot_be(gpu):
    for device, gradient, kind, named in [
        ("cpu", np.ones(2, np.float32), TypeError, "ndarray"),
        ("cpu", Tensor([1.0]), ValueError, r"shape must be \(2,\), .* got \(1,\)"),
        ("cpu", Tensor([1.0, 2.0], dtype=np.float64), ValueError, "dtype must be float32, .* got float64"),
        (gpu, Tensor([1.0, 2.0]), ValueError, f"device must be {gpu}, .* got cpu"),
    ]:
        x = Tensor([1.0, 2.0], device=device, requires_grad=True)
        before = x.grad = Tensor([5.0, 6.0], device=device)
        with pytest.raises(kind, match=f"grad: .*{named}"):
            x.grad = gradient
        assert x.grad is before


def test_what_grad_can_be():
    x = Tensor([1.0, 2.0], requires_grad=True)
    x.grad = Tensor([5.0, 6.0])
    (x * x).backward(Tensor([1.0, 1.0]), False, False)  # PyTorch's arguments by position
    assert x.grad.tolist() == [7.0, 10.0]
    x.grad = None
    assert x.grad is None


@mg.primitive
def cube(x):
    return x * x * x


X = Tensor([1.0, 2.0], requires_grad=True)
CALLS = {
    "a model for an optimizer": (lambda: optim.SGD(nn.Linear(2, 2)), r"SGD: .*\.parameters\(\)"),
    "create_graph": (lambda: X.sum().backward(create_graph=True), r"backward: .* minigrad\.grad\("),
    "numpy.sum": (lambda: np.sum(X), r"sum.*minigrad\.f\(x\)"),
    "a rule without a name": (lambda: cube.gradient(lambda g, x: 3 * g * x * x), r"cube: .*cube\.gradient\(x="),
    "no rule": (lambda: cube.gradient(), "cube: rules are given by the names"),
}


@pytest.mark.parametrize(("call", "said"), CALLS.values(), ids=CALLS)
def test_the_error_says_what_to_type(call, said):
    with pytest.raises(TypeError, match=said):
        call()
