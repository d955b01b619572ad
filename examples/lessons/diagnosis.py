"""What is wrong with an array that should be another one: for check_attention_backward.py.

`diagnose` compares numbers and says in words how they differ: not filled in, another shape, a constant factor, a
transpose, one of the suspects that the caller names. It knows nothing of attention.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

TOLERANCE = 1e-8  # relative to the largest number of the right array


def diagnose(found: Any, right: Any, factors: Mapping[str, float], axes: Mapping[int, str],
             suspects: Callable[[Any], Mapping[str, Any]]) -> str | None:
    """What is wrong with `found`, in a few words; None if it is `right`.

    Args:
        found: whatever was computed.
        right: the right array, float64.
        factors: explanation -> a factor that it would put into the result.
        axes: length -> what an axis of this length runs over.
        suspects: gives, for `found`, explanation -> the array that this mistake would give.
    """
    if found is None or found is Ellipsis:
        return "not filled in yet"
    try:
        found = np.asarray(found, dtype=float)
    except (TypeError, ValueError):
        return f"is a {type(found).__name__}; an array of numbers is expected"
    if found.shape != right.shape:
        return f"has the shape {found.shape}, and must have {right.shape}{about_shape(found, right, axes)}"
    if same(found, right):
        return None
    if not np.isfinite(found).all():
        endless = ~np.isfinite(found)
        return (f"has {np.count_nonzero(endless)} numbers that are infinite or NaN"
                f"{'' if right[endless].any() else ', and that must be 0'}")
    if not found.any():
        return "is 0 everywhere"
    mistakes = {"": right, "it is the transpose of the right one": transposed(right), **suspects(found)}
    for explanation, array in mistakes.items():
        factor = constant_factor(found, array)
        words = explanation, "" if factor is None else in_words(factor, factors)
        if factor is not None and any(words):
            return "; and then it ".join(filter(None, words))
    return where_wrong(found, right)


def same(found: Any, right: Any) -> bool:
    """Equal but for rounding."""
    return found.shape == right.shape and bool(np.abs(found - right).max() <= TOLERANCE * np.abs(right).max())


def transposed(array: Any) -> Any:
    """The last two axes exchanged; an array of one axis as it is."""
    return array.mT if array.ndim > 1 else array


def constant_factor(found: Any, right: Any) -> float | None:
    """The c of ``found = c · right``, or None if there is no such number."""
    if found.shape != right.shape or not right.any():
        return None
    factor = float((found * right).sum() / (right * right).sum())
    return factor if factor and same(found, factor * right) else None


def in_words(factor: float, factors: Mapping[str, float]) -> str:
    """``is 0.3333 times the right one: 1/B …``; nothing for 1."""
    if abs(factor - 1) <= TOLERANCE:
        return ""
    if abs(factor - 1) < 1e-3:
        return f"is 1 {'+' if factor > 1 else '-'} {abs(factor - 1):.1e} times the right one: a number with few digits?"
    times = f"is {factor:.4g} times the right one"
    if math.isclose(factor, -1.0, rel_tol=1e-6):
        return f"{times}: the sign is wrong"
    name = next((f": {name}" for name, value in factors.items() if math.isclose(abs(factor), value, rel_tol=1e-6)), "")
    return f"{times}{name}{'; and the sign is wrong' if factor < 0 else ''}"


def about_shape(found: Any, right: Any, axes: Mapping[int, str]) -> str:
    """What may have led to the wrong shape: a sum or a transpose that is missing."""
    if same(transposed(found), right):
        return ": it is the transpose of the right one"
    if found.size == right.size and same(found.reshape(right.shape), right):
        return ": the numbers are right"
    for summed in (1, 2):
        added = found.sum(axis=tuple(range(summed))) if found.ndim >= summed else found
        if constant_factor(added, right) is not None:
            over = (axes.get(length, f"the axis of length {length}") for length in found.shape[:summed])
            return f": the sum over {' and '.join(over)} is missing"
    return ""


def where_wrong(found: Any, right: Any) -> str:
    """When nothing fits: how much of it is wrong, and the worst place."""
    error = np.abs(found - right)
    zero = right == 0
    wrong = error > TOLERANCE * np.abs(right).max()
    if zero.any() and not zero.all():
        factor = constant_factor(np.where(zero, 0.0, found), right)
        if factor is not None and math.isclose(factor, 1.0, rel_tol=1e-6):
            return f"is right but for {np.count_nonzero(wrong)} numbers, which must be 0: the mask?"
    place = tuple(int(i) for i in np.unravel_index(error.argmax(), error.shape))
    items = [str(item) for item in range(len(right)) if right.ndim > 2 and not wrong[item].any()]
    right_items = f"; sentences {', '.join(items)} are right" if items else ""
    return (f"is wrong in {np.count_nonzero(wrong)} of {wrong.size} numbers, most at {list(place)}: yours is "
            f"{found[place]:.4g}, right is {right[place]:.4g}{right_items}")
