"""Checks a solution of exercise_attention_backward.py, gradient by gradient, and says in what way each is wrong.

    python examples/lessons/check_attention_backward.py FILE

Each function is called alone, on random arrays. The right answer is what minigrad's automatic differentiation gives
for the forward step: no formula of the backward pass stands here.
"""

import itertools
import math
import runpy
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from diagnosis import diagnose, same

import minigrad as mg
from minigrad import Tensor
from minigrad import functional as F

B, H, D_K, P = 3, 2, 5, 0.2  # with T, S and D = 10 all different, so that no mistake hides behind two equal numbers
D = H * D_K
TINY = 1e-9
MEMORY_PATHS = ("dM_keys", "dM_values")
SELF_PATHS = ("dX_queries", "dX_keys", "dX_values")
MISTAKES = (ArithmeticError, AttributeError, LookupError, NameError, TypeError, ValueError)  # of those who learn NumPy

Values = dict[str, Any]
Suspects = dict[str, Any]  # what the mistake is -> the array that it would give


@dataclass(frozen=True)
class Step:
    """A function of the exercise: ``gradients = function(upstream, *arguments)``.

    Attributes:
        function: its name.
        gradients: the names of what it returns: those of the forward step by its `inputs`, in their order.
        inputs: names of values.
        forward: the step forwards, of values by name, some of them Tensors.
        upstream: the name of the gradient that it gets.
        arguments: the names of the values that it gets.
        suspects: mistakes of its own.
    """

    function: str
    gradients: tuple[str, ...]
    inputs: tuple[str, ...]
    forward: Callable[[Mapping[str, Any]], Tensor]
    upstream: str
    arguments: tuple[str, ...]
    suspects: Callable[[str, Any, Values, Any], Suspects] = lambda *_: {}


def softmax_suspects(name: str, right: Any, values: Values, found: Any) -> Suspects:
    """Mistakes in what is subtracted from dA, which has to be the same number D all along a row."""
    A, dA = values["A"], values["dA"]
    seen = A > 0
    if same(found * A, right):
        return {"the factor A is missing": found}
    if found[~seen].any():
        return {}
    subtracted, D_right = (np.where(seen, dA - x / np.where(seen, A, 1.0), 0.0) for x in (found, right))
    sums = f"the sums of your rows reach {np.abs(found.sum(axis=-1)).max():.3g}, and all must be 0"
    if np.abs(subtracted).max() < TINY:
        return {f"−D is missing: {sums}": found}
    if np.abs(subtracted + D_right).max() < TINY:
        return {f"D is added, and must be subtracted: {sums}": found}
    if spread(subtracted, seen, axis=-1) < TINY:
        return {f"what is subtracted in each row is not its D: {sums}": found}
    if spread(subtracted, seen, axis=-2) < TINY:
        return {f"D is summed over the queries, and must be summed over the keys: {sums}": found}
    return {}


def spread(x: Any, seen: Any, axis: int) -> float:
    """How far the numbers that are seen differ along an axis, at most."""
    return float((np.where(seen, x, -np.inf).max(axis=axis) - np.where(seen, x, np.inf).min(axis=axis)).max())


def mask_suspects(name: str, right: Any, values: Values, found: Any) -> Suspects:
    """The mask forgotten, or upside down."""
    every = values["dSm"]
    return {"the mask is not applied: masked cells get exactly 0": every,
            "the mask is upside down: True means that a query may attend": every - right}


def dropout_suspects(name: str, right: Any, values: Values, found: Any) -> Suspects:
    """The same of the dropout mask."""
    every = values["dAd"] * (np.abs(right).max() / np.abs(values["dAd"] * values["kept"]).max())
    return {"the dropout mask is not applied: what was dropped gets exactly 0": every,
            "the dropout mask is upside down: True means kept": every - right}


def path_suspects(name: str, right: Any, values: Values, found: Any) -> Suspects:
    """Some of the paths without the others."""
    names = MEMORY_PATHS if name == "dM" else SELF_PATHS
    paths = {f"the {path.partition('_')[2]}": values[path] for path in names}
    some = itertools.chain.from_iterable(itertools.combinations(paths, count) for count in range(1, len(paths)))
    return {f"what came through {' and '.join(path for path in paths if path not in chosen)} is missing":
            sum(paths[path] for path in chosen) for chosen in some}


def sum_over_paths(x: Any, values: Mapping[str, Any], paths: Sequence[str]) -> Tensor:
    """A number whose gradient by `x` is what arrives along the paths by which x went into it."""
    return sum((x * values[path] for path in paths[1:]), x * values[paths[0]]).sum()


STEPS = (
    Step("linear_backward", ("dX", "dW", "db"), ("X", "W", "b"), lambda v: v["X"] @ v["W"] + v["b"], "dY",
         ("dY", "X", "W")),
    Step("context_backward", ("dAd", "dV"), ("Ad", "V"), lambda v: v["Ad"] @ v["V"], "dO", ("dO", "Ad", "V")),
    Step("dropout_backward", ("dA",), ("A",), lambda v: F.dropout_with_mask(v["A"], v["kept"], P), "dAd",
         ("dAd", "kept", "p"), dropout_suspects),
    Step("softmax_backward", ("dSm",), ("S",), lambda v: F.softmax(mg.where(v["mask"], v["S"], -math.inf)), "dA",
         ("dA", "A"), softmax_suspects),
    Step("mask_backward", ("dS",), ("S",), lambda v: mg.where(v["mask"], v["S"], 0.0), "dSm", ("dSm", "mask"),
         mask_suspects),
    Step("scores_backward", ("dQ", "dK"), ("Q", "K"), lambda v: v["Q"] @ v["K"].mT / math.sqrt(D_K), "dS",
         ("dS", "Q", "K")),
    Step("memory_backward", ("dM",), ("M",), lambda v: sum_over_paths(v["M"], v, MEMORY_PATHS), "one", MEMORY_PATHS,
         path_suspects),
    Step("self_backward", ("dX",), ("X",), lambda v: sum_over_paths(v["X"], v, SELF_PATHS), "one", SELF_PATHS,
         path_suspects),
)


def problem(queries: int, keys: int) -> Values:
    """Random values and upstream gradients for every step; the mask is causal if T = S, and else of padding."""
    rng = np.random.default_rng(queries)
    inputs, memory = (B, queries, D), (B, keys, D)
    heads, pairs = {"T": (B, H, queries, D_K), "S": (B, H, keys, D_K)}, (B, H, queries, keys)
    shapes = {"X": inputs, "M": memory, "W": (D, D), "b": (D,), "Q": heads["T"], "K": heads["S"], "V": heads["S"],
              "S": pairs, "dY": inputs, "dO": heads["T"], "dAd": pairs, "dA": pairs, "dSm": pairs, "dS": pairs}
    shapes |= dict.fromkeys(SELF_PATHS, inputs) | dict.fromkeys(MEMORY_PATHS, memory)
    values: Values = {name: rng.normal(size=shape) for name, shape in shapes.items()}
    padded = np.arange(keys) < np.array([keys, keys - 1, keys - 2])[:, None, None, None]
    values["mask"] = np.tri(keys, dtype=bool) if queries == keys else padded
    values["kept"], values["p"], values["one"] = rng.random(pairs) >= P, P, None
    values["A"] = F.softmax(mg.where(values["mask"], Tensor(values["S"]), -math.inf)).numpy()
    values["Ad"] = values["A"] * values["kept"] / (1 - P)
    return values


def right_gradients(step: Step, values: Values) -> Values:
    """What automatic differentiation gives, by the names of the gradients."""
    leaves = {name: Tensor(values[name], requires_grad=True) for name in step.inputs}
    found = mg.grad(step.forward({**values, **leaves}), list(leaves.values()), values[step.upstream])
    return {name: gradient.numpy() for name, gradient in zip(step.gradients, found, strict=True)}


def transposes(step: Step, values: Values) -> dict[str, Suspects]:
    """For each gradient, what it would be if one of the square matrices in its formula were transposed."""
    suspects: dict[str, Suspects] = {name: {} for name in step.gradients}
    for name in step.arguments:
        array = values[name]
        if np.ndim(array) > 1 and array.dtype != bool and array.shape[-1] == array.shape[-2]:
            for gradient, suspect in right_gradients(step, {**values, name: array.mT}).items():
                if not same(suspect, right_gradients(step, values)[gradient]):
                    suspects[gradient][f"{name} is transposed: a ᵀ is missing there, or one too many"] = suspect
    return suspects


def factors(queries: int, keys: int) -> dict[str, float]:
    """The constants that are forgotten, or used where they do not belong."""
    added = "what a shared weight receives is added up, not averaged"
    return {
        "√d_k? The scores were divided by it, so what goes back through them is too": math.sqrt(D_K),
        "1/√d_k? That is one division by √d_k too many": 1 / math.sqrt(D_K),
        "d_k? Divide by √d_k, do not multiply": D_K,
        f"1/B, with B = {B} sentences? No gradient is divided by the size of the batch: {added}": 1 / B,
        f"1/(B·T), with B·T = {B * queries} tokens? {added}": 1 / (B * queries),
        f"1/T, with T = {queries} queries?": 1 / queries,
        f"1/S, with S = {keys} keys?": 1 / keys,
        f"1/H, with H = {H} heads? Paths that meet are added up, not averaged": 1 / H,
        "1 − p? The forward pass divides by it, and so must this": 1 - P,
        "(1 − p)²? Divide by 1 − p, do not multiply": (1 - P) ** 2,
        "1/(1 − p)? That is one division too many": 1 / (1 - P),
    }


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
        yield from ((name, f"the function raises {type(error).__name__}: {error} (given {shapes})")
                    for name in step.gradients)
        return
    found = found if isinstance(found, tuple) else (found,)
    if len(found) != len(step.gradients):
        wrong = f"{step.function} returns {len(found)} results, and must return {', '.join(step.gradients)}"
        yield from ((name, wrong) for name in step.gradients)
        return
    changed = [name for name, array in arguments.items() if not np.array_equal(array, values[name])]
    right, turned = right_gradients(step, values), transposes(step, values)
    constants = factors(values["X"].shape[1], values["M"].shape[1])
    for name, result in zip(step.gradients, found, strict=True):
        own = partial(step.suspects, name, right[name], values)
        verdict = diagnose(result, right[name], constants, turned[name], own)
        if verdict is None and changed:
            verdict = f"is right, but {step.function} changes its argument {changed[0]}: make a new array instead"
        yield name, verdict


def check(functions: Mapping[str, Any]) -> dict[tuple[str, str], str | None]:
    """(function, gradient) -> what is wrong with it, None if nothing is.

    Args:
        functions: those of the exercise by name: ``globals()`` there, or what `runpy.run_path` returns.
    """
    verdicts: dict[tuple[str, str], str | None] = {}
    for queries, keys in ((7, 7), (4, 6)):  # first T = S, where a forgotten transpose raises no error
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
    for queries, keys in ((7, 7), (4, 6)):
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
    if len(sys.argv) != 2:
        sys.exit("usage: python check_attention_backward.py FILE, with your copy of exercise_attention_backward.py")
    verdict, everything_right = judge(runpy.run_path(sys.argv[1]))
    print(verdict)
    sys.exit(not everything_right)
