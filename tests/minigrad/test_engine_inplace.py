"""Changes in place: where they are allowed, and that a saved value which changed is an error at backward."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, grad
from minigrad import functional as F

from tests.minigrad.ops.row import function, leaf, table


def constant(values):
    return Tensor(np.array(values, np.float64))


# Changes of a tensor x: by an index, by copy_, as an optimizer makes them, by assigning data.
IN_PLACE = ["x.__setitem__(0, 9.0)", "x.copy_(np.full(x.shape, 9.0))"]
CHANGES = [*IN_PLACE, "(x.data.fill(9.0), x.bump_tick())", 'setattr(x, "data", np.full(x.shape, 9.0))']


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_operand_is_an_error_at_backward(change):
    """Whether it is a constant or a leaf."""
    x, c = leaf([1.0, 2.0, 3.0]), constant([4.0, 5.0, 6.0])
    for changed in (c, x):
        y = (x * c * x).sum()
        function(change, NAMES)(changed)
        with pytest.raises(RuntimeError, match=r"mul: .*changed in place"):
            y.backward()
    assert x.grad is None


@mg.primitive
def same(x):
    return x


same.gradient(x=lambda g: g)
NAMES = {**vars(F), **vars(mg.ops), "same": same, "np": np}


@pytest.mark.parametrize("view", ["x.reshape(5, 1)[0:3, 0]", "x.detach()[0:3]", "same(x)[0:3]",
                                  "broadcast_to(x, (2, 5))[1, 0:3]", "x.reshape(1, 5).T[0:3, 0]"])
def test_a_change_of_the_base_is_seen_by_its_views(view):
    base, w = constant([1.0, 2.0, 3.0, 4.0, 5.0]), leaf([1.0, 1.0, 1.0])
    y = (function(view, NAMES)(base) * w).sum()
    base[2] = 100.0
    with pytest.raises(RuntimeError, match="changed in place"):
        y.backward()


@pytest.mark.parametrize(("use", "static"), table("""
    x[0:1, y]                       [0, 1]
    x.take(y, axis=0)               [0, 1]
    embedding(y, x)                 [0, 1]
    where(y, x, 0.0)                [True, False]
    dropout_with_mask(x, y, 0.5)    [[True, False]] * 2
"""))
def test_a_changed_index_or_mask_is_an_error_at_backward(use, static):
    x, static = leaf(np.ones((2, 2))), Tensor(static)
    y = function(use, NAMES)(x, static).sum()
    static[...] = 1
    with pytest.raises(RuntimeError, match="changed in place"):
        y.backward()


def test_a_saved_value_keeps_its_tick_in_the_graph_of_the_gradient():
    """The second pass need not come through the node that saved the value first."""
    x, v, c = leaf([1.0, 2.0]), leaf([1.0, 1.0]), constant([3.0, 4.0])
    out = mg.exp(x)
    for make, changed in ((lambda: x * c, c), (lambda: out, out.detach())):
        vjp = grad(make(), x, v, create_graph=True)
        changed[...] = 100.0
        with pytest.raises(RuntimeError, match="changed in place"):
            grad(vjp.sum(), v)


def test_a_copy_does_not_share_the_tick():
    c, w = constant([1.0, 2.0]), leaf([1.0, 1.0])
    for other in (c.clone(), c[[0, 1]], c.astype(np.float64), Tensor(c), c * 1):
        y = (c * w).sum()
        other[...] = 7.0
        y.backward()
    np.testing.assert_array_equal(w.grad.numpy(), [5, 10])


# --- Where a change in place is refused


@pytest.mark.parametrize("change", IN_PLACE)
def test_a_recorded_tensor_cannot_be_changed_and_the_error_names_where(change):
    y = leaf([1.0, 2.0, 3.0]) * 2
    with pytest.raises(RuntimeError, match=r"\(mul\).*minigrad\.where"):
        function(change, NAMES)(y)
    np.testing.assert_array_equal(y.numpy(), [2, 4, 6])
