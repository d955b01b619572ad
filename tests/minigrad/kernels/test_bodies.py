"""Every body is held to the definition of its operation by `minigrad.kernels.check_body`."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, kernels
from minigrad import functional as F
from minigrad.engine.node import Saved
from minigrad.engine.primitive import primitive
from minigrad.functional.attention import attention, attention_of_heads
from minigrad.functional.dropout import dropout_with_mask
from minigrad.functional.embedding import lookup
from minigrad.functional.gelu import gelu_tanh
from minigrad.functional.loss import row_losses
from minigrad.functional.more.linear_cross_entropy import linear_losses
from minigrad.functional.more.rms_norm import _rms_norm
from minigrad.kernels import BodyError, check_body, faster_body
from minigrad.kernels.bodies import on_host
from minigrad.kernels.host.indexing import add_at
from minigrad.ops import clip, getitem, max, maximum, min, minimum, nan_to_num, put_into_zeros, relu, where
from minigrad.ops.linalg import batched_matmul


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
    yield Row(nan_to_num, "large", lambda x: (np.where(x(80, 64) > 1, np.inf, x(80, 64)), 0.0, None, None))
    for op in (max, min):
        yield Row(op, "rows, with ties", lambda x: (np.round(x(80, 64)), 1, False))
        yield Row(op, "columns, kept", lambda x: (np.round(x(80, 64)), 0, True))
        yield Row(op, "many rows", lambda x: (x(5120, 1), 1, False))


ROWS_OF_PLACES = np.random.default_rng(0).integers(-80, 80, (30, 2))
ROWS = [
    *rows_of_choices(),
    Row(getitem, "rows", lambda x: (x(80, 64), ROWS_OF_PLACES)),
    Row(put_into_zeros, "rows", lambda x: (x(30, 2, 64), ROWS_OF_PLACES, (80, 64))),
    Row(batched_matmul, "one matrix for all rows", lambda x: (x(4, 20, 64), x(64, 7))),
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


EXACT = {where, maximum, minimum, clip, nan_to_num, max, min}
CHECKS = [(body, row) for row in ROWS for body in bodies(row.op) if body.suits(*arguments(row, np.float32))]


@pytest.mark.parametrize(("body", "row"), CHECKS,
                         ids=[f"{body.kind} {row.op.name}: {row.name}" for body, row in CHECKS])
def test_a_body_computes_what_the_definition_does(body, row):
    for dtype in (np.float32, np.float64):
        with np.errstate(invalid="ignore"):
            found = check_body(body, *arguments(row, dtype), tolerance=0 if row.op in EXACT else None)
        assert found.fresh


FINITE = [(body, row) for body, row in CHECKS if row.name != "infinities and NaN" and row.op is not nan_to_num]
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
        assert [step.ran for step in mg.explain_path(F.softmax, x).steps] == ["definition"]
    assert out._node.plan in F.softmax.plans.values()
    assert F.softmax(x)._node.plan not in F.softmax.plans.values()


def test_explain_path_tells_what_ran_and_why_others_declined():
    x = Tensor(np.ones((3, 4), np.float32), requires_grad=True)
    explained = mg.explain_path(lambda x: F.softmax(F.layer_norm(x) * 2).sum(), x)
    ran = {step.operation: step.ran for step in explained.steps}
    assert list(ran) == ["layer_norm", "mul", "softmax", "sum"]
    assert ran["softmax"] == "minigrad.kernels.host.softmax"
    assert ran["mul"] == "definition"
    assert explained.result.shape == ()
    lookups = mg.explain_path(F.embedding, np.array([0, 2]), x.astype(np.float16))
    (step,) = lookups.steps
    assert step.ran == "definition"
    assert step.declined == (("minigrad.kernels.host.embedding", "It takes float32 and float64 arrays in host memory"),)
    assert str(lookups).splitlines()[1].split() == ["not", *": ".join(step.declined[0]).split()]


# --------------------------------------------------------------------------- the checker finds what it is for


def cube_steps(x, y):
    return x * x * y


def operation(fresh=True, forward=None, rule=None):
    """A body of ``x² y``, right but for what is given."""

    @primitive(composition=cube_steps)
    def product(x, y):
        return x * x * y, Saved(square=x * x)

    @product.joint_gradient("x", "y")
    def product_gradient(g, x, y, saved):
        return 2 * g * x * y, g * saved.square

    def right(x, y):
        return x * x * y, Saved(square=x * x)

    body = faster_body(product, lambda x, y: on_host(x, y), fresh=fresh)(forward or right)
    if rule:
        body.joint_gradient("x", "y")(rule)
    return body


def write_to_operand(x, y):
    out = x * x * y
    y *= 2
    return out, Saved(square=x * x)


def write_to_saved(g, x, y, saved):
    result = 2 * g * x * y, g * saved.square
    saved.square *= 2
    return result


def write_to_gradient(g, x, y, saved):
    result = 2 * g * x * y, g * saved.square
    g *= 0
    return result


@pytest.mark.parametrize(("options", "found"), [
    ({"forward": lambda x, y: (x * x * y * 1.01, Saved(square=x * x))}, "the value differs"),
    ({"forward": write_to_operand}, "writes to an operand"),
    ({"forward": lambda x, y: ((x * x * y).astype(np.float32), Saved(square=x * x))}, "the value is float32"),
    ({"rule": lambda g, x, y, saved: (2 * g * x * y, g * saved.square * 1.01)}, "the gradient of y differs"),
    ({"rule": lambda g, x, y, saved: (2 * g * x * y, np.multiply(g, saved.square, out=saved.square))}, "shares memory"),
    ({"rule": write_to_saved}, "second backward pass"),
    ({"rule": write_to_gradient}, "writes to the gradient of the output"),
], ids=["value", "writes to an operand", "dtype", "gradient", "not fresh", "writes to saved", "writes to g"])
def test_the_checker_finds(options, found):
    x, y = np.random.default_rng(0).standard_normal((2, 5))
    with pytest.raises(BodyError, match=found):
        check_body(operation(**options), x, y)


def test_the_checker_passes_a_right_body_and_measures_it():
    x, y = np.random.default_rng(0).standard_normal((2, 5))
    found = check_body(operation(), x, y)
    assert found.fresh
    assert found.value_error < 1e-15
    assert found.kept >= 3 * x.nbytes
    with pytest.raises(ValueError, match="does not suit"):
        check_body(operation(), x, y.astype(np.float32))


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
