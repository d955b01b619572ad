"""Rows of the table: writing at places, selecting and counting."""

import numpy as np

import minigrad as mg

from tests.minigrad.ops.row import constant, distinct, nonzero, normal, row

IDS = np.array([[2, 0, 2], [1, -1, 0]])
MASK = np.array([[True, False, True, True], [False, False, True, False], [True, True, False, True]])
ONES = np.ones((2, 5), int)
FIVE = np.array([3, 0, 3, 1, 3])
# name: an index into (3, 4), and the shape of what it names
INDICES = {
    "a slice": ((slice(None), slice(1, 3)), (3, 2)), "places": (([0, 2], [1, -1]), (2,)), "a mask": (MASK, (7,)),
    "a slice and places": ((slice(0, 2), [3, 0]), (2, 2)), "a row thrice": ([1, 1, 0, 1], (4, 4)),
    "no places": (([], []), (0,)), "a new axis": ((None, 2), (1, 4)),
}


def put(x, index, values):
    out = x.copy()
    out[index] = values
    return out


def put_added(x, index, values):
    out = x.copy()
    np.add.at(out, index, values)
    return out


def scattered(x, axis, index, src):
    """scatter, an element at a time; the last stays."""
    out = x.copy()
    for place, k in np.ndenumerate(index):
        out[(*place[:axis], k, *place[axis + 1:])] = src[place]
    return out


def reduced(x, axis, index, src, reduce, include_self=True):
    """scatter_reduce, a place at a time."""
    out = x.copy()
    for place in np.ndindex(x.shape):
        sent = [src[other] for other, k in np.ndenumerate(index)
                if (*other[:axis], k % x.shape[axis], *other[axis + 1:]) == place]
        if sent:
            members = np.array([*([x[place]] if include_self else []), *sent])
            out = out.astype(float) if reduce == "mean" else out
            out[place] = {"amax": np.max, "amin": np.min}.get(reduce, getattr(np, reduce, None))(members)
    return out.astype(float) if reduce == "mean" else out


WRITING = [
    *(row(f"index_put, {name}", lambda x, v, i=index: mg.index_put(x, i, v), lambda x, v, i=index: put(x, i, v),
          normal(3, 4), normal(*shape, seed=1)) for name, (index, shape) in INDICES.items()),
    *(row(f"index_put, accumulating, {name}", lambda x, v, i=index: mg.index_put(x, i, v, accumulate=True),
          lambda x, v, i=index: put_added(x, i, v), normal(3, 4), normal(*shape, seed=1))
      for name, (index, shape) in INDICES.items()),
    row("index_put, broadcasting", lambda x, v: mg.index_put(x, [2, 0], v), lambda x, v: put(x, [2, 0], v),
        normal(3, 4), normal(2, 1, seed=1)),
    row("index_put, a number", lambda x: mg.index_put(x, (constant([2, 0, 2], x), 1), 7),
        lambda x: put(x, ([2, 0, 2], 1), 7), normal(3, 4)),
    row("index_put, a list", lambda x: mg.index_put(x, (slice(None), 1), [1.0, 2, 3], accumulate=True),
        lambda x: put_added(x, (slice(None), 1), [1, 2, 3]), normal(3, 4)),
    row("index_put of one number", lambda x, v: mg.index_put(x, (), v), lambda x, v: v, normal(), normal(seed=1)),
    row("scatter 0", lambda x, v: mg.scatter(x, 0, IDS, v), lambda x, v: scattered(x, 0, IDS, v), normal(3, 3),
        normal(2, 3, seed=1)),
    row("scatter 1", lambda x, v: x.scatter(-1, constant(IDS, x), v), lambda x, v: scattered(x, 1, IDS, v),
        normal(2, 4), normal(2, 3, seed=1)),
    row("scatter of a longer src", lambda x, v: mg.scatter(x, 0, IDS[:, :2], v),
        lambda x, v: scattered(x, 0, IDS[:, :2], v), normal(3, 3), normal(3, 4, seed=1)),
    row("scatter a number", lambda x: mg.scatter(x, 1, [[0], [1]], 0.5),
        lambda x: put(x, ([0, 1], [0, 1]), 0.5), normal(2, 3)),
    row("index_add 0", lambda x, v: mg.index_add(x, 0, [2, 0, 2], v), lambda x, v: put_added(x, [2, 0, 2], v),
        normal(3, 2), normal(3, 2, seed=1)),
    row("index_add -1", lambda x, v: x.index_add(-1, constant([1, -1], x), v),
        lambda x, v: put_added(x, (..., [1, -1]), v), normal(2, 2, 3), normal(2, 2, 2, seed=1)),
]

SELECTING = [
    row("index_select 0", lambda x: mg.index_select(x, 0, [2, 0, 2]), lambda x: x[[2, 0, 2]], normal(3, 2)),
    row("index_select -1", lambda x: x.index_select(-1, constant([1, -2], x)), lambda x: x[..., [1, 1]],
        normal(2, 2, 3)),
    row("masked_select", lambda x: mg.masked_select(x, constant(MASK, x)), lambda x: x[MASK], normal(3, 4)),
    row("masked_select, both broadcast", lambda x: x.masked_select(constant(MASK[:, :1], x)),
        lambda x: np.broadcast_to(x, (3, 4))[np.broadcast_to(MASK[:, :1], (3, 4))], normal(4)),
    row("argwhere", lambda x: mg.argwhere(x > 0), lambda x: np.argwhere(x > 0), nonzero(3, 4), differentiable=False,
        out_dtype=np.int64),
    row("nonzero", lambda x: mg.nonzero(mg.relu(x))[1], lambda x: np.nonzero(x > 0)[1], nonzero(3, 4),
        differentiable=False, out_dtype=np.int64),
    row("bincount", lambda x: mg.bincount(constant(FIVE, x), minlength=6) + 0 * x.astype(np.int64).sum(),
        lambda x: np.bincount(FIVE, minlength=6), normal(2), differentiable=False, out_dtype=np.int64),
    row("bincount of weights", lambda x: mg.bincount(constant(FIVE, x), x), lambda x: np.bincount(FIVE, x), normal(5)),
]

REDUCING = [
    *(row(f"scatter_reduce {reduce}, include_self={include_self}",
          lambda x, v, r=reduce, i=include_self: mg.scatter_reduce(x, 0, IDS, v, r, i),
          lambda x, v, r=reduce, i=include_self: reduced(x, 0, IDS, v, r, i), distinct(3, 3) + 0.15,
          distinct(2, 3, seed=1))
      for include_self in (True, False) for reduce in ("sum", "prod", "mean", "amax", "amin")),
    *(row(f"scatter_reduce {reduce}, all to one", lambda x, v, r=reduce: x.scatter_reduce(-1, constant(ONES, x), v, r),
          lambda x, v, r=reduce: reduced(x, 1, ONES, v, r), distinct(2, 3), distinct(3, 6, seed=1))
      for reduce in ("prod", "amax", "amin")),
    row("scatter_reduce prod, zeros", lambda x, v: mg.scatter_reduce(x, 0, [0, 0, 0, 1, 1], v, "prod"),
        lambda x, v: reduced(x, 0, np.array([0, 0, 0, 1, 1]), v, "prod"), nonzero(3), np.array([0.0, 2, 0, 0, 3])),
]

NUMBERS = [  # a number is one element along axis 0, and its index may have one dimension or none
    row("take from a number", lambda x: mg.take(x, [0, -1], axis=-1), lambda x: x.repeat(2), normal()),
    row("index_select of a number", lambda x: mg.index_select(x, 0, [0]), lambda x: x, normal()),
    row("index_add to a number", lambda x, v: mg.index_add(x, 0, [0], v), lambda x, v: x + v, normal(),
        normal(seed=1)),
    *(row(f"gather from a number by {index}", lambda x, i=index: mg.gather(x, 0, i),
          lambda x, i=index: x.repeat(np.size(i)).reshape(np.shape(i)), normal()) for index in (0, [-1], [0, 0])),
    *(row(f"scatter to a number by {index}", lambda x, v, i=index: mg.scatter(x, -1, i, v), lambda x, v: v.reshape(()),
          normal(), normal(*np.shape(index), seed=1)) for index in (0, [-1])),
    row("scatter_add to a number", lambda x, v: mg.scatter_add(x, 0, [0], v), lambda x, v: x + v[0], normal(),
        normal(1, seed=1)),
    *(row(f"scatter_reduce {reduce} to a number", lambda x, v, r=reduce: mg.scatter_reduce(x, 0, 0, v, r),
          lambda x, v, r=reduce: reduced(x.reshape(1), 0, np.array([0]), v.reshape(1), r).reshape(()),
          distinct() + 0.15, distinct(seed=1)) for reduce in ("sum", "prod", "mean", "amax", "amin")),
]

ROWS_INDEXING = [*WRITING, *SELECTING, *REDUCING, *NUMBERS]
