"""The steps of layer normalisation, forwards; random numbers to try them on; and what people do wrong in going back.

For check.py. The gradients are those of minigrad's automatic differentiation.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from checker import Exercise, Step, Suspects, Values
from diagnosis import TINY, constant_along

from minigrad import Tensor
from minigrad import functional as F

B, T, D = 3, 5, 7  # all different, so that no mistake hides behind two equal numbers
EPS = 0.1  # large, so that a gradient that forgets it is seen to be wrong
NUMERATOR, MEAN, VARIANCE = PATHS = "the numerator", "the mean", "the variance"


def normalised(numerator: Any, mean: Any, variance: Any) -> Any:
    """X̂, of the X in its numerator, the X whose mean is subtracted, and the X whose variance divides."""
    centred = variance - variance.mean(axis=-1, keepdims=True)
    return ((numerator - mean.mean(axis=-1, keepdims=True))
            / ((centred * centred).mean(axis=-1, keepdims=True) + EPS) ** 0.5)


def product_suspects(name: str, right: Any, values: Values, found: Any) -> Suspects:
    """A division in the place of the product."""
    return {"it is divided by r; multiply, as r is 1/√(var + ε) already": right / values["r"] ** 2}


def root_suspects(name: str, right: Any, values: Values, found: Any) -> Suspects:
    """Another power of r."""
    return {f"the power of r is too {'low' if more < 0 else 'high'} by {abs(more)}": right * values["r"] ** more
            for more in (-6, -5, -4.5, -4, -3.5, -3, -2, -1.5, -1, 1, 2, 3)}


def centring_suspects(name: str, right: Any, values: Values, found: Any) -> Suspects:
    """Both paths at once."""
    X = Tensor(values["X"], requires_grad=True)
    (X - X.mean(axis=-1, keepdims=True)).backward(values["dXc"])
    return {"what comes through μ is in it already, and mean_backward shall add it": X.grad.numpy()}


def closed_form_suspects(name: str, right: Any, values: Values, found: Any) -> Suspects:
    """Mistakes in the two terms that are subtracted: what they are multiplied by, and over what their means go."""
    Xhat, r = values["Xhat"], values["r"]
    X = {path: Tensor(values["X"], requires_grad=True) for path in PATHS}
    normalised(*X.values()).backward(values["dXhat"])
    direct, through_mean, through_variance = (leaf.grad.numpy() for leaf in X.values())
    suspects = product_suspects(name, right, values, found) | {
        "the factor r is missing": right / r,
        "r multiplies the first term alone: where do the brackets end?": direct + (right - direct) / r,
        "r does not multiply the mean of dX̂": direct + through_mean / r + through_variance,
        "r does not multiply the last term: where do the brackets end?": direct + through_mean + through_variance / r,
        "the last term is not multiplied by X̂": direct + through_mean + through_variance / Xhat}
    axes = {-3: "the sentences", -2: "the tokens", -1: "the features"}
    first, second, both = found - direct - through_variance, found - direct - through_mean, found - direct
    for mean, along in (("the mean of dX̂", constant_along(first / r, axes)),
                        ("the mean of dX̂ ∘ X̂", constant_along(second / (r * Xhat), axes)),
                        ("each of the two means", lines_along(both / r, Xhat, axes))):
        if along == "the features":
            suspects[f"{mean} is one number for each token, but not the right one"] = found
        elif along:
            suspects[f"{mean} is taken over {along}, and must be taken over the features alone"] = found
    return suspects


def lines_along(y: Any, x: Any, axes: Mapping[int, str]) -> str:
    """The names of those axes along which y = a + b x with an a and a b that do not change."""
    names = []
    for axis, name in axes.items():
        dx, dy = (array - array.mean(axis=axis, keepdims=True) for array in (x, y))
        slope = (dx * dy).sum(axis=axis, keepdims=True) / (dx * dx).sum(axis=axis, keepdims=True)
        names += [name] if np.abs(dy - slope * dx).max() < TINY else []
    return " and ".join(names)


STEPS = (
    Step("scale_and_shift_backward", ("dXhat", "dgamma", "dbeta"), ("Xhat", "gamma", "beta"),
         lambda v: v["Xhat"] * v["gamma"] + v["beta"], ("dY", "Xhat", "gamma"), "dY"),
    Step("product_backward", ("dXc", "dr"), ("Xc", "r"), lambda v: v["Xc"] * v["r"], ("dXhat", "Xc", "r"), "dXhat",
         product_suspects),
    Step("root_backward", ("dvar",), ("var",), lambda v: (v["var"] + EPS) ** -0.5, ("dr", "r"), "dr", root_suspects),
    Step("variance_backward", ("dXc",), ("Xc",), lambda v: (v["Xc"] * v["Xc"]).mean(axis=-1, keepdims=True),
         ("dvar", "Xc"), "dvar"),
    Step("centring_backward", ("dX", "dmu"), ("X", "mu"), lambda v: v["X"] - v["mu"], ("dXc",), "dXc",
         centring_suspects),
    Step("mean_backward", ("dX",), ("X",), lambda v: v["X"].mean(axis=-1, keepdims=True), ("dmu", "D"), "dmu"),
    Step("closed_form", ("dX",), ("X",), lambda v: normalised(v[NUMERATOR], v[MEAN], v[VARIANCE]),
         ("dXhat", "Xhat", "r"), "dXhat", closed_form_suspects, PATHS),
)


def problem() -> Values:
    """Random values and upstream gradients for every step."""
    rng = np.random.default_rng(0)
    shapes = dict.fromkeys(("X", "dY", "dXhat", "dXc"), (B, T, D)) | dict.fromkeys(("dr", "dvar", "dmu"), (B, T, 1))
    shapes |= dict.fromkeys(("gamma", "beta"), (D,))
    values: Values = {name: rng.normal(size=shape) for name, shape in shapes.items()}
    values["mu"] = values["X"].mean(axis=-1, keepdims=True)
    values["Xc"] = values["X"] - values["mu"]
    values["var"] = values["X"].var(axis=-1, keepdims=True)
    values["r"] = 1 / np.sqrt(values["var"] + EPS)
    values["Xhat"] = values["Xc"] * values["r"]
    values["D"] = D
    return values


def factors(step: Step, values: Values) -> dict[str, float]:
    """The constants that are forgotten, or used where they do not belong."""
    added = ("what a shared weight receives is added up, not averaged" if "gamma" in step.inputs
             else f"the only mean is that over the D = {D} features")
    return {
        f"D, with D = {D} features? That is a sum where a mean belongs, or a 1/D forgotten": D,
        f"1/D, with D = {D} features? That is a mean where a sum belongs, or one division too many": 1 / D,
        "½ is missing, or a 2 too many: the derivative of 1/√u is −½ u^(−3/2), that of u² is 2u": 2,
        "2 is missing, or a ½ too many: the derivative of u² is 2u, that of 1/√u is −½ u^(−3/2)": 1 / 2,
        "D/2? The derivative of a mean of squares has 2/D": D / 2,
        "D/(D − 1)? The variance of layer norm divides by D": D / (D - 1),
        f"1/B, with B = {B} sentences? {added}": 1 / B,
        f"1/T, with T = {T} tokens? {added}": 1 / T,
        f"1/(B·T), with B·T = {B * T} tokens? {added}": 1 / (B * T),
        f"D/B, with B = {B} sentences? {added}": D / B,
        f"D/T, with T = {T} tokens? {added}": D / T,
    }


def axes(step: Step, values: Values) -> dict[int, str]:
    """What an axis of some length runs over."""
    return {B: "the batch", T: "the tokens", D: "the features"}


def whole(functions: Mapping[str, Any], values: Values) -> tuple[Values, Values]:
    """All steps in a row, the closed form, and the engine's layer norm."""
    X, gamma, beta = leaves = [Tensor(values[name], requires_grad=True) for name in ("X", "gamma", "beta")]
    forward = functions["layer_norm_forward"](values["X"], values["gamma"], values["beta"], EPS)
    found = functions["layer_norm_backward"](values["dY"], forward, values["gamma"])
    F.layer_norm(X, gamma, beta, EPS).backward(values["dY"])
    dX, dgamma, dbeta = (leaf.grad.numpy() for leaf in leaves)
    return found, {"X": dX, "X by the closed form": dX, "gamma": dgamma, "beta": dbeta}


EXERCISE = Exercise(
    STEPS, (problem(),), factors, axes, "layer_norm_backward", whole, "the engine's layer norm",
    "step by step, and by the closed form. You have derived backprop through layer normalisation.")
