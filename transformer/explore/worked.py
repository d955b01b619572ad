"""One cell of one matrix, worked out: the numbers that it is computed from, and the result."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from transformer.explore.steps import Matrices, Product, Step, matrices, matrix, steps_of
from transformer.explore.traced import AttentionTrace

SHOWN = 3  # terms of a long sum that are written out


@dataclass(frozen=True, repr=False)
class Worked:
    """The computation of a cell.

    Attributes:
        lines: the printed lines, the cell's name first, the result last.
        total: the result, computed from the numbers in the lines.
    """

    lines: list[str]
    total: float

    def __repr__(self) -> str:
        return f"<Worked {self.lines[0].partition(' =')[0]} = {number(self.total)}>"


def worked_cell(attention: AttentionTrace, item: int, head: int, symbol: str, row: int, column: int) -> Worked:
    """The cell (row, column) of a step of one head, from the matrices that it is computed from.

    Raises:
        IndexError: there is no such cell.
        ValueError: there is no such step, or no gradient yet.
    """
    steps = steps_of(attention)
    if symbol not in steps:
        raise ValueError(f"there is no step {symbol!r} in {attention.name}; there are {', '.join(steps)}")
    values = matrices(attention.head(item, head))
    rows, columns = matrix(values, symbol).shape
    if not (0 <= row < rows and 0 <= column < columns):
        raise IndexError(f"{symbol} has {rows} rows and {columns} columns, counted from 0: there is no cell "
                         f"{row},{column}")
    return _Worker(attention, item, head, values, steps[symbol], row, column).work()


def number(value: float) -> str:
    """Six digits, with a true minus sign."""
    if math.isinf(value):
        return "−∞" if value < 0 else "∞"
    return f"{value:.6g}".replace("-", "−")


class _Worker:
    """The computation of one cell, with a method for each kind of step."""

    def __init__(self, attention: AttentionTrace, item: int, head: int, values: Matrices, step: Step, row: int,
                 column: int) -> None:
        self.attention, self.item, self.head, self.values, self.step = attention, item, head, values, step
        self.row, self.column = row, column

    def at(self, symbol: str) -> float:
        return float(matrix(self.values, symbol)[self.row, self.column])

    def name(self, label: str) -> str:
        return f"{label}[{self.row},{self.column}]"

    @property
    def left(self) -> str:
        """The name of the cell, by row and column; a bias has one row, so its cell is named by the column."""
        return f"{self.step.label}[{self.column}]" if not self.step.rows else self.name(self.step.label)

    def work(self) -> Worked:
        symbol = self.step.symbol
        if symbol in ("dWQ", "dWK", "dWV", "dWO"):
            return self.over_items()
        if symbol in ("dbQ", "dbK", "dbV", "dbO"):
            return self.bias_gradient()
        if symbol in ("dX", "dM"):
            return self.over_heads()
        if self.step.product is not None and len(self.sharing) > 1:
            return self.over_sharing(self.step.product)
        if self.step.product is not None:
            return self.product(self.step.product)
        if symbol == "dO" and "dC" not in self.values:
            return self.given()
        special = {"S": self.scaling, "dR": self.scaling, "Sm": self.masking, "dS": self.masking_gradient,
                   "A": self.softmax, "dSm": self.softmax_gradient, "Ad": self.dropout, "dA": self.dropout,
                   "C": self.concatenation, "dO": self.concatenation}
        if symbol == "dS" and self.attention.mask is None:
            return self.softmax_gradient()
        return special[symbol]() if symbol in special else self.given()

    # ------------------------------------------------------------------ products and sums

    def product(self, product: Product) -> Worked:
        lefts, rights = self.factors(product, self.values)
        has_bias = product.bias in self.values
        bias = float(self.values[str(product.bias)][self.column]) if has_bias else None
        return self.summed([("", lefts, rights)], bias)

    def factors(self, product: Product, values: Matrices) -> tuple[Any, Any]:
        """The numbers of the left and of the right matrix whose products the cell sums."""
        left, right = values[product.left], values[product.right]
        return (left[:, self.row] if product.transpose_left else left[self.row],
                right[self.column] if product.transpose_right else right[:, self.column])

    @property
    def sharing(self) -> list[int]:
        """The heads whose parts a gradient of queries, keys or values sums over."""
        symbol = self.step.symbol
        return self.attention.sharing(symbol[1:], self.head) if symbol in ("dQ", "dK", "dV") else [self.head]

    def over_sharing(self, product: Product) -> Worked:
        groups = []
        for head in self.sharing:
            groups.append((f"head {head}", *self.factors(product, matrices(self.attention.head(self.item, head)))))
        return self.summed(groups)

    def over_items(self) -> Worked:
        """A weight serves every item of the batch: its gradient is the sum over all."""
        product, groups = self.step.product, []
        for item in range(self.attention.batch_size):
            values = matrices(self.attention.head(item, self.head))
            title = f"item {item}" if self.attention.batch_size > 1 else ""
            groups.append((title, *self.factors(product, values)))  # type: ignore[arg-type]
        return self.of_parameter(groups)

    def bias_gradient(self) -> Worked:
        groups = []
        for item in range(self.attention.batch_size):
            column = matrices(self.attention.head(item, self.head))[f"d{self.step.symbol[-1].replace('O', 'Y')}"]
            title = f"item {item}" if self.attention.batch_size > 1 else ""
            groups.append((title, column[:, self.column], None))
        return self.of_parameter(groups)

    def of_parameter(self, groups: Sequence[tuple[str, Any, Any]]) -> Worked:
        """The sum is the gradient from this call; the ``.grad`` of the parameter may hold more."""
        worked, held = self.summed(groups), self.at(self.step.symbol)
        terms = sum(float(abs(lefts if rights is None else lefts * rights).sum()) for _, lefts, rights in groups)
        if abs(held - worked.total) <= float(np.finfo(self.values["O"].dtype).eps) ** 0.5 * terms:
            return worked
        more = f"  but .grad holds {number(held)}: the parameter is used elsewhere too, or had a gradient before"
        return Worked([*worked.lines, more], worked.total)

    def over_heads(self) -> Worked:
        """An input serves every head, and in self-attention queries, keys and values: its gradient sums over them."""
        paths = {"dX": "QKV" if self.attention.is_self else "Q", "dM": "KV"}[self.step.symbol]
        groups = []
        for head in self.attention.heads(self.item):
            values = matrices(head)
            for letter in paths:
                title = f"head {head.head}, through {letter}"
                groups.append((title, values[f"d{letter}"][self.row], values[f"W{letter}"][self.column]))
        return self.summed(groups)

    def summed(self, groups: Sequence[tuple[str, Any, Any]], bias: float | None = None) -> Worked:
        """Sums of products (or, without right factors, of numbers), group by group."""
        lines, total = [f"{self.left} ="], 0.0
        for title, lefts, rights in groups:
            terms = lefts if rights is None else lefts * rights
            subtotal = float(np.sum(terms))
            total += subtotal
            said = [number(a) if rights is None else f"{number(a)}·{_factor(rights[k])}" for k, a in enumerate(lefts)]
            written = _joined(said)
            lines.append(f"  {title}: {written} = {number(subtotal)}" if title else f"  {written}")
        if bias is not None:
            total += bias
            lines[-1] += f" + {_factor(bias)} (bias)"
        return Worked([*lines, f"  = {number(total)}"], total)

    # ------------------------------------------------------------------ the other steps

    def line(self, formula: str, numbers: str, total: float) -> Worked:
        said = f" = {numbers}" if numbers else ""
        return Worked([f"{self.left} = {formula}{said}", f"  = {number(total)}"], total)

    def given(self) -> Worked:
        value = self.at(self.step.symbol)
        return Worked([f"{self.left} = {number(value)}: {self.step.formula}"], value)

    def scaling(self) -> Worked:
        source = {"S": "R", "dR": "dS"}[self.step.symbol]
        total = self.at(source) * self.attention.scale
        if not self.attention.usual_scale:
            scale = number(self.attention.scale)
            return self.line(f"{self.name(source)} · {scale}", f"{number(self.at(source))} · {scale}", total)
        width = self.values["Q"].shape[1]
        return self.line(f"{self.name(source)} / √d_k", f"{number(self.at(source))} / √{width}", total)

    @property
    def allowed(self) -> bool:
        mask = self.attention.mask
        return mask is None or bool(mask[self.item, self.head, self.row, self.column])

    def masking(self) -> Worked:
        if not self.allowed:
            return Worked([f"{self.left} = −∞: query {self.row} may not attend to key {self.column}"], -math.inf)
        return self.line(f"{self.name('S')}, which the mask allows", "", self.at("S"))

    def masking_gradient(self) -> Worked:
        if not self.allowed:
            return Worked([f"{self.left} = 0: the score was replaced by −∞, whatever it was"], 0.0)
        return self.line(f"{self.name('dS̄')}, which the mask allows", "", self.at("dSm"))

    def softmax(self) -> Worked:
        scores = self.values["Sm"][self.row]
        top = float(scores.max())
        label = "S̄" if self.attention.mask is not None else "S"
        if top == -math.inf:
            return Worked([f"{self.left} = 0: query {self.row} may attend to nothing"], 0.0)
        exponentials = np.exp(scores - top)
        mine, total = float(exponentials[self.column]), float(exponentials.sum())
        return self.line(f"exp({self.name(label)} − m) / Σⱼ exp({label}[{self.row},j] − m), m = {number(top)}",
                         f"{number(mine)} / {number(total)}", mine / total)

    def softmax_gradient(self) -> Worked:
        weight, gradient, line = self.at("A"), self.at("dA"), float(self.values["D"][self.row])
        return self.line(f"{self.name('A')}·({self.name('dA')} − D[{self.row}])",
                         f"{number(weight)}·({number(gradient)} − {_factor(line)})", weight * (gradient - line))

    def dropout(self) -> Worked:
        source, label = {"Ad": ("A", "A"), "dA": ("dAd", "dA′")}[self.step.symbol]
        dropped = self.attention.dropped
        if dropped is not None and not dropped[self.item, self.head, self.row, self.column]:
            return Worked([f"{self.left} = 0: this weight was dropped"], 0.0)
        return self.line(f"{self.name(label)} / (1 − p)", f"{number(self.at(source))} / {1 - self.attention.p:g}",
                         self.at(source) / (1 - self.attention.p))

    def concatenation(self) -> Worked:
        width = self.values["O"].shape[1]
        if self.step.symbol == "C":
            head, column = divmod(self.column, width)
            value = float(matrices(self.attention.head(self.item, head))["O"][self.row, column])
            return self.line(f"O[{self.row},{column}] of head {head}", "", value)
        column = self.head * width + self.column
        return self.line(f"dC[{self.row},{column}], column {self.column} of head {self.head}", "",
                         float(self.values["dC"][self.row, column]))


def _factor(value: float) -> str:
    return f"({number(value)})" if value < 0 else number(value)


def _joined(terms: Sequence[str]) -> str:
    """The terms as a sum; a long sum has its first terms and its last."""
    if len(terms) > SHOWN + 2:
        terms = [*terms[:SHOWN], f"… {len(terms) - SHOWN - 1} more …", terms[-1]]
    return " + ".join(terms).replace(" + −", " − ")
