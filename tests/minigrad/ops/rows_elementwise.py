"""Rows of the table: exponentials, logarithms, trigonometric and hyperbolic functions, rounding, remainders."""

import numpy as np

import minigrad as mg

from tests.minigrad.ops.row import Row, distinct, nonzero, normal, positive, row

PROPER = np.array([[-0.9, -0.5, -0.1], [0.2, 0.6, 0.8]])  # within (-1, 1)
SPECIAL = np.array([1.5, -np.inf, np.nan, np.inf, -0.0, 2.0])

# name: what it is in NumPy, where to try it
FUNCTIONS = {
    "expm1": (np.expm1, normal(2, 3)),
    "log2": (np.log2, positive(2, 3)),
    "log10": (np.log10, positive(2, 3)),
    "log1p": (np.log1p, positive(2, 3) - 1),
    "square": (np.square, normal(2, 3)),
    "sin": (np.sin, normal(2, 3)),
    "cos": (np.cos, normal(2, 3)),
    "tan": (np.tan, PROPER),
    "sinh": (np.sinh, normal(2, 3)),
    "cosh": (np.cosh, normal(2, 3)),
}
STEPS = {"floor": np.floor, "ceil": np.ceil, "round": np.round}
QUESTIONS = {"isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite}


ROWS_ELEMENTWISE: list[Row] = [
    *(row(name, getattr(mg, name), reference, array) for name, (reference, array) in FUNCTIONS.items()),
    row("logaddexp", mg.logaddexp, np.logaddexp, normal(2, 3), normal(2, 3, seed=1)),
    row("logaddexp with a number", lambda x: mg.logaddexp(x, 0) + mg.logaddexp(np.float64(0.5), x),
        lambda x: np.logaddexp(x, 0) + np.logaddexp(0.5, x), normal(2, 3)),
    row("remainder", lambda x, y: x % y, np.remainder, 7 * distinct(2, 3), nonzero(2, 3, seed=1)),
    row("remainder of a number", lambda x: 7.3 % x + mg.remainder(x, 0.4),
        lambda x: 7.3 % x + np.remainder(x, 0.4), nonzero(2, 3)),
    row("clip by tensors", mg.clip, np.clip, distinct(2, 3), distinct(2, 3, seed=1) - 0.1,
        distinct(2, 3, seed=2) + 0.15),
    row("clip by a tensor and a number", lambda x, y: mg.clip(x, y, 0.1), lambda x, y: np.clip(x, y, 0.1),
        distinct(2, 3), distinct(2, 3, seed=1)),
    *(row(name, getattr(mg, name), reference, 3 * normal(2, 3), differentiable=False)
      for name, reference in STEPS.items()),
    row("round to 2 decimals", lambda x: mg.round(x, decimals=2), lambda x: np.round(x, 2), normal(2, 3),
        differentiable=False),
    row("floor_divide", lambda x, y: x // y, np.floor_divide, 7 * normal(2, 3), nonzero(2, 3, seed=1),
        differentiable=False),
    row("floor_divide a number", lambda x: 7 // x, lambda x: 7 // x, nonzero(2, 3), differentiable=False),
    *(row(name, getattr(mg, name), reference, SPECIAL, differentiable=False, out_dtype=bool)
      for name, reference in QUESTIONS.items()),
]
