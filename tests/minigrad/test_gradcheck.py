"""gradcheck and gradgradcheck: what is right passes, what the messages say, and which calls are refused."""

import re

import numpy as np
import pytest

import minigrad as mg
from minigrad import GradcheckError, Tensor, functional, gradcheck, gradgradcheck, ops, primitive
from minigrad.device import to_numpy

from tests.minigrad.checked import tensor, unary

# --- What is right passes ------------------------------------------------------------------------------------


RIGHT = {
    "one input": (mg.tanh, [(2, 3)]),
    "several inputs": (lambda x, w, b: functional.layer_norm(x, w, b), [(2, 3), (3,), (3,)]),
    "several outputs": (lambda x: (mg.exp(x), x.sum(axis=0), x[0, 0] * x[1, 1]), [(2, 3)]),
    "outputs without a gradient": (lambda x: [x * 2, x.detach() * 0, x.argmax(), x > 0], [(2, 3)]),
    "an input that is not used": (lambda x, y: x * 2, [(2,), (3,)]),
    "an input given as output": (lambda x: x, [(2,)]),
    "one number": (lambda x: x ** 3, [()]),
    "nothing": (lambda x: x * 2, [(0, 3)]),
    "a constant": (lambda x: Tensor(np.ones(3)), [(2,)]),
    "its own gradient": (lambda x: mg.grad((x ** 3).sum(), x, create_graph=True), [(2,)]),
    "an output that stays infinite": (lambda x: mg.masked_fill(x, Tensor([True, False]), -np.inf), [(2,)]),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_gradients_pass(name):
    function, shapes = RIGHT[name]
    inputs = [tensor(*shape, seed=i) for i, shape in enumerate(shapes)]
    assert gradcheck(function, inputs) is True
    assert gradgradcheck(function, inputs) is True


def test_it_works_where_the_tensors_are(device):
    inputs = [tensor(2, 3, device=device), tensor(3, seed=1, device=device)]
    assert gradcheck(lambda x, y: (x @ y) ** 2, inputs)
    assert gradgradcheck(lambda x, y: (x @ y) ** 2, inputs)
    assert all(x.device == device for x in inputs)


def test_inputs_of_any_strides():
    base = np.random.default_rng(0).normal(size=(6, 8))
    views = [mg.from_numpy(view).requires_grad_() for view in
             (base[:3, :2].T, base[::2, ::-3], np.broadcast_to(base[0, :3], (2, 3)))]
    before = [(view.data, view.numpy().copy(), view.data.strides) for view in views]
    for view in views:
        assert gradcheck(lambda x: mg.sigmoid(x) @ x.T, view)
        assert gradgradcheck(lambda x: mg.sigmoid(x) @ x.T, view)
    for view, (array, values, strides) in zip(views, before, strict=True):
        assert view.data is array
        assert array.strides == strides
        np.testing.assert_array_equal(array, values)


def test_nothing_is_left_behind():
    mg.manual_seed(3)
    x = tensor(2, 3)
    state, values, array = mg.random.get_state(), x.numpy().copy(), x.data
    gradcheck(lambda x: functional.dropout(x, 0.5), x)
    gradgradcheck(lambda x: functional.dropout(x * x, 0.5), x)
    assert mg.random.get_state() == state
    assert x.data is array
    assert x.grad is None
    np.testing.assert_array_equal(x.numpy(), values)


def test_nothing_is_left_behind_by_a_failure():
    x = tensor(2)
    array = x.data
    calls = iter(range(100))

    def fails_later(x):
        if next(calls) == 4:
            raise KeyError("later")
        return x * 2

    with pytest.raises(KeyError, match="later"):
        gradcheck(fails_later, x)
    assert x.data is array


def test_dropout_masks_are_frozen():
    mg.manual_seed(5)
    x = tensor(4, 5)
    assert gradcheck(lambda x: functional.dropout(mg.tanh(x), 0.5), x)
    assert gradgradcheck(lambda x: functional.dropout(mg.tanh(x), 0.5), x)
    first = functional.dropout(x, 0.5)
    assert not np.array_equal(first.numpy(), functional.dropout(x, 0.5).numpy())


def test_what_the_function_closes_over():
    """Parameters that the function reaches by itself are checked too, when they are among the inputs."""
    weight, x = tensor(3, 2), tensor(4, 3, requires_grad=False)
    assert gradcheck(lambda _: mg.tanh(x @ weight), weight)
    assert gradgradcheck(lambda _: mg.tanh(x @ weight), weight)
    with pytest.raises(GradcheckError, match=re.escape("input 0 ('_') of shape (3, 2)")):
        gradcheck(lambda _: mg.tanh(x @ weight.detach()), weight)


def test_it_does_not_depend_on_no_grad():
    with mg.no_grad():
        assert gradcheck(mg.exp, tensor(2))
        assert gradgradcheck(mg.exp, tensor(2))


# --- Messages ------------------------------------------------------------------------------------------------


def test_the_message_names_input_index_numbers_and_ratio():
    x = Tensor(np.array([[1.0, 2.0], [3.0, 4.0]]), requires_grad=True)
    wrong_at_3 = unary(lambda g, x: 3 * g * x * x * (1 + (x == 3)))
    with pytest.raises(GradcheckError) as caught:
        gradcheck(wrong_at_3, x)
    found = re.fullmatch(
        r"gradcheck: input 0 \('x'\) of shape \(2, 2\), index \(1, 0\): the gradient is (\S+), finite differences give "
        r"(\S+) \(ratio (\S+)\); 1 of 4 elements are wrong \[output of cube\]", str(caught.value))
    assert found is not None, str(caught.value)
    gradient, difference, ratio = map(float, found.groups())
    assert gradient == pytest.approx(2 * difference, rel=1e-8)
    assert ratio == pytest.approx(2, rel=1e-8)


def test_the_worst_element_is_named():
    x = Tensor(np.array([1.0, 2.0, 3.0]), requires_grad=True)
    wrong = unary(lambda g, x: 3 * g * x * x + np.array([0.1, -5.0, 0.1]))
    with pytest.raises(GradcheckError, match=re.escape("index (1,)") + ".*3 of 3"):
        gradcheck(wrong, x)


def test_inputs_without_names():
    with pytest.raises(GradcheckError, match=r"gradcheck: input 1 of shape \(2,\)"):
        gradcheck(lambda *xs: xs[0] * xs[1].detach(), [tensor(2), tensor(2, seed=1)])


def test_a_difference_of_zero_has_no_ratio():
    @primitive
    def flat(x):
        return x * 0

    flat.gradient(x=lambda g: g)
    with pytest.raises(GradcheckError, match=r"finite differences give 0 \(no ratio\)"):
        gradcheck(flat, tensor(2))


def test_tolerances_are_kept():
    """|gradient - difference| <= atol + rtol·|difference|, with a rule that is wrong by one part in a thousand."""
    wrong, x = unary(lambda g, x: g * 3.003 * x * x), Tensor([2.0], dtype=np.float64, requires_grad=True)
    assert gradcheck(wrong, x, rtol=1.001e-3)
    with pytest.raises(GradcheckError):
        gradcheck(wrong, x, rtol=0.999e-3)
    assert gradcheck(mg.exp, x, eps=1e-4, rtol=1e-8)
    with pytest.raises(GradcheckError):
        gradcheck(mg.exp, x, eps=1e-2)  # the truncation error of so wide a step: eps²/6


# --- Wrong calls ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("check", [gradcheck, gradgradcheck])
@pytest.mark.parametrize(("function", "inputs", "kind", "said"), [
    (mg.exp, [Tensor([1.0], requires_grad=True)], TypeError, "input 0 is float32.*float64"),
    (mg.exp, [Tensor(np.ones(2))], ValueError, "input 0 does not require a gradient"),
    (mg.exp, [np.ones(2)], TypeError, "input 0 is a ndarray, not a Tensor"),
    (mg.exp, [], ValueError, "at least one input"),
    (mg.log, [Tensor(np.array([1.0, np.inf]), requires_grad=True)], ValueError, "input 0 has values .* not finite"),
    (mg.argmax, [Tensor(np.ones(2), requires_grad=True)], ValueError, "must return a floating tensor"),
    (lambda x: None, [Tensor(np.ones(2), requires_grad=True)], ValueError, "returned a NoneType"),
    (lambda x: x.data, [Tensor(np.ones(2), requires_grad=True)], ValueError, "returned a ndarray"),
], ids=["float32", "no gradient", "array", "nothing", "infinite", "integers", "None", "raw array"])
def test_wrong_calls(check, function, inputs, kind, said):
    with pytest.raises(kind, match=f"{check.__name__}: .*{said}"):
        check(function, inputs)


def test_a_function_that_is_not_deterministic():
    draw = np.random.default_rng(0)
    with pytest.raises(GradcheckError, match=r"different results for the same inputs.*minigrad\.random"):
        gradcheck(lambda x: x * Tensor(draw.normal(size=2)), tensor(2))


def test_the_error_is_an_assertion():
    """So that a test runner shows a failure, not an error."""
    assert issubclass(GradcheckError, AssertionError)


def test_the_gradient_of_a_gradient_penalty(device):
    """A function that uses grad() itself: ‖∂ tanh(x·w)/∂x‖²."""
    x, w = tensor(3, device=device), tensor(3, seed=1, device=device)

    def penalty(x, w):
        gradient = mg.grad(mg.tanh((x * w).sum()), x, create_graph=True)
        return ops.sum(gradient * gradient)

    assert gradcheck(penalty, [x, w])
    slope = 1 - np.tanh((to_numpy(x.data) * to_numpy(w.data)).sum()) ** 2
    assert penalty(x, w).item() == pytest.approx(slope**2 * (to_numpy(w.data) ** 2).sum(), rel=1e-12)
