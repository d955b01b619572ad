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
    """Arguments of an operation, from ``x(*shape)``, floating numbers of its own."""

    op: Any
    call: str

    def args(self, x: Callable[..., Any]) -> tuple[Any, ...]:
        return tuple(eval(f"[{self.call}]", NAMES | {"x": x}))  # noqa: S307 - of our own writing


def booleans(*shape):
    return np.random.default_rng([len(shape), *shape]).random(shape) < 0.7


def with_odd_rows(x):
    x[1], x[2], x[4], x[5, 1] = math.inf, math.nan, -math.inf, -math.inf
    return x


NAMES = {
    "booleans": booleans, "odd": with_odd_rows, "np": np,
    "IDS": np.array([3, 0, 2, 2, 1, 1]), "COUNTED": np.array([True, True, False, True, True, True]),
    "ODD": np.array([0.0, -0.0, math.inf, -math.inf, math.nan, -math.nan, -6e4, 6e4, 1.0]),
    "PADDING": booleans(2, 1, 1, 7), "DROPPED": booleans(2, 2, 5, 7), "FEW": ~np.isin(np.arange(7), (1, 2, 4, 5)),
    "MANY": ~np.isin(np.arange(600), (1, 2, 4, 5)),
}
MASKS = ["None, None", "PADDING, DROPPED", "booleans(1, 2, 5, 7), None", "booleans(2, 1, 5, 1), None",
         "np.zeros((1, 7), bool), None"]
ATTENTION = """
    x(2, 2, 5, 4), x(2, 2, 7, 4), x(2, 2, 7, 6), PADDING, DROPPED, 0.3, 0.5, 9 * x(2, 5, 7)
    x(1, 3, 4), x(1, 600, 4), x(1, 600, 4), booleans(3, 600), None, 0.0, 1.0, x(600)
    x(2, 1, 2, 3, 4), x(2, 1, 2, 7, 4), x(2, 1, 2, 7, 6), booleans(1, 2, 3, 7), None, 0.0, 1, x(2, 1, 1, 3, 7)
    100 * x(1, 5, 4), x(1, 7, 4), x(1, 7, 4), None, None, 0.0, 1.0
    x(2, 3, 4), x(2, 0, 4), x(2, 0, 4), None, None, 0.0, 1.0
    *(x(3, 2, 5, 8)[..., ::2].swapaxes(0, 1) for _ in range(3)), None, None, 0.0, 1.0
    x(1, 3, 4), odd(x(7, 4))[None], x(1, 7, 4), FEW, None, 0.0, 1.0
    x(1, 3, 4), odd(x(600, 4))[None], x(1, 600, 4), MANY, None, 0.0, 1.0
"""
HEADS = """
    x(2, 5, 8), x(2, 7, 8), x(2, 7, 12), None, None, 0.3, 0.5, None, 2
    x(2, 5, 8), x(2, 7, 8), x(2, 7, 12), PADDING, DROPPED, 0.3, 0.5, x(2, 1, 7), 2
"""
LOSSES = """
    x(6, 37), IDS, COUNTED, 0.0
    300 + 30 * x(6, 37), IDS, COUNTED, 0.2
    x(6, 50_000), IDS, COUNTED, 0.2
    odd(x(6, 37)), IDS, COUNTED, 0.2
    x(2, 1), np.array([0, 0]), COUNTED[:2], 0.0
    x(0, 4), IDS[:0], COUNTED[:0], 0.1
"""
NORMS = """
    x(2, 3, 8), x(8), x(8), 1e-5
    x(9), x(9), x(9), 1e-5
    x(1, 5000), x(5000), x(5000), 1e-5
    odd(x(6, 8)), x(8), x(8), 1e-5
    x(4, 70), None, None, 1e-5
    x(2, 3, 8), x(8), None, 1e-5
"""
RELU = "x(2, 3, 8)", "x(9)", "x(5000, 2)", "ODD.astype(x(1).dtype)"
ROWS = [*[Row(attention, f"x(2, 2, 5, 4), x(2, 2, 7, 4), x(2, 2, 7, 6), {masks}, 0.3, 0.5") for masks in MASKS],
        *[Row(op, call.strip()) for op, text in ((attention, ATTENTION), (attention_of_heads, HEADS),
                                                (row_losses, LOSSES), (F.layer_norm, NORMS))
          for call in text.strip().splitlines()], *[Row(relu, call) for call in RELU]]


def arguments(row, dtype):
    numbers = np.random.default_rng(0)
    return row.args(lambda *shape: numbers.standard_normal(shape).astype(dtype))


TOLERANCE = {"d": 1e-12, "f": 2e-5, "e": 0.0}  # of the largest element of a result, by the character of its dtype


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


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.op.__name__} {row.call}")
def test_a_body_computes_what_the_definition_does(row, dtype):
    """Value and gradients, of all inputs at once and of each alone. All arrays are read-only: none is written to.

    The definition runs where only definitions may, and on float16.
    """
    op, args = row.op, arguments(row, dtype)
    for array in args:
        if isinstance(array, np.ndarray):
            array.flags.writeable = False
    places = [i for i in op.positions if i < len(args) and args[i] is not None]
    for wanted in [places, *([i] for i in places if len(places) > 1)]:
        with np.errstate(invalid="ignore", over="ignore"):
            with kernels.only_definitions():
                defined, expected = results(op, args, wanted)
            node, found = results(op, args, wanted)
        assert defined.plan in op.plans.values()
        assert node.plan in (op if dtype is np.float16 else op.bodies["numpy"]).plans.values()
        for ours, theirs in zip(found, expected, strict=True):
            close(ours, theirs)
