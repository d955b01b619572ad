"""Checks a solution of an exercise, gradient by gradient, and says in what way each is wrong.

Each function is called alone, on random arrays, and held to minigrad's automatic differentiation; at last all of them
together, to the engine's own operation. What an exercise consists of stands in a file of its own: attention_steps.py,
layer_norm_steps.py, cross_entropy_steps.py. The words for what is wrong with an array are in diagnosis.py.
"""

import itertools
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from diagnosis import diagnose, miscounted, same

import minigrad as mg
from minigrad import Tensor

MISTAKES = (ArithmeticError, AssertionError, AttributeError, ImportError, LookupError, NameError, RuntimeError,
            TypeError, ValueError)  # of those who learn NumPy

Values = dict[str, Any]
Suspects = dict[str, Any]  # what the mistake is -> the array that it would give
Verdicts = dict[tuple[str, str], str | None]  # (function, gradient) -> what is wrong with it, None if nothing is


@dataclass(frozen=True)
class Step:
    """A function of an exercise: ``gradients = function(*arguments)``.

    Attributes:
        function: its name.
        gradients: the names of what it returns: those of the forward step by its `inputs`, in their order.
        inputs: names of values.
        forward: the step forwards, of values by name, some of them Tensors.
        arguments: the names of the values that it gets.
        upstream: the one among them that is the gradient from above, or the name of a None for 1.
        suspects: mistakes of its own, of (the gradient's name, the right one, the values, what was found).
        paths: if its one input goes several ways, the names by which `forward` finds it on each of them.
    """

    function: str
    gradients: tuple[str, ...]
    inputs: tuple[str, ...]
    forward: Callable[[Mapping[str, Any]], Tensor]
    arguments: tuple[str, ...]
    upstream: str
    suspects: Callable[[str, Any, Values, Any], Suspects] = lambda *_: {}
    paths: tuple[str, ...] = ()


@dataclass(frozen=True)
class Exercise:
    """An exercise: its functions, and what they are tried on.

    Attributes:
        steps: its functions, in the order of the file.
        problems: values for all steps; a step that is wrong on one is not tried on the next.
        factors: of a step and its values: explanation -> a constant that may be forgotten or misplaced.
        axes: of the same: length -> what an axis of this length runs over.
        backward: the name of the function that calls all others.
        whole: of the functions by name and a problem: what `backward` gives, and what the engine gives.
        engine: what of the engine it is held to, in words.
        done: what to say when all is right.
    """

    steps: tuple[Step, ...]
    problems: tuple[Values, ...]
    factors: Callable[[Step, Values], dict[str, float]]
    axes: Callable[[Step, Values], dict[int, str]]
    backward: str
    whole: Callable[[Mapping[str, Any], Values], tuple[Values, Values]]
    engine: str
    done: str


# --------------------------------------------------------------------------- what is right, and what it might be


def right_gradients(step: Step, values: Values) -> Values:
    """What automatic differentiation gives, by the names of the gradients."""
    leaves = {name: Tensor(values[name], requires_grad=True) for name in step.inputs}
    ways = dict.fromkeys(step.paths, leaves[step.inputs[0]])
    return dict(zip(step.gradients, gradients(step, leaves, {**values, **leaves, **ways}), strict=True))


def path_gradients(step: Step, values: Values) -> Values:
    """What comes back on each path alone; their sum is the gradient."""
    leaves = {path: Tensor(values[step.inputs[0]], requires_grad=True) for path in step.paths}
    return dict(zip(step.paths, gradients(step, leaves, {**values, **leaves}), strict=True))


def gradients(step: Step, leaves: Mapping[str, Tensor], values: Values) -> list[Any]:
    """The gradients of a step by some leaves."""
    found = mg.grad(step.forward(values), list(leaves.values()), values[step.upstream])
    return [gradient.numpy() for gradient in found]


def transposes(step: Step, values: Values, right: Values) -> dict[str, Suspects]:
    """For each gradient, what it would be if one of the square matrices in its formula were transposed."""
    suspects: dict[str, Suspects] = {name: {} for name in step.gradients}
    for name, array in numbers(step, values).items():
        if array.ndim > 1 and array.shape[-1] == array.shape[-2]:
            for gradient, suspect in right_gradients(step, {**values, name: array.mT}).items():
                if not same(suspect, right[gradient]):
                    suspects[gradient][f"{name} is transposed: a ᵀ is missing there, or one too many"] = suspect
    return suspects


def exchanges(step: Step, values: Values, right: Values) -> dict[str, Suspects]:
    """For each gradient, what it would be with an argument missing, replaced or once more, or as an array itself."""
    suspects: dict[str, Suspects] = {name: {} for name in step.gradients}
    arrays = numbers(step, values)
    instead = {(name, f"{other} stands where {name} belongs"): stretched(arrays[other], arrays[name])
               for name, other in itertools.permutations(arrays, 2)
               if multiply(arrays[name], arrays[other])
               and (name != step.upstream or arrays[name].shape == arrays[other].shape)}
    instead |= {(name, f"{name} is missing"): np.ones_like(array) for name, array in arrays.items()}
    for (name, words), array in instead.items():
        for gradient, suspect in right_gradients(step, {**values, name: array}).items():
            if not same(suspect, right[gradient]):
                suspects[gradient][words] = suspect
    for gradient in step.gradients:
        suspects[gradient] |= {f"it is {name} itself": array for name, array in (right | arrays).items()
                               if name != gradient}
        for name, array in arrays.items():
            if multiply(array, right[gradient]) and array.ndim <= right[gradient].ndim and array.all():
                suspects[gradient] |= {f"it is multiplied by {name} once too often": right[gradient] * array,
                                       f"it is divided by {name}; multiply": right[gradient] / array**2}
    return suspects


def multiply(x: Any, y: Any) -> bool:
    """Whether two arrays can be multiplied element by element."""
    return all(m == n or 1 in (m, n) for m, n in zip(x.shape[::-1], y.shape[::-1], strict=False))


def stretched(x: Any, y: Any) -> Any:
    """The first in the shape of their product."""
    return np.broadcast_to(x, np.broadcast_shapes(x.shape, y.shape))


def masks(step: Step, values: Values) -> dict[str, Values]:
    """What may be wrong with a mask -> the values with this mask."""
    found: dict[str, Values] = {}
    for name in step.arguments:
        mask = values[name]
        if np.ndim(mask) and mask.dtype == bool:
            found[f"{name} is not applied: where it is False, the gradient is exactly 0"] = {
                **values, name: np.ones_like(mask)}
            found[f"{name} is upside down: where it is True, the gradient passes"] = {**values, name: ~mask}
    return found


def numbers(step: Step, values: Values) -> Values:
    """The arguments of a step that are arrays of numbers: no masks, no ids."""
    return {name: values[name] for name in step.arguments if np.ndim(values[name]) and values[name].dtype.kind == "f"}


def single_sentences(step: Step, name: str, right: Any, values: Values) -> Suspects:
    """The gradient of something shared that has heard of one sentence alone."""
    upstream = values[step.upstream]
    if np.ndim(upstream) <= right.ndim:
        return {}
    sentences = np.arange(len(upstream))
    alone = {b: np.where(sentences == b, upstream.T, 0.0).T for b in sentences}
    return {f"it is that of sentence {b} alone: add up those of all":
            right_gradients(step, {**values, step.upstream: only})[name] for b, only in alone.items()}


def wrong_paths(step: Step, values: Values, factors: Mapping[str, float], found: Any) -> Suspects:
    """Paths that are missing, subtracted, or counted some other number of times than once; also without a mask."""
    if step.paths:
        for mask, masked in {"": values, **masks(step, values)}.items():
            told = [f"what came through {path} {words}"
                    for path, words in miscounted(found, path_gradients(step, masked), factors).items()]
            if told:
                return {"; ".join([mask, *told] if mask else told): found}
    return {}


def mistakes(step: Step, name: str, right: Values, values: Values, factors: Mapping[str, float],
             found: Any) -> Suspects:
    """All that may be wrong with one gradient."""
    return ({mask: right_gradients(step, masked)[name] for mask, masked in masks(step, values).items()}
            | wrong_paths(step, values, factors, found) | step.suspects(name, right[name], values, found)
            | single_sentences(step, name, right[name], values) | transposes(step, values, right)[name]
            | exchanges(step, values, right)[name])


# --------------------------------------------------------------------------- the verdicts


def verdicts_of(exercise: Exercise, step: Step, functions: Mapping[str, Any],
                values: Values) -> Iterator[tuple[str, str | None]]:
    """(gradient, what is wrong with it) of one function on one problem."""
    function = functions.get(step.function)
    if not callable(function):
        yield from ((name, f"there is no function {step.function}") for name in step.gradients)
        return
    arguments = {name: np.array(values[name]) if np.ndim(values[name]) else values[name] for name in step.arguments}
    try:
        found = function(*arguments.values())
    except MISTAKES as error:
        shapes = ", ".join(f"{name} {np.shape(array)}" for name, array in arguments.items() if np.ndim(array))
        words = f": {error}" if str(error) else ""
        verdict = f"the function raises {type(error).__name__}{where_raised(error)}{words} (given {shapes})"
        yield from ((name, verdict) for name in step.gradients)
        return
    several = isinstance(found, tuple) or (isinstance(found, list) and len(step.gradients) > 1)
    found = found if several else (found,)
    if len(found) != len(step.gradients):
        nothing = len(found) == 1 and found[0] is None
        what = "nothing" if nothing else "1 result" if len(found) == 1 else f"{len(found)} results"
        wrong = f"{step.function} returns {what}, and must return {', '.join(step.gradients)}"
        yield from ((name, wrong) for name in step.gradients)
        return
    changed = [name for name, array in arguments.items() if not np.array_equal(array, values[name])]
    right, factors = right_gradients(step, values), exercise.factors(step, values)
    for name, result in zip(step.gradients, found, strict=True):
        suspects = partial(mistakes, step, name, right, values, factors)
        other = another_gradient(name, result, right)
        verdict = (f"it is {other} itself" if other
                   else diagnose(result, right[name], factors, exercise.axes(step, values), suspects))
        if changed and result is not None:
            verdict = (f"{verdict or 'is right'}{'; and' if verdict else ', but'} {step.function} changes its argument "
                       f"{changed[0]}: make a new array instead")
        yield name, verdict


def another_gradient(name: str, result: Any, right: Values) -> str | None:
    """The name of the gradient of another shape that the result is in truth, if the function has such a one."""
    try:
        found = np.asarray(result, dtype=float)
    except (TypeError, ValueError):
        return None
    return next((other for other, array in right.items() if array.shape != right[name].shape and same(found, array)),
                None)


def where_raised(error: Exception) -> str:
    """The line of the exercise, and what is often wrong with it."""
    frames = traceback.extract_tb(error.__traceback__)[1:2]  # the first is that of the checker
    line = "".join(frame.line.partition("  #")[0] for frame in frames if frame.line)
    hint = ""
    if isinstance(error, ValueError) and ".T" in line:
        hint = " (.T turns round all axes, .mT the last two)"
    elif isinstance(error, ValueError) and "broadcast" in str(error):
        hint = " (keepdims=True keeps an axis, x[..., None] adds one)"
    return f" at `{line}`{hint}" if line else ""


def check(exercise: Exercise, functions: Mapping[str, Any]) -> Verdicts:
    """The verdicts on all gradients.

    Args:
        exercise: the exercise.
        functions: those of a solution by name: ``globals()`` there, or what `runpy.run_path` returns.
    """
    verdicts: Verdicts = {}
    for values in exercise.problems:
        for step in exercise.steps:
            if all(verdicts.get((step.function, name)) is None for name in step.gradients):
                found = verdicts_of(exercise, step, functions, values)
                verdicts |= {(step.function, name): verdict for name, verdict in found}
    return verdicts


def report(verdicts: Verdicts) -> str:
    """The verdicts as text, and what to do next."""
    width = max(len(gradient) for _, gradient in verdicts)
    lines, last = [], ("", "")
    for (function, gradient), verdict in verdicts.items():
        lines += [function] if function != last[0] else []
        again = verdict and "raises" in verdict and (function, verdict) == last
        lines.append(f"    {gradient:<{width}}  {'the same' if again else verdict or 'right'}")
        last = function, verdict or ""
    right = sum(verdict is None for verdict in verdicts.values())
    lines.append(f"\n{right} of {len(verdicts)} gradients are right.")
    todo = next((place for place, verdict in verdicts.items() if verdict is not None), None)
    if todo:
        lines[-1] += f" Next: {todo[1]} in {todo[0]}, then run the file again."
    return "\n".join(lines)


def differences(exercise: Exercise, functions: Mapping[str, Any]) -> dict[str, float]:
    """The largest relative difference of each gradient, all steps in a row, from the engine's."""
    worst: dict[str, float] = {}
    for values in exercise.problems:
        found, right = exercise.whole(functions, values)
        for name, gradient in right.items():
            scale = max(1.0, np.abs(gradient).max())  # that of the bias of the keys is 0 but for rounding
            error = np.abs(np.asarray(found[name], dtype=float) - gradient).max()
            worst[name] = max(worst.get(name, 0.0), float(error / scale))
    return worst


def judge_exercise(exercise: Exercise, functions: Mapping[str, Any]) -> tuple[str, bool]:
    """The whole report, and whether everything is right."""
    verdicts = check(exercise, functions)
    text = report(verdicts)
    if any(verdict is not None for verdict in verdicts.values()):
        return text, False
    try:
        worst = differences(exercise, functions)
    except MISTAKES as error:
        return f"{text}\nBut {exercise.backward} as a whole raises {type(error).__name__}: {error}", False
    wrong = [name for name, error in worst.items() if error > 1e-9]
    if wrong:
        return f"{text}\nBut {exercise.backward} as a whole is not, in the gradients of {', '.join(wrong)}.", False
    equal = f"All together they are the gradients of {exercise.engine}, to {max(worst.values()):.0e}"
    return f"{text}\n{equal}: {exercise.done}", True
