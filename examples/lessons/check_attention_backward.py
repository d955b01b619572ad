"""Checks a solution of exercise_attention_backward.py, gradient by gradient, and says in what way each is wrong.

    python examples/lessons/check_attention_backward.py FILE

Each function is called alone, on random arrays, and held to minigrad's automatic differentiation; at last all of them
together, to its attention. The steps are in attention_steps.py, the words for what is wrong in diagnosis.py.
"""

import math
import runpy
import sys
import traceback
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from attention_steps import D_K, STEPS, B, D, H, P, Step, Values, axes, factors, mistakes, problem, right_gradients
from diagnosis import diagnose

from minigrad import Tensor
from minigrad import functional as F

PROBLEMS = ((7, 7), (4, 6))  # T and S; first T = S, where a forgotten transpose raises no error
MISTAKES = (ArithmeticError, AttributeError, LookupError, NameError, TypeError, ValueError)  # of those who learn NumPy


def verdicts_of(step: Step, functions: Mapping[str, Any], values: Values) -> Iterator[tuple[str, str | None]]:
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
        verdict = f"the function raises {type(error).__name__}{where_raised(error)}: {error} (given {shapes})"
        yield from ((name, verdict) for name in step.gradients)
        return
    several = isinstance(found, tuple) or (isinstance(found, list) and len(step.gradients) > 1)
    found = found if several else (found,)
    if len(found) != len(step.gradients):
        wrong = f"{step.function} returns {len(found)} results, and must return {', '.join(step.gradients)}"
        yield from ((name, wrong) for name in step.gradients)
        return
    changed = [name for name, array in arguments.items() if not np.array_equal(array, values[name])]
    right = right_gradients(step, values)
    lengths = values["X"].shape[1], values["M"].shape[1]
    for name, result in zip(step.gradients, found, strict=True):
        suspects = partial(mistakes, step, name, right[name], values)
        verdict = diagnose(result, right[name], factors(step, *lengths), axes(step, *lengths), suspects)
        if verdict is None and changed:
            verdict = f"is right, but {step.function} changes its argument {changed[0]}: make a new array instead"
        yield name, verdict


def where_raised(error: Exception) -> str:
    """The line of the exercise, and what is often wrong with it."""
    frames = traceback.extract_tb(error.__traceback__)[1:2]  # the first is that of the checker
    line = "".join(frame.line.partition("  #")[0] for frame in frames if frame.line)
    hint = " (.T turns round all axes, .mT the last two)" if ".T" in line and isinstance(error, ValueError) else ""
    return f" at `{line}`{hint}" if line else ""


def check(functions: Mapping[str, Any]) -> dict[tuple[str, str], str | None]:
    """(function, gradient) -> what is wrong with it, None if nothing is.

    Args:
        functions: those of the exercise by name: ``globals()`` there, or what `runpy.run_path` returns.
    """
    verdicts: dict[tuple[str, str], str | None] = {}
    for queries, keys in PROBLEMS:
        values = problem(queries, keys)
        for step in STEPS:
            if all(verdicts.get((step.function, name)) is None for name in step.gradients):
                verdicts |= {(step.function, name): verdict for name, verdict in verdicts_of(step, functions, values)}
    return verdicts


def report(verdicts: Mapping[tuple[str, str], str | None]) -> str:
    """The verdicts as text, and what to do next."""
    width = max(len(gradient) for _, gradient in verdicts)
    lines, last = [], ""
    for (function, gradient), verdict in verdicts.items():
        lines += [function] if function != last else []
        lines.append(f"    {gradient:<{width}}  {verdict or 'right'}")
        last = function
    right = sum(verdict is None for verdict in verdicts.values())
    lines.append(f"\n{right} of {len(verdicts)} gradients are right.")
    todo = next((place for place, verdict in verdicts.items() if verdict is not None), None)
    if todo:
        lines[-1] += f" Next: {todo[1]} in {todo[0]}, then run the file again."
    return "\n".join(lines)


def whole(functions: Mapping[str, Any]) -> dict[str, float]:
    """The largest relative difference of `attention_backward`, all steps in a row, from the engine's attention.

    Every gradient is compared, in cross-attention with padding and in causal self-attention, both with dropout.
    """
    worst: dict[str, float] = {}
    for queries, keys in PROBLEMS:
        values = problem(queries, keys)
        rng = np.random.default_rng(1)
        weights = {name: rng.normal(size=(D, D) if name[0] == "W" else D) / math.sqrt(D)
                   for name in ("WQ", "bQ", "WK", "bK", "WV", "bV", "WO", "bO")}
        X, M = values["X"], values["X"] if queries == keys else values["M"]
        settings = (weights, values["mask"], values["kept"], P, H)
        forward = functions["attention_forward"](X, M, *settings)
        found = functions["attention_backward"](values["dY"], forward, *settings)
        leaves = {name: Tensor(array, requires_grad=True) for name, array in {"X": X, "M": M, **weights}.items()}
        if M is X:
            leaves["M"] = leaves["X"]
        engine_attention(leaves, values).backward(values["dY"])
        for name, leaf in leaves.items():
            right = leaf.grad.numpy()
            scale = max(1.0, np.abs(right).max())  # that of the bias of the keys is 0 but for rounding
            worst[name] = max(worst.get(name, 0.0), float(np.abs(found[name] - right).max() / scale))
    return worst


def engine_attention(v: Mapping[str, Tensor], values: Values) -> Tensor:
    """Multi-head attention on minigrad."""
    Q, K, V = ((v[x] @ v[f"W{name}"] + v[f"b{name}"]).reshape(B, -1, H, D_K).swapaxes(1, 2)
               for x, name in (("X", "Q"), ("M", "K"), ("M", "V")))
    O = F.scaled_dot_product_attention(Q, K, V, values["mask"], P, dropped=values["kept"])
    return O.swapaxes(1, 2).reshape(B, -1, D) @ v["WO"] + v["bO"]


def judge(functions: Mapping[str, Any]) -> tuple[str, bool]:
    """The whole report, and whether everything is right."""
    verdicts = check(functions)
    text = report(verdicts)
    if any(verdict is not None for verdict in verdicts.values()):
        return text, False
    worst = whole(functions)
    wrong = [name for name, error in worst.items() if error > 1e-9]
    if wrong:
        return f"{text}\nBut attention_backward as a whole is not, in the gradients of {', '.join(wrong)}.", False
    return (f"{text}\nAll together they are the gradients of the engine's attention, to {max(worst.values()):.0e}: "
            "masks, dropout, heads and all. You have derived backprop through attention."), True


if __name__ == "__main__":
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_file():
        sys.exit("usage: python check_attention_backward.py FILE, with your copy of exercise_attention_backward.py")
    verdict, everything_right = judge(runpy.run_path(sys.argv[1]))
    print(verdict)
    sys.exit(not everything_right)
