"""Rows of the table: products, deviations, norms, scans and sorting."""

import math

import numpy as np

import minigrad as mg

from tests.minigrad.ops.row import alike, distinct, nonzero, normal, row

ZEROS = nonzero(2, 3, 2)  # columns of no zero, of one and of two
ZEROS[0, 1, 0] = ZEROS[0, 2, 0] = ZEROS[1, 0, 1] = 0


def descending(x, axis=-1):
    return -np.sort(-x, axis)


PRODUCTS = [
    *(alike("prod", ZEROS, axis, keywords={"keepdims": keepdims})
      for axis, keepdims in [(None, False), (1, False), (-1, True), ((0, 2), False), ((-1, 1), True), ((), False)]),
    row("prod of no zero", mg.prod, np.prod, nonzero(2, 3)),
    alike("prod", nonzero(), None),
    *(alike("cumprod", ZEROS, axis) for axis in (0, 1, -1)),
]

DEVIATIONS = [
    *(alike("std", normal(2, 3, 2), axis, keywords={"keepdims": keepdims})
      for axis, keepdims in [(None, False), (1, True), ((0, -1), False)]),
    row("std, corrected", lambda x: x.std(axis=1, correction=1), lambda x: x.std(axis=1, ddof=1), normal(2, 4)),
    *(row(f"norm, axis={axis}, keepdims={keepdims}", lambda x, a=axis, k=keepdims: mg.norm(x, None, a, k),
          lambda x, a=axis, k=keepdims: np.linalg.norm(x, None, a, k), normal(2, 3, 2))
      for axis, keepdims in [(None, False), (-1, True), ((0, 2), False)]),
    *(row(f"norm of order {p}", lambda x, p=p: mg.norm(x, p, axis=1), lambda x, p=p: np.linalg.norm(x, p, axis=1),
          nonzero(2, 3, 2)) for p in (1, 2, 3, 0.5, -1)),
    *(row(f"norm of order {p}", lambda x, p=p: mg.norm(x, p, axis=-1, keepdims=True),
          lambda x, p=p: np.linalg.norm(x, p, -1, True), nonzero(3, 4)) for p in (math.inf, -math.inf)),
    row("norm of order 0", lambda x: mg.norm(x, 0, axis=0), lambda x: np.linalg.norm(x, 0, axis=0), ZEROS[0],
        differentiable=False),
    row("norm of all of a vector", lambda x: mg.norm(x, 3), lambda x: np.linalg.norm(x, 3), nonzero(4)),
    row("norm of a matrix", lambda x: mg.norm(x, "fro"), lambda x: np.linalg.norm(x, "fro"), normal(3, 2)),
]

SORTING = [
    *(alike("sort", distinct(2, 4, 3), axis) for axis in (-1, 0, None)),
    *(row(f"sort descending, axis={axis}", lambda x, a=axis: mg.sort(x, a, descending=True),
          lambda x, a=axis: descending(x, a), distinct(2, 4, 3)) for axis in (-1, 1)),
    *(alike("argsort", distinct(2, 4, 3), axis, differentiable=False, out_dtype=np.int64) for axis in (0, None)),
    row("argsort descending", lambda x: mg.argsort(x, 1, descending=True), lambda x: np.argsort(-x, 1),
        distinct(2, 4, 3), differentiable=False, out_dtype=np.int64),
    *(row(f"topk of {k}, axis={axis}", lambda x, k=k, a=axis: mg.topk(x, k, a)[0],
          lambda x, k=k, a=axis: descending(x, a).take(range(k), a), distinct(2, 4, 3))
      for k, axis in [(2, 1), (3, -1), (2, 0)]),
    row("topk, smallest", lambda x: mg.topk(x, 2, 1, largest=False)[0], lambda x: np.sort(x, 1)[:, :2],
        distinct(2, 4, 3)),
    row("topk, indices", lambda x: mg.topk(x, 2, 0)[1], lambda x: np.argsort(-x, 0)[:2], distinct(4, 3),
        differentiable=False, out_dtype=np.int64),
]

OF_ONE_ELEMENT = [  # a number is one element along axis 0 or -1, and so is what comes of it
    *(row(f"{name} of a number, axis={axis}", lambda x, n=name, a=axis: getattr(mg, n)(x, a), lambda x: x, distinct())
      for name in ("sort", "cumsum", "cumprod") for axis in (0, -1)),
    row("argsort of a number", lambda x: mg.argsort(x), lambda x: np.array(0), distinct(), differentiable=False,
        out_dtype=np.int64),
    row("topk of a number", lambda x: mg.topk(x, 1)[0], lambda x: x, distinct()),
    row("topk of a number, indices", lambda x: mg.topk(x, 1)[1], lambda x: np.array(0), distinct(),
        differentiable=False, out_dtype=np.int64),
    row("topk of a number, none", lambda x: mg.topk(x, 0)[0], lambda x: x.reshape(1)[:0], distinct()),
    *(alike(name, array, None) for name in ("sort", "cumsum", "cumprod") for array in (distinct(2, 3), distinct())),
]

ROWS_REDUCTION = [*PRODUCTS, *DEVIATIONS, *SORTING, *OF_ONE_ELEMENT]
