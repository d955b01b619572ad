"""The table: every operation, with shapes and arguments that exercise its rule.

A name of `minigrad.ops.elementwise` has a row by being there. Any other has an expression below.
"""

import numpy as np
import scipy.special

from minigrad import ops

from tests.minigrad.ops.row import Row, distinct, nonzero, normal, positive, row, rows


def of_each_element(name):
    """A row for an operation of each element: its reference has its name in NumPy or SciPy, or is `ELSEWHERE`."""
    op, reference = ops.OPERATIONS[name], ELSEWHERE.get(name) or getattr(np, name, None) or getattr(scipy.special, name)
    for make in (nonzero, positive):  # of both signs, where the function has a domain for that
        arrays = [make(2, 3, seed=seed) for seed in range(len(op.parameters))]
        with np.errstate(invalid="ignore"):
            if np.isfinite(reference(*arrays)).all():
                break
    return Row(name, (name,), op, reference, tuple(arrays), differentiable=bool(op.inputs))


ELSEWHERE = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "neg": np.negative,
    "relu": lambda x: np.maximum(x, 0), "sigmoid": scipy.special.expit,
}
EXPLICIT = {"where", "clip", "round", "zeros_like", "bitwise_and", "bitwise_or", "bitwise_not"}
NAMES = [name for name, op in ops.OPERATIONS.items() if op.__module__ == "minigrad.ops.elementwise"]
BY_NAME = [of_each_element(name) for name in NAMES if name not in EXPLICIT]
BINARY = {row.name: (row.op, row.reference) for row in BY_NAME if len(row.arrays) == 2 and row.differentiable}

X, Y, POSITIVE, NONZERO, NUMBER = normal(2, 3), normal(2, 3, seed=1), positive(2, 3), nonzero(2, 3), distinct()
DEEP, DISTINCT, MANY = normal(2, 3, 2), distinct(2, 3, 2), distinct(3, 4)
HALF = "c([[True, False, True], [False, False, True]], x)"
WHOLE = "c([[0.0, 1, 2], [3, -1, -2]], x)"

ELEMENTWISE = [
    *BY_NAME,
    *rows({
        "2 - x": X, "2 / x / 3": NONZERO, "x ** 2": X, "x ** -1.5": POSITIVE, "2.5 ** x": X, f"x ** {WHOLE}": NONZERO,
        "7.3 % x + remainder(x, 0.4)": NONZERO, "maximum(maximum(x, -0.1), np.float64(0.1))": distinct(2, 3),
        "clip(x, -0.1, 0.2)": MANY, "x.clip(min=0)": MANY, "x.clip(max=np.float64(0.2))": MANY,
        "clip(x, y, z)": (distinct(2, 3), distinct(2, 3, seed=1) - 0.1, distinct(2, 3, seed=2) + 0.15),
        "clip(x, y, 0.1)": (distinct(2, 3), distinct(2, 3, seed=1)),
        f"where({HALF}, x, y)": (X, Y), "where(x > 0, x, -1.0) + where(x > 0, 2, x)": NONZERO,
        "where(c([[True], [False]], x), x, y)": (normal(3), normal()),
        "where(c(True, x), x, y)": (X, normal(1, 3)),
        "where(c([True, False, True], x), x, y)": (normal(1), normal(2, 1)),
        "where(c([True], x), x, y)": (normal(), normal(seed=1)),
    }),
    *(row(f"masked_fill(x, {HALF}[:, :1], 7.0)", x, like=f"where({HALF}[:, :1], 7.0, x)") for x in (X, normal(3))),
    row("x.astype(np.float64).astype(x.dtype)", X, like="x * 1"),
    row("to_device(x, 'cpu') * 2", X, like="x * 2"),
]

NO_GRADIENT = [*rows({
    "equal(x, y)": (np.array([[1.0, 2, 3], [4, 5, 6]]), np.array([[1.0, 5, 3], [2, 7, 6]])),
    "bitwise_and(x > 0, y > 0)": (X, Y), "bitwise_or(x > 0, y > 0)": (X, Y), "bitwise_not(x > 0)": X,
    "(x > 0) & (y > 0) | ~(x > 1)": (X, Y), "any(x > 1, axis=1)": X, "all(x < 1, axis=0, keepdims=True)": X,
    "round(x)": [3 * X, np.array([0.5, 1.5, 2.5, -0.5, -1.5, 0.25])], "round(x, decimals=2)": X,
    "round(c([1234, -1250], x), -2)": X, "bitwise_and(c([6, 5], x), 3)": X, "zeros_like(x)": X, "x.argmax(1)": MANY,
    **{f"{name}(x, {how})": distinct(2, 3, 4) for name in ("argmax", "argmin")
       for how in ("axis=None", "axis=1", "axis=-1, keepdims=True")},
    "argsort(x, 0)": DISTINCT, "argsort(x, None)": DISTINCT,
}, differentiable=False), row("argsort(x)", NUMBER, like="np.array(0)", differentiable=False),
    row("argsort(x)", np.array([[2.0, 1, 2, 1, 2]]), like="argsort(x, kind='stable')", differentiable=False)]

AXES = ["axis=None", "axis=None, keepdims=True", "axis=1", "axis=-1, keepdims=True", "axis=(0, 2)",
        "axis=(-1, 1), keepdims=True", "axis=()"]
REDUCTIONS = [
    *rows({f"{name}(x, {axes})": DISTINCT for name in ("sum", "mean", "max", "min", "var", "std") for axes in AXES
           if name[-1] not in "rd" or axes != "axis=()"}),
    *rows({f"{name}(x, None)": NUMBER for name in ("sum", "mean", "max", "min", "var")}),
    *rows({f"logsumexp(x, {axes})": DEEP for axes in AXES[:5]}),
    *(row(f"norm(x, {axes})", x, like=f"sqrt((x * x).sum({axes}))") for axes in AXES[:5] for x in (DEEP,)),
    row("norm(x)", nonzero(), like="sqrt(x * x)"),
    *rows({"cumsum(x, 0)": X, "cumsum(x, -1)": DEEP, "cumsum(x, None)": [X, NUMBER], "sort(x, -1)": DISTINCT,
           "sort(x, 0)": DISTINCT, "sort(x, None)": [DISTINCT, NUMBER]}),
    *(row(f"{name}(x, {axis})", NUMBER, like="x") for name in ("sort", "cumsum") for axis in (0, -1)),
    row("x.var(axis=1, correction=1)", normal(2, 4), like="x.var(axis=1, ddof=1)"),
    row(f"logsumexp(where({HALF}, -inf, x), axis=1)", X),
]

SHAPES = [
    *rows({"x.reshape(3, -1)": DEEP, "reshape(x, (3, 2))": X, "transpose(x)": DEEP, "x.transpose(1, -1, 0)": DEEP,
           "swapaxes(x, 0, -1)": DEEP, "x.mT": DEEP, "broadcast_to(x, (2, 3, 4))": normal(3, 1),
           "expand_dims(x, -1)": X, "squeeze(x)": normal(1, 3, 1), "squeeze(x, (0, -1))": normal(1, 3, 1),
           "squeeze(x, 0)": normal(), "squeeze(x, -1)": normal(), "ravel(x)": X, "flip(x)": X, "flip(x, (0, 2))": DEEP,
           }, view=True),
    row("flatten(x)", DEEP, like="x.ravel()", view=True),
    *(row("x[..., None].flatten(1)", normal(n, 3), like="x", view=True) for n in (0, 1)),
    row("x.flatten(1, -2)", normal(2, 3, 2, 2), like="x.reshape(2, 6, 2)", view=True),
    row("x.split([1, 0, 3])[2]", normal(4, 2), like="x[1:]", view=True),
    row("split(x, 2, axis=1)[1] * split(x, 2, 1)[0] + split(x, 1, -1)[4]", normal(2, 5),
        like="x[:, 2:4] * x[:, :2] + x[:, 4:]"),
    row("chunk(x, 3, axis=1)[1] * chunk(x, 3, 1)[0]", normal(2, 7), like="x[:, 3:6] * x[:, :3]"),
    row("x.chunk(3, -1)[2]", normal(2, 7), like="x[:, 6:]", view=True),
    *rows({
        "x.T.reshape((4, 3))": DEEP, "concatenate([x, y, z], axis=1)": (normal(2, 1), X, normal(2, 0)),
        "concatenate([x, y], axis=None)": (X, normal(2)), "concatenate([c([[1.0, 2]], x), x])": normal(2, 2),
        "stack([x, y])": (X, Y), "stack([x, x], axis=-1)": X, "pad(x, ((1, 0), (0, 2)))": X, "pad(x, 0)": X,
        "pad(x, 1)": X, "pad(x, (0, 2))": X, "pad(x, (2,))": X, "pad(x, ((1,), (2,)))": X,
        **{f"{name}(x, {k})": normal(2, 3, 4) for name in ("tril", "triu") for k in (-1, 0, 2)},
        **{f"repeat(x, {how})": X for how in ("2", "2, -2", "[3], 1", "[0, 2, 1], 1", "0, 1", "[1, 0, 2, 1, 0, 3]")},
        "repeat(x, 3)": normal(), "repeat(x, c([1, 3], x), 0)": X, "repeat(x, 3, -1)": normal(),
        **{f"tile(x, {reps})": X for reps in (2, (3, 1), (2, 1, 2), (0, 1))}, "tile(x, (2, 2))": normal(),
    }),
    row("pad(x, [(0, 0), (2, 1)], value=-1.5)", X, like="pad(x, [(0, 0), (2, 1)], constant_values=-1.5)"),
]

# Every pair of ranks; batch shapes that broadcast are in test_broadcasting.py, too.
MATMUL_SHAPES = [
    ((3,), (3,)), ((3,), (3, 2)), ((2, 3), (3,)), ((2, 3), (3, 4)),
    ((3,), (2, 3, 4)), ((2, 3, 4), (4,)), ((2, 3, 4), (4, 2)), ((3, 4), (2, 4, 2)),
    ((2, 3, 4), (2, 4, 2)), ((1, 3, 4), (2, 4, 2)), ((2, 1, 2, 3), (2, 3, 2)), ((2, 2, 1, 3), (3, 2)),
    ((3,), (2, 1, 3, 2)), ((2, 1, 2, 3), (3,)), ((2, 2, 0), (0, 3)), ((2, 3, 0), (2, 0, 2)),
]
LINEAR_ALGEBRA = rows({"matmul(x, y)": [(normal(*x), normal(*y, seed=1)) for x, y in MATMUL_SHAPES],
                       "c([[1.0, 2]], x) @ x": X})

IDS = "c([[2, 0, 2], [1, -1, 0]], x)"
MASK = "c([[True, False, True, True], [False, False, True, False], [True, True, False, True]], x)"
VIEWS = ["np.int64(-1)", "1, 2", "..., 1", "()", "1:1", "5:0:-2", "None, 1, ..., None"]
COPIES = [
    "[0, 2, 0]", IDS, "[[0], [2]], [1, 3]", "[], []", "np.array(1)", ":, [1, 1, 3]", "2, [0, 0]",
    "[1, 1], None, [0, 0]", MASK, f"{MASK}[:, 0], 1", f":, {MASK}[0]", "True", "False", "x > 0",
]
INDEXING = [
    *rows({f"x[{index}]": MANY for index in VIEWS}, view=True), *rows({f"x[{index}]": MANY for index in COPIES}),
    *rows({"x[()] + x[..., None].sum()": normal(), "take(x, [5, 0, 0])": MANY, "take(x, [0, -1])": normal(),
           "x.take(c([3, 3, -4], x), axis=-1)": normal(2, 3, 4)}),
    row("take(x, [], axis=1)", MANY, like="x[:, :0]"),
    row("put_into_zeros(x, (slice(None), slice(0, 4, 2)), (2, 5))", normal(2, 2),
        like="insert(x, [1, 2, 2], 0, axis=1)"),
    row("put_into_zeros(x, c([1, 1, 0], x), (3,))", normal(3), like="np.array([x[2], x[0] + x[1], 0])"),
    *(row(f"gather(x, {axis}, {index})", x, like=f"take_along_axis(x, {index}, {axis})")
      for axis, index, x in [(0, IDS, normal(3, 3)), (-1, IDS, X), (-2, f"{IDS}[None]", normal(1, 3, 3))]),
    row("gather(x, 0, [[1], [1], [0]])", X, like="x[[1, 1, 0], :1]"),
    *(row(f"gather(x, 0, {index})", normal(), like=f"broadcast_to(x, shape({index}))") for index in (0, [-1], [0, 0])),
]

FEW = [normal(0, 3), normal(1, 3)]  # no row, or one
HARDLY_ANYTHING = [
    *rows({"sum(x, 0)": FEW, "mean(x, 1, keepdims=True)": FEW, "x[[]]": FEW, "take(x, [0, 0], axis=1)": FEW,
           "sort(x, 0)": FEW, "repeat(x, [2] * len(x), 0)": FEW, "tile(x, (2, 1))": FEW, "stack([x, x])": FEW}),
    *(row(expression, x, like=like) for x in FEW for expression, like in [
        ("logsumexp(x)", "logaddexp.reduce(x, None)"), ("logsumexp(x, 0)", "logaddexp.reduce(x, 0)"),
        ("norm(x, 0)", "sqrt((x * x).sum(0))"), ("x[[[]]]", "x[None, :0]"), ("x[[], [[]]]", "x[:0, :0].reshape(1, 0)"),
        ("x[:, [[]]]", "x[:, None, :0]"), ("gather(x, 1, np.zeros((len(x), 2), int))", "x[:, [0, 0]]")]),
]

ROWS: list[Row] = [*ELEMENTWISE, *NO_GRADIENT, *REDUCTIONS, *SHAPES, *LINEAR_ALGEBRA, *INDEXING, *HARDLY_ANYTHING]
