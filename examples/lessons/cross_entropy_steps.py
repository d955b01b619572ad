"""The steps of cross-entropy, forwards; random numbers to try them on; and what people do wrong in going back.

For check.py. The gradients are those of minigrad's automatic differentiation.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from checker import Exercise, Step, Suspects, Values
from diagnosis import constant_along

import minigrad as mg
from minigrad import Tensor
from minigrad import functional as F

B, T, C = 3, 5, 7  # all different, so that no mistake hides behind two equal numbers
EPSILON, PAD = 0.3, 0
NUMERATOR, NORMALISER, TARGET, SMOOTHING = "the logit itself", "the normaliser", "the target", "the label smoothing"


def normaliser(logits: Any) -> Any:
    """log Σ exp of each row, (…, 1)."""
    return mg.log(mg.exp(logits).sum(axis=-1, keepdims=True))


def picked(x: Any, y: Any) -> Any:
    """The number of each row that its target names: (B, T, C) → (B, T)."""
    return mg.gather(x, 2, y[..., None]).squeeze(2)


def smoothed(target: Any, mean: Any) -> Any:
    """The loss of each token, of the log-probability of its target and the mean of those of all classes."""
    return -(1 - EPSILON) * target - EPSILON * mean


def averaged(losses: Any, v: Mapping[str, Any]) -> Any:
    """The mean loss of the n tokens that count."""
    return mg.where(v["counted"], losses, 0.0).sum() / v["n"]


def closed_form(v: Mapping[str, Any]) -> Any:
    """The loss, of the logits in its three parts: as Σ q = 1, it is the normaliser less Σ q z."""
    losses = normaliser(v[NORMALISER]).squeeze(2) + smoothed(picked(v[TARGET], v["y"]), v[SMOOTHING].mean(axis=-1))
    return averaged(losses, v)


def average_suspects(name: str, right: Any, values: Values, found: Any) -> Suspects:
    """Another mean."""
    lengths = values["counted"].sum(axis=1).reshape(B, *[1] * (right.ndim - 1))
    return {"that is the mean of the sentences' means, and here every token weighs the same":
            right * values["n"] / lengths / B}


def pick_suspects(name: str, right: Any, values: Values, found: Any) -> Suspects:
    """The gradient sent to classes that were not picked."""
    return {"every class gets it, but the class of the target alone was picked":
            np.broadcast_to(values["dpicked"][..., None], right.shape),
            "every class gets it but that of the target, which alone was picked": values["dpicked"][..., None] - right}


def log_softmax_suspects(name: str, right: Any, values: Values, found: Any) -> Suspects:
    """Softmax instead of its logarithm, and mistakes in what is subtracted."""
    P, dlogP, Z = values["P"], values["dlogP"], Tensor(values["Z"], requires_grad=True)
    F.softmax(Z).backward(dlogP)
    suspects = {"it is the backward of softmax, and here the logarithm is taken as well": Z.grad.numpy(),
                "it is the diagonal of the Jacobian alone, but a logit moves every log p of its row": dlogP * (1 - P),
                "the sum is not multiplied by P": dlogP + (right - dlogP) / P,
                "P stands inside the sum, and must multiply it": dlogP - (P * dlogP).sum(axis=-1, keepdims=True),
                "P is subtracted once, and must be as often as the sum of dlogP says": dlogP - P,
                "the sum is that of P ∘ dlogP, as in softmax, and must be that of dlogP":
                dlogP - P * (P * dlogP).sum(axis=-1, keepdims=True)}
    along = constant_along((found - dlogP) / P, {-3: "the sentences", -2: "the tokens", -1: "the classes"})
    if along == "the classes":
        suspects["what P is multiplied by is one number for each token, but not the right one"] = found
    elif along:
        suspects[f"the sum is taken over {along}, and must be taken over the classes alone"] = found
    return suspects


STEPS = (
    Step("average_backward", ("dlosses",), ("losses",), lambda v: averaged(v["losses"], v), ("dloss", "counted"),
         "dloss", average_suspects),
    Step("smoothing_backward", ("dpicked", "dmean"), ("picked", "mean"), lambda v: smoothed(v["picked"], v["mean"]),
         ("dlosses", "epsilon"), "dlosses"),
    Step("pick_backward", ("dlogP",), ("logP",), lambda v: picked(v["logP"], v["y"]), ("dpicked", "y", "C"), "dpicked",
         pick_suspects),
    Step("mean_log_backward", ("dlogP",), ("logP",), lambda v: v["logP"].mean(axis=-1), ("dmean", "C"), "dmean"),
    Step("log_softmax_backward", ("dZ",), ("Z",), lambda v: v[NUMERATOR] - normaliser(v[NORMALISER]), ("dlogP", "P"),
         "dlogP", log_softmax_suspects, (NUMERATOR, NORMALISER)),
    Step("closed_form", ("dZ",), ("Z",), closed_form, ("dloss", "P", "y", "counted", "epsilon"), "dloss",
         average_suspects, (NORMALISER, TARGET, SMOOTHING)),
)


def problem() -> Values:
    """Random values and upstream gradients for every step; two of the sentences are padded."""
    rng = np.random.default_rng(0)
    shapes = dict.fromkeys(("Z", "dlogP"), (B, T, C))
    shapes |= dict.fromkeys(("losses", "dlosses", "picked", "dpicked", "mean", "dmean"), (B, T))
    values: Values = {name: rng.normal(size=shape) for name, shape in shapes.items()}
    values["counted"] = np.arange(T) < np.array([[T], [T - 1], [T - 3]])
    values["y"] = np.where(values["counted"], rng.integers(1, C, size=(B, T)), PAD)
    values |= {"n": int(values["counted"].sum()), "C": C, "epsilon": EPSILON, "dloss": 1.7}
    values["logP"] = F.log_softmax(Tensor(values["Z"])).numpy()
    values["P"] = np.exp(values["logP"])
    return values


def factors(step: Step, values: Values) -> dict[str, float]:
    """The constants that are forgotten, or used where they do not belong."""
    n = values["n"]
    averaging = step.function in ("mean_log_backward", "closed_form")
    mean = "A mean divides by C" if averaging else "No mean over them is here"
    given = "It gives ε/C to every class, that of the target too"
    return {
        "1/dloss? What comes from above is missing": 1 / values["dloss"],
        f"n/dloss? What comes from above is missing, and the mean over n = {n} tokens": n / values["dloss"],
        f"n/(B·T)? The mean is over the n = {n} tokens that count, not over all {B * T}": n / (B * T),
        f"n/B? The mean is over the n = {n} tokens that count, not over the {B} sentences": n / B,
        f"n/T? The mean is over the n = {n} tokens that count, not over the T = {T} of a sentence": n / T,
        f"n, with n = {n} tokens that count? The loss is their mean": n,
        "1 − ε? The label smoothing leaves so much to the target, and no other path has that factor": 1 - EPSILON,
        "1/(1 − ε)? The label smoothing leaves 1 − ε to the target": 1 / (1 - EPSILON),
        "ε/(1 − ε)? The target's path has 1 − ε, and the mean's ε": EPSILON / (1 - EPSILON),
        "(1 − ε)/ε? The target's path has 1 − ε, and the mean's ε": (1 - EPSILON) / EPSILON,
        "1/ε? The mean of the log-probabilities stands in the loss with the factor ε": 1 / EPSILON,
        f"B, with B = {B} sentences? No sum over them is here": B,
        f"C, with C = {C} classes? {mean}": C,
        f"1/C, with C = {C} classes? That is a mean where a sum belongs, or one division too many": 1 / C,
        f"C/(C − 1)? The label smoothing shares ε among all C classes. {given}": C / (C - 1),
        f"(1 − ε − ε/C)/(1 − ε)? The label smoothing leaves the target more. {given}": 1 - EPSILON / C / (1 - EPSILON),
        f"(1 − ε − ε/(C − 1))/(1 − ε)? The label smoothing leaves the target more. {given}":
        1 - EPSILON / (C - 1) / (1 - EPSILON),
    }


def axes(step: Step, values: Values) -> dict[int, str]:
    """What an axis of some length runs over."""
    return {B: "the batch", T: "the tokens", C: "the classes"}


def whole(functions: Mapping[str, Any], values: Values) -> tuple[Values, Values]:
    """All steps in a row, the closed form, and the engine's cross-entropy."""
    Z, settings = values["Z"], (values["y"], EPSILON, PAD)
    found = functions["cross_entropy_backward"](values["dloss"], functions["cross_entropy_forward"](Z, *settings))
    leaf = Tensor(Z, requires_grad=True)
    F.cross_entropy(leaf, values["y"], ignore_index=PAD, label_smoothing=EPSILON).backward(values["dloss"])
    right = leaf.grad.numpy()
    return found, {"Z": right, "Z by the closed form": right}


EXERCISE = Exercise(
    STEPS, (problem(),), factors, axes, "cross_entropy_backward", whole, "the engine's cross-entropy",
    "smoothed, without the padding, step by step and by the closed form. You have derived backprop through the loss.")
