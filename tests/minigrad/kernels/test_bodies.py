"""Every body is held to the definition of its operation."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, kernels
from minigrad import functional as F
from minigrad.device.local import Setting
from minigrad.engine.primitive import body_kinds
from minigrad.functional.attention import attention, attention_of_heads
from minigrad.functional.dropout import dropout_with_mask
from minigrad.functional.embedding import lookup
from minigrad.functional.gelu import gelu_tanh
from minigrad.functional.loss import row_losses
from minigrad.functional.more.linear_cross_entropy import linear_losses
from minigrad.functional.more.rms_norm import _rms_norm
from minigrad.inspect.memory import arrays_in
from minigrad.kernels.host.indexing import add_at
from minigrad.ops import clip, getitem, max, maximum, min, minimum, put_into_zeros, relu, where
from minigrad.ops.linalg import matmul


class Row(NamedTuple):
    """Arguments of an operation: floating arrays are given by their shapes, or made of the function's own numbers."""

    op: Any
    name: str
    args: Callable[[Callable[..., Any]], tuple[Any, ...]]


def with_odd_rows(x):
    """The same rows, with one of -inf alone, one that is partly so, and some that are far from 0."""
    x = x.copy()
    flat = x.reshape(-1, x.shape[-1])
    flat[0] = -math.inf
    flat[1, ::2] = -math.inf
    flat[2] += 300
    flat[3] -= 300
    return x


def booleans(*shape):
    return np.random.default_rng([len(shape), *shape]).random(shape) < 0.7


SHAPES = ((5, 33), (2, 3, 8), (4, 1), (9,), (1, 5000))  # with remainders of every register's width
MASKS = {
    "no mask": None,
    "padding": booleans(2, 1, 1, 7),
    "a mask for each head": booleans(1, 2, 5, 7),
    "queries that may attend to nothing": booleans(2, 1, 5, 1),
    "nothing allowed": np.zeros((1, 7), bool),
    "keys alone": booleans(7),
}
IDS = np.array([3, 0, 2, 2, 1, 1])
COUNTED = np.array([True, True, False, True, True, True])


def rows_of_attention():
    for name, mask in MASKS.items():
        for dropped in (None, booleans(2, 2, 5, 7)) if name in ("no mask", "padding") else (None,):
            title = f"{name}, {'no ' if dropped is None else ''}dropout"
            yield Row(attention, title, lambda x, m=mask, d=dropped: (
                x(2, 2, 5, 4), x(2, 2, 7, 4), x(2, 2, 7, 6), m, d, 0.3, 0.5))
            yield Row(attention_of_heads, title, lambda x, m=mask, d=dropped: (
                x(2, 5, 8), x(2, 7, 8), x(2, 7, 12), m, d, 0.3, 0.5, 2))
    yield Row(attention, "large scores", lambda x: (100 * x(1, 5, 4), x(1, 7, 4), x(1, 7, 4), None, None, 0.0, 1.0))
    yield Row(attention, "long rows", lambda x: (
        x(1, 3, 4), x(1, 600, 4), x(1, 600, 4), booleans(3, 600), None, 0.0, 1.0))
    yield Row(attention, "no keys", lambda x: (x(2, 3, 4), x(2, 0, 4), x(2, 0, 4), None, None, 0.0, 1.0))
    yield Row(attention, "views", lambda x: (
        *(x(3, 2, 5, 8)[..., ::2].swapaxes(0, 1) for _ in range(3)), None, None, 0.0, 1.0))


def rows_of_losses():
    for smoothing in (0.0, 0.2):
        yield Row(row_losses, f"smoothing {smoothing}", lambda x, s=smoothing: (x(6, 37), IDS, COUNTED, s))
        yield Row(row_losses, f"large logits, {smoothing}", lambda x, s=smoothing: (
            300 + 30 * x(6, 37), IDS, COUNTED, s))
        yield Row(row_losses, f"blocks, {smoothing}", lambda x, s=smoothing: (x(6, 50_000), IDS, COUNTED, s))
        yield Row(linear_losses, f"smoothing {smoothing}", lambda x, s=smoothing: (x(6, 5), x(37, 5), None, IDS, s))
        yield Row(linear_losses, f"bias, {smoothing}", lambda x, s=smoothing: (x(6, 5), x(37, 5), x(37), IDS, s))
    yield Row(linear_losses, "large logits", lambda x: (100 * x(6, 5), x(37, 5), x(37), IDS, 0.1))
    yield Row(row_losses, "one class", lambda x: (x(2, 1), np.array([0, 0]), np.array([True, True]), 0.0))
    yield Row(row_losses, "no rows", lambda x: (x(0, 4), IDS[:0], COUNTED[:0], 0.1))


def tied(x):
    x[::7, ::5] = 0.5
    return x


ODD_ROWS = np.array([
    [0.0, -math.inf, 1.0, 2.0, -3.0],
    [-math.inf] * 5,
    [math.inf, 0.0, 1.0, 2.0, 3.0],
    [math.nan, 0.0, 1.0, 2.0, 3.0],
    [0.0, 1.0, 2.0, 3.0, -math.nan],
    [-math.inf, math.inf, 0.0, 0.0, math.nan],
    [-1e30, -1e30, -1e30, -1e30, -1e30],
    [1e30, 1e30, 0.0, -1e30, 1e30],
    [-200.0, 0.0, 100.0, 90.0, -5.0],
])


def rows_of_choices():
    """From 4096 elements on, products take the place of choices."""
    yield Row(where, "large", lambda x: (x(80, 64) > 0, x(80, 64), x(80, 64)))
    for op in (maximum, minimum):
        yield Row(op, "large, with ties", lambda x: (tied(x(80, 64)), tied(x(80, 64))))
    yield Row(clip, "large", lambda x: (x(80, 64), x(80, 64), 0.5))
    yield Row(clip, "large, from above", lambda x: (x(80, 64), None, x(80, 64)))
    yield Row(clip, "large, by two", lambda x: (x(80, 64), x(80, 64), x(80, 64)))
    for op in (max, min):
        yield Row(op, "rows, with ties", lambda x: (np.round(x(80, 64)), 1, False))
        yield Row(op, "columns, kept", lambda x: (np.round(x(80, 64)), 0, True))
        yield Row(op, "many rows", lambda x: (x(5120, 1), 1, False))


ROWS_OF_PLACES = np.random.default_rng(0).integers(-80, 80, (30, 2))
ROWS = [
    *rows_of_choices(),
    Row(getitem, "rows", lambda x: (x(80, 64), ROWS_OF_PLACES)),
    Row(put_into_zeros, "rows", lambda x: (x(30, 2, 64), ROWS_OF_PLACES, (80, 64))),
    Row(matmul, "one matrix for all rows", lambda x: (x(4, 20, 64), x(64, 7))),
    *[Row(op, f"{shape}", lambda x, s=shape: (x(*s), -1)) for op in (F.softmax, F.log_softmax) for shape in SHAPES],
    *[Row(op, f"axis {axis}", lambda x, a=axis: (x(2, 3, 19), a))
      for op in (F.softmax, F.log_softmax) for axis in (0, 1, 2)],
    *[Row(op, "odd rows", lambda x: (with_odd_rows(x(6, 9)), -1)) for op in (F.softmax, F.log_softmax)],
    *[Row(op, "infinities and NaN", lambda x: (ODD_ROWS.astype(x(1).dtype), -1)) for op in (F.softmax, F.log_softmax)],
    Row(relu, "infinities and NaN", lambda x: (ODD_ROWS.astype(x(1).dtype),)),
    *[Row(op, "empty", lambda x: (x(0, 4), -1)) for op in (F.softmax, F.log_softmax)],
    *[Row(F.layer_norm, f"{s}", lambda x, s=s: (x(*s), x(s[-1]), x(s[-1]), 1e-5)) for s in SHAPES if s[-1] > 1],
    Row(F.layer_norm, "no parameters", lambda x: (x(4, 70), None, None, 1e-5)),
    Row(F.layer_norm, "no bias", lambda x: (x(2, 3, 8), x(8), None, 1e-5)),
    Row(_rms_norm, "weight", lambda x: (x(2, 3, 8), x(8), 1e-5)),
    Row(_rms_norm, "no weight", lambda x: (x(4, 70), None, 1e-5)),
    *[Row(F.linear, f"{s}", lambda x, s=s: (x(*s), x(3, s[-1]), x(3))) for s in SHAPES],
    Row(F.linear, "no bias", lambda x: (x(2, 5, 4), x(3, 4), None)),
    Row(F.linear, "no rows", lambda x: (x(0, 4), x(3, 4), x(3))),
    *[Row(relu, f"{s}", lambda x, s=s: (x(*s),)) for s in (*SHAPES, (70, 70))],
    *[Row(gelu_tanh, f"{s}", lambda x, s=s: (x(*s),)) for s in SHAPES],
    *[Row(dropout_with_mask, f"{s}", lambda x, s=s: (x(*s), booleans(*s), 0.3)) for s in SHAPES],
    Row(dropout_with_mask, "a mask that broadcasts", lambda x: (x(3, 4), booleans(4), 0.3)),
    *[Row(lookup, f"{s}, padding {p}", lambda x, s=s, p=p: (np.array([[1, 0, 2], [2, 2, 4]]), x(5, s), p))
      for s in (3, 900) for p in (None, 2)],
    *rows_of_losses(),
    *rows_of_attention(),
]


def bodies(op):
    """Those whose forward or rules are of this folder."""
    return [body for body in op.bodies
            if any(f.__module__.startswith("minigrad.kernels.") for f in (body.forward, *body.rules.values()))]


def arguments(row, dtype):
    numbers = np.random.default_rng(0)
    return row.args(lambda *shape: numbers.standard_normal(shape).astype(dtype))


TOLERANCE = {"d": 1e-12, "f": 2e-5}  # of the largest element of a result, by the character of its dtype


def hold(body, *args, tolerance=None):
    """The value and the gradients are the definition's, of all inputs at once and of each alone, whatever is kept.

    All arrays are read-only: nothing that the body is given is written to.
    """
    op = body.primitive
    for array in args:
        if isinstance(array, np.ndarray):
            array.flags.writeable = False
    places = [i for i, (name, a) in enumerate(zip(op.parameters, args, strict=True))
              if name in op.inputs and isinstance(a, np.ndarray) and a.dtype.kind == "f"]
    for wanted in [places, *([i] for i in places if len(places) > 1)]:
        with kernels.only_definitions():
            _, expected = results(op, args, wanted)
        with pytest.MonkeyPatch.context() as patch, Setting(body_kinds, lambda kinds: kinds | {body.kind}):
            patch.setattr(op, "bodies", [body])
            node, found = results(op, args, wanted)
        assert node is None or node.plan in body.plans.values()
        for ours, theirs in zip(found, expected, strict=True):
            close(ours, theirs, tolerance)


def results(op, args, wanted):
    """The node, the value and the gradients for the arguments at `wanted`, which have memory of their own.

    A second pass gives the same bits: the first has written to nothing that is saved.
    """
    tensors = [mg.from_numpy(a).requires_grad_(i in wanted) if name in op.inputs and isinstance(a, np.ndarray) else a
               for i, (name, a) in enumerate(zip(op.parameters, args, strict=True))]
    out = op(*tensors)
    if not out.requires_grad:
        return None, [out.data]
    g = np.random.default_rng(7).standard_normal(out.shape).astype(out.dtype)
    g.flags.writeable = False
    first, again = ([gradient.data for gradient in mg.grad(out, [tensors[i] for i in wanted], g, retain_graph=True)]
                    for _ in range(2))
    others = [g, *again, *(a for a in (*args, *arrays_in(out._node.saved)) if isinstance(a, np.ndarray))]
    for i, (one, other) in enumerate(zip(first, again, strict=True)):
        np.testing.assert_array_equal(one, other)
        assert not any(np.may_share_memory(one, another) for another in [*others, *first[:i]])
    return out._node, [out.data, *first]


def close(ours, theirs, tolerance):
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
    largest = np.abs(theirs[np.isfinite(theirs)]).max(initial=1e-3)
    allowed = TOLERANCE.get(ours.dtype.char, 0.0) if tolerance is None else tolerance
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=allowed * largest)


EXACT = {where, maximum, minimum, clip, max, min}
CHECKS = [(body, row) for row in ROWS for body in bodies(row.op) if body.suits(*arguments(row, np.float32))]


@pytest.mark.parametrize(("body", "row"), CHECKS,
                         ids=[f"{body.kind} {row.op.name}: {row.name}" for body, row in CHECKS])
def test_a_body_computes_what_the_definition_does(body, row):
    for dtype in (np.float32, np.float64):
        with np.errstate(invalid="ignore"):
            hold(body, *arguments(row, dtype), tolerance=0 if row.op in EXACT else None)


FINITE = [(body, row) for body, row in CHECKS if row.name != "infinities and NaN"]
FIRST = {id(body): (body, row) for body, row in reversed(FINITE)}.values()  # a row for each body


@pytest.mark.parametrize(("body", "row"), FIRST, ids=[f"{body.kind} {row.op.name}" for body, row in FIRST])
def test_gradients_of_both_orders_where_a_body_ran(body, row):
    """From a gradient that is read-only and not contiguous; those of second order are the definition's."""
    def gradients():
        tensors = [Tensor(a, requires_grad=True) if isinstance(a, np.ndarray) and a.dtype.kind == "f" else a
                   for a in arguments(row, np.float64)]
        inputs = [a for a in tensors if isinstance(a, Tensor)]
        out = row.op(*tensors)
        start = np.random.default_rng(3).standard_normal((*out.shape, 2))[..., 0]  # every other number in memory
        start.flags.writeable = False
        recorded = mg.grad(out * out, inputs, Tensor(start), create_graph=True)
        total = mg.concatenate([(g * g).ravel() for g in recorded], None).sum()
        found = [*mg.grad(out, inputs, start, retain_graph=True), *recorded, *mg.grad(total, inputs)]
        return out._node, [g.numpy() for g in found]

    with kernels.only_definitions():
        _, expected = gradients()
    node, found = gradients()
    assert node.plan in body.plans.values()
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12 * np.abs(theirs).max(initial=1e-3))


def test_every_body_has_a_row_that_suits_it():
    checked = {id(body) for body, _ in CHECKS}
    assert all(id(body) in checked for row in ROWS for body in bodies(row.op))


@pytest.mark.parametrize("row", [row for row in ROWS if row.name in ("(5, 33)", "bias, 0.2", "no mask, dropout")],
                         ids=lambda row: row.op.name)
def test_other_operands_run_the_definition(row):
    """Other dtypes and byte orders, and arrays of two dtypes, which only a call with raw arrays can bring."""
    args = arguments(row, np.float32)
    floating = [i for i, a in enumerate(args) if isinstance(a, np.ndarray) and a.dtype.kind == "f"]
    for body in bodies(row.op):
        if row.op is relu:
            continue  # it takes every host array
        assert not body.suits(*[a.astype(np.float16) if i in floating else a for i, a in enumerate(args)])
        for j in floating[1:]:
            assert not body.suits(*[a.astype(np.float64) if i == j else a for i, a in enumerate(args)])


def test_only_definitions_runs_definitions():
    x = Tensor(np.ones((3, 4), np.float32), requires_grad=True)
    with kernels.only_definitions():
        out = F.softmax(x)
    assert out._node.plan in F.softmax.plans.values()
    assert F.softmax(x)._node.plan not in F.softmax.plans.values()


@pytest.mark.parametrize("shape", [(3001, 2), (2, 3001, 3), (40, 70, 2), (2100, 1, 100)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_long_sums_hold_to_their_definitions(shape, keepdims):
    axis = tuple(range(len(shape) - 1))
    for dtype in (np.float32, np.float64):
        x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
        for layout in (x, np.repeat(x, 2, -1)[..., ::2], x[::-1]):
            for op, args in ((mg.sum, ()), (mg.mean, ()), (mg.var, (1,))):
                for body in op.bodies:
                    if body.suits(layout, axis, *args, keepdims):
                        hold(body, layout, axis, *args, keepdims)


# --------------------------------------------------------------------------- adding at places, by a product


@pytest.mark.parametrize(("shape", "index", "values_shape"), [
    ((5, 3), np.array([[1, 1], [2, -4]], np.int32), (2, 2, 3)),
    ((4, 2, 3), np.array([3, 0, 3]), (2, 3)),
    ((4, 3), np.array([], np.int64), (0, 3)),
    ((4, 3), np.array([True, False, True, True]), (3, 3)),
    ((4, 3), (np.array([0, 0, 3]), slice(1, None)), (3, 2)),
    ((3, 2), np.array([2, -1, 0]), ()),
])
def test_add_at_on_the_host_is_numpys(shape, index, values_shape):
    random = np.random.default_rng(0)
    for dtype, order, tolerance in (("f4", "C", 2e-6), ("f8", "F", 4e-15), ("f2", "C", 0.02), ("i8", "C", 0)):
        expected = (8 * random.standard_normal(shape)).astype(dtype, order=order)
        values = (8 * random.standard_normal(values_shape)).astype(dtype)
        result = expected.copy(order)
        np.add.at(expected, index, values)
        add_at(result, index, values)
        np.testing.assert_allclose(result, expected, rtol=0, atol=tolerance)
        assert result.dtype == dtype


@pytest.mark.parametrize("index", [4, -5])
def test_add_at_refuses_rows_out_of_range(index):
    with pytest.raises(IndexError):
        add_at(np.zeros((4, 3)), np.array([index]), 1.0)
