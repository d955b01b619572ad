"""Matrix products: matmul with every pair of ranks, and einsum."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from minigrad.device import xp
from minigrad.engine.operands import sum_to
from minigrad.engine.primitive import primitive
from minigrad.ops.shape import broadcast_to, require_arrays, reshape
from minigrad.precision.half import SINGLE, is_half, product


@primitive(precision="float16")
def batched_matmul(x, y):
    """``(…, n, k) @ (…, k, m) → (…, n, m)``; the leading axes broadcast.

    A single right-hand matrix is applied to all rows at once, as one 2-D product: ``(B·T, D) @ (D, E)``.
    """
    if y.ndim == 2 and x.ndim > 2:
        return product(rows(x), y).reshape(*x.shape[:-1], y.shape[-1])
    return product(x, y)


# forward: Z = X Y.  With G = dZ:  dX = G Yᵀ,  dY = Xᵀ G; broadcast leading axes are summed.
def matmul_gradient_x(g, y, x_shape):
    return sum_to(batched_matmul(g, y.mT), x_shape)


def matmul_gradient_y(g, x, y_shape):
    if len(y_shape) == 2 and len(x.shape) > 2:  # one matrix for all rows: again a single 2-D product
        return batched_matmul(rows(x).mT, rows(g))
    return sum_to(batched_matmul(x.mT, g), y_shape)


def rows(x: Any) -> Any:
    """``(…, D) → (N, D)``."""
    shape = x.shape
    return x if len(shape) == 2 else x.reshape((math.prod(shape[:-1]), shape[-1]))


batched_matmul.gradient(x=matmul_gradient_x, y=matmul_gradient_y)
batched_matmul.name = "matmul"  # what users call it


def matmul(x: Any, y: Any) -> Any:
    """The matrix product of x and y by NumPy's rules: a 1-D operand is a row on the left, a column on the right.

    Raises ValueError for 0-d operands, and for shapes that do not fit.
    """
    require_arrays("matmul", x, y)
    shapes = f"got {tuple(x.shape)} and {tuple(y.shape)}"
    if not len(x.shape) or not len(y.shape):
        raise ValueError(f"matmul: the operands need at least one dimension, {shapes}; use * for scalars")
    if x.shape[-1] != y.shape[-2 if len(y.shape) > 1 else 0]:
        raise ValueError(f"matmul: x.shape[-1] == y.shape[{-2 if len(y.shape) > 1 else 0}], {shapes}")
    if not all(n == m or n == 1 or m == 1 for n, m in zip(x.shape[-3::-1], y.shape[-3::-1], strict=False)):
        raise ValueError(f"matmul: x.shape[:-2] and y.shape[:-2] broadcast, {shapes}")
    if len(x.shape) >= 2 and len(y.shape) >= 2:
        return batched_matmul(x, y)
    lifted_x = reshape(x, (1, *x.shape)) if len(x.shape) == 1 else x
    lifted_y = reshape(y, (*y.shape, 1)) if len(y.shape) == 1 else y
    out = batched_matmul(lifted_x, lifted_y)
    n, m = out.shape[-2:-1] if len(x.shape) > 1 else (), out.shape[-1:] if len(y.shape) > 1 else ()
    return reshape(out, (*out.shape[:-2], *n, *m))


# --------------------------------------------------------------------------- einsum


_TERM = r"[A-Za-z]*(\.\.\.[A-Za-z]*)?"
_SUBSCRIPTS = re.compile(rf"{_TERM}(,{_TERM})*(->{_TERM})?")


def parse_subscripts(subscripts: str, ranks: list[int]) -> tuple[list[str], str]:
    """The letters of each operand and of the output, with ``...`` written out in capital letters of its own."""
    text = subscripts.replace(" ", "")
    if not _SUBSCRIPTS.fullmatch(text):
        raise ValueError(f"einsum: {subscripts!r} is not made of letters, commas, '->' and, once an operand, '...'")
    left, arrow, right = text.partition("->")
    operands = left.split(",")
    if len(operands) != len(ranks):
        raise ValueError(f"einsum: {subscripts!r} names {len(operands)} operands, got {len(ranks)}")
    free = [c for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" if c not in text]
    longest = 0
    for letters, rank in zip(operands, ranks, strict=True):
        named = len(letters.replace("...", ""))
        if named != rank and ("..." not in letters or named > rank):
            raise ValueError(f"einsum: {letters!r} in {subscripts!r} does not fit an operand with {rank} dimensions")
        longest = max(longest, rank - named)
    dots = "".join(free[:longest])
    written = []
    for letters, rank in zip(operands, ranks, strict=True):
        count = rank - len(letters.replace("...", ""))
        written.append(letters.replace("...", dots[len(dots) - count:]))
    if not arrow:  # NumPy's implicit output: the ellipsis, then the letters that occur once, in alphabetical order
        joined = left.replace("...", "").replace(",", "")
        right = "..." + "".join(sorted(c for c in set(joined) if joined.count(c) == 1))
    elif len(set(right) - {"."}) < len(right.replace(".", "")):
        raise ValueError(f"einsum: a letter stands twice in the output of {subscripts!r}")
    elif dots and "..." not in right:
        raise ValueError(f"einsum: the output of {subscripts!r} lacks the '...' that its operands have")
    return written, right.replace("...", dots)


@primitive(precision="float16")
def _einsum(*xs, subscripts):
    if all(is_half(x) for x in xs):  # see `minigrad.precision.half`
        return np.einsum(subscripts, *xs, dtype=SINGLE).astype(xs[0].dtype)
    return xp(xs[0]).einsum(subscripts, *xs)


@_einsum.joint_gradient("xs")
def einsum_gradient(g, xs, subscripts, needs):
    """Of operand i: the einsum of g and the other operands, with i's letters as the output.

    Letters that only operand i has were summed over: its gradient is spread along them. A letter that stands twice in
    operand i reads a diagonal: its gradient lies on that diagonal.
    """
    left, out = subscripts.split("->")
    operands = left.split(",")
    sizes = {c: n for letters, x in zip(operands, xs, strict=True) for c, n in zip(letters, x.shape, strict=True)}
    gradients: list[Any] = []
    for i, (letters, x, needed) in enumerate(zip(operands, xs, needs, strict=True)):
        if not needed:
            gradients.append(None)
            continue
        others = [(letters_j, x_j) for j, (letters_j, x_j) in enumerate(zip(operands, xs, strict=True)) if j != i]
        known = set(out).union(*[letters_j for letters_j, _ in others])
        distinct = "".join(dict.fromkeys(letters))
        reachable = "".join(c for c in distinct if c in known)
        terms, arrays = [out, *[t for t, _ in others]], [g, *[a for _, a in others]]
        gradient = _einsum(*arrays, subscripts=",".join(terms) + "->" + reachable)
        gradient = gradient.reshape(tuple(sizes[c] if c in reachable else 1 for c in distinct))
        gradient = broadcast_to(gradient, tuple(sizes[c] for c in distinct))
        if distinct != letters:
            gradient = _onto_diagonals(gradient, distinct, letters, sizes, x)
        gradients.append(gradient)
    return gradients


def _onto_diagonals(gradient: Any, distinct: str, letters: str, sizes: dict[str, int], like: Any) -> Any:
    """Lay a gradient over `distinct` letters onto the diagonals that repeated `letters` read."""
    namespace = xp(like._data if hasattr(like, "_data") else like)
    spare = iter(c for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz" if c not in letters)
    seen, full, eyes, terms = set(), "", [], []
    for c in letters:
        if c in seen:  # a second axis with this letter: tie it to the first by an identity matrix
            other = next(spare)
            eyes.append(namespace.eye(sizes[c], dtype=gradient.dtype))
            terms.append(c + other)
            full += other
        else:
            seen.add(c)
            full += c
    return _einsum(gradient, *eyes, subscripts=",".join([distinct, *terms]) + "->" + full)


def einsum(subscripts: str, *operands: Any) -> Any:
    """NumPy's einsum, with ``->`` or without, ``...``, repeated letters (diagonals) and letters that are summed over.

    Axes under ``...`` broadcast. Of one operand it may be a view, as in NumPy.

    Raises ValueError for subscripts that do not fit the operands.
    """
    if not isinstance(subscripts, str):
        raise TypeError(f"einsum: the subscripts come first, as a string, got a {type(subscripts).__name__}")
    if not operands:
        raise ValueError("einsum: needs at least one operand")
    require_arrays("einsum", *operands)
    letters, out = parse_subscripts(subscripts, [len(x.shape) for x in operands])
    sizes: dict[str, int] = {}
    for term, x in zip(letters, operands, strict=True):
        for c in set(term):  # on a diagonal nothing broadcasts
            lengths = {n for letter, n in zip(term, x.shape, strict=True) if letter == c}
            if len(lengths) > 1:
                raise ValueError(f"einsum: the letter {c!r} of {subscripts!r} stands for lengths "
                                 f"{sorted(lengths)} of one operand, of shape {tuple(x.shape)}")
        for c, n in zip(term, x.shape, strict=True):
            known = sizes.get(c, 1)
            if n != known and 1 not in (n, known):
                raise ValueError(f"einsum: the letter {c!r} of {subscripts!r} stands for lengths {known} and {n}")
            sizes[c] = known if n == 1 else n  # an axis of length 1 broadcasts, beside an empty one too
    missing = set(out) - set("".join(letters))
    if missing:
        raise ValueError(f"einsum: the output of {subscripts!r} has {sorted(missing)}, which no operand has")
    # Broadcasting (an axis of length 1 beside a longer one) is a recorded op of its own: the rule need not know.
    spread = [broadcast_to(x, tuple(sizes[c] for c in term)) for term, x in zip(letters, operands, strict=True)]
    return _einsum(*spread, subscripts=",".join(letters) + "->" + out)
