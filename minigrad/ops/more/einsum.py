"""Einstein's summation: products of several operands, summed over the letters that the output lacks."""

from __future__ import annotations

import re
from typing import Any

from minigrad.device import xp
from minigrad.device.einsum import einsum as einsum_of_arrays
from minigrad.engine.primitive import primitive
from minigrad.ops.shape import broadcast_to, sequence_of_arrays

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
    return written, right.replace("...", dots)


@primitive(precision="float16")
def _einsum(*xs, subscripts):
    return einsum_of_arrays(subscripts, *xs)


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

    Axes under ``...`` broadcast, and are summed over where the output lacks them, as in PyTorch. Of one operand it may
    be a view, as in NumPy.

    Raises ValueError for subscripts that do not fit the operands, TypeError for those that are no string.
    """
    if not isinstance(subscripts, str):
        raise TypeError(f"einsum: the subscripts come first, as a string, got {type(subscripts).__name__}")
    operands = tuple(sequence_of_arrays(operands, "einsum"))
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
