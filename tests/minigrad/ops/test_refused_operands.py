"""What is no number (complex, text, dates, records, objects) is refused wherever a number stands beside a tensor.

So are masked elements. Arrays of other subclasses are taken as plain ones.
"""

import itertools
from fractions import Fraction

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, nn, ops
from minigrad import functional as F

from tests.minigrad.ops.rows import ROWS

KINDS = {"complex": 1j, "text": "2", "bytes": b"2", "a date": np.datetime64("2020-01-01"),
         "a duration": np.timedelta64(1, "ns"), "a record": np.zeros((), [("a", float)])[()],
         "an object": Fraction(1, 2)}


def filled(shape, value):
    return np.full(shape, value, dtype=np.asarray(value).dtype)


@pytest.mark.parametrize("kind", KINDS)
def test_every_operation_refuses_an_array_of_it_beside_a_tensor(kind):
    rows = [row for row in ROWS if len(row.arrays) > 1 and "y > 0" not in row.name]  # these compare first
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
    "setitem": lambda bad: X.__setitem__(0, bad),
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


# --- Subclasses of ndarray


class Changed(np.ndarray):
    """An array of which sums and products are 7."""

    def __array_ufunc__(self, *given, **options):
        return 7


def mapped(array, folder):
    array.tofile(folder / "array")
    return np.memmap(folder / "array", array.dtype, "r+", shape=array.shape)


SUBCLASSES = {"matrix": np.matrix, "recarray": np.recarray, "masked nowhere": np.ma.MaskedArray, "changed": Changed}
FLOATS, ROWS_OF_X, PLACES = np.array([[2.0, 3.0], [5.0, 7.0]]), np.array([[1, 0], [1, 1]]), np.array([[1, 0]])
MASK = np.array([[True, False], [True, True]])
DOORS = {  # of a tensor (2, 2), and an array
    "mul": (lambda x, a: x * a + a * x, FLOATS), "power": (lambda x, a: x ** a, FLOATS),
    "matmul": (lambda x, a: x @ a @ x - a @ x, FLOATS), "minimum": (mg.minimum, FLOATS),
    "stack": (lambda x, a: mg.stack([x, a]), FLOATS), "list": (lambda x, a: x * [a, a], FLOATS),
    "concatenate": (lambda x, a: mg.concatenate([x, a], None), FLOATS),
    "mse_loss": (F.mse_loss, FLOATS),
    "Tensor": (lambda x, a: x * Tensor(a), FLOATS), "Tensor, nested": (lambda x, a: x * Tensor([a, a]), FLOATS),
    "from_numpy": (lambda x, a: x * mg.from_numpy(a), FLOATS),
    "copy_": (lambda x, a: x * mg.zeros((2, 2)).copy_(a), FLOATS),
    "copy_, nested": (lambda x, a: x * mg.zeros((1, 2, 2)).copy_([a]), FLOATS),
    "full, nested": (lambda x, a: x * mg.full((1, 2, 2), [a]), FLOATS),
    "mse_loss, nested": (lambda x, a: F.mse_loss(x[None], [a]), FLOATS),
    "Parameter": (lambda x, a: x @ nn.Parameter(a), FLOATS), "full": (lambda x, a: x * mg.full((2, 2), a), FLOATS),
    "backward": (lambda x, a: mg.grad(x * x, x, a, create_graph=True), FLOATS),
    "where": (lambda x, a: mg.where(a, x, 0.0), MASK), "masked_fill": (lambda x, a: x.masked_fill(a, 0.0), MASK),
    "attention": (lambda x, a: F.scaled_dot_product_attention(x, x, x, a), MASK),
    "dropout": (lambda x, a: F.dropout_with_mask(x, a, 0.5), MASK), "mask as an index": (lambda x, a: x[a], MASK),
    "index": (lambda x, a: x[a], ROWS_OF_X), "index among others": (lambda x, a: x[..., a], ROWS_OF_X),
    "index, directly": (lambda x, a: ops.getitem(x, (a, slice(1))), ROWS_OF_X),
    "take": (lambda x, a: x.take(a, 1), ROWS_OF_X), "gather": (lambda x, a: x.gather(0, a), ROWS_OF_X),
    "embedding": (lambda x, a: F.embedding(a, x), ROWS_OF_X),
    "cross_entropy": (lambda x, a: F.cross_entropy(x[None], a), PLACES),
    "one_hot": (lambda x, a: x * F.one_hot(a, 2), PLACES),
}


@pytest.mark.parametrize("name", DOORS)
def test_a_subclass_of_ndarray_brings_no_arithmetic(name, tmp_path):
    function, array = DOORS[name]

    def results(given):
        x = Tensor(FLOATS / 4, requires_grad=True)
        out = function(x, given)
        return out.numpy(), mg.grad(out.sum(), x).numpy()

    expected = results(array.copy())
    for given in (*(array.copy().view(kind) for kind in SUBCLASSES.values()), mapped(array, tmp_path)):
        for found, right in zip(results(given), expected, strict=True):
            assert type(found) is np.ndarray
            np.testing.assert_array_equal(found, right)


@pytest.mark.parametrize("name", DOORS)
def test_masked_elements_are_refused_and_the_remedy_is_named(name):
    function, array = DOORS[name]
    with pytest.raises(TypeError, match=r"\w: the array has masked elements.*\.filled\(value\)"):
        function(Tensor(FLOATS / 4, requires_grad=True), np.ma.masked_array(array, array == array[0, 0]))


def test_memory_of_a_subclass_is_shared_or_copied_as_that_of_an_array(tmp_path):
    for array in (FLOATS.copy().view(np.matrix), mapped(FLOATS, tmp_path)):
        shared, copied = mg.from_numpy(array), Tensor(array)
        array[0, 0] = 9
        assert (shared.tolist()[0][0], copied.tolist()[0][0]) == (9, 2)
        assert type(shared.data) is type(copied.data) is np.ndarray


def test_a_state_with_masked_elements_changes_nothing():
    layer = nn.Linear(2, 2)
    before = layer.weight.numpy().copy()
    with pytest.raises(TypeError, match=r"load_state_dict: bias: the array has masked elements"):
        layer.load_state_dict({"weight": np.ones((2, 2), np.float32),
                               "bias": np.ma.masked_array(np.ones(2, np.float32), [True, False])})
    np.testing.assert_array_equal(layer.weight.numpy(), before)


# --- Of numbers


def test_functions_of_integer_arrays_alone_keep_their_fractions():
    for name in ("erf", "erfc", "sigmoid"):
        whole = np.array([-1, 0, 2])
        np.testing.assert_array_equal(getattr(ops, name)(whole), getattr(ops, name)(whole.astype(np.float64)))


def test_the_bits_of_floats_are_refused():
    for call in (lambda: X & X, lambda: X | 1, lambda: ~X):
        with pytest.raises(TypeError, match=r"bitwise_\w+: .*float32"):
            call()
    assert (Tensor([6, 5]) & Tensor([3, 3])).tolist() == [2, 1]
