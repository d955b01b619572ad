"""The backward pass: what arrives in ``.grad``, in whose memory, and what a second pass does."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, grad
from minigrad.engine.interpreters import Interpreter, interpreting


def leaf(values):
    return Tensor(np.array(values, np.float64), requires_grad=True)


def arrays_of(*tensors):
    return [t.data for t in tensors]


def assert_no_overlap(arrays):
    for i, x in enumerate(arrays):
        for y in arrays[:i]:
            assert not np.shares_memory(x, y)


# --- Aliasing and accumulation


def test_a_tensor_used_twice_receives_the_sum_of_both_gradients():
    a, b = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    c = a + b
    d = a * 5 + c
    d.sum().backward()
    np.testing.assert_array_equal(a.grad.numpy(), [6, 6])
    np.testing.assert_array_equal(b.grad.numpy(), [1, 1])
    assert a.grad is not b.grad
    assert_no_overlap(arrays_of(a, b, c, d, a.grad, b.grad))


@pytest.mark.parametrize("function", [
    lambda a, b: a + b,
    lambda a, b: a.reshape(4) + b.reshape(4),
    lambda a, b: mg.concatenate([a, b]),
    lambda a, b: mg.stack([a, b]),
    lambda a, b: mg.broadcast_to(a, (3, 2, 2)) - b.T,
    lambda a, b: a * b,
    lambda a, b: a[0] + b[1],
    lambda a, b: mg.where(Tensor([True, False]), a, b),
    lambda a, b: a @ b,
    lambda a, b: mg.functional.layer_norm(a, b[0], b[1]),
], ids=range(10))
def test_gradients_share_no_memory_with_any_other_tensor(function):
    a, b = leaf([[1.0, 2.0], [3.0, 5.0]]), leaf([[3.0, 4.0], [5.0, 7.0]])
    out = function(a, b)
    start = Tensor(np.ones(out.shape))
    out.backward(start, retain_graph=True)
    assert_no_overlap(arrays_of(a, b, out, start, a.grad, b.grad))
    ga, gb = grad(out, [a, b], start)
    assert_no_overlap(arrays_of(a, b, out, start, ga, gb, a.grad, b.grad))


def test_the_same_input_twice_gives_two_separate_gradients():
    a = leaf([1.0, 2.0])
    first, second = grad((a * a).sum(), [a, a])
    np.testing.assert_array_equal(first.numpy(), second.numpy())
    assert_no_overlap(arrays_of(first, second))


def test_accumulation_never_writes_into_a_broadcast_view():
    x = leaf([1.0, 2.0, 3.0])
    y = x.sum() + (x * 10).sum() + x[1] * 100  # the first gradient to arrive is a view with stride 0
    y.backward()
    np.testing.assert_array_equal(x.grad.numpy(), [11, 111, 11])


def test_accumulation_never_writes_into_the_gradient_it_was_given():
    x = leaf([1.0, 2.0])
    start = np.array([1.0, 1.0])
    y = x + 0
    (y + y * 2).backward(start)
    np.testing.assert_array_equal(start, [1, 1])
    np.testing.assert_array_equal(x.grad.numpy(), [3, 3])


def test_a_slice_added_into_a_gradient_that_is_borrowed_leaves_the_lender_alone():
    x = leaf([1.0, 2.0, 3.0])
    other = leaf([1.0, 1.0, 1.0])
    h = x + other  # both receive the same array of gradients; then the slice adds into x's
    (h.sum() + x[0:2].sum()).backward()
    np.testing.assert_array_equal(x.grad.numpy(), [2, 2, 1])
    np.testing.assert_array_equal(other.grad.numpy(), [1, 1, 1])


def test_a_rule_never_sees_a_writable_alias_of_what_it_was_lent():
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    gradient = np.array([[1.0, 2.0], [3.0, 4.0]])
    gradient.flags.writeable = False
    ((x * x) + x.T * 3 + mg.exp(x)).backward(gradient)
    expected = gradient * (2 * x.numpy() + np.exp(x.numpy())) + 3 * gradient.T
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-14)


def test_a_further_backward_adds_in_place():
    w = leaf([1.0, 2.0])
    (w * 3).sum().backward()
    before, memory = w.grad, w.grad.data
    (w * 4).sum().backward()
    assert w.grad is before
    assert w.grad.data is memory
    np.testing.assert_array_equal(w.grad.numpy(), [7, 7])


def test_accumulating_into_a_gradient_that_a_graph_has_saved_is_an_error_there():
    w = leaf([1.0, 2.0])
    (w * 3).sum().backward()
    v = leaf([1.0, 1.0])
    penalty = (w.grad * v).sum()  # saves w.grad
    (w * 4).sum().backward()
    with pytest.raises(RuntimeError, match="changed in place"):
        penalty.backward()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_gradients_have_the_dtype_shape_and_device_of_their_input(dtype):
    x = Tensor(np.ones((2, 3), dtype), requires_grad=True)
    wide = Tensor(np.ones((4, 2, 3)), requires_grad=True)
    (x * wide).sum().backward()
    assert x.grad.dtype == dtype
    assert wide.grad.dtype == np.float64
    assert x.grad.shape == (2, 3)
    assert x.grad.device == "cpu"
    assert not x.grad.requires_grad
    np.testing.assert_array_equal(x.grad.numpy(), 4)


def test_a_zero_dimensional_leaf_gets_an_array():
    x = leaf(3.0)
    (x * x).backward()
    assert type(x.grad.data) is np.ndarray
    assert x.grad.shape == ()
    assert x.grad.item() == 6


# --- The second pass


def test_a_second_backward_says_so_and_names_the_remedy():
    x = leaf([1.0, 2.0])
    y = (x * x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match=r"already used by a backward pass.*retain_graph=True"):
        y.backward()
    np.testing.assert_array_equal(x.grad.numpy(), [2, 4])


def test_a_second_backward_through_nodes_that_saved_nothing_is_an_error_too():
    x = leaf([1.0, 2.0])
    y = x + 1
    y.sum().backward()
    with pytest.raises(RuntimeError, match="add: this part of the graph was already used"):
        (y * 2).sum().backward()


def test_retain_graph_lets_a_second_pass_through():
    x = leaf([1.0, 2.0])
    y = (mg.exp(x) * x).sum()
    y.backward(retain_graph=True)
    once = x.grad.numpy().copy()
    y.backward()
    np.testing.assert_array_equal(x.grad.numpy(), 2 * once)
    with pytest.raises(RuntimeError, match="already used"):
        y.backward()


def test_two_losses_on_one_graph_need_retain_graph():
    x = leaf([1.0, 2.0])
    h = mg.exp(x)
    first, second = h.sum(), (h * h).sum()
    first.backward(retain_graph=True)
    second.backward()
    np.testing.assert_allclose(x.grad.numpy(), np.exp([1, 2]) + 2 * np.exp([2, 4]), rtol=1e-14)


def test_grad_frees_the_graph_unless_told_otherwise():
    x = leaf([1.0, 2.0])
    y = (x * x).sum()
    grad(y, x, retain_graph=True)
    grad(y, x)
    with pytest.raises(RuntimeError, match="already used"):
        grad(y, x)


def test_saved_arrays_are_freed_by_backward():
    x = leaf([1.0, 2.0])
    y = mg.exp(x) * x
    node = y._node
    y.sum().backward()
    assert node.saved == ("freed",)
    assert node.versions == ()


def test_backward_in_two_stages_through_an_intermediate():
    """grad() up to an intermediate leaves what is below it unused, so that backward can go on from there."""
    x = leaf([1.0, 2.0])
    h = x * x
    above = grad((h * h).sum(), h)
    np.testing.assert_array_equal(above.numpy(), [2, 8])
    h.backward(above)
    np.testing.assert_array_equal(x.grad.numpy(), 4 * np.array([1.0, 8.0]))


# --- retain_grad, and which tensors get .grad


def test_only_leaves_and_retained_tensors_get_a_gradient():
    x = leaf([1.0, 2.0])
    h, k = x * 2, x * 3
    k.retain_grad()
    (h * k).sum().backward()
    assert h.grad is None
    np.testing.assert_array_equal(k.grad.numpy(), h.numpy())
    np.testing.assert_array_equal(x.grad.numpy(), [12, 24])
    assert_no_overlap(arrays_of(x, h, k, x.grad, k.grad))


def test_retain_grad_adds_over_passes_and_can_be_called_twice():
    x = leaf([1.0, 2.0])
    h = x * 2
    h.retain_grad()
    h.retain_grad()
    y = (h * h).sum()
    y.backward(retain_graph=True)
    y.backward()
    np.testing.assert_array_equal(h.grad.numpy(), 8 * np.array([1, 2]))


def test_retain_grad_on_the_output_itself():
    x = leaf([1.0, 2.0])
    y = (x * x).sum()
    y.retain_grad()
    y.backward()
    assert y.grad.item() == 1


def test_a_retained_tensor_that_was_dropped_is_no_error():
    x = leaf([1.0, 2.0])
    h = x * 2
    h.retain_grad()
    y = h.sum()
    del h
    y.backward()
    np.testing.assert_array_equal(x.grad.numpy(), [2, 2])


def test_retain_grad_on_a_leaf_changes_nothing_and_without_a_gradient_is_an_error():
    x = leaf([1.0])
    x.retain_grad()
    (x * 2).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [2])
    with pytest.raises(RuntimeError, match="does not require a gradient"):
        Tensor([1.0]).retain_grad()


def test_backward_on_a_leaf():
    x = leaf([1.0])
    x.backward()
    np.testing.assert_array_equal(x.grad.numpy(), [1])


# --- Errors


def test_backward_needs_something_recorded():
    for output in (Tensor([1.0]).sum(), (leaf([1.0]) * 2).detach()):
        with pytest.raises(RuntimeError, match=r"backward: the output .* was not recorded"):
            output.backward()
    with mg.no_grad():
        y = (leaf([1.0]) * 2).sum()
    with pytest.raises(RuntimeError, match="no_grad"):
        y.backward()


def test_backward_implies_a_gradient_only_for_one_element():
    x = leaf([1.0, 2.0])
    with pytest.raises(ValueError, match=r"one element.*\(2,\).*\.sum\(\)"):
        (x * 2).backward()
    with pytest.raises(ValueError, match=r"gradient has shape \(3,\).*\(2,\)"):
        (x * 2).backward(np.ones(3))
    (x * 2).backward([1.0, 10.0])
    np.testing.assert_array_equal(x.grad.numpy(), [2, 20])


def test_an_input_given_twice_to_grad_has_its_hooks_run_once_and_two_gradients():
    x, seen = mg.Tensor([1.0, 2.0], requires_grad=True), []
    x.register_hook(lambda g: seen.append(1))
    first, second = mg.grad((x * x).sum(), [x, x])
    assert seen == [1]
    assert first.tolist() == second.tolist() == [2.0, 4.0]
    assert not np.shares_memory(first.data, second.data)


class Keeper(Interpreter):
    """A watcher that keeps the gradients which rules return."""

    buffers = False

    def __init__(self):
        self.kept = []

    def rules(self, node, g, proceed):
        gradients = proceed(g)
        self.kept += [(gradient, gradient.copy()) for gradient in gradients]
        return gradients


def test_gradients_that_a_watcher_keeps_stay_as_they_were():
    x = mg.Tensor([1.0, 2.0], requires_grad=True)
    table = mg.Tensor(np.ones((3, 2)), requires_grad=True)
    with interpreting(watcher := Keeper()):
        (x * 2 + x * 3 + x * 4).sum().backward()
        (table[[0, 1]] * table[[1, 1]]).sum().backward()
    assert len(watcher.kept) > 8
    for gradient, as_it_was in watcher.kept:
        np.testing.assert_array_equal(gradient, as_it_was)
    assert x.grad.tolist() == [9.0, 9.0]


def test_an_accumulating_rule_is_checked_where_a_watcher_keeps_gradients():
    @mg.primitive
    def first(x):
        return x[:1]

    first.gradient(x=lambda g, x_shape: g)  # of a wrong shape
    first.accumulating_gradient(x=lambda buffer, g: buffer.__setitem__(slice(1), g))
    x = mg.Tensor([1.0, 2.0], requires_grad=True)
    with interpreting(Keeper()), pytest.raises(ValueError, match=r"first: its gradient rule for 'x' returned shape"):
        first(x).sum().backward()


def test_a_rule_adds_to_a_number_that_several_operations_have_sent():
    """The sum of two gradients of a 0-d tensor is a NumPy scalar, into which nothing can be added in place."""
    x = mg.Tensor(np.float64(3.0), requires_grad=True)
    (x[()] * 5 + x * 2 + x * 3).backward()
    assert x.grad.item() == 10.0
    assert x.grad.shape == ()
