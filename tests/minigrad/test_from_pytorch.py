"""What people who come from PyTorch and NumPy type first: it works, or the error says what to type here."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, nn, optim

# --- .to


def test_to_another_dtype_is_recorded():
    x = Tensor([1.0, 2.0], requires_grad=True)
    wide = x.to(np.float64)
    assert (wide.dtype, x.to(dtype=np.dtype("float16")).dtype) == (np.float64, np.float16)
    (wide * 3.0).sum().backward()
    assert (x.grad.dtype, x.grad.tolist()) == (np.float32, [3.0, 3.0])


def test_to_a_dtype_or_a_device_where_it_is_already():
    x = Tensor([1.0, 2.0])
    assert x.to(np.float32) is x.to("cpu") is x.to("cpu", np.float32) is x


def test_to_a_device_and_a_dtype(device):
    x = Tensor([1.0, 2.0], requires_grad=True)
    moved = x.to(device, np.float64)
    assert (moved.dtype, moved.device) == (np.float64, Tensor([1.0], device=device).device)
    moved.sum().backward()
    assert (x.grad.dtype, x.grad.device, x.grad.tolist()) == (np.float32, "cpu", [1.0, 1.0])


# --- .grad


@pytest.mark.parametrize(("gradient", "kind", "said"), [
    (3, TypeError, "expected a Tensor or None, got int"),
    (np.ones(2, np.float32), TypeError, "expected a Tensor or None, got ndarray"),
    (Tensor([1.0]), ValueError, r"its shape must be \(2,\), that of the tensor, got \(1,\)"),
    (Tensor([1.0, 2.0], dtype=np.float64), ValueError, "its dtype must be float32, that of the tensor, got float64"),
])
def test_what_grad_cannot_be(gradient, kind, said):
    x = Tensor([1.0, 2.0], requires_grad=True)
    before = x.grad = Tensor([5.0, 6.0])
    with pytest.raises(kind, match=f"grad: {said}"):
        x.grad = gradient
    assert x.grad is before


def test_a_gradient_on_another_device(gpu):
    x = Tensor([1.0, 2.0], device=gpu, requires_grad=True)
    with pytest.raises(ValueError, match=f"grad: its device must be {gpu}, that of the tensor, got cpu"):
        x.grad = Tensor([1.0, 2.0])


def test_what_grad_can_be():
    x = Tensor([1.0, 2.0], requires_grad=True)
    x.grad = Tensor([5.0, 6.0])
    (x * 2.0).sum().backward()
    assert x.grad.tolist() == [7.0, 8.0]
    x.grad = None
    assert x.grad is None


# --- Errors


def cube():
    @mg.primitive
    def cube(x):
        return x * x * x

    return cube


X = Tensor([1.0, 2.0], requires_grad=True)
CALLS = {
    "a model for an optimizer": (lambda: optim.SGD(nn.Linear(2, 2)), r"SGD: .* pass its \.parameters\(\)"),
    "create_graph": (lambda: X.sum().backward(create_graph=True),
                     r"backward: .* minigrad\.grad\(outputs, inputs, create_graph=True\)"),
    "numpy.sum": (lambda: np.sum(X), r"sum.* write x\.f\(\) or minigrad\.f\(x\)"),
    "a rule without a name": (lambda: cube().gradient(lambda g, x: 3 * g * x * x),
                              r"cube: rules are given by the names of the inputs, cube\.gradient\(x=lambda g, …: …\)"),
    "no rule": (lambda: cube().gradient(), "cube: rules are given by the names"),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_error_says_what_to_type(name):
    call, said = CALLS[name]
    with pytest.raises(TypeError, match=said):
        call()


def test_backward_takes_what_pytorchs_takes_otherwise():
    x = Tensor([1.0, 2.0], requires_grad=True)
    (x * x).backward(Tensor([1.0, 1.0]), False, False)
    assert x.grad.tolist() == [2.0, 4.0]
