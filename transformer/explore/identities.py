"""Identities that hold in every attention, whatever its weights are, each with the deviation of a given attention.

They follow from the derivation in docs/backprop_through_attention.md, and a wrong backward breaks them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from minigrad.device import to_numpy

from transformer.explore.steps import matrices
from transformer.explore.traced import HeadTrace


@dataclass(frozen=True)
class Identity:
    """A fact about one head.

    Attributes:
        key: a short name.
        statement: the fact.
        residual: the largest deviation, relative to the terms that cancel; absolute for a value that is exactly 0.
        holds: whether the residual is no more than rounding.
    """

    key: str
    statement: str
    residual: float
    holds: bool


def identities(head: HeadTrace) -> list[Identity]:
    """The identities that apply to `head`; ValueError before the backward."""
    values, found = matrices(head), list[Identity]()
    rounding = 1e3 * float(np.finfo(values["A"].dtype).eps)
    for key, statement, deviation, terms in _facts(head, values):
        largest = 1.0 if terms is None else float(np.max(terms, initial=0.0))
        residual = float(abs(deviation).max(initial=0.0)) / largest if largest else 0.0
        found.append(Identity(key, statement, residual, residual <= (0.0 if terms is None else rounding)))
    return found


def _facts(head: HeadTrace, values: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    """Key and statement, what must be 0, and the terms that cancel there; None where it must be 0 exactly."""
    scores, keys, mask = values["dS"], values["dK"], head.attention.mask
    yield "rows", "the rows of dS sum to 0", scores.sum(axis=-1), abs(scores).sum(axis=-1)

    products = values["A"] * values["dA"]
    if not head.attention.weights_in_loss:
        dots = (values["dO"] * values["O"]).sum(axis=-1)
        yield "dots", "Σⱼ A∘dA = dO·O in every row", products.sum(axis=-1) - dots, abs(products).sum(axis=-1)

    allowed = np.ones(scores.shape, bool) if mask is None else to_numpy(mask)[head.item, head.head]
    if not allowed.all():
        largest = float(abs(values["dA"][~allowed]).max())
        yield ("masked", f"dS is exactly 0 where the mask forbids, though dA is up to {largest:.3g} there",
               scores[~allowed], None)

    if "dbK" in values:
        yield "key bias", "db_K = 0: the rows of dK sum to 0", keys.sum(axis=0), abs(keys).sum(axis=0)

    alone = allowed.sum(axis=-1) == 1
    if alone.any():
        rows = ", ".join(map(str, np.flatnonzero(alone)[:3]))
        yield ("one key", f"a query that sees one key (row {rows}) has dQ = 0", values["dQ"][alone],
               abs(values["dA"][alone]).sum() * abs(values["K"]).max())
