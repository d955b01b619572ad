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

ARRAYS = {
    "normal": normal, "positive": positive, "distinct": distinct, "X": normal(2, 3), "Y": normal(2, 3, seed=1),
    "POSITIVE": positive(2, 3), "NONZERO": nonzero(2, 3), "NUMBER": distinct(), "DEEP": normal(2, 3, 2),
    "DISTINCT": distinct(2, 3, 2), "MANY": distinct(3, 4), "CUBE": normal(2, 3, 4),
    "TIES": np.array([[2.0, 1, 2, 1, 2]]),
    "HALVES": np.array([0.5, 1.5, 2.5, -0.5, -1.5, 0.25]), "SIX": np.array([[1.0, 2, 3], [4, 5, 6]]),
}

ELEMENTWISE = [*BY_NAME, *rows("""
    2 - x                                           X
    2 / x / 3                                       NONZERO
    x ** 2                                          X
    x ** -1.5                                       POSITIVE
    0.4 ** x                                        X
    x ** c(WHOLE, x)                                NONZERO
    7.3 % x + remainder(x, 0.4)                     NONZERO
    maximum(maximum(x, -0.1), np.float64(0.1))      distinct(2, 3)
    clip(x, -0.1, 0.2)                              MANY
    x.clip(min=0)                                   MANY
    x.clip(max=np.float64(0.2))                     MANY
    clip(x, y, z)               distinct(2, 3), distinct(2, 3, seed=1) - 0.1, distinct(2, 3, seed=2) + 0.15
    where(c(HALF, x), x, y)                         X, Y
    where(x > 0, x, -1.0) + where(x > 0, 2, x)      NONZERO
    where(c([[True], [False]], x), x, y)            normal(3), normal()
    where(c(True, x), x, y)                         X, normal(1, 3)
    masked_fill(x, c(HALF, x)[:, :1], 7.0) = where(c(HALF, x)[:, :1], 7.0, x)   normal(3)
    x.astype(np.float64).astype(x.dtype) = x * 1    X
    to_device(x, 'cpu') * 2 = x * 2                 X
""", ARRAYS)]

NO_GRADIENT = rows("""
    equal(x, y)                             SIX, SIX[:, ::-1]
    bitwise_or(bitwise_and(x > 0, y > 0), bitwise_not(x > 1))   X, Y
    bitwise_and(c([6, 5], x), 3)            X
    any(x > 1, axis=1)                      X
    all(x < 1, axis=0, keepdims=True)       X
    round(x)                                HALVES
    round(x, decimals=2)                    X
    round(c([1234, -1250], x), -2)          X
    zeros_like(x)                           X
    argmax(x, axis=None)                    distinct(2, 3, 4)
    argmax(x, axis=-1, keepdims=True)       distinct(2, 3, 4)
    argmin(x, axis=None)                    distinct(2, 3, 4)
    argmin(x, axis=-1, keepdims=True)       distinct(2, 3, 4)
    argsort(x, 0)                           DISTINCT
    argsort(x, None)                        DISTINCT
    argsort(x) = np.array(0)                NUMBER
    argsort(x) = argsort(x, kind='stable')  TIES
""", ARRAYS, differentiable=False)

AXES = ["axis=None", "axis=None, keepdims=True", "axis=1", "axis=-1, keepdims=True", "axis=(0, 2)",
        "axis=(-1, 1), keepdims=True", "axis=()"]
DISTINCT, DEEP, MANY = ARRAYS["DISTINCT"], ARRAYS["DEEP"], ARRAYS["MANY"]
REDUCTIONS = [
    *(row(f"{name}(x, {axes})", DISTINCT) for name in ("sum", "mean", "max", "min", "var", "std") for axes in AXES
      if name[-1] not in "rd" or axes != "axis=()"),
    *(row(f"logsumexp(x, {axes})", DEEP) for axes in AXES[:5]),
    *(row(f"norm(x, {axes}) = sqrt((x * x).sum({axes}))", DEEP) for axes in AXES[:5]),
    *rows("""
    cumsum(x, -1)           DEEP
    cumsum(x, None)         X
    cumsum(x, 0) = x        NUMBER
    sort(x, 0) = x          NUMBER
    sort(x, -1)             DISTINCT
    sort(x, None)           DISTINCT
    x.var(axis=1, correction=1) = x.var(axis=1, ddof=1)     normal(2, 4)
    logsumexp(where(c(HALF, x), -inf, x), axis=1)           X
""", ARRAYS)]

SHAPES = rows("""
    reshape(x, (3, 2))                  X
    transpose(x)                        DEEP
    x.transpose(1, -1, 0)               DEEP
    swapaxes(x, 0, -1)                  DEEP
    x.mT                                DEEP
    broadcast_to(x, (2, 3, 4))          normal(3, 1)
    expand_dims(x, -1)                  X
    squeeze(x)                          normal(1, 3, 1)
    squeeze(x, (0, -1))                 normal(1, 3, 1)
    squeeze(x, -1)                      normal()
    ravel(x)                            X
    flip(x, (0, 2))                     DEEP
    flatten(x) = x.ravel()              DEEP
    x[..., None].flatten(1) = x         normal(0, 3)
    x.flatten(1, -2) = x.reshape(2, 6, 2)       normal(2, 3, 2, 2)
    x.split([1, 0, 3])[2] = x[1:]       normal(4, 2)
    x.chunk(3, -1)[2] = x[:, 6:]        normal(2, 7)
""", ARRAYS, view=True) + rows("""
    split(x, 2, axis=1)[1] * split(x, 2, 1)[0] + split(x, 1, -1)[4] = x[:, 2:4] * x[:, :2] + x[:, 4:]   normal(2, 5)
    concatenate([x, y, z], axis=1)      normal(2, 1), X, normal(2, 0)
    concatenate([x, y], axis=None)      X, normal(2)
    stack([x, y], axis=-1)              X, Y
    pad(x, ((1, 0), (0, 2)))            X
    pad(x, (0, 2))                      X
    pad(x, ((1,), (2,)))                X
    pad(x, [(0, 0), (2, 1)], value=-1.5) = pad(x, [(0, 0), (2, 1)], constant_values=-1.5)   X
    tril(x, -1)                         CUBE
    triu(x, -1)                         CUBE
    repeat(x, 2)                        X
    repeat(x, 2, -2)                    X
    repeat(x, [0, 2, 1], 1)             X
    repeat(x, [1, 0, 2, 1, 0, 3])       X
    repeat(x, 3, -1)                    normal()
    repeat(x, c([1, 3], x), 0)          X
    tile(x, 2)                          X
    tile(x, (2, 1, 2))                  X
    tile(x, (0, 1))                     X
    tile(x, (2, 2))                     normal()
""", ARRAYS)

# Operands of different shapes: some for each operation, and all for one.
COLUMN_AND_ROW = positive(2, 1), positive(3, seed=1)
BROADCASTING = [*(Row(f"{name}, broadcast", (name,), *both, COLUMN_AND_ROW) for name, both in BINARY.items()), *(
    row("x * y", normal(*x), normal(*y, seed=1)) for x, y in [
        ((), (3,)), ((3,), (2, 3)), ((2, 3), (1, 1)), ((2, 1, 3, 1), (2, 1, 3)), ((2, 1), (2, 0))])]

# Every pair of ranks.
LINEAR_ALGEBRA = [row("c([[1.0, 2]], x) @ x", ARRAYS["X"]), row("matmul(x, y)", normal(2, 3, 0), normal(2, 0, 2)), *(
    row("matmul(x, y)", normal(*x), normal(*y, seed=1)) for y in [(3,), (3, 4), (2, 3, 4)]
    for x in [(3,), (2, 3), (1, 2, 3), (2, 1, 2, 3)])]

VIEWS = ["()", "5:0:-2", "None, 1, ..., None"]
COPIES = ["c(IDS, x)", "[], []", "np.array(1)", "2, [0, 0]", "[1, 1], None, [0, 0]", "c(MASK, x)",
          "c(MASK, x)[:, 0], 1", "True", "x > 0"]
INDEXING = [*(row(f"x[{index}]", MANY, view=True) for index in VIEWS), *(row(f"x[{index}]", MANY) for index in COPIES),
            *rows("""
    x[()] + x[..., None].sum()              normal()
    take(x, [5, 0, 0])                      MANY
    take(x, [0, -1])                        normal()
    take(x, [], axis=1) = x[:, :0]          MANY
    x.take(c([3, 3, -4], x), axis=-1)       CUBE
    put_into_zeros(x, (slice(None), slice(0, 4, 2)), (2, 5)) = insert(x, [1, 2, 2], 0, axis=1)      normal(2, 2)
    gather(x, 0, c(IDS, x)) = take_along_axis(x, c(IDS, x), 0)                      normal(3, 3)
    gather(x, -2, c(IDS, x)[None]) = take_along_axis(x, c(IDS, x)[None], -2)        normal(1, 3, 3)
    gather(x, 0, [[1], [1], [0]]) = x[[1, 1, 0], :1]                                X
    gather(x, 0, 0) = x                     normal()
    gather(x, 0, [0, 0]) = np.array([x, x])     normal()
""", ARRAYS)]

HARDLY_ANYTHING = [found for x in (normal(0, 3), normal(1, 3)) for found in rows("""
    mean(x, 1, keepdims=True)               FEW
    sort(x, 0)                              FEW
    repeat(x, [2] * len(x), 0)              FEW
    logsumexp(x, 0) = logaddexp.reduce(x, 0)        FEW
    norm(x, 0) = sqrt((x * x).sum(0))       FEW
    x[[], [[]]] = x[:0, :0].reshape(1, 0)   FEW
    x[:, [[]]] = x[:, None, :0]             FEW
    gather(x, 1, np.zeros((len(x), 2), int)) = x[:, [0, 0]]     FEW
""", {"FEW": x})]

ROWS: list[Row] = [*ELEMENTWISE, *BROADCASTING, *NO_GRADIENT, *REDUCTIONS, *SHAPES, *LINEAR_ALGEBRA, *INDEXING,
                   *HARDLY_ANYTHING]
