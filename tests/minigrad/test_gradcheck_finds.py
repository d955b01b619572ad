"""What gradcheck finds: rules that are wrong in the ways in which people get them wrong."""

import re

import numpy as np
import pytest

from minigrad import GradcheckError, Tensor, gradcheck, gradgradcheck, primitive
from minigrad.engine.primitive import Saved
from minigrad.functional.normalization import layer_norm, layer_norm_by_steps, layer_norm_gradient

from tests.minigrad.checked import tensor, unary


def product(gx=lambda g, y: g @ y.mT, gy=lambda g, x: x.mT @ g):
    @primitive
    def product(x, y):
        return x @ y

    product.gradient(x=gx, y=gy)
    return product


def spoil_saved(g, x, out):
    slope = g * 3 * (x * x)
    out *= 2  # what another rule, or a second pass, will read
    return slope * (out / (2 * x * x * x))


def spoil_g(g, x):
    g *= 3 * (x * x)
    return g


def spoil_g_for_y(g, y):
    g *= 2
    return (g @ y.mT) * 0.5


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


WRONG = {  # each with the input that the message must name, if any
    "a factor is missing": (unary(lambda g, x: g * x * x), "input 0 ('x')"),
    "off by 1 %": (unary(lambda g, x: g * 3.03 * x * x), "input 0 ('x')"),
    "off by a millionth": (unary(lambda g, x: g * (3 + 1e-5) * x * x), "input 0 ('x')"),
    "the wrong sign": (unary(lambda g, x: -3 * g * x * x), "input 0 ('x')"),
    "g is forgotten": (unary(lambda g, x: 3 * x * x), "input 0 ('x')"),
    "zero": (unary(lambda g: g * 0), "input 0 ('x')"),
    "not a number": (unary(lambda g, x: g * x * np.nan), "input 0 ('x')"),
    "infinite": (unary(lambda g, x: g * np.inf), "input 0 ('x')"),
    "transposed": (unary(lambda g, x: (3 * g * x * x).mT), "input 0 ('x')"),
    "one element": (unary(lambda g, x: 3 * g * x * x * (1 + 0.01 * (x == x.max()))), "1 of 9 elements"),
    "the second input, transposed": (product(gy=lambda g, x: (x.mT @ g).mT), "input 1 ('y')"),
    "the first input, not transposed": (product(gx=lambda g, y: g @ y), "input 0 ('x')"),
    "a saved output is written": (unary(spoil_saved), "input 0 ('x')"),
    "g is written": (unary(spoil_g), "wrote to the gradient"),
    "g is written before its second use": (product(gx=spoil_g_for_y), "wrote to the gradient"),
    "an input is written": (unary(spoil_input), "the backward pass wrote to input 0"),
    "an input is written by the forward": (clipped_in_place, "the function wrote to input 0"),
    "the graph is cut": (lambda x: Tensor(np.tanh(x.data)), "input 0 ('x')"),
    "part of the graph is cut": (lambda x: x * x.detach(), "input 0 ('x')"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_gradients_are_found(name):
    function, said = WRONG[name]
    inputs = [tensor(3, 3, seed=i) for i in range(2 if "input, " in name or "second use" in name else 1)]
    values = [x.numpy().copy() for x in inputs]
    with pytest.raises(GradcheckError) as caught:
        gradcheck(function, inputs)
    assert said in str(caught.value)
    for x, before in zip(inputs, values, strict=True):
        np.testing.assert_array_equal(x.numpy(), before)


def test_a_cut_graph_of_second_order():
    """A rule that computes with raw arrays is right at first order; only gradgradcheck sees that it records nothing."""
    def raw(x):
        return x._data if isinstance(x, Tensor) else x

    function = unary(lambda g, x: g * (3 * raw(x) * raw(x)))
    x = tensor(2, 2)
    assert gradcheck(function, x)
    with pytest.raises(GradcheckError, match=r"gradgradcheck: input 0 \('x'\) of shape \(2, 2\)"):
        gradgradcheck(function, x)


def test_a_rule_that_is_wrong_only_when_recorded():
    function = unary(lambda g, x: g * (3 if isinstance(g, np.ndarray) else 3.03) * x * x)
    x = tensor(2, 2)
    assert gradcheck(function, x)
    with pytest.raises(GradcheckError, match=r"\('g0'\)|\('x'\)"):
        gradgradcheck(function, x)


# --- Layer norm, broken in the ways that people break it ------------------------------------------------------


def broken_layer_norm(change):
    """layer_norm whose rule is given what `change` makes of it: eps, statistics or its results."""

    @primitive(composition=layer_norm_by_steps)
    def broken(input, weight=None, bias=None, eps=1e-5):
        out, saved = layer_norm.forward(input, weight, bias, eps)
        return out, saved

    @broken.joint_gradient("input", "weight", "bias")
    def rule(g, input, weight, saved, needs):
        return change(g, input, weight, saved, needs)

    return broken


def eps_of_1e_6(g, input, weight, saved, needs):
    variance = input.var(axis=-1, keepdims=True)
    return layer_norm_gradient(g, input, weight, Saved(mean=saved.mean, rstd=1 / np.sqrt(variance + 1e-6)))


def corrected_variance(g, input, weight, saved, needs):
    variance = input.var(axis=-1, ddof=1, keepdims=True)
    return layer_norm_gradient(g, input, weight, Saved(mean=saved.mean, rstd=1 / np.sqrt(variance + 1e-5)))


def mean_held_fixed(g, input, weight, saved, needs):
    gx, gw, gb = layer_norm_gradient(g, input, weight, saved)
    return gx + (g * weight).mean(axis=-1, keepdims=True) * saved.rstd, gw, gb


def bias_of_one_row(g, input, weight, saved, needs):
    gx, gw, _ = layer_norm_gradient(g, input, weight, saved)
    return gx, gw, g[0]


@pytest.mark.parametrize(("change", "name"), [
    (eps_of_1e_6, "input 0 ('input')"),
    (corrected_variance, "input 0 ('input')"),
    (mean_held_fixed, "input 0 ('input')"),
    (bias_of_one_row, "input 2 ('bias')"),
])
def test_broken_layer_norms_are_found(change, name):
    inputs = [tensor(4, 6), tensor(6, seed=1), tensor(6, seed=2)]
    assert gradcheck(layer_norm, inputs)
    with pytest.raises(GradcheckError, match=re.escape(name)) as caught:
        gradcheck(broken_layer_norm(change), inputs)
    assert "[output of broken]" in str(caught.value)
