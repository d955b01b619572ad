"""`primitive` as its users meet it: an op of one's own, by every kind of rule, and the mistakes one can make."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import Saved, Tensor, grad, primitive
from minigrad.gradcheck import gradcheck, gradgradcheck

from tests.minigrad.ops.row import function, leaf, table


def make_cube():
    @primitive
    def cube(x, shift=0.0):
        """``(x + shift)³``."""
        return (x + shift) ** 3

    cube.gradient(x=lambda g, x, shift: 3 * g * (x + shift) ** 2)
    return cube


def test_a_rule_for_one_input_and_a_static_argument():
    cube = make_cube()
    x = leaf([1.0, -2.0])
    for call in (lambda x: cube(x), lambda x: cube(x, 0.5), lambda x: cube(x=x, shift=0.5), lambda x: cube(x, shift=2)):
        gradcheck(call, x)
        gradgradcheck(call, x)
    array = np.array([1.0, 2.0])
    assert type(cube(array)) is np.ndarray
    assert not cube(Tensor(array)).requires_grad
    assert cube(3.0) == 27


def test_an_accumulating_rule_serves_the_ordinary_pass_and_the_plain_one_create_graph():
    calls = []

    @primitive
    def first_row(x):
        return x[0] * 1

    def add(buffer, g):
        calls.append("adding")
        buffer[0] += g

    first_row.gradient(x=lambda g: calls.append("plain") or mg.stack([g, g * 0]))
    first_row.accumulating_gradient(x=add)
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    (first_row(x) + first_row(x) * 2).sum().backward()
    assert (calls, x.grad.tolist()) == (["adding"] * 2, [[3, 3], [0, 0]])
    h = x * 1
    (h.sum() + first_row(h).sum() + h.sum()).backward()  # into a gradient that was borrowed, and then onwards
    assert x.grad.tolist() == [[6, 6], [2, 2]]
    gradgradcheck(lambda x: first_row(x) ** 3, x)
    assert "plain" in calls


@pytest.mark.parametrize("exp", [mg.exp, np.exp], ids=["of its own", "given"])
def test_a_fused_primitive_with_its_composition(exp):
    """The forward itself, on tensors, or a function in the place of one that takes arrays alone."""
    @primitive(composite=True if exp is mg.exp else lambda x, y: mg.exp(x) * y)
    def exp_times(x, y):
        e = exp(x)
        return e * y, Saved(e=e)

    @exp_times.joint_gradient("x", "y")
    def exp_times_gradient(g, y, saved, needs):
        return (g * saved.e * y if needs.x else None, g * saved.e if needs.y else None)

    x, y = leaf([0.5, -1.0]), leaf([2.0, 3.0])
    gradcheck(exp_times, [x, y])
    gradgradcheck(exp_times, [x, y])
    with mg.fused(False):
        assert "op=mul" in repr(exp_times(x, y))
    np.testing.assert_allclose(exp_times(x.data, y.data), np.exp(x.data) * y.data)


def test_an_operation_without_gradients():
    """It cuts the graph, and gets an index as it is."""
    @primitive
    def pick(x, index):
        return x[index]

    pick.no_gradient()
    x = leaf([1.0, 2.0, 3.0])
    for index in (np.array([2, 0]), Tensor([2, 0]), [2, 0]):
        picked = pick(x, index)
        assert not picked.requires_grad
        np.testing.assert_array_equal(picked.numpy(), [3.0, 1.0])
    np.testing.assert_array_equal(grad((pick(x, [2, 0]) * x[:2]).sum(), x).numpy(), [3, 1, 0])


# --- Mistakes: what is refused, when, and what the error names


@pytest.mark.parametrize("parameters", ["x, g", "x, *, axis=0", "x, *xs"])
def test_parameters_that_are_refused_at_the_definition(parameters):
    with pytest.raises(TypeError, match=r"f.*\b(g|axis|xs)\b"):
        exec(f"@primitive\ndef f({parameters}): return x", {"primitive": primitive})


@pytest.mark.parametrize(("declare", "said"), table("""
    x.gradient(y=lambda g: g)                           "'y'.* x, shift"
    x.gradient(x=lambda g, z: g)                        "'z'"
    x.joint_gradient("x")(lambda g, saved: (g,))        "composite"
"""))
def test_rules_that_are_refused_at_their_declaration(declare, said):
    with pytest.raises(TypeError, match=f"cube: .*{said}"):
        function(declare)(make_cube())


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
@pytest.mark.parametrize(("wrong", "error", "said"), table("""
    g.sum()                     ValueError      r"returned shape \\(\\) .*\\(2, 3\\)"
    None                        TypeError       r"returned None .*\\(2, 3\\)"
    1.0                         TypeError       "returned 1.0"
    np.ones((3, 2))             ValueError      r"returned shape \\(3, 2\\)"
    np.ones((1, 2))             ValueError      r"returned shape \\(1, 2\\)"
    np.ones((2, 3, 1))          ValueError      r"returned shape \\(2, 3, 1\\)"
"""))
@pytest.mark.parametrize("broadcasts", [False, True])
def test_a_rule_that_returns_no_fitting_array_is_named(wrong, error, said, create_graph, broadcasts):
    """Also where the number of elements is right, or smaller: only axes that were broadcast are summed away."""
    @primitive(broadcasts=broadcasts)
    def plus(x, y):
        return x + y

    plus.gradient(x=lambda g: eval(wrong, {"g": g, "np": np}), y=lambda g: g)  # noqa: S307 - of our own writing
    x = leaf(np.ones((2, 3)))
    with pytest.raises(error, match=f"plus: its gradient rule for 'x' .*{said}"):
        grad(plus(x, x.detach()).sum(), x, create_graph=create_graph)


def test_an_error_in_the_forward_names_the_operation_and_the_operands():
    with pytest.raises(ValueError, match=r"add: .*x: \(2,\) float64; y: \(3,\) float64"):
        leaf([1.0, 2.0]) + leaf([1.0, 2.0, 3.0])
