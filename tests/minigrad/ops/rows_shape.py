"""Rows of the table: axes, joining and cutting, repeating, diagonals, and the products made of matmul."""

import numpy as np

import minigrad as mg

from tests.minigrad.ops.row import alike, normal, row

AXES = [
    *(row(f"moveaxis {source} to {to}", lambda x, s=source, t=to: mg.moveaxis(x, s, t),
          lambda x, s=source, t=to: np.moveaxis(x, s, t), normal(2, 3, 2, 1), view=True)
      for source, to in [(0, -1), ((0, 1), (-1, -2)), ((2, 0), (0, 1)), ((), ())]),
    row("ravel", mg.ravel, np.ravel, normal(2, 3), view=True),
    row("flatten", mg.flatten, np.ravel, normal(2, 3, 2), view=True),
    row("flatten some", lambda x: x.flatten(1, -2), lambda x: x.reshape(2, 6, 2), normal(2, 3, 2, 2), view=True),
    *(row(f"roll by {shift}, axis={axis}", lambda x, s=shift, a=axis: mg.roll(x, s, a),
          lambda x, s=shift, a=axis: np.roll(x, s, a), normal(3, 4))
      for shift, axis in [(1, None), (-2, 1), (1, (0, 1)), ((1, -2), (0, 1))]),
]

PIECES = [
    row("hstack", lambda x, y: mg.hstack([x, y]), lambda *xs: np.hstack(xs), normal(2, 1), normal(2, 3)),
    row("hstack of numbers", lambda x, y: mg.hstack([x, y]), lambda *xs: np.hstack(xs), normal(), normal(seed=1)),
    row("vstack of vectors", lambda x, y: mg.vstack([x, y]), lambda *xs: np.vstack(xs), normal(3), normal(2, 3)),
    row("chunk", lambda x: mg.chunk(x, 3, axis=1)[1] * mg.chunk(x, 3, 1)[0], lambda x: x[:, 3:6] * x[:, :3],
        normal(2, 7)),
    row("chunk, the last", lambda x: x.chunk(3, -1)[2], lambda x: x[:, 6:], normal(2, 7), view=True),
    row("unbind", lambda x: mg.unbind(x, -1)[2] * x.unbind(axis=2)[0], lambda x: x[..., 2] * x[..., 0],
        normal(2, 2, 3)),
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

DIAGONALS = [
    *(row(f"diag {k} of a vector", lambda x, k=k: mg.diag(x, k), lambda x, k=k: np.diag(x, k), normal(3))
      for k in (0, -2)),
    *(row(f"diag {k} of a matrix", lambda x, k=k: mg.diag(x, k), lambda x, k=k: np.diag(x, k), normal(3, 4), view=True)
      for k in (1, -2)),
    *(row(f"diagonal {offset}, axes {axes}", lambda x, o=offset, a=axes: mg.diagonal(x, o, *a),
          lambda x, o=offset, a=axes: np.diagonal(x, o, *a), normal(2, 3, 4), view=True)
      for offset, axes in [(0, (0, 1)), (1, (2, 0)), (-1, (-1, -2)), (5, (0, 1))]),
    *(row(f"trace {offset}, axes {axes}", lambda x, o=offset, a=axes: mg.trace(x, o, *a),
          lambda x, o=offset, a=axes: np.trace(x, o, *a), normal(2, 3, 4))
      for offset, axes in [(0, (0, 1)), (1, (-1, 0)), (-1, (1, 2)), (7, (0, 1))]),
    row("trace of a matrix", lambda x: x.trace(), np.trace, normal(3, 3)),
]

CONTRACTIONS = [
    *(row(f"outer {x} {y}", mg.outer, np.outer, normal(*x), normal(*y, seed=1))
      for x, y in [((2,), (3,)), ((2, 2), (3,)), ((), (2,)), ((0,), (2,))]),
    *(row(f"dot {x} {y}", mg.dot, np.dot, normal(*x), normal(*y, seed=1))
      for x, y in [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 2)), ((), (2,)), ((2, 2, 3), (3,)),
                   ((3,), (2, 3, 2)), ((2, 1, 3), (2, 3, 2))]),
    row("einsum without its ...", lambda x, y: mg.einsum("i...,...i->i", x, y),
        lambda x, y: np.einsum("iab,bi->i", x, y), normal(2, 3, 2), normal(2, 2, seed=1)),
    row("dot with Python's numbers", lambda x: mg.dot(x, 2.5) - mg.dot(3, x), lambda x: 2.5 * x - 3 * x, normal(2, 3)),
    row("einsum of lengths 1 and 0", lambda x, y: mg.einsum("ij,ij->i", x, y),
        lambda x, y: np.einsum("ij,ij->i", x, y), normal(2, 0), normal(2, 1)),
    row("einsum of lengths 0 and 1, kept", lambda x, y: mg.einsum("i...,i->i...", x, y),
        lambda x, y: np.einsum("i...,i->i...", x, y), normal(1, 2), normal(0)),
]

ROWS_SHAPE = [*AXES, *PIECES, *REPEATS, *DIAGONALS, *CONTRACTIONS]
