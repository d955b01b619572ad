"""Rows of the table: axes, joining and cutting, repeating, diagonals, and the products made of matmul."""

import numpy as np

import minigrad as mg

from tests.minigrad.ops.row import alike, constant, normal, positive, row

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

STACKS = [
    *(row(f"{name} of {shape}", lambda x, n=name: getattr(mg, n)(x), lambda x, n=name: getattr(np, n)(x),
          normal(*shape), view=True)
      for name in ("atleast_1d", "atleast_2d", "atleast_3d") for shape in ((), (3,), (2, 3))),
    row("atleast_2d of several", lambda x, y: mg.atleast_2d(x, y)[0] * mg.atleast_2d([x, y])[1],
        lambda x, y: np.multiply(*np.atleast_2d(x, y)), normal(), normal(3)),
    *(row(f"{name} of {x} and {y}", lambda x, y, n=name: getattr(mg, n)([x, y]),
          lambda x, y, n=name: getattr(np, n)([x, y]), normal(*x), normal(*y, seed=1))
      for name, x, y in [("column_stack", (3,), (3, 2)), ("column_stack", (), ()), ("dstack", (2, 3), (2, 3, 2)),
                         ("dstack", (3,), (3,))]),
]

TURNS = [
    *(alike("rot90", normal(2, 3), k, view=True) for k in (0, 1, 2, 3, -1, 5)),
    row("rot90 of axes", lambda x: x.rot90(1, (-1, 0)), lambda x: np.rot90(x, 1, (-1, 0)), normal(2, 3, 2), view=True),
    *(alike(name, normal(2, 3), view=True) for name in ("fliplr", "flipud")),
    *(row(f"unflatten {axis}, {sizes}", lambda x, a=axis, s=sizes: mg.unflatten(x, a, s),
          lambda x, s=shape: x.reshape(s), normal(2, 6), view=True)
      for axis, sizes, shape in [(1, (2, 3), (2, 2, 3)), (-1, [-1, 1, 2], (2, 3, 1, 2)), (0, (-1,), (2, 6))]),
]

NEIGHBOURS = [
    *(alike("diff", normal(3, 4), n, axis) for n, axis in [(1, -1), (2, 0), (3, 1), (4, 1)]),
    row("diff between ends", lambda x, y: mg.diff(x, axis=1, prepend=2, append=y),
        lambda x, y: np.diff(x, axis=1, prepend=2, append=y), normal(2, 3), normal(2, 2)),
    row("diff after a list", lambda x: x.diff(n=2, prepend=[1, 2]), lambda x: np.diff(x, 2, prepend=[1, 2]), normal(3)),
    *(row(f"gradient {spacing}, axis={axis}, edge_order={order}",
          lambda x, s=spacing, a=axis, o=order: mg.gradient(x, *s, axis=a, edge_order=o),
          lambda x, s=spacing, a=axis, o=order: np.gradient(x, *s, axis=a, edge_order=o), normal(4, 5))
      for order in (1, 2) for spacing, axis in [((), 0), ((0.5,), -1), (([0.0, 1, 1.5, 4, 5],), 1)]),
    row("gradient along all axes", lambda x: mg.stack(mg.gradient(x, 2, [1.0, 2, 4])),
        lambda x: np.stack(np.gradient(x, 2, [1.0, 2, 4])), normal(2, 3)),
    row("gradient along two axes", lambda x: mg.gradient(x, axis=(2, 0))[0], lambda x: np.gradient(x, axis=2),
        normal(2, 2, 3)),
    row("gradient by coordinates", lambda x, y: mg.gradient(x, mg.cumsum(y, 0), edge_order=2),
        lambda x, y: np.gradient(x, np.cumsum(y), edge_order=2), normal(4), positive(4)),
    *(row(f"unfold {axis}, {size}, {step}", lambda x, a=axis, s=size, t=step: mg.unfold(x, a, s, t),
          lambda x, a=axis % 2, s=size, t=step: np.moveaxis(
              np.moveaxis(np.lib.stride_tricks.sliding_window_view(x, s, a), a, 0)[::t], 0, a), normal(3, 7))
      for axis, size, step in [(0, 2, 1), (1, 3, 2), (-2, 3, 1)]),
    row("unfold by nothing", lambda x: mg.unfold(x, 1, 0, 2), lambda x: np.empty((2, 3, 0), x.dtype), normal(2, 5)),
    row("unfold a number", lambda x: mg.unfold(x, 0, 1, 1), lambda x: x.reshape(1), normal()),
    row("unfold -1", lambda x: x.unfold(-1, 2, 3), lambda x: np.stack([x[:, :2], x[:, 3:5]], 1), normal(3, 7)),
]

REPEATS = [
    *(row(f"repeat {repeats}, axis={axis}", lambda x, r=repeats, a=axis: mg.repeat(x, r, a),
          lambda x, r=repeats, a=axis: np.repeat(x, r, a), normal(2, 3))
      for repeats, axis in [(2, None), (2, -2), ([3], 1), ([0, 2, 1], 1), (0, 1), ([1, 0, 2, 1, 0, 3], None)]),
    row("repeat by a tensor", lambda x: x.repeat(mg.Tensor([1, 3], device=x.device), 0),
        lambda x: np.repeat(x, [1, 3], 0), normal(2, 3)),
    row("repeat_interleave", lambda x: x.repeat_interleave([2, 1], axis=0),
        lambda x: np.repeat(x, [2, 1], 0), normal(2, 3)),
    *(alike("tile", normal(2, 3), reps) for reps in (2, (3, 1), (2, 1, 2), (0, 1))),
    row("tile one number", lambda x: mg.tile(x, (2, 2)), lambda x: np.tile(x, (2, 2)), normal()),
    *(row(f"meshgrid {indexing}", lambda x, y, z, i=indexing: mg.stack(mg.meshgrid(x, y, z, indexing=i)),
          lambda x, y, z, i=indexing: np.stack(np.meshgrid(x, y, z, indexing=i)), normal(2), normal(3), normal(1))
      for indexing in ("xy", "ij")),
    row("meshgrid of two", lambda x: mg.meshgrid(x, constant(np.zeros(3), x))[0],
        lambda x: np.meshgrid(x, np.zeros(3))[0], normal(2), view=True),
    row("meshgrid of one", lambda x: mg.meshgrid(x)[0], lambda x: x, normal(3), view=True),
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
    *(row(f"inner {x} {y}", mg.inner, np.inner, normal(*x), normal(*y, seed=1))
      for x, y in [((3,), (3,)), ((2, 3), (3,)), ((2, 3), (2, 3)), ((), (2, 3)), ((2, 2, 3), (1, 3))]),
    *(row(f"tensordot {x} {y} {axes}", lambda x, y, a=axes: mg.tensordot(x, y, a),
          lambda x, y, a=axes: np.tensordot(x, y, a), normal(*x), normal(*y, seed=1))
      for x, y, axes in [((2, 3, 2), (3, 2, 2), 2), ((2, 3), (2, 2), 0), ((2, 3, 2), (2, 2, 3), ((1, 0), (2, 0))),
                         ((2, 3), (2, 3), (1, -1)), ((), (2,), 0)]),
    *(row(f"kron {x} {y}", mg.kron, np.kron, normal(*x), normal(*y, seed=1))
      for x, y in [((2, 2), (1, 3)), ((2,), (2, 2)), ((2, 1, 2), (3,)), ((), (2,))]),
    *(row(f"cross {x} {y}, axis={axis}", lambda x, y, a=axis: mg.cross(x, y, a),
          lambda x, y, a=axis: np.cross(x, y, axis=a), normal(*x), normal(*y, seed=1))
      for x, y, axis in [((3,), (3,), -1), ((2, 3), (2, 3), -1), ((3, 2), (3, 2), 0)]),
    row("cross, broadcasting", mg.cross, np.cross, normal(2, 1, 3), normal(4, 3, seed=1)),
    row("einsum by lists", lambda x, y: mg.einsum(x, [0, 27, ...], y, [27, 1], [..., 1, 0]),
        lambda x, y: np.einsum("ij...,jk->...ki", x, y), normal(2, 3, 2), normal(3, 2, seed=1)),
    row("einsum by lists, implicit", lambda x, y: mg.einsum(x, (2, 30), y, (30, 1)),
        lambda x, y: (x @ y).T, normal(2, 3), normal(3, 2, seed=1)),
    row("einsum without its ...", lambda x, y: mg.einsum("i...,...i->i", x, y),
        lambda x, y: np.einsum("iab,bi->i", x, y), normal(2, 3, 2), normal(2, 2, seed=1)),
    *(row(f"{name} with Python's numbers", lambda x, n=name: getattr(mg, n)(x, 2.5) - getattr(mg, n)(3, x),
          lambda x: 2.5 * x - 3 * x, normal(2, 3)) for name in ("dot", "inner")),
    row("einsum of lengths 1 and 0", lambda x, y: mg.einsum("ij,ij->i", x, y),
        lambda x, y: np.einsum("ij,ij->i", x, y), normal(2, 0), normal(2, 1)),
    row("einsum of lengths 0 and 1, kept", lambda x, y: mg.einsum("i...,i->i...", x, y),
        lambda x, y: np.einsum("i...,i->i...", x, y), normal(1, 2), normal(0)),
]

ROWS_SHAPE = [*AXES, *PIECES, *STACKS, *TURNS, *NEIGHBOURS, *REPEATS, *DIAGONALS, *CONTRACTIONS]
