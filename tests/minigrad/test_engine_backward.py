"""The backward pass: what arrives in ``.grad``, in whose memory, and what a second pass does."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, grad


def leaf(values):
    return Tensor(np.array(values, np.float64), requires_grad=True)


def assert_no_overlap(*tensors):
    for i, x in enumerate(tensors):
        for y in tensors[:i]:
            assert not np.shares_memory(x.data, y.data)


# --- Aliasing and accumulation


def test_a_tensor_used_twice_receives_the_sum_of_both_gradients():
    a, b = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    c = a + b
    d = a * 5 + c
    d.sum().backward()
    np.testing.assert_array_equal(a.grad.numpy(), [6, 6])
    np.testing.assert_array_equal(b.grad.numpy(), [1, 1])
    assert_no_overlap(a, b, c, d, a.grad, b.grad)


def test_what_is_assigned_to_grad_is_copied(device):
    """A backward, a failing one too, and clipping change no weight, no other gradient and nothing read-only."""
    weight, a, b = (Tensor(np.array([3.0, 4.0]), device=device, requires_grad=True) for _ in range(3))
    weight.grad, a.grad = weight.detach(), Tensor(np.broadcast_to(5.0, (2,)), device=device)
    b.grad = a.grad
    (weight + 2 * a + b).sum().backward()
    mg.optim.clip_grad_norm_(b, 1.0)
    for tensor, values in ((weight, [3, 4]), (weight.grad, [4, 5]), (a.grad, [7, 7]), (b.grad, [0.5**0.5] * 2)):
        np.testing.assert_allclose(tensor.numpy(), values, rtol=1e-15)


def test_a_further_backward_adds_in_place():
    w, v = leaf([1.0, 2.0]), leaf([1.0, 1.0])
    (w * 3).sum().backward()
    before, memory = w.grad, w.grad.data
    penalty = (w.grad * v).sum()  # saves w.grad
    (w * 4).sum().backward()
    assert w.grad is before
    assert w.grad.data is memory
    np.testing.assert_array_equal(w.grad.numpy(), [7, 7])
    with pytest.raises(RuntimeError, match="changed in place"):
        penalty.backward()


def test_gradients_have_the_dtype_shape_and_device_of_their_input():
    x = Tensor(np.ones((2, 3), np.float32), requires_grad=True)
    wide = Tensor(np.ones((4, 2, 3)), requires_grad=True)
    (x * wide).sum().backward()
    assert (x.grad.dtype, wide.grad.dtype) == (np.float32, np.float64)
    assert x.grad.shape == (2, 3)
    assert x.grad.device == "cpu"
    assert not x.grad.requires_grad
    np.testing.assert_array_equal(x.grad.numpy(), 4)


# --- The second pass


def test_a_second_backward_says_so_and_names_the_remedy():
    x = leaf([1.0, 2.0])
    y = (x * x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match=r"already used.*retain_graph=True"):
        y.backward()
    np.testing.assert_array_equal(x.grad.numpy(), [2, 4])


def test_a_second_backward_through_nodes_that_saved_nothing_is_an_error_too():
    y = leaf([1.0, 2.0]) + 1
    y.sum().backward()
    with pytest.raises(RuntimeError, match=r"add: .*already used"):
        (y * 2).sum().backward()


def test_retain_graph_lets_a_second_pass_through():
    """And the last one frees what the nodes have saved."""
    x = leaf([1.0, 2.0])
    y = (mg.exp(x) * x).sum()
    once = grad(y, x, retain_graph=True)
    y.backward(retain_graph=True)
    np.testing.assert_array_equal(x.grad.numpy(), once.numpy())
    node = y._node
    y.backward()
    np.testing.assert_array_equal(x.grad.numpy(), 2 * once.numpy())
    assert node.saved == ("freed",)
    for second in (y.backward, lambda: grad(y, x)):
        with pytest.raises(RuntimeError, match="already used"):
            second()
    y = (x * x).sum()
    grad(y, x)
    with pytest.raises(RuntimeError, match="already used"):
        grad(y, x)


# --- Which tensors get .grad


def test_only_leaves_and_retained_tensors_get_a_gradient():
    x = leaf([1.0, 2.0])
    h, k, dropped = x * 2, x * 3, x * 1
    x.retain_grad()
    for tensor in (k, k, dropped):
        tensor.retain_grad()
    y = (h * k).sum() + dropped.sum()
    del dropped
    y.retain_grad()
    y.backward(retain_graph=True)
    assert h.grad is None
    assert y.grad.item() == 1
    np.testing.assert_array_equal(k.grad.numpy(), h.numpy())
    np.testing.assert_array_equal(x.grad.numpy(), [13, 25])
    assert_no_overlap(x, h, k, x.grad, k.grad)
    y.backward()
    np.testing.assert_array_equal(k.grad.numpy(), 2 * h.numpy())
    x.grad = None
    x.backward([1.0, 2.0])
    np.testing.assert_array_equal(x.grad.numpy(), [1, 2])
    with pytest.raises(RuntimeError, match=r"retain_grad: .*not require"):
        Tensor([1.0]).retain_grad()


def test_backward_implies_a_gradient_only_for_one_element():
    x = leaf([1.0, 2.0])
    with pytest.raises(ValueError, match=r"backward: .*one element.*\(2,\)"):
        (x * 2).backward()
    with pytest.raises(ValueError, match=r"backward: .*\(3,\).*\(2,\)"):
        (x * 2).backward(np.ones(3))
    (x * 2).backward([1.0, 10.0])
    np.testing.assert_array_equal(x.grad.numpy(), [2, 20])
