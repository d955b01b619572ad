"""Derivatives of functions: against closed forms and finite differences, to third order, with nested arguments."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, func
from minigrad import functional as F

from tests.minigrad.functions import close, curve, normal, slope
from tests.minigrad.ops.row import host

# --- First derivatives -------------------------------------------------------------------------------


def test_grad_and_value_and_grad(device):
    x, y = normal(3, device=device), normal(3, seed=1, device=device)

    def f(x, y, power=2):
        return (x ** power * y).sum()

    close(func.grad(f)(x, y), 2 * host(x) * host(y))
    close(func.grad(f, 1)(x, y, power=3), host(x) ** 3)
    close(func.grad(f)(host(x), 2.0), 4 * host(x))
    by_x, by_y = func.grad(f, (0, -1))(x, y)
    close(by_x, 2 * host(x) * host(y))
    close(by_y, host(x) ** 2)
    value, gradient = func.value_and_grad(f)(x, y)
    close(value, (host(x) ** 2 * host(y)).sum())
    assert not value.requires_grad
    assert not gradient.requires_grad
    assert not x.requires_grad
    assert gradient.device == x.device


def test_nested_arguments():
    tree = {"w": normal(2, 3), "rest": [normal(3), (normal(1), 2.0)]}

    def f(tree):
        bias, (scale, number) = tree["rest"]
        return ((tree["w"] + bias) * scale * number).sum()

    found = func.grad(f)(tree)
    assert list(found) == ["w", "rest"]
    assert isinstance(found["rest"][1], tuple)
    close(found["w"], np.full((2, 3), 2 * host(tree["rest"][1][0])[0]))
    close(found["rest"][1][1], (host(tree["w"]) + host(tree["rest"][0])).sum() * host(tree["rest"][1][0])[0],
          rtol=1e-6)  # a Python number is a float32 tensor


def test_what_does_not_depend_has_a_zero_gradient():
    x, y = normal(3), normal(2)
    close(func.grad(lambda x, y: (x * x).sum(), 1)(x, y), np.zeros(2))
    close(func.grad(lambda x: Tensor(1.0))(x), np.zeros(3))
    close(func.jacobian(lambda x: Tensor([1.0, 2.0]))(x), np.zeros((2, 3)))
    close(func.hessian(lambda x: x.sum())(x), np.zeros((3, 3)))
    close(func.hvp(lambda x: x.sum(), x, x), np.zeros(3))


def test_vjp(device):
    x, v = normal(3, device=device), normal(4, seed=2, device=device)
    value, pull_back = func.vjp(curve, x)
    close(value, host(curve(x)))
    for _ in range(2):
        close(pull_back(v), host(v) @ slope(host(x)))
    value, pull_back = func.vjp(lambda x, y: (x * y, {"sum": x + y}), x, x * 2)
    by_x, by_y = pull_back((mg.ones((3,), dtype=np.float64, device=device), {"sum": x}))
    close(by_x, 2 * host(x) + host(x))
    close(by_y, host(x) + host(x))
    close(func.vjp(lambda x: x.sum(), x)[1](), np.ones(3))
    close(func.vjp(lambda x: (x * 2, x * 3), x)[1]((x, x)), 5 * host(x))


def test_jvp(device):
    x, t = normal(3, device=device), normal(3, seed=2, device=device)
    value, along = func.jvp(curve, (x,), (t,))
    close(value, host(curve(x)))
    close(along, slope(host(x)) @ host(t))
    value, along = func.jvp(lambda x, y: (x * y, x.sum()), [x, t], [t, x])
    close(along[0], host(t) ** 2 + host(x) ** 2)
    close(along[1], host(t).sum())
    close(func.jvp(lambda x: (Tensor([7.0]), x), (x,), (t,))[1][0], [0.0])


# --- Jacobians, Hessians -----------------------------------------------------------------------------


def test_jacobian(device):
    x = normal(3, device=device)
    close(func.jacobian(curve)(x), slope(host(x)))
    both = func.jacobian(lambda x, y: x[:, None] * y, (0, 1))(x, x * 2)
    assert [j.shape for j in both] == [(3, 3, 3), (3, 3, 3)]
    close(both[0], np.einsum("ik,j->ijk", np.eye(3), 2 * host(x)))
    assert func.jacobian(lambda x: x.sum())(x).shape == (3,)
    assert func.jacobian(lambda x: x[:0])(x).shape == (0, 3)


def test_hessian_and_hvp(device):
    x, t = normal(3, device=device), normal(3, seed=2, device=device)

    def f(x):
        return (curve(x) ** 2).sum() + mg.exp(x[0] * x[1])

    full = func.hessian(f)(x)
    close(full, host(full).T)
    step = 1e-5
    for k in range(3):
        nudge = Tensor(np.eye(3)[k] * step, device=device)
        quotient = (host(func.grad(f)(x + nudge)) - host(func.grad(f)(x - nudge))) / (2 * step)
        close(full[k], quotient, rtol=1e-8, atol=1e-9)
    close(func.hvp(f, x, t), host(full) @ host(t))
    close(func.jvp(func.grad(f), (x,), (t,))[1], host(full) @ host(t))
    by_x, by_y = func.hvp(lambda x, y: (x * x * y).sum(), (x, t), (t, x))
    close(by_x, 2 * host(t) * host(t) + 2 * host(x) * host(x))
    close(by_y, 2 * host(x) * host(t))


@pytest.mark.parametrize(("function", "third"), [
    (lambda x: x ** 4, lambda x: 24 * x),
    (mg.tanh, lambda x: -2 * (1 - np.tanh(x) ** 2) * (1 - 3 * np.tanh(x) ** 2)),
    (lambda x: F.log_softmax(mg.stack([x, 0 * x]))[0], lambda x: -np.tanh(x / 2) * (np.tanh(x / 2) ** 2 - 1) / 4),
], ids=["x⁴", "tanh", "log_softmax"])
def test_third_derivatives(function, third):
    close(func.grad(func.grad(func.grad(function)))(Tensor(0.7, dtype=np.float64)), third(0.7), rtol=1e-12)


# --- Transforms in transforms ------------------------------------------------------------------------


def test_a_derivative_inside_a_derivative_of_something_else():
    """d/dw of d/dx (w x³) at x = 2, w = 5: the inner derivative depends on w by reference, not by argument."""
    def outer(w):
        return func.grad(lambda x: w * x ** 3)(Tensor(2.0, dtype=np.float64)) ** 2

    close(func.grad(outer)(Tensor(5.0, dtype=np.float64)), 2 * (5 * 12) * 12)


def test_results_are_recorded_only_for_those_who_can_use_them():
    x = normal(3)
    weight = Tensor([2.0, 3.0, 4.0], dtype=np.float64, requires_grad=True)
    value, gradient = func.value_and_grad(lambda x: (x * x * weight).sum())(x)
    assert value.requires_grad
    assert gradient.requires_grad
    close(mg.grad(gradient.sum(), weight), 2 * host(x))
    with mg.no_grad():
        value, gradient = func.value_and_grad(lambda x: (x * x * weight).sum())(weight)
        assert not value.requires_grad
        assert not gradient.requires_grad
    close(gradient, 2 * host(weight) ** 2)
    assert weight.grad is None
    gradient = func.grad(lambda x: (x * x * x).sum())(weight)
    close(mg.grad(gradient.sum(), weight), 6 * host(weight))


def test_dictionaries_are_matched_by_their_keys():
    a, b = normal(2), normal(2, seed=1)

    def f(d):
        return (d["a"] ** 2 * d["b"] ** 3).sum()

    found = func.hvp(f, {"a": a, "b": b}, {"b": b * 0, "a": a})
    assert list(found) == ["a", "b"]
    close(found["a"], 2 * host(a) * host(b) ** 3)
    pull_back = func.vjp(lambda x: {"double": x * 2, "triple": x * 3}, a)[1]
    close(pull_back({"triple": b * 0, "double": b}), 2 * host(b))


def test_what_inner_calls_made_for_themselves_is_nobodys_leaf():
    t = normal(3)
    pull_back = func.vjp(lambda x: x ** 2, t)[1]

    def f(x):
        return (x ** 4).sum()

    for inner in (lambda v: func.jvp(f, (t,), (v,))[1], lambda v: (pull_back(v) * v).sum()):
        assert not func.grad(inner)(t).requires_grad
    nested = func.grad(lambda v: func.grad(lambda x: (func.hvp(f, x, v) * v).sum())(t).sum())
    close(nested(t), 2 * 24 * host(t) * host(t))


def test_a_transform_inside_a_checkpoint_inside_a_transform():
    """The inner one runs again in the backward of the outer: f(x) = 4 x⁴, whose gradient is 16 x³."""
    t = Tensor([1.0, 2.0], dtype=np.float64)

    def f(x):
        return (func.grad(lambda z: (z ** 4).sum())(x) * x).sum()

    expected = [16.0, 128.0]
    close(func.grad(lambda x: func.checkpoint(f, x))(t), expected)
    close(func.vjp(lambda x: func.checkpoint(f, x), t)[1](), expected)
    close(func.jacobian(lambda x: func.checkpoint(f, x))(t), expected)
    close(func.hvp(lambda x: func.checkpoint(f, x), t, t), 48 * host(t) ** 3)
    with ThreadPoolExecutor(1) as pool:
        inner = func.grad(lambda z: (z ** 4).sum())
        close(func.grad(lambda x: (pool.submit(inner, x).result() * x).sum())(t), expected)


# --- Wrong calls -------------------------------------------------------------------------------------

X = normal(3)
WRONG = {
    "no number": (lambda: func.grad(lambda x: x)(X), ValueError, r"one number, got \(3,\)"),
    "no tensor": (lambda: func.grad(lambda x: 1.0)(X), ValueError, "one number, got 1.0"),
    "integers": (lambda: func.grad(lambda x: x.sum())(Tensor([1, 2])), TypeError, "int64"),
    "argnums": (lambda: func.grad(lambda x: x.sum(), 1)(X), ValueError, "argnums 1 .* 1 positional"),
    "other keys": (lambda: func.hvp(lambda d: d["a"].sum(), {"a": X}, {"b": X}), ValueError,
                   "hvp: tangents: .*'a'.*, got .*'b'"),
    "vjp of a number": (lambda: func.vjp(lambda x: 1.0, X), TypeError, "vjp: .* tensors, got float"),
    "vjp starts": (lambda: func.vjp(lambda x: (x, x), X)[1](X), ValueError, "vjp: gradients"),
    "vjp shape": (lambda: func.vjp(curve, X)[1](X), ValueError, r"\(3,\).* \(4,\)"),
    "jvp without a tuple": (lambda: func.jvp(curve, X, (X,)), TypeError, "jvp: primals"),
    "jacobian of a tuple": (lambda: func.jacobian(lambda x: (x, x))(X), TypeError, "jacobian: .* tensor"),
    "hessian of a dictionary": (lambda: func.hessian(lambda d: d["a"].sum())({"a": X}), TypeError, "jacobian: "),
    "hvp of a vector": (lambda: func.hvp(curve, X, X), ValueError, "grad: .* one number"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_calls(name):
    call, error, said = WRONG[name]
    with pytest.raises(error, match=said):
        call()
