"""gradcheck and gradgradcheck: what is right passes, what is wrong is found and named, which calls are refused."""

import re

import numpy as np
import pytest

import minigrad as mg
from minigrad import GradcheckError, Tensor, functional, gradcheck, gradgradcheck, primitive

from tests.minigrad.ops.row import function, table


def tensor(*shape, seed=0, device="cpu", requires_grad=True):
    values = np.asarray(np.random.default_rng([seed, *shape]).normal(size=shape))
    return Tensor(values, device=device, requires_grad=requires_grad)


def cube(rule):
    """x³, with a gradient rule to choose."""
    @primitive
    def cube(x):
        return x * x * x

    cube.gradient(x=rule)
    return cube


# --- What is right passes ------------------------------------------------------------------------------------


def penalty(x, w):
    """A function that uses grad() itself: ‖∂ tanh(x·w)/∂x‖²."""
    gradient = mg.grad(mg.tanh((x * w).sum()), x, create_graph=True)
    return (gradient * gradient).sum()


RIGHT = """
    layer_norm(x, y, z)                                     (2, 3), (3,), (3,)
    (mg.exp(x), x.sum(axis=0), x[0, 0] * x[1, 1])           [(2, 3)]
    [x * 2, x.detach() * 0, x.argmax(), x > 0]              [(2, 3)]
    x * 2                                                   [(0, 3)]
    Tensor(np.ones(3), device=x.device)                     [(2,)]
    penalty(x, y)                                           (3,), (3,)
    mg.masked_fill(x, x == x.max(), -inf)                   [(2,)]
    dropout(mg.tanh(x), 0.5)                                [(4, 5)]
"""


@pytest.mark.parametrize(("call", "shapes"), table(RIGHT))
def test_right_gradients_pass(call, shapes, device):
    """Of several inputs and outputs, some of which are not used; masks are frozen, and no state is changed."""
    right = function(call, {**vars(functional), "mg": mg, "Tensor": Tensor, "penalty": penalty})
    inputs = [tensor(*shape, seed=i, device=device) for i, shape in enumerate(shapes)]
    before = mg.random.get_state(), [(x.data, x.numpy().copy()) for x in inputs]
    with mg.no_grad():
        assert gradcheck(right, inputs) is True
        assert gradgradcheck(right, inputs) is True
    assert mg.random.get_state() == before[0]
    for x, (array, values) in zip(inputs, before[1], strict=True):
        assert (x.data is array, x.grad) == (True, None)
        np.testing.assert_array_equal(x.numpy(), values)


# --- What is wrong is found ----------------------------------------------------------------------------------


@primitive
def product(x, y):
    """With a wrong rule for y."""
    return x @ y


product.gradient(x=lambda g, y: g @ y.mT, y=lambda g, x: (x.mT @ g).mT)


def spoil_saved(g, x, out):
    slope = g * 3 * (x * x)
    out *= 2  # what another rule, or a second pass, will read
    return slope * (out / (2 * x * x * x))


def spoil_g(g, x):
    g *= 3 * (x * x)
    return g


def spoil_input(g, x):
    slope = 3 * (x * x)
    x *= 1.5
    return g * slope


@primitive
def clipped_in_place(x):
    """Right at the second call, and so in every difference: only a comparison of the input shows it."""
    x[x < 0] = 0
    return x * 1.0


clipped_in_place.gradient(x=lambda g, x: g * (x > 0))


# A rule for x³, or a function, and what the message must name.
RULES = """
    lambda g, x: g * (3 + 1e-5) * x * x         input 0 of shape
    lambda g, x: 3 * x * x                      input 0 of shape
    lambda g, x: g * x * np.nan                 input 0 of shape
    lambda g, x: 3 * g * x * x * (1 + 0.01 * (x == x.max()))    1 of 9 elements
    spoil_saved                                 input 0 of shape
    spoil_g                                     wrote to the gradient
    spoil_input                                 the backward pass wrote to input 0
"""
WRONG = {
    "the second input": (product, "input 1 of shape"),
    "an input is written by the forward": (clipped_in_place, "the function wrote to input 0"),
    "the graph is cut": (lambda x: Tensor(np.tanh(x.data)), "input 0 of shape"),
    "it draws by itself": (lambda x: x * Tensor(DRAW.normal(size=3)), "different results"),
}
for line in RULES.strip().splitlines():
    rule, said = re.split(r"  +", line.strip())
    WRONG[rule] = cube(eval(rule)), said  # noqa: S307 - of our own writing
DRAW = np.random.default_rng(0)


@pytest.mark.parametrize("name", WRONG)
def test_wrong_gradients_are_found(name):
    function, said = WRONG[name]
    inputs = [tensor(3, 3, seed=i) for i in range(2 if "second" in name else 1)]
    values = [x.numpy().copy() for x in inputs]
    with pytest.raises(GradcheckError, match=re.escape(said)) as caught:
        gradcheck(function, inputs)
    assert isinstance(caught.value, AssertionError)  # so that a test runner shows a failure, not an error
    for x, before in zip(inputs, values, strict=True):
        np.testing.assert_array_equal(x.numpy(), before)


@pytest.mark.parametrize("rule", [
    lambda g, x: g * 3 * (x.detach() if isinstance(x, Tensor) else x) ** 2,
    lambda g, x: g * (3 if isinstance(g, np.ndarray) else 3.03) * x * x,
], ids=["the graph is cut", "another factor"])
def test_what_is_wrong_at_the_second_order_only(rule):
    function, x = cube(rule), tensor(2, 2)
    assert gradcheck(function, x)
    with pytest.raises(GradcheckError, match=r"gradgradcheck: input \d of shape"):
        gradgradcheck(function, x)
