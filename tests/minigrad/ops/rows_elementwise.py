"""Rows of the table: exponentials, logarithms, trigonometric and hyperbolic functions, rounding, remainders."""

import numpy as np

import minigrad as mg

from tests.minigrad.ops.row import Row, constant, distinct, nonzero, normal, positive, row

PROPER = np.array([[-0.9, -0.5, -0.1], [0.2, 0.6, 0.8]])  # within (-1, 1)
SPECIAL = np.array([1.5, -np.inf, np.nan, np.inf, -0.0, 2.0])

# names: what it is in NumPy, where to try it
FUNCTIONS = {
    "exp2": (np.exp2, normal(2, 3)),
    "expm1": (np.expm1, normal(2, 3)),
    "log2": (np.log2, positive(2, 3)),
    "log10": (np.log10, positive(2, 3)),
    "log1p": (np.log1p, positive(2, 3) - 1),
    "rsqrt": (lambda x: 1 / np.sqrt(x), positive(2, 3)),
    "square": (np.square, normal(2, 3)),
    "reciprocal": (np.reciprocal, nonzero(2, 3)),
    "sin": (np.sin, normal(2, 3)),
    "cos": (np.cos, normal(2, 3)),
    "tan": (np.tan, PROPER),
    "asin arcsin": (np.arcsin, PROPER),
    "acos arccos": (np.arccos, PROPER),
    "atan arctan": (np.arctan, normal(2, 3)),
    "sinh": (np.sinh, normal(2, 3)),
    "cosh": (np.cosh, normal(2, 3)),
    "asinh arcsinh": (np.arcsinh, normal(2, 3)),
    "acosh arccosh": (np.arccosh, 1 + positive(2, 3)),
    "atanh arctanh": (np.arctanh, PROPER),
}
STEPS = {"floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "round": np.round}
QUESTIONS = {"isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite}


ROWS_ELEMENTWISE: list[Row] = [
    *(row(names, getattr(mg, names.split()[0]), reference, array, ops=names)
      for names, (reference, array) in FUNCTIONS.items()),
    row("atan2 arctan2", mg.atan2, np.arctan2, nonzero(2, 3), nonzero(2, 3, seed=1), ops="atan2 arctan2"),
    row("atan2 of a number", lambda x: mg.atan2(2.0, x) + mg.atan2(x, np.float64(-3)),
        lambda x: np.arctan2(2, x) + np.arctan2(x, -3), nonzero(2, 3)),
    row("hypot", mg.hypot, np.hypot, nonzero(2, 3), nonzero(2, 3, seed=1)),
    row("hypot with a number", lambda x: mg.hypot(x, 2), lambda x: np.hypot(x, 2), normal(2, 3)),
    row("logaddexp", mg.logaddexp, np.logaddexp, normal(2, 3), normal(2, 3, seed=1)),
    row("logaddexp with a number", lambda x: mg.logaddexp(x, 0) + mg.logaddexp(np.float64(0.5), x),
        lambda x: np.logaddexp(x, 0) + np.logaddexp(0.5, x), normal(2, 3)),
    row("logaddexp2", mg.logaddexp2, np.logaddexp2, normal(2, 3), normal(2, 3, seed=1)),
    row("logaddexp2 with a number", lambda x: mg.logaddexp2(x, 0) + mg.logaddexp2(np.float64(0.5), x),
        lambda x: np.logaddexp2(x, 0) + np.logaddexp2(0.5, x), normal(2, 3)),
    row("sinc", mg.sinc, np.sinc, np.array([[0.0, 1e-9, -1e-3], [0.3, 1.0, -2.6]])),
    row("copysign", mg.copysign, np.copysign, nonzero(2, 3), nonzero(2, 3, seed=1)),
    row("copysign with a number", lambda x: mg.copysign(x, -0.0) + 2 * mg.copysign(3, x),
        lambda x: -np.abs(x) + np.copysign(6, x), nonzero(2, 3)),
    row("fmod", mg.fmod, np.fmod, 7 * distinct(2, 3), nonzero(2, 3, seed=1)),
    row("fmod of a number", lambda x: mg.fmod(-7.3, x) + mg.fmod(x, 0.4),
        lambda x: np.fmod(-7.3, x) + np.fmod(x, 0.4), nonzero(2, 3)),
    row("select", lambda x, y: mg.select([constant(normal(2, 3), x) > 0.5, constant(normal(3), x) > 0], [x, 2 * y], -1),
        lambda x, y: np.select([normal(2, 3) > 0.5, np.broadcast_to(normal(3) > 0, (2, 3))], [x, 2 * y], -1),
        normal(2, 3), normal(2, 3, seed=1)),
    row("isclose", mg.isclose, np.isclose, SPECIAL, SPECIAL * (1 + 1e-6), differentiable=False, out_dtype=bool),
    row("isclose, coarsely", lambda x: mg.isclose(x, np.float64(2), rtol=0.1, atol=0.4, equal_nan=True),
        lambda x: np.isclose(x, 2, 0.1, 0.4, True), SPECIAL, differentiable=False, out_dtype=bool),
    row("allclose", lambda x: constant(x.allclose(x + 1e-5, rtol=0.1), x), lambda x: np.True_, positive(2, 3),
        differentiable=False, out_dtype=bool),
    row("remainder", lambda x, y: x % y, np.remainder, 7 * distinct(2, 3), nonzero(2, 3, seed=1)),
    row("remainder of a number", lambda x: 7.3 % x + mg.remainder(x, 0.4),
        lambda x: 7.3 % x + np.remainder(x, 0.4), nonzero(2, 3)),
    row("lerp", mg.lerp, lambda x, y, w: x + w * (y - x), normal(2, 3), normal(2, 3, seed=1), normal(2, 3, seed=2)),
    row("lerp by 0.3", lambda x, y: mg.lerp(x, y, 0.3), lambda x, y: 0.7 * x + 0.3 * y, normal(2, 3),
        normal(2, 3, seed=1)),
    row("lerp by 0.8 to a number", lambda x: mg.lerp(x, 2.0, 0.8), lambda x: 0.2 * x + 1.6, normal(2, 3)),
    row("addcmul", mg.addcmul, lambda x, y, z: x + y * z, normal(2, 3), normal(2, 3, seed=1), normal(2, 3, seed=2)),
    row("addcmul, scaled", lambda x, y: mg.addcmul(x, y, 2.0, value=-0.5), lambda x, y: x - y, normal(2, 3),
        normal(2, 3, seed=1)),
    row("addcdiv", mg.addcdiv, lambda x, y, z: x + y / z, normal(2, 3), normal(2, 3, seed=1), nonzero(2, 3, seed=2)),
    row("addcdiv, scaled", lambda x, y: mg.addcdiv(x, 2.0, y, value=3), lambda x, y: x + 6 / y, normal(2, 3),
        nonzero(2, 3, seed=1)),
    row("nan_to_num", mg.nan_to_num, np.nan_to_num, normal(2, 3)),
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
