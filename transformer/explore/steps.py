"""The tensors and the steps of one head of attention: their names, formulas, and those of their gradients.

One table, for the terminal and for the page, which gets it as JSON. Symbols are those of
transformer/explore/traced.py; a gradient has a "d" before the symbol of its tensor. The derivations are in
docs/backprop_through_attention.md.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from minigrad.device import to_numpy

from transformer.explore.traced import INPUTS, PER_HEAD, AttentionTrace, HeadTrace

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
BACKWARD = ("dY", "dbO", "dWO", "dC", "dO", "dV", "dAd", "dA", "D", "dSm", "dS", "dR", "dQ", "dK", "dbQ", "dbK", "dbV",
            "dWQ", "dWK", "dWV", "dX", "dM")
MATRIX = re.compile("d?(?:[Wb]_[QKVO]|S̄|A′|[XMQKVRSAOCY])")  # a label, in a formula
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
    fields = ("forward", "next", "backward")
    tensors = {symbol: {"label": LABELS.get(of, of), "name": name, "axes": axes.split(),
                        **{field: text.replace("A′", "A") for field, text in zip(fields, texts, strict=True)}}
               for symbol, (of, name, axes, *texts) in rows.items()}
    return {"tensors": tensors, "backward": [symbol for symbol in BACKWARD if symbol != "dAd"]}


def steps_of(attention: AttentionTrace) -> dict[str, Step]:
    """The steps of `attention` by symbol, the forward's first, after the backward.

    S̄ needs a mask, or a bias of the scores, and A′ needs dropout; the others are there if their matrix is. A formula is
    there if all its matrices are; else the tensor comes from the module.
    """
    head = attention.head()
    there = {*matrices(head)}
    there -= {f"{d}{symbol}" for d in ("", "d") for symbol in ("Sm", "Ad") if not attention.has_own(PER_HEAD[symbol])}
    own = attention.reads.get("X") == INPUTS  # self-attention
    rows = {row[0]: row for row in TABLE} | ({"X": OF_SELF} if own else {})

    def plain(text: str) -> str:
        """The text as it is of this attention; without a matrix that is not known, an empty one."""
        for letter in "QKVO":
            if f"b{letter}" not in there:
                text = text.replace(f" + b_{letter}", "")
        if own:
            text = text.replace("M ", "X ").replace("Mᵀ", "Xᵀ")
        if not math.isclose(attention.scale, 1 / math.sqrt(max(1, attention.queries.shape[-1])), rel_tol=1e-12):
            text = text.replace("/√d_k", f" · {attention.scale:.6g}")
        if "biased" in attention._recorded:
            text = text.replace("S̄ = S", "S̄ = S + B")
        if attention.mask is None:
            text = re.sub(" where the mask allows, .+ elsewhere", "", text)
        text = text if "Sm" in there else text.replace("S̄", "S")
        text = text if "Ad" in there else text.replace("A′", "A")
        known = {d + LABELS.get(symbol, symbol) for d in ("", "d") for symbol in rows if d + symbol in there}
        joins = attention.joined or not any(word in text for word in ("side by side", "columns"))
        return text if joins and known.issuperset(MATRIX.findall(text)) else ""

    steps = {}
    for symbol in (symbol for symbol in (*rows, *BACKWARD) if symbol in there):
        of = symbol.removeprefix("d")
        label, (_, title, axes, formula, *_), because = LABELS.get(of, of), rows[of], ""
        if symbol != of:
            label, title = f"d{label}", f"gradient of the {title}"
            merged = {"S": "Sm", "A": "Ad"}.get(of, of)  # without a mask, dS is made as dS̄ is; likewise without dropout
            because, formula = rows[of if merged in there else merged][4:]
            formula = formula.replace("(dA − D)", "(dA − D), Dᵢ = Σⱼ Aᵢⱼ dAᵢⱼ")
            if of in "KV" and attention.group > 1:
                formula = formula.replace("= ", "= Σ heads that share it ")
            if of == "A" and attention.weights_in_loss:
                formula += " + what the loss makes of A itself"
        formula, because = plain(formula), plain(because)
        steps[symbol] = Step(symbol, label, title, formula or f"{label}, from the module",
                             because if formula and "=" in because else "", *axes.split())
    return steps


def step_named(attention: AttentionTrace, name: str) -> Step:
    """The step called `name`: by its symbol, "dWQ", or its label, "dW_Q", in upper or lower case.

    Raises:
        ValueError: the name is unknown; the message lists the known ones.
    """
    def plain(text: str) -> str:
        return text.replace("_", "").lower()

    steps = steps_of(attention)
    for step in steps.values():
        if plain(name) in (plain(step.symbol), plain(step.label)):
            return step
    raise ValueError(f"there is no step {name!r} in {attention.name}; there are {', '.join(steps)}")


def matrices(head: HeadTrace) -> dict[str, Any]:
    """Every matrix of a head by symbol, 2-D and on the host: a bias is one row.

    Raises:
        ValueError: no gradient has arrived yet.
    """
    found = head.values | {f"d{symbol}": array for symbol, array in head.gradients.items()}
    return {symbol: np.atleast_2d(to_numpy(array)) for symbol, array in found.items()}
