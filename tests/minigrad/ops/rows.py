"""The table: every operation, with shapes and arguments that exercise its rule."""

import math

import numpy as np
import scipy.special

import minigrad as mg
from minigrad import ops

from tests.minigrad.ops.row import Row, alike, constant, distinct, nonzero, normal, positive, row
from tests.minigrad.ops.rows_shape import ROWS_SHAPE

HALF_LINE = np.array([[True, False, True], [False, False, True]])
IDS = np.array([[2, 0, 2], [1, -1, 0]])


def of_each_element(name):
    """A row for an operation of each element: its reference has its name in NumPy or SciPy, or is `ELSEWHERE`."""
    op, reference = ops.OPERATIONS[name], ELSEWHERE.get(name) or getattr(np, name, None) or getattr(scipy.special, name)
    for make in (nonzero, positive):  # of both signs, where the function has a domain for that
        arrays = [make(2, 3, seed=seed) for seed in range(len(op.parameters))]
        with np.errstate(invalid="ignore"):
            expected = reference(*arrays)
        if np.isfinite(expected).all():
            break
    truth = expected.dtype == bool
    return row(name, op, reference, *arrays, differentiable=bool(op.inputs), out_dtype=bool if truth else None)


ELSEWHERE = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "neg": np.negative,
    "relu": lambda x: np.maximum(x, 0), "sigmoid": scipy.special.expit,
}
EXPLICIT = {"where", "clip", "round", "zeros_like", "bitwise_and", "bitwise_or", "bitwise_not"}
NAMES = [name for name, op in ops.OPERATIONS.items() if op.__module__ == "minigrad.ops.elementwise"]

BY_NAME = [of_each_element(name) for name in NAMES if name not in EXPLICIT]
BINARY = {row.name: (row.op, row.reference) for row in BY_NAME if len(row.arrays) == 2 and row.differentiable}

ELEMENTWISE = [
    *BY_NAME,
    row("sub from a number", lambda x: 2 - x, lambda x: 2 - x, normal(2, 3)),
    row("div a number", lambda x: 2 / x / 3, lambda x: 2 / (3 * x), nonzero(2, 3)),
    row("power 2", lambda x: x ** 2, np.square, normal(2, 3)),
    row("power -1.5", lambda x: x ** -1.5, lambda x: x ** -1.5, positive(2, 3)),
    row("power of a number", lambda x: 2.5 ** x, lambda x: 2.5 ** x, normal(2, 3)),
    row("power by constants", lambda x: x ** constant([[0.0, 1, 2], [3, -1, -2]], x),
        lambda x: x ** np.array([[0.0, 1, 2], [3, -1, -2]]), nonzero(2, 3)),
    row("remainder of a number", lambda x: 7.3 % x + mg.remainder(x, 0.4),
        lambda x: 7.3 % x + np.remainder(x, 0.4), nonzero(2, 3)),
    row("maximum with a number", lambda x: mg.maximum(mg.maximum(x, -0.1), np.float64(0.1)),
        lambda x: np.maximum(x, 0.1), distinct(2, 3)),
    row("clip", lambda x: mg.clip(x, -0.1, 0.2), lambda x: np.clip(x, -0.1, 0.2), distinct(3, 4)),
    row("clip below", lambda x: x.clip(min=0), lambda x: np.clip(x, 0, None), distinct(3, 4)),
    row("clip above", lambda x: x.clip(max=np.float64(0.2)), lambda x: np.clip(x, None, 0.2), distinct(3, 4)),
    row("clip by tensors", mg.clip, np.clip, distinct(2, 3), distinct(2, 3, seed=1) - 0.1,
        distinct(2, 3, seed=2) + 0.15),
    row("clip by a tensor and a number", lambda x, y: mg.clip(x, y, 0.1), lambda x, y: np.clip(x, y, 0.1),
        distinct(2, 3), distinct(2, 3, seed=1)),
    row("where", lambda x, y: mg.where(constant(HALF_LINE, x), x, y), lambda x, y: np.where(HALF_LINE, x, y),
        normal(2, 3), normal(2, 3, seed=1)),
    *(row(f"where {chosen} {x} {y}", lambda x, y, c=chosen: mg.where(constant(normal(*c) > 0, x), x, y),
          lambda x, y, c=chosen: np.where(normal(*c) > 0, x, y), normal(*x), normal(*y, seed=1))
      for chosen, x, y in [((2, 1), (3,), ()), ((), (2, 3), (1, 3)), ((3,), (1,), (2, 1)), ((1,), (), ())]),
    row("where with numbers", lambda x: mg.where(x > 0, x, -1.0) + mg.where(x > 0, 2, x),
        lambda x: np.where(x > 0, x, -1.0) + np.where(x > 0, 2, x), nonzero(2, 3)),
    row("masked_fill", lambda x: mg.masked_fill(x, constant(HALF_LINE[:, :1], x), 7.0),
        lambda x: np.where(HALF_LINE[:, :1], 7.0, x), normal(2, 3)),
    row("masked_fill, both broadcast", lambda x: mg.masked_fill(x, constant(HALF_LINE[:, :1], x), 7.0),
        lambda x: np.where(HALF_LINE[:, :1], 7.0, x), normal(3)),
    row("astype", lambda x: x.astype(np.float64).astype(x.dtype), lambda x: x, normal(2, 3)),
    row("to_device", lambda x: x.to("cpu") * 2, lambda x: x * 2, normal(2, 3)),
]

NO_GRADIENT = [
    row("equal to some", ops.equal, np.equal, np.array([[1.0, 2, 3], [4, 5, 6]]), np.array([[1.0, 5, 3], [2, 7, 6]]),
        ops="equal", differentiable=False, out_dtype=bool),
    row("bitwise_and", lambda x, y: (x > 0) & (y > 0), lambda x, y: (x > 0) & (y > 0), normal(3, 4),
        normal(3, 4, seed=1), differentiable=False, out_dtype=bool),
    row("bitwise_or", lambda x, y: (x > 0) | (y > 0), lambda x, y: (x > 0) | (y > 0), normal(3, 4),
        normal(3, 4, seed=1), differentiable=False, out_dtype=bool),
    row("bitwise_not", lambda x: ~(x > 0), lambda x: ~(x > 0), normal(3, 4), differentiable=False, out_dtype=bool),
    row("any", lambda x: ops.any(x > 1, axis=1), lambda x: np.any(x > 1, axis=1), normal(3, 4), differentiable=False,
        out_dtype=bool),
    row("all", lambda x: ops.all(x < 1, axis=0, keepdims=True), lambda x: np.all(x < 1, axis=0, keepdims=True),
        normal(3, 4), differentiable=False, out_dtype=bool),
    row("round", mg.round, np.round, 3 * normal(2, 3), differentiable=False),
    row("round to 2 decimals", lambda x: mg.round(x, decimals=2), lambda x: np.round(x, 2), normal(2, 3),
        differentiable=False),
    row("zeros_like", ops.zeros_like, np.zeros_like, normal(2, 3), differentiable=False),
    *(alike(name, distinct(2, 3, 4), axis, differentiable=False, out_dtype=np.int64, keywords={"keepdims": keepdims})
      for name in ("argmax", "argmin") for axis, keepdims in [(None, False), (None, True), (1, False), (-1, True)]),
]

REDUCTIONS = [
    *(alike(name, distinct(2, 3, 2), axis, keywords={"keepdims": keepdims})
      for name in ("sum", "mean", "max", "min")
      for axis, keepdims in [(None, False), (None, True), (1, False), (-1, True), ((0, 2), False), ((-1, 1), True),
                             ((), False)]),
    *(alike(name, distinct(), None) for name in ("sum", "mean", "max", "min", "var")),
    *(alike("var", normal(2, 3, 2), axis, keywords={"keepdims": keepdims})
      for axis, keepdims in [(None, False), (1, True), ((0, -1), False)]),
    *(alike("logsumexp", normal(2, 3, 2), axis, keywords={"keepdims": keepdims}, reference=scipy.special.logsumexp)
      for axis, keepdims in [(None, False), (None, True), (0, False), (-1, True), ((0, 2), False)]),
    *(alike("std", normal(2, 3, 2), axis, keywords={"keepdims": keepdims})
      for axis, keepdims in [(None, False), (1, True), ((0, -1), False)]),
    *(alike("norm", normal(2, 3, 2), axis, keywords={"keepdims": keepdims},
            reference=lambda x, axis, keepdims: np.sqrt((x * x).sum(axis, keepdims=keepdims)))
      for axis, keepdims in [(None, False), (-1, True), ((0, 2), False)]),
    alike("cumsum", normal(3, 2), 0),
    alike("cumsum", normal(2, 2, 3), -1),
    row("var, corrected", lambda x: x.var(axis=1, correction=1), lambda x: x.var(axis=1, ddof=1), normal(2, 4)),
    row("logsumexp of some -inf", lambda x: mg.logsumexp(mg.where(constant(HALF_LINE, x), -math.inf, x), axis=1),
        lambda x: scipy.special.logsumexp(np.where(HALF_LINE, -np.inf, x), axis=1), normal(2, 3)),
]

SHAPES = [
    row("reshape", lambda x: x.reshape(3, -1), lambda x: x.reshape(3, -1), normal(2, 3, 2), view=True),
    row("reshape after transpose", lambda x: x.T.reshape((4, 3)), lambda x: x.T.reshape(4, 3), normal(2, 3, 2)),
    row("transpose", lambda x: mg.transpose(x), np.transpose, normal(2, 3, 2), view=True),
    row("transpose axes", lambda x: x.transpose(1, -1, 0), lambda x: x.transpose(1, -1, 0), normal(2, 3, 2), view=True),
    row("swapaxes", lambda x: mg.swapaxes(x, 0, -1), lambda x: np.swapaxes(x, 0, -1), normal(2, 3, 2), view=True),
    row("mT", lambda x: x.mT, lambda x: np.swapaxes(x, -1, -2), normal(2, 3, 2), ops="swapaxes", view=True),
    row("broadcast_to", lambda x: mg.broadcast_to(x, (2, 3, 4)), lambda x: np.broadcast_to(x, (2, 3, 4)), normal(3, 1),
        view=True),
    row("expand_dims -1", lambda x: x.expand_dims(-1), lambda x: x[..., None], normal(2, 3), view=True),
    row("squeeze", mg.squeeze, np.squeeze, normal(1, 3, 1), view=True),
    *(row(f"squeeze a number, axis={axis}", lambda x, a=axis: mg.squeeze(x, a), lambda x: x, normal(), view=True)
      for axis in (0, -1, None)),
    row("squeeze axes", lambda x: mg.squeeze(x, (0, -1)), lambda x: x[0, :, 0], normal(1, 3, 1), view=True),
    row("concatenate", lambda x, y, z: mg.concatenate([x, y, z], axis=1), lambda *xs: np.concatenate(xs, axis=1),
        normal(2, 1), normal(2, 3), normal(2, 0)),
    row("concatenate, flattened", lambda x, y: mg.concatenate([x, y], axis=None),
        lambda *xs: np.concatenate(xs, axis=None), normal(2, 3), normal(2)),
    row("concatenate with a constant", lambda x: mg.concatenate([constant([[1.0, 2]], x), x]),
        lambda x: np.concatenate([[[1, 2]], x]), normal(2, 2)),
    row("stack", lambda x, y: mg.stack([x, y]), lambda *xs: np.stack(xs), normal(2, 3), normal(2, 3, seed=1)),
    row("stack last", lambda x: mg.stack([x, x], axis=-1), lambda x: np.stack([x, x], axis=-1), normal(2, 3)),
    row("split", lambda x: [a * (i + 1) for i, a in enumerate(mg.split(x, 2, axis=1))][2] + mg.split(x, 1, -1)[0],
        lambda x: x[:, 4:] * 3 + x[:, :1], normal(2, 5)),
    row("split by sizes", lambda x: x.split([1, 0, 3])[2], lambda x: x[1:], normal(4, 2), view=True),
    row("pad", lambda x: mg.pad(x, ((1, 0), (0, 2))), lambda x: np.pad(x, ((1, 0), (0, 2))), normal(2, 3)),
    row("pad with a value", lambda x: mg.pad(x, [(0, 0), (2, 1)], value=-1.5),
        lambda x: np.pad(x, [(0, 0), (2, 1)], constant_values=-1.5), normal(2, 3)),
    *(row(f"pad by {widths}", lambda x, w=widths: mg.pad(x, w), lambda x, w=widths: np.pad(x, w), normal(2, 3))
      for widths in (1, (0, 2), (2,), ((1,), (2,)))),
    row("pad by nothing", lambda x: mg.pad(x, 0), lambda x: x, normal(2, 3)),
    row("flip", mg.flip, np.flip, normal(2, 3), view=True),
    row("flip axes", lambda x: x.flip((0, 2)), lambda x: x[::-1, :, ::-1], normal(2, 3, 2), view=True),
    *(alike(name, normal(2, 3, 4), k) for name in ("tril", "triu") for k in (-1, 0, 2)),
]

# Every pair of ranks; batch shapes that broadcast are in test_broadcasting.py, too.
MATMUL_SHAPES = [
    ((3,), (3,)), ((3,), (3, 2)), ((2, 3), (3,)), ((2, 3), (3, 4)),
    ((3,), (2, 3, 4)), ((2, 3, 4), (4,)), ((2, 3, 4), (4, 2)), ((3, 4), (2, 4, 2)),
    ((2, 3, 4), (2, 4, 2)), ((1, 3, 4), (2, 4, 2)), ((2, 1, 2, 3), (2, 3, 2)), ((2, 2, 1, 3), (3, 2)),
    ((3,), (2, 1, 3, 2)), ((2, 1, 2, 3), (3,)), ((2, 2, 0), (0, 3)), ((2, 3, 0), (2, 0, 2)),
]

def matmul_row(x, y):
    return row(f"matmul {x} @ {y}", lambda x, y: x @ y, np.matmul, normal(*x), normal(*y, seed=1))


LINEAR_ALGEBRA = [
    *(matmul_row(x, y) for x, y in MATMUL_SHAPES),
    row("matmul of a constant", lambda x: constant([[1.0, 2]], x) @ x, lambda x: np.array([[1, 2]]) @ x, normal(2, 3)),
]

MASK = np.array([[True, False, True, True], [False, False, True, False], [True, True, False, True]])
BASIC = {  # views
    "[-1]": np.int64(-1), "[1, 2]": (1, 2), "[..., 1]": (..., 1), "[()]": (), "[1:1]": slice(1, 1),
    "[5:0:-2]": slice(5, 0, -2), "[None, 1, ..., None]": (None, 1, ..., None),
}
ADVANCED = {
    "[[0, 2, 0]]": [0, 2, 0], "[IDS]": IDS, "[[[0], [2]], [1, 3]]": ([[0], [2]], [1, 3]), "[[], []]": ([], []),
    "[0-d array]": np.array(1), "[:, [1, 1, 3]]": (slice(None), [1, 1, 3]), "[2, [0, 0]]": (2, [0, 0]),
    "[[1, 1], None, [0, 0]]": ([1, 1], None, [0, 0]), "[mask]": MASK, "[row mask, 1]": (MASK[:, 0], 1),
    "[:, column mask]": (slice(None), MASK[0]), "[True]": True, "[False]": False,
}
INDEXING = [
    *(row(f"getitem {name}", lambda x, i=index: x[i], lambda x, i=index: x[i], normal(3, 4), view=True)
      for name, index in BASIC.items()),
    *(row(f"getitem {name}", lambda x, i=index: x[i], lambda x, i=index: x[i], normal(3, 4))
      for name, index in ADVANCED.items()),
    row("getitem [Tensor]", lambda x: x[constant([2, 0, 2], x)], lambda x: x[[2, 0, 2]], normal(3, 4)),
    row("getitem [x > 0]", lambda x: x[x > 0], lambda x: x[x > 0], nonzero(3, 4)),
    row("getitem of one number", lambda x: x[()] + x[..., None].sum(), lambda x: 2 * x, normal()),
    row("put_into_zeros", lambda x: ops.put_into_zeros(x, (slice(None), slice(0, 4, 2)), (2, 5)),
        lambda x: np.insert(x, [1, 2, 2], 0, axis=1), normal(2, 2)),
    row("put_into_zeros, twice", lambda x: ops.put_into_zeros(x, constant([1, 1, 0], x), (3,)),
        lambda x: np.array([x[2], x[0] + x[1], 0]), normal(3)),
    row("take", lambda x: mg.take(x, [5, 0, 0]), lambda x: np.take(x, [5, 0, 0]), normal(3, 4)),
    row("take last axis", lambda x: x.take(constant([3, 3, -4], x), axis=-1), lambda x: x[..., [3, 3, 0]],
        normal(2, 3, 4)),
    row("take none", lambda x: x.take([], axis=1), lambda x: x[:, :0], normal(3, 4)),
    row("gather 0", lambda x: mg.gather(x, 0, IDS), lambda x: np.take_along_axis(x, IDS, 0), normal(3, 3)),
    row("gather 1", lambda x: x.gather(-1, IDS.tolist()), lambda x: np.take_along_axis(x, IDS, -1), normal(2, 3)),
    row("gather of three dimensions", lambda x: mg.gather(x, -2, constant(IDS[None], x)),
        lambda x: np.take_along_axis(x, IDS[None], -2), normal(1, 3, 3)),
    row("gather from fewer", lambda x: mg.gather(x, 0, constant([[1], [1], [0]], x)),
        lambda x: x[[1, 1, 0], :1], normal(2, 3)),
]


ONE_NUMBER = [  # a number is one element along axis 0, and its index may have one dimension or none
    row("norm of one number", mg.norm, lambda x: np.sqrt(x * x), nonzero()),
    row("repeat of one number", lambda x: mg.repeat(x, 3), lambda x: np.repeat(x, 3), nonzero()),
    row("repeat of one number along its axis", lambda x: mg.repeat(x, [3], axis=-1), lambda x: x.repeat(3), nonzero()),
    row("take from a number", lambda x: mg.take(x, [0, -1], axis=-1), lambda x: x.repeat(2), normal()),
    *(row(f"gather from a number by {index}", lambda x, i=index: mg.gather(x, 0, i),
          lambda x, i=index: x.repeat(np.size(i)).reshape(np.shape(i)), normal()) for index in (0, [-1], [0, 0])),
    *(row(f"{name} of a number, axis={axis}", lambda x, n=name, a=axis: getattr(mg, n)(x, a), lambda x: x, distinct())
      for name in ("sort", "cumsum") for axis in (0, -1)),
    row("argsort of a number", lambda x: mg.argsort(x), lambda x: np.array(0), distinct(), differentiable=False,
        out_dtype=np.int64),
    *(alike(name, array, None) for name in ("sort", "cumsum") for array in (distinct(2, 3), distinct())),
]
SORTING = [
    *(alike("sort", distinct(2, 4, 3), axis) for axis in (-1, 0)),
    *(alike("argsort", distinct(2, 4, 3), axis, differentiable=False, out_dtype=np.int64) for axis in (0, None)),
]
ROWS: list[Row] = [*ELEMENTWISE, *NO_GRADIENT, *REDUCTIONS, *SHAPES, *ROWS_SHAPE, *LINEAR_ALGEBRA, *INDEXING, *SORTING,
                   *ONE_NUMBER]
