"""Rows of the table: axes, joining and cutting, repeating."""

import numpy as np

import minigrad as mg

from tests.minigrad.ops.row import alike, normal, row

AXES = [
    row("ravel", mg.ravel, np.ravel, normal(2, 3), view=True),
    row("flatten", mg.flatten, np.ravel, normal(2, 3, 2), view=True),
    row("flatten some", lambda x: x.flatten(1, -2), lambda x: x.reshape(2, 6, 2), normal(2, 3, 2, 2), view=True),
]

PIECES = [
    row("chunk", lambda x: mg.chunk(x, 3, axis=1)[1] * mg.chunk(x, 3, 1)[0], lambda x: x[:, 3:6] * x[:, :3],
        normal(2, 7)),
    row("chunk, the last", lambda x: x.chunk(3, -1)[2], lambda x: x[:, 6:], normal(2, 7), view=True),
]

REPEATS = [
    *(row(f"repeat {repeats}, axis={axis}", lambda x, r=repeats, a=axis: mg.repeat(x, r, a),
          lambda x, r=repeats, a=axis: np.repeat(x, r, a), normal(2, 3))
      for repeats, axis in [(2, None), (2, -2), ([3], 1), ([0, 2, 1], 1), (0, 1), ([1, 0, 2, 1, 0, 3], None)]),
    row("repeat by a tensor", lambda x: x.repeat(mg.Tensor([1, 3], device=x.device), 0),
        lambda x: np.repeat(x, [1, 3], 0), normal(2, 3)),
    *(alike("tile", normal(2, 3), reps) for reps in (2, (3, 1), (2, 1, 2), (0, 1))),
    row("tile one number", lambda x: mg.tile(x, (2, 2)), lambda x: np.tile(x, (2, 2)), normal()),
]

ROWS_SHAPE = [*AXES, *PIECES, *REPEATS]
