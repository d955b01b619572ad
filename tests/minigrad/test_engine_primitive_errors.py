"""The mistakes one can make with a primitive: what is refused, when, and what the error names."""

import re

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, grad, primitive


def leaf(values):
    return Tensor(np.array(values, np.float64), requires_grad=True)


def make_cube():
    @primitive
    def cube(x, shift=0.0):
        return (x + shift) ** 3

    cube.gradient(x=lambda g, x, shift: 3 * g * (x + shift) ** 2)
    return cube


@pytest.mark.parametrize(("parameters", "named"), [
    ("x, g", "g"), ("x, *, axis=0", "axis"), ("x, **options", "options"), ("x, *xs", "xs"),
])
def test_parameters_that_are_refused_at_the_definition(parameters, named):
    with pytest.raises(TypeError, match=f"f.*: .*'{named}'"):
        exec(f"@primitive\ndef f({parameters}): return x", {"primitive": primitive})


@pytest.mark.parametrize(("declare", "said"), [
    (lambda cube: cube.gradient(y=lambda g: g), "'y'.* x, shift"),
    (lambda cube: cube.gradient(lambda g: g), r"cube\.gradient\(x="),
    (lambda cube: cube.accumulating_gradient(shift=lambda buffer, g: None), "plain rule for 'shift'"),
    (lambda cube: cube.gradient(x=lambda g, z: g), "'z'"),
    (lambda cube: cube.gradient(x=lambda g, x_size: g), "'x_size'"),
    (lambda cube: cube.joint_gradient("x")(lambda g, saved: (g,)), "composition"),
], ids=["no parameter", "no name", "adding alone", "unknown", "unknown fact", "saved"])
def test_rules_that_are_refused_at_their_declaration(declare, said):
    with pytest.raises(TypeError, match=f"cube: .*{said}"):
        declare(make_cube())


def test_a_tensor_where_no_rule_exists():
    cube = make_cube()
    x, shift = leaf([1.0]), leaf(0.5)
    with pytest.raises(TypeError, match=r"cube: .*'shift'.*\.detach\(\)"):
        cube(x, shift)
    np.testing.assert_allclose(cube(x, shift.detach()).numpy(), [1.5**3])
    with mg.no_grad():
        np.testing.assert_allclose(cube(x, shift).numpy(), [1.5**3])

    @primitive
    def without_rules(x):
        return x

    with pytest.raises(TypeError, match=r"without_rules: .* 'x'"):
        without_rules(x)


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize(("wrong", "error", "said"), [
    (lambda g: g, ValueError, r"returned shape \(\) .*\(2,\)"), (lambda g: None, TypeError, r"\(2,\), not None"),
    (lambda g: 1.0, TypeError, "not 1.0"),
])
def test_a_rule_that_returns_no_fitting_array_is_named(wrong, error, said, create_graph):
    @primitive
    def total(x):
        return x.sum()

    total.gradient(x=wrong)
    x = leaf([1.0, 2.0])
    with pytest.raises(error, match=f"total: its gradient rule for 'x' .*{said}"):
        grad(total(x), x, create_graph=create_graph)


@pytest.mark.parametrize("shape", [(3, 2), (1, 2), (2, 3, 1)])
def test_a_broadcasting_rule_of_a_wrong_shape_is_an_error(shape):
    """Also where the number of elements is right, or smaller: only axes that were broadcast are summed away."""
    @primitive(broadcasts=True)
    def plus(x, y):
        return x + y

    plus.gradient(x=lambda g: np.ones(shape), y=lambda g: g)
    x = leaf(np.ones((2, 3)))
    with pytest.raises(ValueError, match=rf"plus: its gradient rule for 'x' returned shape {re.escape(str(shape))}"):
        plus(x, x.detach()).sum().backward()


@pytest.mark.parametrize(("returned", "error", "said"), [
    (np.ones(1), TypeError, "each of its 2"), ((np.ones(1), None), TypeError, "'y'"),
    ((np.ones(1), np.ones((1, 1))), ValueError, r"'y' returned shape \(1, 1\)"),
], ids=["array", "None", "shape"])
def test_a_joint_rule_that_returns_too_few_or_none_where_one_is_needed(returned, error, said):
    @primitive
    def add(x, y):
        return x + y

    add.joint_gradient("x", "y")(lambda g, needs: returned)
    with pytest.raises(error, match=f"add: its .*{said}"):
        add(leaf([1.0]), leaf([2.0])).sum().backward()


def test_an_error_in_the_forward_names_the_operation_and_the_operands():
    with pytest.raises(ValueError, match=r"add: .*\(2,\) float64; \(3,\) float64"):
        leaf([1.0, 2.0]) + leaf([1.0, 2.0, 3.0])
