"""Random calls of the engine's operations, each with the same call in NumPy: what `tests.faults.engine` compares.

An operand is an array in any layout, or a Python number. A call has two functions of the same operands: ``ours`` gets
tensors, ``theirs`` arrays that have the dtypes which the engine documents: integers beside floats take their dtype,
and a function that is `floating` makes float32 of integers alone.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.special

from minigrad import Tensor, functional, ops

Array = np.ndarray[Any, Any]
Rng = np.random.Generator

DTYPES = [np.dtype(name) for name in ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
                                      "float16", "float32", "float64")]
DRAWN = DTYPES + 5 * [np.dtype(np.float64)] + 2 * [np.dtype(np.float32)]
SHAPES = [(), (1,), (3,), (4,), (0,), (2, 3), (3, 2), (1, 3), (2, 1), (0, 3), (3, 3), (2, 3, 4), (2, 1, 3), (1, 1, 1)]


@dataclass
class Call:
    """``ours(*tensors)`` must be ``theirs(*arrays)``.

    Attributes:
        floating: integers alone become float32.
        sums: the terms that go into a result, which differ in their order and precision; 0 for none.
        smooth: it has a gradient, which differences can be compared with.
        refuses: why the engine may refuse what NumPy accepts, if there is a reason.
    """

    text: str
    operands: list[Any]
    ours: Callable[..., Any]
    theirs: Callable[..., Any]
    floating: bool = False
    sums: int = 0
    smooth: bool = False
    refuses: str = ""


def array(rng: Rng, shape: tuple[int, ...], dtype: np.dtype[Any], special: float = 0.1) -> Array:
    """Values of that shape and dtype, now and then with NaN, infinities or the ends of the range, in any layout."""
    layout = rng.integers(6)
    if layout == 1 and len(shape) > 1:
        return array(rng, shape[::-1], dtype, special).T
    if layout == 2 and shape:
        return array(rng, (*shape[:-1], 2 * shape[-1]), dtype, special)[..., ::2]
    if layout == 3 and shape:
        return array(rng, shape, dtype, special)[::-1]
    if layout == 4 and shape and shape[0] > 1 and rng.random() < 0.3:  # read-only
        return np.broadcast_to(array(rng, (1, *shape[1:]), dtype, special), shape)
    if dtype.kind == "f":
        values = np.asarray(rng.uniform(-4, 4, shape).astype(dtype))
        choices = [np.nan, np.inf, -np.inf, 0.0, -0.0]
    elif dtype.kind == "b":
        return np.asarray(rng.random(shape) < 0.5)
    else:
        values = np.asarray(rng.integers(-5 if dtype.kind == "i" else 0, 6, shape).astype(dtype))
        choices = [np.iinfo(dtype).min, np.iinfo(dtype).max, 0]
    if values.size and rng.random() < special:
        values.flat[rng.integers(values.size)] = choices[rng.integers(len(choices))]
    return values


def pick(rng: Rng, choices: Any) -> Any:
    return choices[rng.integers(len(choices))]


def operand(rng: Rng, shape: tuple[int, ...] | None = None, dtypes: Any = DRAWN, special: float = 0.1) -> Array:
    return array(rng, pick(rng, SHAPES) if shape is None else shape, pick(rng, dtypes), special)


def number(rng: Rng) -> Any:
    """A number beside an array: Python's or NumPy's."""
    return pick(rng, [0, 1, 2, -1, 3, True, 0.5, -2.5, 300, 10**20, np.int8(3), np.float64(0.25), np.uint64(7)])


def beside(rng: Rng, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that broadcasts with another, or, rarely, any."""
    if rng.random() < 0.15:
        return pick(rng, SHAPES)
    kept = shape[rng.integers(len(shape) + 1):]
    return tuple(1 if rng.random() < 0.2 else n for n in kept)


def an_axis(rng: Rng, ndim: int, several: bool = True, none: bool = True) -> Any:
    """An axis: as a rule one that is there."""
    kind = rng.random()
    if kind < 0.1:
        return pick(rng, [ndim, -ndim - 1, 10**30, -(2**63), 1.5, "0", (0, 0), (0, ndim), np.timedelta64(0), [0]])
    if none and kind < 0.3:
        return None
    if several and kind < 0.45 and ndim:
        chosen = [int(a) for a in rng.permutation(ndim)[:rng.integers(ndim + 1)]]
        return tuple(a - ndim if rng.random() < 0.3 else a for a in chosen)
    return int(rng.integers(-ndim, ndim)) if ndim else 0


# --------------------------------------------------------------------------- elementwise

UNARY: dict[str, tuple[Callable[..., Any], bool, bool]] = {  # NumPy's, floating, smooth
    **{name: (getattr(np, name), True, True) for name in (
        "exp", "expm1", "log", "log2", "log10", "log1p", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh")},
    **{name: (getattr(np, name), False, False) for name in (
        "isnan", "isinf", "isfinite", "logical_not", "sign", "zeros_like")},
    "floor": (lambda x: stepped(np.floor, x), False, False), "ceil": (lambda x: stepped(np.ceil, x), False, False),
    "absolute": (np.absolute, False, True), "neg": (lambda x: -x, False, True),
    "square": (lambda x: x * x, False, True),
    "relu": (lambda x: np.maximum(x, 0), False, True),
    "sigmoid": (lambda x: scipy.special.expit(x).astype(x.dtype), True, True),
    "erf": (lambda x: scipy.special.erf(x).astype(x.dtype), True, True),
    "bitwise_not": (lambda x: ~x, False, False),
}
BINARY: dict[str, tuple[Callable[..., Any], bool, bool]] = {
    "add": (lambda x, y: x + y, False, True), "sub": (lambda x, y: x - y, False, True),
    "mul": (lambda x, y: x * y, False, True), "div": (lambda x, y: x / y, True, True),
    "power": (lambda x, y: x ** y, False, True), "remainder": (lambda x, y: x % y, False, False),
    "floor_divide": (lambda x, y: x // y, False, False), "maximum": (np.maximum, False, True),
    "minimum": (np.minimum, False, True),
    "logaddexp": (np.logaddexp, True, True),
    **{name: (getattr(np, name), False, False) for name in (
        "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "bitwise_and", "bitwise_or")},
    "logical_and": (lambda x, y: (x != 0) & (y != 0), False, False),
    "logical_or": (lambda x, y: (x != 0) | (y != 0), False, False),
}
OPERATORS = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv,
             "power": operator.pow, "floor_divide": operator.floordiv, "equal": operator.eq, "not_equal": operator.ne,
             "less": operator.lt, "less_equal": operator.le, "greater": operator.gt, "greater_equal": operator.ge,
             "bitwise_and": operator.and_, "bitwise_or": operator.or_}


def stepped(function: Callable[..., Any], x: Array) -> Array:
    """A function that goes in steps; integers and booleans are whole already."""
    return function(x) if x.dtype.kind == "f" else x.copy()


def unary(rng: Rng) -> Call:
    name = pick(rng, list(UNARY))
    theirs, floating, smooth = UNARY[name]
    x = operand(rng)
    ours = getattr(Tensor if rng.random() < 0.5 and hasattr(Tensor, name) else ops, name)
    return Call(name, [x], ours, theirs, floating, smooth=smooth)


def binary(rng: Rng) -> Call:
    name = pick(rng, list(BINARY))
    theirs, floating, smooth = BINARY[name]
    x = operand(rng)
    y = number(rng) if rng.random() < 0.25 else operand(rng, beside(rng, x.shape))
    operands = [x, y] if rng.random() < 0.5 else [y, x]
    ours = OPERATORS[name] if name in OPERATORS and rng.random() < 0.5 else getattr(ops, name)
    return Call(name, operands, ours, theirs, floating, smooth=smooth)


def choosing(rng: Rng) -> Call:
    x = operand(rng)
    if rng.random() < 0.5:
        y = number(rng) if rng.random() < 0.3 else operand(rng, beside(rng, x.shape))
        condition = np.asarray(rng.random(pick(rng, [x.shape, beside(rng, x.shape)])) < 0.5)
        return Call("where", [x, y], lambda x, y: ops.where(condition, x, y), lambda x, y: np.where(condition, x, y),
                    smooth=True)
    low, high = (pick(rng, [None, -1, 0, 1, 2, 0.5, float("nan"), np.float64(1.5)]) for _ in range(2))
    reason = "clip needs a bound" if low is None and high is None else ""
    bounds = [b.item() if isinstance(b, np.generic) else b for b in (low, high)]
    if any(isinstance(b, float) for b in bounds) and x.dtype.kind != "f":
        theirs = lambda x: np.clip(x.astype(np.float32), *bounds)  # noqa: E731
    else:
        theirs = lambda x: np.clip(x, *bounds)  # noqa: E731
    return Call(f"clip({low}, {high})", [x], lambda x: ops.clip(x, low, high), theirs, refuses=reason, smooth=True)


# --------------------------------------------------------------------------- along axes

REDUCTIONS: dict[str, tuple[Callable[..., Any], bool, bool]] = {
    "sum": (np.sum, False, True), "prod": (np.prod, False, True), "mean": (np.mean, True, True),
    "max": (np.max, False, True), "min": (np.min, False, True), "any": (np.any, False, False),
    "all": (np.all, False, False), "argmax": (np.argmax, False, False), "argmin": (np.argmin, False, False),
    "var": (np.var, True, True), "std": (np.std, True, True), "median": (np.median, True, True),
    "logsumexp": (scipy.special.logsumexp, True, True),
}


def reduction(rng: Rng) -> Call:
    name = pick(rng, list(REDUCTIONS))
    theirs, floating, smooth = REDUCTIONS[name]
    x = operand(rng, special=0.0 if name == "logsumexp" else 0.05)
    keywords: dict[str, Any] = {"axis": an_axis(rng, x.ndim, several=not name.startswith("arg")),
                                "keepdims": bool(rng.integers(2))}
    if name == "median" and (not x.ndim or not isinstance(keywords["axis"], int)):  # where NumPy's has rules of its own
        keywords["axis"] = None
    reason = "no elements" if not x.size and name in ("median", "var", "std") else ""
    if name == "logsumexp":
        def theirs(x: Array, axis: Any, keepdims: bool) -> Array:
            return np.asarray(np.log(np.sum(np.exp(x), axis=axis, keepdims=keepdims)))
    ours = getattr(Tensor if rng.random() < 0.5 and hasattr(Tensor, name) else ops, name)

    def numpys(x: Array) -> Array:  # here a number is one element along axis 0, and its reduction a number
        return theirs(x, **keywords) if x.ndim else np.reshape(theirs(x.reshape(1), **keywords), ())

    return Call(f"{name}({keywords})", [x], lambda x: ours(x, **keywords), numpys, floating,
                sums=x.size if floating or name in ("sum", "prod") else 0, smooth=smooth, refuses=reason)


def scan(rng: Rng) -> Call:
    name = pick(rng, ["cumsum", "cumprod", "softmax", "log_softmax", "sort", "argsort"])
    x = operand(rng, special=0.0 if "softmax" in name else 0.05)
    axis = an_axis(rng, x.ndim, several=False, none="sort" in name)
    if "softmax" in name:
        def theirs(x: Array) -> Array:
            x.sum(axis=axis)  # which SciPy takes any axis for, if there are no elements
            return getattr(scipy.special, name)(x, axis=axis) if x.size else np.exp(x)
        reason = "" if x.ndim else "an axis of a number"
        return Call(f"{name}({axis})", [x], lambda x: getattr(functional, name)(x, axis), theirs, True, x.size, True,
                    reason)
    kind = {"kind": "stable"} if "sort" in name else {}

    def numpys(x: Array) -> Array:  # here a number is one element along axis 0
        if x.ndim or axis is None:
            return getattr(np, name)(x, axis=axis, **kind)
        return np.reshape(getattr(np, name)(x.reshape(1), axis=axis, **kind), ())

    return Call(f"{name}({axis})", [x], lambda x: getattr(ops, name)(x, axis), numpys,
                sums=x.size if name.startswith("cum") else 0, smooth=not name.startswith("arg"))


def product(rng: Rng) -> Call:
    name = pick(rng, ["matmul", "matmul", "dot", "inner", "outer", "kron", "tensordot"])
    n, m, k = (int(rng.integers(0, 4)) for _ in range(3))
    shapes = pick(rng, [((n, k), (k, m)), ((k,), (k, m)), ((n, k), (k,)), ((k,), (k,)), ((2, n, k), (k, m)),
                        ((2, n, k), (2, k, m)), ((1, n, k), (3, k, m)), ((n,), (m,)), ((), (n,)), ((n, k), (m, k))])
    x, y = (operand(rng, shape, special=0.0) for shape in shapes)
    if x.dtype.kind == y.dtype.kind == "b" and name in ("dot", "inner", "tensordot"):
        x = x.astype(np.int64)
    return Call(name, [x, y], getattr(ops, name), getattr(np, name), sums=4 * (k + 1), smooth=True)


# --------------------------------------------------------------------------- shapes and places


def shaping(rng: Rng) -> Call:
    x = operand(rng)
    n = x.ndim
    axis, other = an_axis(rng, n, False, False), an_axis(rng, n, False, False)
    shape = tuple(int(a) for a in rng.permutation(x.shape)) if rng.random() < 0.4 else pick(rng, [
        (-1,), (x.size,), (1, -1), (x.size + 1,), (-1, -1), (10**30,), (2, -1), (), (x.size, 1), ("3",), (1.0,)])
    order = tuple(int(a) for a in rng.permutation(n)) if rng.random() < 0.8 else pick(rng, [(0, 0), (n,), (0,), (5,)])
    count = pick(rng, [0, 1, 2, 3, -1, 1.5, 10**30])
    wide = pick(rng, [x.shape, (2, *x.shape), beside(rng, x.shape), (-1,), (10**30, *x.shape)])
    choices: list[tuple[str, Callable[..., Any], Callable[..., Any]]] = [
        (f"reshape({shape})", lambda x: ops.reshape(x, shape), lambda x: np.reshape(x, shape)),
        (f"transpose({order})", lambda x: ops.transpose(x, order), lambda x: np.transpose(x, order)),
        (f"swapaxes({axis}, {other})", lambda x: ops.swapaxes(x, axis, other), lambda x: np.swapaxes(x, axis, other)),
        (f"moveaxis({axis}, {other})", lambda x: ops.moveaxis(x, axis, other), lambda x: np.moveaxis(x, axis, other)),
        (f"expand_dims({axis})", lambda x: ops.expand_dims(x, axis), lambda x: np.expand_dims(x, as_int(axis))),
        (f"squeeze({axis})", lambda x: ops.squeeze(x, axis), lambda x: np.squeeze(x, axis)),
        ("ravel", ops.ravel, np.ravel), ("T", lambda x: x.T, lambda x: x.T),
        (f"flip({axis})", lambda x: ops.flip(x, axis), lambda x: np.flip(x, axis)),
        (f"roll({count}, {axis})", lambda x: ops.roll(x, count, axis), lambda x: np.roll(x, as_int(count), axis)),
        (f"broadcast_to({wide})", lambda x: ops.broadcast_to(x, wide), lambda x: np.broadcast_to(x, wide)),
        (f"tile({count})", lambda x: ops.tile(x, count), lambda x: np.tile(x, at_least(count, 0))),
        (f"repeat({count}, {axis})", lambda x: ops.repeat(x, count, axis),
         lambda x: np.repeat(x, as_int(count), axis)),
        (f"concatenate({axis})", lambda x: ops.concatenate([x, x], axis), lambda x: np.concatenate([x, x], axis)),
        (f"stack({axis})", lambda x: ops.stack([x, x], axis), lambda x: np.stack([x, x], axis)),
        (f"tril({count})", lambda x: ops.tril(x, count), lambda x: np.tril(matrix(x), as_int(count))),
        (f"pad({count})", lambda x: ops.pad(x, ((count, 1),) * n),
         lambda x: np.pad(x, ((at_least(count, 0), 1),) * n) if n else x),  # NumPy refuses a number
        (f"diagonal({count}, {axis}, {other})", lambda x: ops.diagonal(x, count, axis, other),
         lambda x: np.diagonal(x, as_int(count), axis, other)),
        (f"trace({count})", lambda x: ops.trace(x, count), lambda x: np.trace(x, as_int(count))),
        (f"split({count}, {axis})", lambda x: ops.split(x, count, axis), lambda x: pieces(x, count, axis)),
        (f"astype({count})", lambda x: ops.astype(x, np.int16), lambda x: x.astype(np.int16)),
    ]
    text, ours, theirs = pick(rng, choices)
    reason = "an axis or matrix of fewer dimensions" if not n or text[:2] in ("tr", "di") else ""
    if count in (10**30, -1) or 10**30 in wide:
        reason = reason or "a length beyond the dtypes of indices, or below 0"
    return Call(text, [x], ours, theirs, smooth=not text.startswith("astype"), refuses=reason)


def as_int(count: Any) -> int:
    """NumPy truncates what rolls, repeats and diagonals it is given as fractions."""
    if not isinstance(count, int):
        raise TypeError
    return count


def at_least(count: Any, least: int) -> int:
    if as_int(count) < least:
        raise ValueError
    return count


def matrix(x: Array) -> Array:
    if x.ndim < 2:
        raise ValueError
    return x


def pieces(x: Array, size: Any, axis: int) -> list[Array]:
    """`ops.split`, in NumPy: it takes the sizes of pieces, not their number."""
    if as_int(size) < 1 or size > 2**62 or not isinstance(axis, int):
        raise ValueError
    return np.split(x, list(range(size, x.shape[axis], size)), axis) if x.shape[axis] else []


def an_index(rng: Rng, shape: tuple[int, ...]) -> Any:
    """An index of an array of that shape, as a rule one that fits."""
    if rng.random() < 0.12:
        return pick(rng, [0.5, "a", 10**30, len(shape) * (0,) + (0,), np.array([0.5]), np.array(["a"]), 1j, [99], -9,
                          np.array([True]), (..., ...), np.array([1j]), object(), {}, np.datetime64("2020-01-01")])
    parts: list[Any] = []
    for n in shape[:rng.integers(len(shape) + 1)]:
        kind = rng.integers(6)
        if kind == 0 and n:
            parts.append(int(rng.integers(-n, n)))
        elif kind == 1 and n:
            parts.append(rng.integers(-n, n, pick(rng, [(2,), (1, 2), (), (0,)])))
        elif kind == 2:
            parts.append(rng.random(n) < 0.5)
        elif kind == 3 and n:
            parts.append([int(i) for i in rng.integers(0, n, 2)])
        else:
            start, stop = (pick(rng, [None, 0, 1, -1, 2, 9]) for _ in range(2))
            parts.append(slice(start, stop, pick(rng, [None, 1, 2, -1])))
    if rng.random() < 0.2:
        parts.insert(rng.integers(len(parts) + 1), None)
    if rng.random() < 0.2:
        parts.append(...)
    return tuple(parts) if len(parts) != 1 or rng.random() < 0.5 else parts[0]


def reading(rng: Rng) -> Call:
    x = operand(rng)
    index, axis = an_index(rng, x.shape), an_axis(rng, x.ndim, False)
    kind = rng.integers(3)
    if kind == 0:
        size = x.size if axis is None else x.shape[axis] if isinstance(axis, int) and abs(axis) < x.ndim else 3
        places = rng.integers(-size - (rng.random() < 0.1), size + (rng.random() < 0.1) + (size == 0), (2,))
        return Call(f"take({places}, {axis})", [x], lambda x: ops.take(x, places, axis),
                    lambda x: np.take(x, places, axis), smooth=True,
                    refuses="" if x.ndim and x.size else "an axis of a number, or places that are not there")
    if kind == 1:
        value = pick(rng, [0, 1.5, True, np.float64(2), -1, 300, float("nan")])

        def ours(x: Tensor) -> Tensor:
            written = x.clone().detach()
            written[index] = value
            return written

        def theirs(x: Array) -> Array:
            written = x.copy()
            written[index] = value.item() if isinstance(value, np.generic) else value
            return written

        return Call(f"x[{index!r}] = {value}", [x], ours, theirs)
    return Call(f"x[{index!r}]", [x], lambda x: x[index], lambda x: np.asarray(x[index]), smooth=True)


FAMILIES = [unary, unary, binary, binary, binary, choosing, reduction, reduction, scan, product, shaping, shaping,
            reading, reading]


def a_call(rng: Rng) -> Call:
    """A random call."""
    return pick(rng, FAMILIES)(rng)
