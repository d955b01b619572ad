"""What is no number (complex, text, dates, records, objects) is refused wherever a number stands beside a tensor."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, ops
from minigrad import functional as F

from tests.minigrad.ops.rows import ROWS

KINDS = {"complex": 1j, "text": "2", "bytes": b"2", "a date": np.datetime64("2020-01-01"),
         "a duration": np.timedelta64(1, "ns"), "a record": np.zeros((), [("a", float)])[()],
         "an object": Fraction(1, 2)}


def filled(shape, value):
    return np.full(shape, value, dtype=np.asarray(value).dtype)


@pytest.mark.parametrize("kind", KINDS)
def test_every_operation_refuses_an_array_of_it_beside_a_tensor(kind):
    rows = [row for row in ROWS if len(row.arrays) > 1 and not row.name.startswith("bitwise")]  # these compare first
    for row, place in itertools.chain(*[itertools.product([row], range(len(row.arrays))) for row in rows]):
        operands = [Tensor(array) for array in row.arrays]
        operands[place] = filled(row.arrays[place].shape, KINDS[kind])
        with pytest.raises((TypeError, AttributeError)):  # an array has no method ``scatter``
            row.op(*operands)


X = Tensor(np.ones((2, 3)), dtype=np.float32)
TAKERS = {  # an operation that is given `bad`, or an array of it
    "add": lambda bad: X + bad, "reversed": lambda bad: ops.sub(bad, X), "equal": lambda bad: ops.equal(X, bad),
    "clip": lambda bad: X.clip(bad), "where": lambda bad: mg.where(X > 0, X, bad),
    "masked_fill": lambda bad: X.masked_fill(X > 0, bad), "pad": lambda bad: mg.pad(X, ((1, 1), (1, 1)), value=bad),
    "index_put": lambda bad: mg.index_put(X, 0, bad), "setitem": lambda bad: X.__setitem__(0, bad),
    "copy_": lambda bad: X.clone().copy_(bad), "full": lambda bad: mg.full((3,), bad), "Tensor": Tensor,
    "full_like": lambda bad: mg.full_like(X, bad), "linspace": lambda bad: mg.linspace(0, bad, 3), "arange": mg.arange,
    "gradient": lambda bad: Tensor(1.0, requires_grad=True).clone().backward(bad),
    "weight": lambda bad: F.cross_entropy(X, [0, 1], bad), "scale": lambda bad: F.scaled_dot_product_attention(
        X, X, X, scale=bad), "eps": lambda bad: F.rms_norm(X, None, bad), "axis": lambda bad: ops.sum(X, bad),
    "data": lambda bad: setattr(Tensor([1.0]), "data", bad),
}


@pytest.mark.parametrize("name", TAKERS)
def test_a_single_one_is_refused_as_well(name):
    for kind, bad in KINDS.items():
        exact = name in ("scale", "eps") and kind == "an object"  # a fraction is a number
        for given in (np.asarray(bad), filled(3, bad), *(() if exact else (bad, np.asarray(bad)[()]))):
            with pytest.raises(TypeError):
                TAKERS[name](given)
    assert (X.numpy() == 1).all()


@pytest.mark.parametrize("name", ["logical_and", "logical_or"])
def test_none_is_neither_true_nor_false(name):
    with pytest.raises(TypeError, match=name):
        getattr(ops, name)(X, None)


def test_functions_of_integer_arrays_alone_keep_their_fractions():
    for name in ("erf", "erfc", "sigmoid"):
        whole = np.array([-1, 0, 2])
        np.testing.assert_array_equal(getattr(ops, name)(whole), getattr(ops, name)(whole.astype(np.float64)))


def test_the_bits_of_floats_are_refused():
    for call in (lambda: X & X, lambda: X | 1, lambda: ~X):
        with pytest.raises(TypeError, match=r"bitwise_\w+: .* float32; minigrad.ops.logical_"):
            call()
    assert (Tensor([6, 5]) & Tensor([3, 3])).tolist() == [2, 1]
