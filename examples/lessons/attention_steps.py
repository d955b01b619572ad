"""The steps of attention, forwards; random numbers to try them on; and what people do wrong in going back.

For check.py. The gradients are those of minigrad's automatic differentiation: no formula of the backward pass stands
here.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from checker import Exercise, Step, Suspects, Values
from diagnosis import TINY, same, spread

import minigrad as mg
from minigrad import Tensor
from minigrad import functional as F

B, H, D_K, P = 3, 2, 5, 0.2  # with T, S and D = 10 all different, so that no mistake hides behind two equal numbers
D = H * D_K
MEMORY_PATHS = ("dM_keys", "dM_values")
SELF_PATHS = ("dX_queries", "dX_keys", "dX_values")


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
    if spread(subtracted, -1, seen) < TINY:
        return {f"what is subtracted in each row is not its D: {sums}": found}
    for axis, over in ((-2, "queries"), (-3, "heads"), (-4, "sentences")):
        if spread(subtracted, axis, seen) < TINY:
            return {f"D is summed over the {over}, and must be summed over the keys: {sums}": found}
    return {}


def meeting(function: str, gradient: str, arguments: tuple[str, ...]) -> Step:
    """The step in which paths meet: its arguments are what came back along each."""
    paths = tuple(f"the {argument.partition('_')[2]}" for argument in arguments)

    def forward(v: Mapping[str, Any]) -> Tensor:
        return sum((v[path] * v[argument]).sum() for path, argument in zip(paths, arguments, strict=True))

    return Step(function, (gradient,), (gradient[1:],), forward, arguments, "one", paths=paths)


STEPS = (
    Step("linear_backward", ("dX", "dW", "db"), ("X", "W", "b"), lambda v: v["X"] @ v["W"] + v["b"],
         ("dY", "X", "W"), "dY"),
    Step("context_backward", ("dAd", "dV"), ("Ad", "V"), lambda v: v["Ad"] @ v["V"], ("dO", "Ad", "V"), "dO"),
    Step("dropout_backward", ("dA",), ("A",), lambda v: F.dropout_with_mask(v["A"], v["kept"], P),
         ("dAd", "kept", "p"), "dAd"),
    Step("softmax_backward", ("dSm",), ("S",), lambda v: F.softmax(mg.where(v["mask"], v["S"], -math.inf)),
         ("dA", "A"), "dA", softmax_suspects),
    Step("mask_backward", ("dS",), ("S",), lambda v: mg.where(v["mask"], v["S"], 0.0), ("dSm", "mask"), "dSm"),
    Step("scores_backward", ("dQ", "dK"), ("Q", "K"), lambda v: v["Q"] @ v["K"].mT / math.sqrt(D_K),
         ("dS", "Q", "K"), "dS"),
    meeting("memory_backward", "dM", MEMORY_PATHS),
    meeting("self_backward", "dX", SELF_PATHS),
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


def factors(step: Step, values: Values) -> dict[str, float]:
    """The constants that are forgotten, or used where they do not belong."""
    queries, keys = lengths(values)
    added = "what a shared weight receives is added up, not averaged"
    paths = len(step.paths)
    per_path = {f"1/{paths}, with {paths} paths? Paths are added up where they meet": 1 / paths} if paths else {}
    roots = {"B": B, "H": H, "T": queries, "S": keys} if step.function == "scores_backward" else {}
    per_root = {f"√(d_k/{name}), with {name} = {length}? Divide by √d_k, the root of the length of the last axis":
                math.sqrt(D_K / length) for name, length in roots.items()}
    per_token = f"1/T, with T = {queries} queries?" if queries != keys else f"1/T or 1/S, with T = S = {keys} tokens?"
    return per_path | per_root | {
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


def axes(step: Step, values: Values) -> dict[int, str]:
    """What an axis of some length runs over: all lengths differ, but for T = S."""
    queries, keys = lengths(values)
    named = {B: "the batch", H: "the heads", queries: "the tokens", keys: "the tokens"}
    return named | ({len(step.paths): "the paths"} if step.paths else {})


def lengths(values: Values) -> tuple[int, int]:
    """T and S."""
    return values["X"].shape[1], values["M"].shape[1]


def whole(functions: Mapping[str, Any], values: Values) -> tuple[Values, Values]:
    """All steps in a row, and the engine's attention: causal self-attention if T = S, else cross-attention."""
    rng = np.random.default_rng(1)
    weights = {name: rng.normal(size=(D, D) if name[0] == "W" else D) / math.sqrt(D)
               for name in ("WQ", "bQ", "WK", "bK", "WV", "bV", "WO", "bO")}
    queries, keys = lengths(values)
    X, M = values["X"], values["X"] if queries == keys else values["M"]
    settings = (weights, values["mask"], values["kept"], P, H)
    forward = functions["attention_forward"](X, M, *settings)
    found = functions["attention_backward"](values["dY"], forward, *settings)
    leaves = {name: Tensor(array, requires_grad=True) for name, array in {"X": X, "M": M, **weights}.items()}
    if M is X:
        leaves["M"] = leaves["X"]
    engine_attention(leaves, values).backward(values["dY"])
    return found, {name: leaf.grad.numpy() for name, leaf in leaves.items()}


def engine_attention(v: Mapping[str, Tensor], values: Values) -> Tensor:
    """Multi-head attention on minigrad."""
    Q, K, V = ((v[x] @ v[f"W{name}"] + v[f"b{name}"]).reshape(B, -1, H, D_K).swapaxes(1, 2)
               for x, name in (("X", "Q"), ("M", "K"), ("M", "V")))
    O = F.scaled_dot_product_attention(Q, K, V, values["mask"], P, dropped=values["kept"])
    return O.swapaxes(1, 2).reshape(B, -1, D) @ v["WO"] + v["bO"]


EXERCISE = Exercise(
    STEPS, (problem(7, 7), problem(4, 6)),  # T and S; first T = S, where a forgotten transpose raises no error
    factors, axes, "attention_backward", whole, "the engine's attention",
    "masks, dropout, heads and all. You have derived backprop through attention.")
