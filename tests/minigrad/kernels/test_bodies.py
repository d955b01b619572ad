"""Every body is held to the definition of its operation."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import minigrad as mg
from minigrad import functional as F
from minigrad import kernels
from minigrad.functional.attention import attention, attention_of_heads
from minigrad.functional.loss import row_losses
from minigrad.inspect.memory import arrays_in
from minigrad.ops import relu


class Row(NamedTuple):
    """Arguments of an operation: floating arrays are given by their shapes, or made of the function's own numbers."""

    op: Any
    name: str
    args: Callable[[Callable[..., Any]], tuple[Any, ...]]


def booleans(*shape):
    return np.random.default_rng([len(shape), *shape]).random(shape) < 0.7


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


def rows_of_losses():
    for smoothing in (0.0, 0.2):
        for name, make in (("", lambda x: x(6, 37)), ("large logits, ", lambda x: 300 + 30 * x(6, 37)),
                           ("blocks, ", lambda x: x(6, 50_000)), ("odd rows, ", lambda x: with_odd_rows(x(6, 37)))):
            yield Row(row_losses, f"{name}smoothing {smoothing}",
                      lambda x, make=make, smoothing=smoothing: (make(x), IDS, COUNTED, smoothing))
    yield Row(row_losses, "one class", lambda x: (x(2, 1), np.array([0, 0]), np.array([True, True]), 0.0))
    yield Row(row_losses, "no rows", lambda x: (x(0, 4), IDS[:0], COUNTED[:0], 0.1))


def rows_of_attention():
    for name, mask in MASKS.items():
        for dropped in (None, booleans(2, 2, 5, 7)) if name in ("no mask", "padding") else (None,):
            title = f"{name}, {'no ' if dropped is None else ''}dropout"
            yield Row(attention, title, lambda x, m=mask, d=dropped: (
                x(2, 2, 5, 4), x(2, 2, 7, 4), x(2, 2, 7, 6), m, d, 0.3, 0.5))
            yield Row(attention_of_heads, title, lambda x, m=mask, d=dropped: (
                x(2, 5, 8), x(2, 7, 8), x(2, 7, 12), m, d, 0.3, 0.5, 2))
    yield Row(attention, "a bias", lambda x: (
        x(2, 2, 5, 4), x(2, 2, 7, 4), x(2, 2, 7, 6), MASKS["padding"], booleans(2, 2, 5, 7), 0.3, 0.5, 9 * x(2, 5, 7)))
    yield Row(attention, "a bias of long rows", lambda x: (
        x(1, 3, 4), x(1, 600, 4), x(1, 600, 4), booleans(3, 600), None, 0.0, 1.0, x(600)))
    yield Row(attention_of_heads, "a bias", lambda x: (
        x(2, 5, 8), x(2, 7, 8), x(2, 7, 12), None, None, 0.3, 0.5, 2, x(2, 1, 7)))
    yield Row(attention, "large scores", lambda x: (100 * x(1, 5, 4), x(1, 7, 4), x(1, 7, 4), None, None, 0.0, 1.0))
    yield Row(attention, "long rows", lambda x: (
        x(1, 3, 4), x(1, 600, 4), x(1, 600, 4), booleans(3, 600), None, 0.0, 1.0))
    yield Row(attention, "no keys", lambda x: (x(2, 3, 4), x(2, 0, 4), x(2, 0, 4), None, None, 0.0, 1.0))
    yield Row(attention, "views", lambda x: (
        *(x(3, 2, 5, 8)[..., ::2].swapaxes(0, 1) for _ in range(3)), None, None, 0.0, 1.0))
    for size in (7, 600):
        yield Row(attention, f"infinities and NaN among {size} keys, masked", lambda x, n=size: (
            x(1, 3, 4), with_odd_rows(x(n, 4))[None], x(1, n, 4), ~np.isin(np.arange(n), (1, 2, 4, 5)), None, 0.0, 1.0))


def with_odd_rows(x):
    x[1], x[2], x[4], x[5, 1] = math.inf, math.nan, -math.inf, -math.inf
    return x


ODD = np.array([0.0, -0.0, math.inf, -math.inf, math.nan, -math.nan, -1e30, 1e30, 1.0])
SHAPES = ((5, 33), (2, 3, 8), (4, 1), (9,), (1, 5000), (5000, 2))
ROWS = [
    *rows_of_attention(),
    *rows_of_losses(),
    *[Row(F.layer_norm, f"{s}", lambda x, s=s: (x(*s), x(s[-1]), x(s[-1]), 1e-5)) for s in SHAPES if s[-1] > 2],
    Row(F.layer_norm, "many rows", lambda x: (x(5000, 3), x(3), x(3), 1e-5)),
    Row(F.layer_norm, "no parameters", lambda x: (x(4, 70), None, None, 1e-5)),
    Row(F.layer_norm, "no bias", lambda x: (x(2, 3, 8), x(8), None, 1e-5)),
    *[Row(relu, f"{s}", lambda x, s=s: (x(*s),)) for s in SHAPES],
    Row(relu, "infinities and NaN", lambda x: (ODD.astype(x(1).dtype),)),
]


def arguments(row, dtype):
    numbers = np.random.default_rng(0)
    return row.args(lambda *shape: numbers.standard_normal(shape).astype(dtype))


TOLERANCE = {"d": 1e-12, "f": 2e-5}  # of the largest element of a result, by the character of its dtype


def results(op, args, wanted):
    """The node, the value and the gradients for the arguments at `wanted`, which have memory of their own.

    A second pass gives the same bits: the first has written to nothing that is saved.
    """
    tensors = [mg.from_numpy(a).requires_grad_(i in wanted) if name in op.inputs and isinstance(a, np.ndarray) else a
               for i, (name, a) in enumerate(zip(op.parameters, args, strict=False))]
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


def close(ours, theirs):
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
    largest = np.abs(theirs[np.isfinite(theirs)]).max(initial=1e-3)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=TOLERANCE[ours.dtype.char] * largest)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.op.__name__} {row.name}")
def test_a_body_computes_what_the_definition_does(row, dtype):
    """Value and gradients, of all inputs at once and of each alone. All arrays are read-only: none is written to."""
    op, args = row.op, arguments(row, dtype)
    for array in args:
        if isinstance(array, np.ndarray):
            array.flags.writeable = False
    places = [i for i in op.positions if i < len(args) and args[i] is not None]
    for wanted in [places, *([i] for i in places if len(places) > 1)]:
        with np.errstate(invalid="ignore"):
            with kernels.only_definitions():
                _, expected = results(op, args, wanted)
            node, found = results(op, args, wanted)
        assert node.plan in op.body.plans.values()
        for ours, theirs in zip(found, expected, strict=True):
            close(ours, theirs)


FIRST = {row.op.__name__: row for row in reversed(ROWS)}  # a row for each body


@pytest.mark.parametrize("row", FIRST.values(), ids=FIRST)
def test_other_operands_run_the_definition(row):
    """float16, and what was given inside `only_definitions`."""
    def plan_of(dtype):
        args = [mg.from_numpy(a).requires_grad_() if isinstance(a, np.ndarray) and a.dtype.kind == "f" else a
                for a in arguments(row, dtype)]
        return row.op(*args)._node.plan

    assert plan_of(np.float32) in row.op.body.plans.values()
    assert plan_of(np.float16) in row.op.plans.values()
    with kernels.only_definitions():
        assert plan_of(np.float32) in row.op.plans.values()
