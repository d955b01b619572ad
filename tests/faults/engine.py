"""Random calls of operations, held to NumPy: the same values, dtypes and shapes, or a refusal by both.

A tenth of the calls are given an operand that is no number (complex, text, a date, …), which must be refused. What a
call was given must be as it was. Where a call has a gradient, that of float64 is held to a difference along one random
direction.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

import minigrad as mg
from minigrad import Tensor

from tests.faults.engine_calls import Array, Call, Rng, a_call, pick

REFUSALS = (TypeError, ValueError, IndexError, OverflowError)
BAD = [1j, np.complex64(1j), "2", np.str_("2"), b"2", np.datetime64("2020-01-01"), np.timedelta64(1, "ns"), object(),
       np.zeros((), [("a", float)]), [1j], ["2"], {}, Tensor]
STEP = 1e-6


def faults(count: int, seed: int) -> Iterator[tuple[str, str | None]]:
    """For each of `count` calls what it was, and None if all was well, or else what was wrong."""
    for number in range(count):
        rng = np.random.default_rng([seed, number])
        call = a_call(rng)
        bad = int(rng.integers(len(call.operands))) if rng.random() < 0.1 else None
        if bad is not None:
            call.operands[bad] = spoiled(rng, call.operands[bad])
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            wrong = judged_bad(call, bad) if bad is not None else judged(call) or gradient_fault(rng, call)
        yield f"call {number}: {call.text} of {', '.join(map(shown, call.operands))}", wrong


def spoiled(rng: Rng, operand: Any) -> Any:
    """An operand that is no number, as an array of the shape of `operand` or by itself."""
    value = pick(rng, BAD)
    if rng.random() < 0.5 and not isinstance(value, list | dict | type):
        return np.full(np.shape(operand), value, dtype=None if isinstance(value, np.ndarray | np.generic) else
                       np.asarray(value).dtype)
    return value


def shown(operand: Any) -> str:
    if not isinstance(operand, np.ndarray):
        return repr(operand)
    return f"{operand.dtype}{list(operand.shape)} {' '.join(repr(operand.tolist()).split())[:60]}"


def tensors(call: Call) -> list[Any]:
    """The operands: tensors that share the memory of the arrays, in their layout; but numbers as they are."""
    return [mg.from_numpy(x) if isinstance(x, np.ndarray) else x for x in call.operands]


def judged_bad(call: Call, bad: int) -> str | None:
    """What is wrong with the answer to a call whose operand in the place `bad` is no number."""
    operands = [x if i == bad or not isinstance(x, np.ndarray) else mg.from_numpy(x)
                for i, x in enumerate(call.operands)]
    try:
        if any(isinstance(x, Tensor) for x in operands):
            found = call.ours(*operands)
        else:  # without a tensor it is NumPy's business; but no tensor can be made of it
            found = Tensor(operands[bad])
    except REFUSALS as refused:
        return None if str(refused) and "\n" not in str(refused) else f"it says {refused!r}"
    except Exception as error:  # noqa: BLE001 - anything else is a fault, and reported
        return f"{type(error).__name__}: {error}"
    return f"it was accepted, as {getattr(found, 'dtype', type(found).__name__)}"


def judged(call: Call) -> str | None:
    """What is wrong with the answer to a call."""
    before = [x.copy() if isinstance(x, np.ndarray) else x for x in call.operands]
    expected, theirs = attempt(call.theirs, converted(call.operands, call.floating))
    found, ours = attempt(call.ours, tensors(call))
    if any(isinstance(x, np.ndarray) and not same(x, y) for x, y in zip(call.operands, before, strict=True)):
        return "an operand was changed"
    if ours is not None and not isinstance(ours, REFUSALS):
        return f"{type(ours).__name__}: {ours}"
    if theirs is not None and ours is not None:
        return None
    if ours is not None:
        return None if call.refuses else f"refused: {type(ours).__name__}: {ours}; NumPy gives {expected!r}"
    if theirs is not None:
        return f"accepted: {found!r}; NumPy says {type(theirs).__name__}: {theirs}"
    return difference(call, found, expected)


def attempt(function: Any, operands: list[Any]) -> tuple[Any, Exception | None]:
    try:
        return function(*operands), None
    except Exception as error:  # noqa: BLE001 - judged by its kind
        return None, error


def converted(operands: list[Any], floating: bool) -> list[Any]:
    """The operands as NumPy must get them, to compute what the engine documents."""
    operands = [x.item() if isinstance(x, np.generic) else x for x in operands]
    dtypes = [x.dtype for x in operands if isinstance(x, np.ndarray)]
    floats = [dtype for dtype in dtypes if dtype.kind == "f"]
    if not floats and not floating and not any(isinstance(x, float) for x in operands):
        return operands
    target = np.result_type(*floats) if floats else np.float32
    return [x.astype(target) if isinstance(x, np.ndarray) else x for x in operands]


def difference(call: Call, found: Any, expected: Any) -> str | None:
    """What differs between two results, or lists of them."""
    if isinstance(expected, list | tuple):
        if len(found) != len(expected):
            return f"{len(found)} results, not {len(expected)}"
        return next(filter(None, itertools.starmap(lambda f, e: difference(call, f, e),
                                                   zip(found, expected, strict=True))), None)
    if not isinstance(found, Tensor):
        return f"a {type(found).__name__}"
    value, expected = np.asarray(found.data), np.asarray(expected)
    if value.dtype != expected.dtype or value.shape != expected.shape:
        return f"{value.dtype}{list(value.shape)}, not {expected.dtype}{list(expected.shape)}"
    if close(call, value, expected):
        return None
    return f"{value.tolist()}, not {expected.tolist()}"[:300]


def close(call: Call, value: Array, expected: Array) -> bool:
    """Whether two arrays are equal, those of floats but for a few units in the last place."""
    if value.dtype.kind != "f":
        return np.array_equal(value, expected)
    largest = max([1.0, *(float(np.abs(x[np.isfinite(x)].astype(np.float64)).max(initial=0.0)) for x in call.operands
                          if isinstance(x, np.ndarray))])
    eps = float(np.finfo(value.dtype).eps)
    exact, target = value.astype(np.float64), expected.astype(np.float64)
    allowed = 8 * eps * np.abs(target)
    if call.sums:
        terms = largest**2 if "prod" not in call.text else 1.0
        allowed = allowed * call.sums + 8 * eps * call.sums * terms
    edge = np.abs(target) > 0.99 * np.finfo(value.dtype).max  # one may round to infinity, the other not
    return bool(np.all((exact == target) | (np.isnan(exact) & np.isnan(target)) | edge
                       | (np.abs(exact - target) <= np.maximum(allowed, np.finfo(value.dtype).smallest_subnormal * 8))))


def same(x: Array, y: Array) -> bool:
    return np.array_equal(x, y, equal_nan=x.dtype.kind == "f")


def gradient_fault(rng: Rng, call: Call) -> str | None:
    """What is wrong with the gradient of a call on float64, compared with a difference along a random direction."""
    arrays = [x for x in call.operands if isinstance(x, np.ndarray)]
    if not call.smooth or any(x.dtype != np.float64 or not np.isfinite(x).all() or 0 in x.strides for x in arrays):
        return None
    if any((x == 0).any() for x in arrays):  # where relu and clip have their kinks
        return None
    if any(abs(x) > 1e6 for x in call.operands if not isinstance(x, np.ndarray)):  # beside which a step is lost
        return None
    directions = [rng.normal(size=x.shape) for x in arrays]

    def moved(step: float) -> Array:
        steps = iter([x + step * d for x, d in zip(arrays, directions, strict=True)])
        out = call.ours(*[Tensor(next(steps)) if isinstance(x, np.ndarray) else x for x in call.operands])
        return np.concatenate([np.ravel(o.data) for o in (out if isinstance(out, tuple) else (out,))] or [np.zeros(0)])

    inputs = [Tensor(x, requires_grad=True) if isinstance(x, np.ndarray) else x for x in call.operands]
    out, refused = attempt(call.ours, inputs)
    if refused is not None:
        return None
    outputs = [o for o in (out if isinstance(out, tuple) else (out,)) if o.requires_grad]
    if not outputs:
        return None
    weights = [rng.normal(size=o.shape) for o in outputs]
    wanted = [x for x in inputs if isinstance(x, Tensor)]
    gradients, failed = attempt(lambda: mg.grad(outputs, wanted, [Tensor(w) for w in weights], allow_unused=True), [])
    if failed is not None:
        return f"no gradient: {type(failed).__name__}: {failed}"
    found = sum(float((g.data * d).sum()) for g, d in zip(gradients, directions, strict=True) if g is not None)
    flat = np.concatenate([w.ravel() for w in weights])
    slopes = [float(((moved(h) - moved(-h)) * flat).sum() / (2 * h)) for h in (STEP, STEP / 4)]
    size = 1 + max(map(abs, slopes))
    if not np.isfinite(slopes).all() or abs(slopes[0] - slopes[1]) > 1e-5 * size:  # a kink, or the edge of a domain
        return None
    return None if abs(found - slopes[1]) <= 1e-4 * size else f"the gradient gives {found}, the difference {slopes[1]}"
