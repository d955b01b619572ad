"""The steps of one head of attention, forward and backward: the name and the formula of each.

Symbols are those of transformer/explore/traced.py; a gradient has a "d" before the symbol of its tensor. The
derivations are in docs/backprop_through_attention.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from minigrad.device import to_numpy

from transformer.explore.traced import PER_HEAD, AttentionTrace, HeadTrace

Matrices = Mapping[str, Any]  # NumPy arrays by symbol; biases are 1-D


@dataclass(frozen=True)
class Step:
    """One matrix of the forward or of the backward.

    Attributes:
        symbol: the symbol in ASCII, as `--step` takes it.
        label: the symbol as it is shown.
        title: a description.
        formula: the formula; of a gradient, the consequence of `because`.
        because: of a gradient, the step of the forward that it comes from.
        rows, columns: the kind of row and column: "queries", "keys", "items" (of a sum over all), "features".
    """

    symbol: str
    label: str
    title: str
    formula: str
    because: str = ""
    rows: str = "queries"
    columns: str = "features"


def _table(*steps: Step) -> dict[str, Step]:
    return {step.symbol: step for step in steps}


FORWARD = _table(
    Step("X", "X", "input of the queries", "X, from the layer below"),
    Step("M", "M", "input of keys and values", "M, the encoder's output", rows="keys"),
    Step("WQ", "W_Q", "the head's query weights", "a parameter", rows="features"),
    Step("WK", "W_K", "the head's key weights", "a parameter", rows="features"),
    Step("WV", "W_V", "the head's value weights", "a parameter", rows="features"),
    Step("WO", "W_O", "the output weights", "a parameter", rows="features"),
    Step("bQ", "b_Q", "the head's query bias", "a parameter", rows=""),
    Step("bK", "b_K", "the head's key bias", "a parameter", rows=""),
    Step("bV", "b_V", "the head's value bias", "a parameter", rows=""),
    Step("bO", "b_O", "the output bias", "a parameter", rows=""),
    Step("Q", "Q", "queries", "Q = X·W_Q + b_Q"),
    Step("K", "K", "keys", "K = M·W_K + b_K", rows="keys"),
    Step("V", "V", "values", "V = M·W_V + b_V", rows="keys"),
    Step("R", "R", "scores", "R = Q·Kᵀ", columns="keys"),
    Step("S", "S", "scaled scores", "S = R / √d_k", columns="keys"),
    Step("Sm", "S̄", "masked scores", "S̄ = S where the mask allows, −∞ elsewhere", columns="keys"),
    Step("A", "A", "attention weights", "A = softmax(S̄), row by row", columns="keys"),
    Step("Ad", "A′", "weights after dropout", "A′ = A∘m / (1 − p)", columns="keys"),
    Step("O", "O", "context of the head", "O = A′·V"),
    Step("C", "C", "the heads side by side", "C = [O₀ O₁ …]"),
    Step("Y", "Y", "output", "Y = C·W_O + b_O"),
)

BACKWARD = _table(
    Step("dY", "dY", "gradient of the output", "dY, from the layers above"),
    Step("dbO", "db_O", "gradient of the output bias", "db_O = Σ rows of dY", "Y = C·W_O + b_O", rows=""),
    Step("dWO", "dW_O", "gradient of the output weights", "dW_O = Cᵀ·dY", "Y = C·W_O + b_O", rows="features"),
    Step("dC", "dC", "gradient of the heads side by side", "dC = dY·W_Oᵀ", "Y = C·W_O + b_O"),
    Step("dO", "dO", "gradient of the context", "dO = the head's columns of dC", "C = [O₀ O₁ …]"),
    Step("dV", "dV", "gradient of the values", "dV = A′ᵀ·dO", "O = A′·V", rows="keys"),
    Step("dAd", "dA′", "gradient of the weights after dropout", "dA′ = dO·Vᵀ", "O = A′·V", columns="keys"),
    Step("dA", "dA", "gradient of the attention weights", "dA = dA′∘m / (1 − p)", "A′ = A∘m / (1 − p)",
         columns="keys"),
    Step("dSm", "dS̄", "gradient of the masked scores", "dS̄ = A∘(dA − D), D_i = Σⱼ A_ij·dA_ij", "A = softmax(S̄)",
         columns="keys"),
    Step("dS", "dS", "gradient of the scaled scores", "dS = dS̄ where the mask allows, 0 elsewhere",
         "S̄ = S where the mask allows, −∞ elsewhere", columns="keys"),
    Step("dR", "dR", "gradient of the scores", "dR = dS / √d_k", "S = R / √d_k", columns="keys"),
    Step("dQ", "dQ", "gradient of the queries", "dQ = dR·K", "R = Q·Kᵀ"),
    Step("dK", "dK", "gradient of the keys", "dK = dRᵀ·Q", "R = Q·Kᵀ", rows="keys"),
    Step("dbQ", "db_Q", "gradient of the query bias", "db_Q = Σ rows of dQ", "Q = X·W_Q + b_Q", rows=""),
    Step("dbK", "db_K", "gradient of the key bias", "db_K = Σ rows of dK", "K = M·W_K + b_K", rows=""),
    Step("dbV", "db_V", "gradient of the value bias", "db_V = Σ rows of dV", "V = M·W_V + b_V", rows=""),
    Step("dWQ", "dW_Q", "gradient of the query weights", "dW_Q = Xᵀ·dQ", "Q = X·W_Q + b_Q", rows="features"),
    Step("dWK", "dW_K", "gradient of the key weights", "dW_K = Mᵀ·dK", "K = M·W_K + b_K", rows="features"),
    Step("dWV", "dW_V", "gradient of the value weights", "dW_V = Mᵀ·dV", "V = M·W_V + b_V", rows="features"),
    Step("dX", "dX", "gradient of the queries' input", "dX = Σ heads dQ·W_Qᵀ", "Q = X·W_Q + b_Q"),
    Step("dM", "dM", "gradient of the memory", "dM = Σ heads (dK·W_Kᵀ + dV·W_Vᵀ)", "K = M·W_K + b_K, V = M·W_V + b_V",
         rows="keys"),
)

_SELF_DX = Step("dX", "dX", "gradient of the input", "dX = Σ heads (dQ·W_Qᵀ + dK·W_Kᵀ + dV·W_Vᵀ)",
                "Q = X·W_Q + b_Q, K = X·W_K + b_K, V = X·W_V + b_V")
# The two ends of an attention of which the core alone is explained; the gradient is that of C, or without C of O.
_FROM_MODULE = _table(
    Step("Q", "Q", "queries", "Q, from the module"),
    Step("K", "K", "keys", "K, from the module", rows="keys"),
    Step("V", "V", "values", "V, from the module", rows="keys"),
)
_TO_MODULE = _table(
    Step("dC", "dC", "gradient of the heads side by side", "dC, from the module"),
    Step("dO", "dO", "gradient of the context", "dO, from the module"),
)


def check_formulas(attention: AttentionTrace) -> None:
    """Raise ValueError if the formulas of these tables do not hold for `attention`."""
    if attention.is_whole and not attention._one_memory:
        raise ValueError(f"{attention.name}: its keys and its values are made of different inputs; what is explained "
                         "is attention whose keys and values share one")
    if attention.weights_in_loss:
        raise ValueError(f"{attention.name}: the loss uses its weights themselves (return_weights=True); what is "
                         "explained is attention that the loss uses through its output alone")
    for symbol, tap in PER_HEAD.items():
        items, heads = attention.value(tap).shape[:2]
        if items != attention.batch_size or (symbol not in "QKV" and heads != attention.num_heads):
            what = "items of the batch" if items != attention.batch_size else "heads"
            raise ValueError(f"{attention.name}: {what} share its {tap}; what is explained is attention whose items "
                             "have tensors of their own, and whose heads share no more than queries, keys and values")


def steps_of(attention: AttentionTrace) -> dict[str, Step]:
    """The steps of `attention` by symbol, the forward's first.

    S̄ needs a mask, A′ needs dropout, and M needs cross-attention. Missing biases have no step, and frozen parameters
    have no gradient. An attention that is not known as a whole has the steps of its core, from Q, K and V to O, and C
    if the heads were joined by `multi_head_attention`.

    Raises:
        ValueError: other formulas hold for `attention` (`check_formulas`).
    """
    check_formulas(attention)
    missing, frozen = set[str](), set[str]()
    missing |= {"M"} if attention.is_self else set()
    missing |= set() if attention.mask is not None else {"Sm"}
    missing |= set() if attention.dropped is not None else {"Ad"}
    if not attention.is_whole:
        missing |= FORWARD.keys() - PER_HEAD.keys() - ({"C"} if attention.joined else set())
    for letter, linear in attention.projections.items():
        missing |= set() if linear.bias is not None else {f"b{letter}"}
        frozen |= {f"{kind}{letter}" for kind, parameter in (("W", linear.weight), ("b", linear.bias))
                   if parameter is not None and parameter.grad is None and not parameter.requires_grad}
    there = {symbol: step for symbol, step in FORWARD.items() if symbol not in missing}
    there |= {symbol: step for symbol, step in BACKWARD.items() if symbol[1:] not in missing | frozen}
    if attention.is_whole and attention.is_self:
        there["dX"] = _SELF_DX
    if not attention.is_whole:
        last = "dC" if "dC" in there else "dO"
        there |= _FROM_MODULE | {last: _TO_MODULE[last]}
    return {symbol: _said(step, attention, missing) for symbol, step in there.items()}


def _said(step: Step, attention: AttentionTrace, missing: set[str]) -> Step:
    """The step with formulas that fit `attention`, without the `missing` symbols."""
    def plain(text: str) -> str:
        for letter in "QKVO":
            if f"b{letter}" in missing:
                text = text.replace(f" + b_{letter}", "")
        if "M" in missing:
            text = text.replace("M·", "X·").replace("Mᵀ", "Xᵀ")
        if "Sm" in missing:
            text = text.replace("S̄", "S")
        if not attention.usual_scale:
            text = text.replace("/ √d_k", f"· {attention.scale:.6g}")
        return text.replace("A′", "A") if "Ad" in missing else text

    source = step
    if step.symbol == "dS" and "Sm" in missing:
        source = BACKWARD["dSm"]
    if step.symbol == "dA" and "Ad" in missing:
        source = BACKWARD["dAd"]
    formula = source.formula
    if step.symbol in ("dQ", "dK", "dV") and len(attention.sharing(step.symbol[1:], 0)) > 1:
        formula = formula.replace("= ", "= Σ heads that share it ")
    title = "input of queries, keys and values" if step.symbol == "X" and attention.is_self else step.title
    return replace(step, title=title, formula=plain(formula), because=plain(source.because))


def step_named(attention: AttentionTrace, name: str) -> Step:
    """The step called `name`: by its symbol, "dWQ", or its label, "dW_Q", in upper or lower case.

    Raises:
        ValueError: the name is unknown; the message lists the known ones.
    """
    steps = steps_of(attention)
    if name in steps:
        return steps[name]
    for step in steps.values():
        if name.lower() == step.label.lower() or name.replace("_", "").lower() == step.symbol.lower():
            return step
    raise ValueError(f"there is no step {name!r} in {attention.name}; there are {', '.join(steps)}")


def matrices(head: HeadTrace) -> dict[str, Any]:
    """Every matrix of a head by symbol, on the host; M is X in self-attention, and "D" holds the row sums of A∘dA.

    Raises:
        ValueError: no gradient has arrived yet.
    """
    found = {symbol: to_numpy(array) for symbol, array in head.values.items()}
    found |= {f"d{symbol}": to_numpy(array) for symbol, array in head.gradients.items()}
    if "X" in found:
        found.setdefault("M", found["X"])
    found["D"] = (found["A"] * found["dA"]).sum(axis=-1)
    return found


def matrix(values: Matrices, symbol: str) -> Any:
    """A matrix by its symbol, 2-D: a bias is one row."""
    return np.atleast_2d(values[symbol])
