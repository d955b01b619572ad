"""Changes in place: where they are allowed, and that a saved value which changed is an error at backward."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, grad
from minigrad import functional as F


def leaf(values):
    return Tensor(np.array(values, np.float64), requires_grad=True)


def constant(values):
    return Tensor(np.array(values, np.float64))


def set_item(t):
    t[0] = 9.0


def set_everything(t):
    t[...] = 9.0


def set_by_mask(t):
    t[t > -1e9] = 9.0


def copy(t):
    t.copy_(np.full(t.shape, 9.0))


def through_detach(t):
    t.detach()[0] = 9.0


def through_a_view(t):
    with mg.no_grad():
        t[0:2][...] = 9.0


def through_a_view_of_a_view(t):
    with mg.no_grad():
        t.reshape(1, -1).T[0].copy_(9.0)


def like_an_optimizer(t):
    t.data -= 0.1
    t.bump_tick()


def by_assigning_data(t):
    t.data = np.full(t.shape, 9.0)


CHANGES = [set_item, set_everything, set_by_mask, copy, through_detach, through_a_view, through_a_view_of_a_view,
           like_an_optimizer, by_assigning_data]


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_operand_is_an_error_at_backward(change):
    x, c = leaf([1.0, 2.0, 3.0]), constant([4.0, 5.0, 6.0])
    y = (x * c).sum()
    change(c)
    with pytest.raises(RuntimeError, match=r"mul: .*was changed in place.*change a copy"):
        y.backward()
    assert x.grad is None


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_leaf_is_an_error_at_backward(change):
    x = leaf([1.0, 2.0, 3.0])
    y = (x * x).sum()
    change(x)
    with pytest.raises(RuntimeError, match=r"mul: .*was changed in place"):
        y.backward()


@pytest.mark.parametrize("change", [through_detach, like_an_optimizer])
def test_a_changed_output_is_an_error_at_backward(change):
    x = leaf([1.0, 2.0, 3.0])
    out = mg.exp(x)
    y = out.sum()
    change(out)
    with pytest.raises(RuntimeError, match=r"exp: .*was changed in place"):
        y.backward()


@pytest.mark.parametrize("view", [
    lambda b: b[1:4], lambda b: b.reshape(5, 1)[0:3, 0], lambda b: b.flip(0)[0:3], lambda b: b.detach()[0:3],
    lambda b: mg.broadcast_to(b, (2, 5))[1, 0:3], lambda b: mg.einsum("ij->ji", b.reshape(1, 5))[0:3, 0],
], ids=["slice", "reshape", "flip", "detach", "broadcast", "of several operands"])
def test_a_change_of_the_base_is_seen_by_its_views(view):
    base, w = constant([1.0, 2.0, 3.0, 4.0, 5.0]), leaf([1.0, 1.0, 1.0])
    y = (view(base) * w).sum()
    base[2] = 100.0
    with pytest.raises(RuntimeError, match="changed in place"):
        y.backward()


def test_a_primitive_that_returns_its_input_shares_the_tick():
    @mg.primitive
    def same(x):
        return x

    same.gradient(x=lambda g: g)
    c, w = constant([1.0, 2.0]), leaf([1.0, 1.0])
    y = (same(c) * w).sum()
    c[...] = 5.0
    with pytest.raises(RuntimeError, match="changed in place"):
        y.backward()


@pytest.mark.parametrize("read", [
    lambda x, i: x[i], lambda x, i: x[i, 0:2], lambda x, i: x[0:1, i], lambda x, i: x.take(i, axis=0),
    lambda x, i: F.embedding(i, x),
], ids=["index", "index, slice", "slice, index", "take", "embedding"])
def test_a_changed_index_tensor_is_an_error_at_backward(read):
    x, index = leaf(np.ones((3, 3))), Tensor([0, 1])
    y = read(x, index).sum()
    index[...] = 2
    with pytest.raises(RuntimeError, match="changed in place"):
        y.backward()


@pytest.mark.parametrize("use", [
    lambda x, m: mg.where(m, x, 0.0),
    lambda x, m: F.dropout_with_mask(x, m, 0.5),
    lambda x, m: F.scaled_dot_product_attention(x, x, x, m, return_weights=True)[0],
], ids=["where", "dropout", "attention by steps"])
def test_a_changed_mask_is_an_error_at_backward(use):
    x, mask = leaf(np.ones((2, 2))), Tensor([[True, True], [False, True]])
    y = use(x, mask).sum()
    mask[...] = True
    with pytest.raises(RuntimeError, match="changed in place"):
        y.backward()


def test_a_change_between_the_first_and_the_second_derivative_is_an_error():
    x, c = leaf([1.0, 2.0]), constant([0.5, 0.25])
    first = grad(mg.exp(x * c).sum(), x, create_graph=True)
    c[...] = 100.0
    with pytest.raises(RuntimeError, match="changed in place"):
        grad(first.sum(), x)

    out = mg.exp(x)
    first = grad(out.sum(), x, create_graph=True)
    out.detach()[...] = 100.0
    with pytest.raises(RuntimeError, match="changed in place"):
        grad(first.sum(), x)


def test_a_saved_value_keeps_its_tick_in_the_graph_of_the_gradient():
    """The second pass need not come through the node that saved the value first."""
    x, v, c = leaf([1.0, 2.0]), leaf([1.0, 1.0]), constant([3.0, 4.0])
    vjp = grad(x * c, x, v, create_graph=True)
    c[...] = 100.0
    with pytest.raises(RuntimeError, match="changed in place"):
        grad(vjp.sum(), v)

    out = mg.exp(x)
    vjp = grad(out, x, v, create_graph=True)
    out.detach()[...] = 100.0
    with pytest.raises(RuntimeError, match="changed in place"):
        grad(vjp.sum(), v)


def test_a_change_of_what_no_rule_has_saved_is_allowed():
    x, c = leaf([1.0, 2.0]), constant([3.0, 4.0])
    y = x + c
    with mg.no_grad():
        z = c * 5
    c[...] = 0.0
    z[...] = 0.0
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [1, 1])
    np.testing.assert_array_equal(y.numpy(), [4, 6])


def test_a_change_after_backward_is_allowed_and_the_next_graph_sees_it():
    w = leaf([1.0, 2.0])
    for expected in ([2, 4], [20, 20]):
        (w * w).sum().backward()
        np.testing.assert_array_equal(w.grad.numpy(), expected)
        w.grad = None
        w[...] = 10.0


def test_a_copy_does_not_share_the_tick():
    c, w = constant([1.0, 2.0]), leaf([1.0, 1.0])
    for other in (c.clone(), c[[0, 1]], c.astype(np.float64), Tensor(c), c * 1):
        y = (c * w).sum()
        other[...] = 7.0
        y.backward()
    np.testing.assert_array_equal(w.grad.numpy(), [5, 10])


# --- Where a change in place is refused


@pytest.mark.parametrize("change", [set_item, set_everything, copy])
def test_a_recorded_tensor_cannot_be_changed_and_the_error_names_where(change):
    x = leaf([1.0, 2.0, 3.0])
    y = x * 2
    with pytest.raises(RuntimeError, match=r"recorded operation \(mul\).*minigrad\.where"):
        change(y)
    np.testing.assert_array_equal(y.numpy(), [2, 4, 6])


def test_values_that_require_a_gradient_cannot_be_written():
    x, t = leaf([1.0]), constant([1.0, 2.0])
    for write in (lambda: t.copy_(x * 2), lambda: t.__setitem__(0, x[0])):
        with pytest.raises(RuntimeError, match="the values require a gradient"):
            write()
    with mg.no_grad():
        t.copy_(x * 2)
    t[1] = x.detach()[0]
    np.testing.assert_array_equal(t.numpy(), [2, 1])


def test_a_broadcast_view_cannot_be_written():
    t = mg.broadcast_to(constant([1.0, 2.0]), (3, 2))
    for change in (set_everything, copy):
        with pytest.raises(RuntimeError, match=r"broadcast view.*\.clone\(\)"):
            change(t)


def test_read_only_memory_cannot_be_written():
    array = np.ones(2)
    array.flags.writeable = False
    with pytest.raises(RuntimeError, match=r"read-only memory.*\.clone\(\)"):
        mg.from_numpy(array)[0] = 2.0


def test_what_can_be_written():
    t = Tensor(np.zeros((2, 3), np.float32))
    t[0] = [1, 2, 3]
    t[1, 1:] = np.array([5.0, 6.0])
    t[Tensor([1]), 0] = Tensor([4])
    np.testing.assert_array_equal(t.numpy(), [[1, 2, 3], [4, 5, 6]])
    t[t > 3] = 0.5
    t[Tensor([[True, False, False], [False, False, False]])] = 7
    np.testing.assert_array_equal(t.numpy(), [[7, 2, 3], [0.5, 0.5, 0.5]])
    assert t.dtype == np.float32
    assert t.copy_(1) is t
    with pytest.raises(IndexError):
        t[5] = 0
    with pytest.raises(ValueError, match="broadcast"):
        t[0] = [1, 2]
    np.testing.assert_array_equal(t.numpy(), 1)
