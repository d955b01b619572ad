"""Rows of the table: writing at places, and numbers as one element."""

import numpy as np

import minigrad as mg

from tests.minigrad.ops.row import constant, normal, row

MASK = np.array([[True, False, True, True], [False, False, True, False], [True, True, False, True]])
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


WRITING = [
    *(row(f"index_put, {name}", lambda x, v, i=index: mg.index_put(x, i, v), lambda x, v, i=index: put(x, i, v),
          normal(3, 4), normal(*shape, seed=1)) for name, (index, shape) in INDICES.items()),
    row("index_put, broadcasting", lambda x, v: mg.index_put(x, [2, 0], v), lambda x, v: put(x, [2, 0], v),
        normal(3, 4), normal(2, 1, seed=1)),
    row("index_put, a number", lambda x: mg.index_put(x, (constant([2, 0, 2], x), 1), 7),
        lambda x: put(x, ([2, 0, 2], 1), 7), normal(3, 4)),
    row("index_put, a list", lambda x: mg.index_put(x, (slice(None), 1), [1.0, 2, 3]),
        lambda x: put(x, (slice(None), 1), [1, 2, 3]), normal(3, 4)),
    row("index_put of one number", lambda x, v: mg.index_put(x, (), v), lambda x, v: v, normal(), normal(seed=1)),
]

NUMBERS = [  # a number is one element along axis 0, and its index may have one dimension or none
    row("take from a number", lambda x: mg.take(x, [0, -1], axis=-1), lambda x: x.repeat(2), normal()),
    *(row(f"gather from a number by {index}", lambda x, i=index: mg.gather(x, 0, i),
          lambda x, i=index: x.repeat(np.size(i)).reshape(np.shape(i)), normal()) for index in (0, [-1], [0, 0])),
]

ROWS_INDEXING = [*WRITING, *NUMBERS]
