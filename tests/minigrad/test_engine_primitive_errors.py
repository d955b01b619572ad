"""The mistakes one can make with a primitive: what is refused, when, and in which words."""

import re

import numpy as np
import pytest

import minigrad as mg
from minigrad import Saved, Tensor, grad, primitive


def leaf(values):
    return Tensor(np.array(values, np.float64), requires_grad=True)


def make_cube():
    @primitive
    def cube(x, shift=0.0):
        """``(x + shift)³``."""
        return (x + shift) ** 3

    cube.gradient(x=lambda g, x, shift: 3 * g * (x + shift) ** 2)
    return cube


@pytest.mark.parametrize("name", ["g", "out", "needs", "saved"])
def test_reserved_names_are_refused_at_the_definition(name):
    scope = {"primitive": primitive}
    with pytest.raises(TypeError, match=f"f: the parameter name '{name}' is reserved"):
        exec(f"@primitive\ndef f(x, {name}): return x", scope)


def test_parameters_of_other_kinds_are_refused_at_the_definition():
    with pytest.raises(TypeError, match="'axis' is neither"):
        @primitive
        def keyword_only(x, *, axis=0):
            return x
    with pytest.raises(TypeError, match="'options' is neither"):
        @primitive
        def many(x, **options):
            return x
    with pytest.raises(TypeError, match="'xs' is neither"):
        @primitive
        def trailing(x, *xs):
            return x


def test_a_rule_for_something_that_is_no_parameter():
    with pytest.raises(TypeError, match=r"cube: a gradient rule is given for 'y'.*the parameters are x, shift"):
        make_cube().gradient(y=lambda g: g)
    with pytest.raises(TypeError, match="give the plain rule for 'shift' before"):
        make_cube().accumulating_gradient(shift=lambda buffer, g: None)


@pytest.mark.parametrize("rule", [lambda g, z: g, lambda g, x_size: g, lambda g, xs: g])
def test_a_rule_that_asks_for_an_unknown_name(rule):
    name = rule.__code__.co_varnames[1]
    with pytest.raises(TypeError, match=f"cube: a gradient rule asks for '{name}'; it may ask for g, out, needs"):
        make_cube().gradient(x=rule)


def test_a_tensor_where_no_rule_exists():
    cube = make_cube()
    x, shift = leaf([1.0]), leaf(0.5)
    with pytest.raises(TypeError, match=r"cube: there is no gradient rule for the argument 'shift'.*\.detach\(\)"):
        cube(x, shift)
    np.testing.assert_allclose(cube(x, shift.detach()).numpy(), [1.5**3])
    with mg.no_grad():
        np.testing.assert_allclose(cube(x, shift).numpy(), [1.5**3])

    @primitive
    def without_rules(x):
        return x

    with pytest.raises(TypeError, match="without_rules: there is no gradient rule for the argument 'x'"):
        without_rules(x)
    assert without_rules(x.detach()).shape == (1,)

    @primitive
    def variadic_without_rules(*xs):
        return xs[0]

    with pytest.raises(TypeError, match=r"variadic_without_rules: .* 'xs'.* missing"):
        variadic_without_rules(x)


@pytest.mark.parametrize("create_graph", [False, True])
def test_a_rule_that_returns_a_wrong_shape_is_named(create_graph):
    @primitive
    def total(x):
        return x.sum()

    total.gradient(x=lambda g: g)
    x = leaf([1.0, 2.0])
    with pytest.raises(ValueError, match=r"total: its gradient rule for 'x' returned shape \(\) for .* \(2,\)"):
        grad(total(x), x, create_graph=create_graph)


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("wrong", [None, 1.0, "text"])
def test_a_rule_that_returns_no_array_is_named(wrong, create_graph):
    @primitive
    def double(x):
        return x * 2

    double.gradient(x=lambda g: wrong)
    x = leaf([1.0, 2.0])
    with pytest.raises(TypeError, match=r"double: its gradient rule for 'x' must return an array .*\(2,\), not "):
        grad(double(x).sum(), x, create_graph=create_graph)


def test_a_joint_rule_that_returns_too_few_or_none_where_one_is_needed():
    @primitive
    def add(x, y):
        return x + y

    results = [None]

    @add.joint_gradient("x", "y")
    def add_gradient(g, needs):
        return results[0]

    x, y = leaf([1.0]), leaf([2.0])
    for results[0] in (np.ones(1), (np.ones(1),), None):
        with pytest.raises(TypeError, match="add: its joint gradient rule must return one gradient for each of its 2"):
            add(x, y).sum().backward()
    results[0] = (np.ones(1), None)
    with pytest.raises(TypeError, match="add: its gradient rule for 'y' must return an array"):
        add(x, y).sum().backward()
    results[0] = (np.ones(1), np.ones((1, 1)))
    with pytest.raises(ValueError, match=r"add: its gradient rule for 'y' returned shape \(1, 1\)"):
        add(x, y).sum().backward()


def test_saved_values_need_a_composition():
    @primitive
    def f(x):
        return x, Saved(x=x)

    with pytest.raises(TypeError, match="f: a rule that uses saved values needs a composition"):
        @f.joint_gradient("x")
        def f_gradient(g, saved):
            return (g,)


def test_needs_lists_its_names():
    @primitive
    def add(x, y):
        return x + y

    @add.joint_gradient("x", "y")
    def add_gradient(g, needs):
        return needs.z

    with pytest.raises(AttributeError, match="'Needs' object has no attribute 'z'"):
        add(leaf([1.0]), leaf([2.0])).sum().backward()


def test_wrong_arguments_at_the_call():
    cube = make_cube()
    for call in (lambda: cube(), lambda: cube(leaf([1.0]), 1, 2), lambda: cube(leaf([1.0]), power=2)):
        with pytest.raises(TypeError, match=r"cube\(x, shift=0\.0\): "):
            call()


def test_an_error_in_the_forward_names_the_operation_and_the_operands():
    with pytest.raises(ValueError, match=r"add: .*\(2,\) float64; \(3,\) float64"):
        leaf([1.0, 2.0]) + leaf([1.0, 2.0, 3.0])


@pytest.mark.parametrize("shape", [(3, 2), (6,), (1, 2), (2, 3, 1)])
def test_a_broadcasting_rule_of_a_wrong_shape_is_an_error(shape):
    """Also where the number of elements is right, or smaller: only axes that were broadcast are summed away."""
    @mg.primitive(broadcasts=True)
    def plus(x, y):
        return x + y

    plus.gradient(x=lambda g: np.ones(shape), y=lambda g: g)
    x = Tensor(np.ones((2, 3)), requires_grad=True)
    with pytest.raises(ValueError, match=rf"plus: its gradient rule for 'x' returned shape {re.escape(str(shape))}"):
        plus(x, x.detach()).sum().backward()
