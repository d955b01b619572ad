"""The tensors and the steps of one head of attention: their names, formulas, and those of their gradients.

One table, for the terminal and for the page, which gets it as JSON. Symbols are those of
transformer/explore/traced.py; a gradient has a "d" before the symbol of its tensor. The derivations are in
docs/backprop_through_attention.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from minigrad.device import to_numpy

from transformer.explore.traced import PER_HEAD, AttentionTrace, HeadTrace

Q, K, V = "Q = X W_Q + b_Q", "K = M W_K + b_K", "V = M W_V + b_V"
MASK, DROPOUT = "S̄ = S where the mask allows, −∞ elsewhere", "A′ = A∘kept/(1 − p)"
JOIN, OUTPUT = "C = the O of all heads, side by side", "Y = C W_O + b_O"

# Symbol, name, kind of row and column ("query" and "key" are tokens), the formula that makes the tensor, the formula
# that uses it next, and that of its gradient. The order is that of the forward.
TABLE = (
    ("X", "input of the queries", "query model", "X", Q, "dX = Σ dQ W_Qᵀ over the heads"),
    ("M", "memory", "key model", "M", f"{K},  {V}", "dM = Σ (dK W_Kᵀ + dV W_Vᵀ) over the heads"),
    ("WQ", "weight of the queries", "model feature", "W_Q", Q, "dW_Q = Xᵀ dQ"),
    ("bQ", "bias of the queries", "one feature", "b_Q", Q, "db_Q = the sum of the rows of dQ"),
    ("WK", "weight of the keys", "model feature", "W_K", K, "dW_K = Mᵀ dK"),
    ("bK", "bias of the keys", "one feature", "b_K", K, "db_K = the sum of the rows of dK"),
    ("WV", "weight of the values", "model feature", "W_V", V, "dW_V = Mᵀ dV"),
    ("bV", "bias of the values", "one feature", "b_V", V, "db_V = the sum of the rows of dV"),
    ("Q", "queries", "query feature", Q, "R = Q Kᵀ", "dQ = dR K"),
    ("K", "keys", "key feature", K, "R = Q Kᵀ", "dK = dRᵀ Q"),
    ("V", "values", "key feature", V, "O = A′ V", "dV = A′ᵀ dO"),
    ("R", "scores", "query key", "R = Q Kᵀ", "S = R/√d_k", "dR = dS/√d_k"),
    ("S", "scaled scores", "query key", "S = R/√d_k", MASK, "dS = dS̄ where the mask allows, 0 elsewhere"),
    ("Sm", "masked scores", "query key", MASK, "A = softmax(S̄)", "dS̄ = A∘(dA − D)"),
    ("A", "weights", "query key", "A = softmax(S̄)", DROPOUT, "dA = dA′∘kept/(1 − p)"),
    ("Ad", "weights after dropout", "query key", DROPOUT, "O = A′ V", "dA′ = dO Vᵀ"),
    ("O", "output of the head", "query feature", "O = A′ V", JOIN, "dO = the head's columns of dC"),
    ("C", "outputs of all heads", "query model", JOIN, OUTPUT, "dC = dY W_Oᵀ"),
    ("WO", "weight of the output", "model model", "W_O", OUTPUT, "dW_O = Cᵀ dY"),
    ("bO", "bias of the output", "one model", "b_O", OUTPUT, "db_O = the sum of the rows of dY"),
    ("Y", "output", "query model", OUTPUT, "what comes after the attention", "dY, from the layers above"),
)
OF_SELF = ("X", "input of queries, keys and values", "query model", "X", f"{Q},  {K},  {V}",
           "dX = Σ (dQ W_Qᵀ + dK W_Kᵀ + dV W_Vᵀ) over the heads")
BACKWARD = ("dY", "dbO", "dWO", "dC", "dO", "dV", "dAd", "dA", "dSm", "dS", "dR", "dQ", "dK", "dbQ", "dbK", "dbV",
            "dWQ", "dWK", "dWV", "dX", "dM")
LABELS = {"Sm": "S̄", "Ad": "A′", **{f"{kind}{letter}": f"{kind}_{letter}" for kind in "Wb" for letter in "QKVO"}}


@dataclass(frozen=True)
class Step:
    """One matrix of the forward or of the backward.

    Attributes:
        symbol: the symbol in ASCII, as `--step` takes it.
        label: the symbol as it is shown.
        title: a description.
        formula: the formula; of a gradient, the consequence of `because`.
        because: of a gradient, the step of the forward that it comes from.
        rows, columns: the kind of row and column, as in `TABLE`.
    """

    symbol: str
    label: str
    title: str
    formula: str
    because: str
    rows: str
    columns: str


def steps_for_page() -> dict[str, Any]:
    """The table for a page, whose model runs without dropout: A′ is A. "X of self" is X in self-attention."""
    rows = {row[0]: row for row in TABLE} | {"X of self": OF_SELF}
    rows["A"] = (*rows["A"][:4], *rows.pop("Ad")[4:])
    tensors = {symbol: {"label": LABELS.get(row[0], row[0]), "name": row[1], "axes": row[2].split(),
                        **dict(zip(("forward", "next", "backward"), (text.replace("A′", "A") for text in row[3:]),
                                   strict=True))} for symbol, row in rows.items()}
    return {"tensors": tensors, "backward": [symbol for symbol in BACKWARD if symbol != "dAd"]}


def check_formulas(attention: AttentionTrace) -> None:
    """Raise ValueError if the formulas of the table do not hold for `attention`."""
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
        missing |= {row[0] for row in TABLE} - PER_HEAD.keys() - ({"C"} if attention.joined else set())
    for letter, linear in attention.projections.items():
        missing |= set() if linear.bias is not None else {f"b{letter}"}
        frozen |= {f"{kind}{letter}" for kind, parameter in (("W", linear.weight), ("b", linear.bias))
                   if parameter is not None and parameter.grad is None and not parameter.requires_grad}

    def plain(text: str) -> str:
        for letter in "QKVO":
            if f"b{letter}" in missing:
                text = text.replace(f" + b_{letter}", "")
        if "M" in missing:
            text = text.replace("M ", "X ").replace("Mᵀ", "Xᵀ")
        if not attention.usual_scale:
            text = text.replace("/√d_k", f" · {attention.scale:.6g}")
        text = text if "Sm" not in missing else text.replace("S̄", "S")
        return text if "Ad" not in missing else text.replace("A′", "A")

    rows = {row[0]: row for row in TABLE} | ({"X": OF_SELF} if attention.is_self else {})
    steps = {}
    for symbol, (_, name, axes, formula, _, _) in rows.items():
        if not attention.is_whole and symbol in "QKV":
            formula = f"{symbol}, from the module"
        if symbol not in missing:
            steps[symbol] = Step(symbol, LABELS.get(symbol, symbol), name, plain(formula), "", *axes.split())
    ends = () if attention.is_whole else ("C",) if attention.joined else ("O",)
    merged = {"S": "Sm", "A": "Ad"}  # without a mask, dS is made as dS̄ is; likewise without dropout
    for gradient in BACKWARD:
        symbol = gradient[1:]
        if symbol in missing | frozen:
            continue
        source = merged[symbol] if merged.get(symbol) in missing else symbol
        because, formula = rows[source][4:]
        formula = formula.replace("(dA − D)", "(dA − D), Dᵢ = Σⱼ Aᵢⱼ dAᵢⱼ")
        if symbol in ("Q", "K", "V") and len(attention.sharing(symbol, 0)) > 1:
            formula = formula.replace("= ", "= Σ heads that share it ")
        if symbol in ends:
            because, formula = "", f"{gradient}, from the module"
        step = steps[symbol]
        steps[gradient] = Step(gradient, f"d{step.label}", f"gradient of the {step.title}", plain(formula),
                               plain(because) if "=" in because else "", step.rows, step.columns)
    return steps


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
    """Every matrix of a head by symbol, 2-D and on the host: a bias is one row.

    Raises:
        ValueError: no gradient has arrived yet.
    """
    found = head.values | {f"d{symbol}": array for symbol, array in head.gradients.items()}
    return {symbol: np.atleast_2d(to_numpy(array)) for symbol, array in found.items()}
