"""What is no number (complex, text, dates, records, objects) is refused wherever a number stands beside a tensor.

So are masked elements. Arrays of other subclasses are taken as plain ones.
"""

import itertools
from fractions import Fraction

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, ops

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
NAMES = {"mg": mg, "F": mg.functional, "ops": ops, "Tensor": Tensor, "X": X}
TAKERS = """
    X + bad; ops.sub(bad, X); X.clip(bad); mg.where(X > 0, X, bad); X.masked_fill(X > 0, bad)
    mg.pad(X, ((1, 1), (1, 1)), value=bad); X.__setitem__(0, bad); X.clone().copy_(bad); mg.full((3,), bad); Tensor(bad)
    mg.linspace(0, bad, 3); mg.arange(bad); F.cross_entropy(X, [0, 1], bad); ops.sum(X, bad)
    Tensor(1.0, requires_grad=True).clone().backward(bad); setattr(Tensor([1.0]), 'data', bad)
    F.scaled_dot_product_attention(X, X, X, scale=bad); F.rms_norm(X, None, eps=bad)
"""


def calls(text):
    """The calls in a text, divided by semicolons and ends of lines."""
    return [call.strip() for line in text.strip().splitlines() for call in line.split(";")]


@pytest.mark.parametrize("call", calls(TAKERS))
def test_a_single_one_is_refused_as_well(call):
    for kind, bad in KINDS.items():
        exact = ("scale=" in call or "eps=" in call) and kind == "an object"  # a fraction is a number
        for given in (np.asarray(bad), filled(3, bad), *(() if exact else (bad, np.asarray(bad)[()]))):
            with pytest.raises(TypeError):
                eval(call, {**NAMES, "bad": given})  # noqa: S307 - of our own writing
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
FLOATS = np.array([[2.0, 3.0], [5.0, 7.0]])
DOORS = {  # of a tensor x (2, 2); a, such an array
    "FLOATS": """
        x * a + a * x; x @ a @ x - a @ x; mg.minimum(x, a); x * [a, a]; F.mse_loss(x, a); mg.concatenate([x, a], None)
        x * Tensor(a); x * Tensor([a, a]); x * mg.from_numpy(a); x @ mg.nn.Parameter(a); x * mg.zeros((2, 2)).copy_(a)
        x * mg.full((1, 2, 2), [a]); F.mse_loss(x[None], [a]); mg.grad(x * x, x, a, create_graph=True)
    """,
    "np.array([[True, False], [True, True]])": """
        mg.where(a, x, 0.0); x.masked_fill(a, 0.0); F.scaled_dot_product_attention(x, x, x, a)
        F.dropout_with_mask(x, a, 0.5); x[a]
    """,
    "np.array([[1, 0], [1, 1]])": """
        x[a]; ops.getitem(x, (a, slice(1))); x.take(a, 1); x.gather(0, a); F.embedding(a, x)
    """,
    "np.array([[1, 0]])": "F.cross_entropy(x[None], a); x * F.one_hot(a, 2)",
}
every_door = pytest.mark.parametrize(("array", "call"), [(a, call) for a in DOORS for call in calls(DOORS[a])])


def through(call, a):
    x = Tensor(FLOATS / 4, requires_grad=True)
    return x, eval(call, {**NAMES, "x": x, "a": a})  # noqa: S307 - of our own writing


@every_door
def test_a_subclass_of_ndarray_brings_no_arithmetic(array, call, tmp_path):
    def results(given):
        x, out = through(call, given)
        return out.numpy(), mg.grad(out.sum(), x).numpy()

    array = eval(array)  # noqa: S307
    expected = results(array.copy())
    for given in (*(array.copy().view(kind) for kind in SUBCLASSES.values()), mapped(array, tmp_path)):
        for found, right in zip(results(given), expected, strict=True):
            assert type(found) is np.ndarray
            np.testing.assert_array_equal(found, right)


@every_door
def test_masked_elements_are_refused_and_the_remedy_is_named(array, call):
    array = eval(array)  # noqa: S307
    with pytest.raises(TypeError, match=r"\w: the array has masked elements.*\.filled\(value\)"):
        through(call, np.ma.masked_array(array, array == array[0, 0]))


# --- Of numbers


def test_functions_of_integer_arrays_alone_keep_their_fractions():
    for name in ("erf", "erfc", "sigmoid"):
        whole = np.array([-1, 0, 2])
        np.testing.assert_array_equal(getattr(ops, name)(whole), getattr(ops, name)(whole.astype(np.float64)))
