"""The backward pass: what arrives in ``.grad``, in whose memory, and what a second pass does."""

import itertools

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, grad

from tests.minigrad.ops.row import leaf

# --- Aliasing and accumulation


def test_a_tensor_used_twice_receives_the_sum_of_both_gradients():
    a, b = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    c = a + b
    d = a * 5 + c
    d.sum().backward()
    np.testing.assert_array_equal(a.grad.numpy(), [6, 6])
    np.testing.assert_array_equal(b.grad.numpy(), [1, 1])
    for one, other in itertools.combinations([a, b, c, d, a.grad, b.grad], 2):
        assert not np.shares_memory(one.data, other.data)


def test_accumulation_never_writes_into_a_view_that_a_rule_returned(device):
    """CuPy has no read-only arrays: a gradient added into a broadcast view would change all of its elements."""
    x = leaf([1.0, 2.0, 3.0], device)
    (x.sum() + (x * 10).sum() + x[1] * 100).backward()
    np.testing.assert_array_equal(x.grad.numpy(), [11, 111, 11])
    x.grad = None
    start = Tensor(np.ones(3), device=device)
    (mg.broadcast_to(x, (2, 3)).sum(axis=0) + x * 2 + mg.flip(x, 0)).backward(start)
    np.testing.assert_array_equal(x.grad.numpy(), [5, 5, 5])
    np.testing.assert_array_equal(start.numpy(), [1, 1, 1])


def test_what_is_assigned_to_grad_is_copied(device):
    """A backward, a failing one too, and clipping change no weight, no other gradient and nothing read-only."""
    weight, a, b = (leaf([3.0, 4.0], device) for _ in range(3))
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


# --- The second pass


@pytest.mark.parametrize(("f", "said"), [(lambda x: x * x, r"already used.*retain_graph=True"),
                                         (lambda x: x + 1, "add: .*already used")], ids=["saved", "nothing saved"])
def test_a_second_backward_says_so_and_names_the_remedy(f, said):
    x = leaf([1.0, 2.0])
    y = f(x)
    y.sum().backward()
    before = x.grad.tolist()
    with pytest.raises(RuntimeError, match=said):
        (y * 2).sum().backward()
    assert x.grad.tolist() == before


def test_retain_graph_lets_a_second_pass_through():
    """And the last one frees what the nodes have saved."""
    x = leaf([1.0, 2.0])
    y = (mg.exp(x) * x).sum()
    once = grad(y, x, retain_graph=True)
    y.backward(retain_graph=True)
    np.testing.assert_array_equal(x.grad.numpy(), once.numpy())
    node = y._node
    grad(y, x)
    assert node.saved == ("freed",)
    with pytest.raises(RuntimeError, match="already used"):
        grad(y, x)


# --- Which tensors get .grad


def test_only_leaves_and_retained_tensors_get_a_gradient(device):
    x = leaf([1.0, 2.0], device)
    h, k, dropped = x * 2, x * 3, x * 1
    y = (h * k).sum() + dropped.sum()
    for tensor in (x, k, k, dropped, y):
        tensor.retain_grad()
    del dropped, tensor
    y.backward(retain_graph=True)
    assert (h.grad, y.grad.item(), k.grad.device) == (None, 1, device)
    assert (k.grad.tolist(), x.grad.tolist()) == (h.tolist(), [13, 25])
    y.backward()
    assert k.grad.tolist() == (2 * h).tolist()
    x.grad = None
    x.backward([1.0, 2.0])
    assert x.grad.tolist() == [1, 2]
