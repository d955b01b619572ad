"""What is wrong with an array that should be another one: for checker.py.

`diagnose` compares numbers and says in words how they differ: not filled in, another shape, a constant factor, a
transpose, one of the suspects that the caller names. It knows nothing of any exercise.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

TOLERANCE = 1e-8  # relative to the largest number of the right array
TINY = 1e-9  # of numbers of about 1


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
    return f"{times}{name_of(factor, factors)}{'; and the sign is wrong' if factor < 0 else ''}"


def name_of(factor: float, factors: Mapping[str, float]) -> str:
    """``: 1/B …``, whatever the sign; nothing for a factor without a name."""
    return next((f": {name}" for name, value in factors.items() if math.isclose(abs(factor), value, rel_tol=1e-6)), "")


def miscounted(found: Any, terms: Mapping[str, Any], factors: Mapping[str, float]) -> dict[str, str]:
    """If `found` is a sum of multiples of the terms: what is wrong with those that do not stand in it just once."""
    columns = np.stack([term.ravel() for term in terms.values()], axis=1)
    times = np.linalg.lstsq(columns, found.ravel())[0]
    if not same((columns @ times).reshape(found.shape), found):
        return {}
    return {name: "is missing" if abs(count) < TOLERANCE else
            "has the wrong sign" if abs(count + 1) < TOLERANCE else
            f"is counted {count:.4g} times, and must be once{name_of(count, factors)}"
            for name, count in zip(terms, times, strict=True) if abs(count - 1) > TOLERANCE}


def spread(x: Any, axis: int, seen: Any = True) -> float:
    """How far the numbers that are seen differ along an axis, at most."""
    return float((np.where(seen, x, -np.inf).max(axis=axis) - np.where(seen, x, np.inf).min(axis=axis)).max())


def constant_along(x: Any, axes: Mapping[int, str]) -> str:
    """The names of those axes along which nothing changes: those that a sum or a mean went over."""
    return " and ".join(name for axis, name in axes.items() if spread(x, axis) < TINY)


def about_shape(found: Any, right: Any, axes: Mapping[int, str]) -> str:
    """What may have led to the wrong shape: a transpose, a sum, or the opposite of a sum that is missing."""
    if same(transposed(found), right):
        return ": it is the transpose of the right one"
    if found.size == right.size and same(found.reshape(right.shape), right):
        return ": the numbers are right"
    for summed, keepdims in (((0,), False), ((0, 1), False), ((-1,), True)):
        added = found.sum(axis=summed, keepdims=keepdims) if found.ndim >= len(summed) else found
        over = " and ".join(named_axis(found.shape[axis], axes) for axis in summed if found.ndim >= len(summed))
        if constant_factor(added, right) is not None:
            return f": the sum over {over} is missing"
        if constant_factor(transposed(added), right) is not None:
            return f": the sum over {over} is missing, and it is transposed"
    thin = found if found.ndim == right.ndim else found[..., None]
    lengths = list(zip(thin.shape, right.shape, strict=False))
    spreads = thin.ndim == right.ndim and all(length in (1, wanted) for length, wanted in lengths)
    if spreads and constant_factor(np.broadcast_to(thin, right.shape), right) is not None:
        over = (named_axis(wanted, axes) for length, wanted in lengths if length != wanted)
        return f": it must be spread over {' and '.join(over)}"
    return ""


def named_axis(length: int, axes: Mapping[int, str]) -> str:
    """What an axis of this length runs over."""
    return axes.get(length, f"the axis of length {length}")


def where_wrong(found: Any, right: Any) -> str:
    """When nothing fits: how much of it is wrong, and the worst place."""
    error, largest = np.abs(found - right), np.abs(right).max()
    zero = right == 0
    wrong = error > TOLERANCE * largest
    if error.max() < 1e-4 * largest:
        return (f"is right to {error.max() / largest:.0e} of its largest number, and no closer: float32, or a small "
                "number added?")
    if zero.any() and not zero.all():
        factor = constant_factor(np.where(zero, 0.0, found), right)
        if factor is not None and math.isclose(factor, 1.0, rel_tol=1e-6):
            return f"is right but for {np.count_nonzero(wrong)} numbers, which must be 0: the mask?"
    place = tuple(int(i) for i in np.unravel_index(error.argmax(), error.shape))
    items = [str(item) for item in range(len(right)) if right.ndim > 2 and not wrong[item].any()]
    right_items = f"; sentences {', '.join(items)} are right" if items else ""
    return (f"is wrong in {np.count_nonzero(wrong)} of {wrong.size} numbers, most at {list(place)}: yours is "
            f"{found[place]:.4g}, right is {right[place]:.4g}{right_items}")
