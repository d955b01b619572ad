"""The steps of attention, forwards; random numbers to try them on; and what people do wrong in going back.

For check_attention_backward.py. The gradients are those of minigrad's automatic differentiation: no formula of the
backward pass stands here.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from diagnosis import same

import minigrad as mg
from minigrad import Tensor
from minigrad import functional as F

B, H, D_K, P = 3, 2, 5, 0.2  # with T, S and D = 10 all different, so that no mistake hides behind two equal numbers
D = H * D_K
TINY = 1e-9
MEMORY_PATHS = ("dM_keys", "dM_values")
SELF_PATHS = ("dX_queries", "dX_keys", "dX_values")

Values = dict[str, Any]
Suspects = dict[str, Any]  # what the mistake is -> the array that it would give


@dataclass(frozen=True)
class Step:
    """A function of the exercise: ``gradients = function(*arguments)``.

    Attributes:
        function: its name.
        gradients: the names of what it returns: those of the forward step by its `inputs`, in their order.
        inputs: names of values.
        forward: the step forwards, of values by name, some of them Tensors.
        arguments: the names of the values that it gets.
        upstream: the one among them that is the gradient from above.
        suspects: mistakes of its own.
    """

    function: str
    gradients: tuple[str, ...]
    inputs: tuple[str, ...]
    forward: Callable[[Mapping[str, Any]], Tensor]
    arguments: tuple[str, ...]
    upstream: str
    suspects: Callable[[str, Any, Values, Any], Suspects] = lambda *_: {}


def linear_suspects(name: str, right: Any, values: Values, found: Any) -> Suspects:
    """The gradient of something shared that has heard of one sentence alone."""
    if name == "dX":
        return {}
    sentences = [{**values, "X": values["X"][[b]], "dY": values["dY"][[b]]} for b in range(B)]
    return {f"it is that of sentence {b} alone: add up those of all": right_gradients(STEPS[0], alone)[name]
            for b, alone in enumerate(sentences)}


def softmax_suspects(name: str, right: Any, values: Values, found: Any) -> Suspects:
    """Mistakes in what is subtracted from dA, which has to be the same number D all along a row."""
    A, dA = values["A"], values["dA"]
    seen = A > 0
    subtracted, D_right = (np.where(seen, dA - x / np.where(seen, A, 1.0), 0.0) for x in (found, right))
    if same(found * A, right):
        return {"the factor A is missing": found}
    if same(found, A * dA - D_right.sum(axis=-1, keepdims=True) / seen.sum(axis=-1, keepdims=True)):
        return {"D is not multiplied by A: where do the brackets end?": found}
    if same(found, A * (1 - A) * dA):
        return {"it is the diagonal of the Jacobian alone, but each score moves every weight of its row": found}
    if found[~seen].any():
        return {}
    sums = f"the sums of your rows reach {np.abs(found.sum(axis=-1)).max():.3g}, and all must be 0"
    if np.abs(subtracted).max() < TINY:
        return {f"−D is missing: {sums}": found}
    if np.abs(subtracted + D_right).max() < TINY:
        return {f"D is added, and must be subtracted: {sums}": found}
    if spread(subtracted, seen, axis=-1) < TINY:
        return {f"what is subtracted in each row is not its D: {sums}": found}
    for axis, over in ((-2, "queries"), (-3, "heads"), (-4, "sentences")):
        if spread(subtracted, seen, axis) < TINY:
            return {f"D is summed over the {over}, and must be summed over the keys: {sums}": found}
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
    """Paths that are missing, subtracted, or counted some other number of times than once."""
    names = MEMORY_PATHS if name == "dM" else SELF_PATHS
    paths = np.stack([values[path].ravel() for path in names], axis=1)
    times = np.linalg.lstsq(paths, found.ravel())[0]
    if not same((paths @ times).reshape(found.shape), found):
        return {}
    wrong = [(path.partition("_")[2], count) for path, count in zip(names, times, strict=True) if abs(count - 1) > TINY]
    missing = [path for path, count in wrong if abs(count) < TINY]
    told = [f"what came through the {' and the '.join(missing)} is missing"] if missing else []
    told += [f"what came through the {path} is counted {count:.4g} times, and must be once"
             for path, count in wrong if path not in missing]
    return {"; ".join(told): found}


def sum_over_paths(x: Any, values: Mapping[str, Any], paths: Sequence[str]) -> Tensor:
    """A number whose gradient by `x` is what arrives along the paths by which x went into it."""
    return sum((x * values[path] for path in paths[1:]), x * values[paths[0]]).sum()


STEPS = (
    Step("linear_backward", ("dX", "dW", "db"), ("X", "W", "b"), lambda v: v["X"] @ v["W"] + v["b"],
         ("dY", "X", "W"), "dY", linear_suspects),
    Step("context_backward", ("dAd", "dV"), ("Ad", "V"), lambda v: v["Ad"] @ v["V"], ("dO", "Ad", "V"), "dO"),
    Step("dropout_backward", ("dA",), ("A",), lambda v: F.dropout_with_mask(v["A"], v["kept"], P),
         ("dAd", "kept", "p"), "dAd", dropout_suspects),
    Step("softmax_backward", ("dSm",), ("S",), lambda v: F.softmax(mg.where(v["mask"], v["S"], -math.inf)),
         ("dA", "A"), "dA", softmax_suspects),
    Step("mask_backward", ("dS",), ("S",), lambda v: mg.where(v["mask"], v["S"], 0.0), ("dSm", "mask"), "dSm",
         mask_suspects),
    Step("scores_backward", ("dQ", "dK"), ("Q", "K"), lambda v: v["Q"] @ v["K"].mT / math.sqrt(D_K),
         ("dS", "Q", "K"), "dS"),
    Step("memory_backward", ("dM",), ("M",), lambda v: sum_over_paths(v["M"], v, MEMORY_PATHS), MEMORY_PATHS, "one",
         path_suspects),
    Step("self_backward", ("dX",), ("X",), lambda v: sum_over_paths(v["X"], v, SELF_PATHS), SELF_PATHS, "one",
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


def mistakes(step: Step, name: str, right: Any, values: Values, found: Any) -> Suspects:
    """All that may be wrong with one gradient: first what is a mistake of this step, then what may happen to any."""
    return step.suspects(name, right, values, found) | transposes(step, values)[name] | exchanges(step, values)[name]


def exchanges(step: Step, values: Values) -> dict[str, Suspects]:
    """For each gradient, what it would be with one argument in the place of another, or as one argument itself."""
    suspects: dict[str, Suspects] = {name: {} for name in step.gradients}
    arrays = {name: values[name] for name in step.arguments if np.ndim(values[name]) and values[name].dtype != bool}
    right = right_gradients(step, values)
    for name, other in itertools.permutations(arrays, 2):
        if arrays[name].shape == arrays[other].shape:
            for gradient, suspect in right_gradients(step, {**values, name: arrays[other]}).items():
                if not same(suspect, right[gradient]):
                    suspects[gradient][f"{other} stands where {name} belongs"] = suspect
    for gradient in step.gradients:
        suspects[gradient] |= {f"it is {name} itself": array for name, array in arrays.items()}
    return suspects


def factors(step: Step, queries: int, keys: int) -> dict[str, float]:
    """The constants that are forgotten, or used where they do not belong."""
    added = "what a shared weight receives is added up, not averaged"
    paths = len(paths_of(step))
    per_path = {f"1/{paths}, with {paths} paths? Paths are added up where they meet": 1 / paths} if paths else {}
    per_token = f"1/T, with T = {queries} queries?" if queries != keys else f"1/T or 1/S, with T = S = {keys} tokens?"
    return per_path | {
        "√d_k? The scores were divided by it, so what goes back through them is too": math.sqrt(D_K),
        "1/√d_k? That is one division by √d_k too many": 1 / math.sqrt(D_K),
        "d_k? Divide by √d_k, do not multiply": D_K,
        f"1/√H, with H = {H} heads? d_k is the width of one head, D / H, and not D": 1 / math.sqrt(H),
        f"1/B, with B = {B} sentences? No gradient is divided by the size of the batch: {added}": 1 / B,
        f"1/(B·T), with B·T = {B * queries} tokens? {added}": 1 / (B * queries),
        per_token: 1 / queries,
        f"1/S, with S = {keys} keys?": 1 / keys,
        f"1/H, with H = {H} heads? What comes from the heads is added up, not averaged": 1 / H,
        "1 − p? The forward pass divides by it, and so must this": 1 - P,
        "(1 − p)²? Divide by 1 − p, do not multiply": (1 - P) ** 2,
        "1/(1 − p)? That is one division too many": 1 / (1 - P),
        "(1 − p)/p? p is the share that is dropped; divide by the share that is kept": (1 - P) / P,
    }


def paths_of(step: Step) -> tuple[str, ...]:
    """The arguments of a step at which paths meet; of other steps, none."""
    return step.arguments if step.arguments in (MEMORY_PATHS, SELF_PATHS) else ()


def axes(step: Step, queries: int, keys: int) -> dict[int, str]:
    """What an axis of some length runs over: all lengths differ, but for T = S."""
    named = {B: "the batch", H: "the heads", queries: "the tokens", keys: "the tokens"}
    return named | ({len(paths_of(step)): "the paths"} if paths_of(step) else {})
