"""The explorer in a terminal: the steps of one head with their norms and checks, or one step as a matrix."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from transformer.explore.checks import Check
from transformer.explore.identities import identities
from transformer.explore.labels import columns_of
from transformer.explore.steps import matrices, step_named, steps_of
from transformer.explore.traced import HeadTrace

Checks = Mapping[str, Sequence[Check]]


def text_of(head: HeadTrace, lines: Sequence[str]) -> str:
    """The lines between one that names the attention, the item and the head, with their sizes, and the identities."""
    attention = head.attention
    queries, keys = attention.scores.shape[-2:]
    dropout = f", dropout p = {attention.p:g}" if attention.p else ""
    kind = "attention" if attention.kind == "attention" else f"{attention.kind} attention"
    kind += "".join(f" of layer {int(index) + 1}" for index in re.findall(r"layers\.(\d+)", attention.name))
    heading = (f"{attention.name} ({kind}), item {head.item + 1}, head {head.head + 1} of {attention.num_heads}: "
               f"{queries} queries, {keys} keys, d_k = {attention.queries.shape[-1]}{dropout}")
    facts = [f"{'✓' if fact.holds else '✗'} {fact.statement} (residual {fact.residual:.1e})"
             for fact in identities(head)]
    return "\n".join([heading, "", *lines, "", *facts])


def overview(head: HeadTrace, checks: Checks) -> list[str]:
    """The steps of one head, the forward's and, numbered, the backward's: name, shape, norm, formula, check.

    Args:
        head: of a traced attention, after a backward.
        checks: finite differences by symbol, empty if there are none.
    """
    values, steps = matrices(head), steps_of(head.attention)
    rows = [["", "forward", "shape", "norm", "", "finite differences"]]
    backward = [symbol for symbol in steps if symbol.startswith("d")]
    for symbol, step in steps.items():
        count, errors = "", ""
        if symbol in backward:
            count = str(backward.index(symbol) + 1)
            errors = "  ".join(f"{check.error:.1e}" for check in checks.get(symbol[1:], ()))
            rows += [[""] * 6, ["", "backward", *[""] * 4]] if count == "1" else []
        rows.append([count, step.label, *_size(values[symbol]), step.formula if "=" in step.formula else step.title,
                     errors])
    return [*_aligned(rows, right={0, 3}), "", "One of them: --step dS"]


def one_step(head: HeadTrace, name: str, queries: Sequence[str], keys: Sequence[str], checks: Checks,
             width: int = 120) -> list[str]:
    """One step of one head: its formula, the matrix, the check.

    Args:
        head, checks: as for `overview`.
        name: the symbol of the step, such as "dS" or "dWQ", or its label, "dW_Q".
        queries, keys: the names of rows and columns (transformer/explore/labels.py).
        width: of the terminal, in columns; a wider matrix is written in several parts.

    Raises:
        ValueError: there is no such step.
    """
    step = step_named(head.attention, name)
    array = matrices(head)[step.symbol]
    shape, norm = _size(array)
    finite = "" if np.isfinite(array).all() else " without −∞"
    lines = [f"{step.label}: {step.title}, {shape}, norm {norm}{finite}",
             *([f"  forward:  {step.because}", f"  so here:  {step.formula}"] if step.because else
               [f"  {step.formula}"])]
    labels = {"query": queries, "key": keys}
    down, across = ([f"{n}: {printable(labels[axis][n])}" if axis in labels else str(n) for n in range(count)]
                    for axis, count in zip((step.rows, step.columns), array.shape, strict=True))
    cells = [across, *([number(value, 4) for value in row] for row in array)]
    widest = 2 + max(columns_of(cell) for row in cells for cell in row)
    count = max(1, (width - max(map(columns_of, down))) // widest)
    for first in range(0, len(across), count):
        rows = [[name, *row[first:first + count]] for name, row in zip(["", *down], cells, strict=True)]
        lines += ["", *_aligned(rows, right=range(1, count + 1))]
    measured = checks.get(step.symbol.removeprefix("d"), ()) if step.symbol.startswith("d") else ()
    if measured:
        lines += ["", "finite differences of the whole loss along two random directions:"]
    return lines + [f"  measured {number(check.numeric)}, the gradient says {number(check.analytic)}: "
                    f"error {check.error:.1e}" for check in measured]


def number(value: float, digits: int = 6) -> str:
    """The number in so many digits, with a true minus sign and a sign for infinity."""
    return f"{value:.{digits}g}".replace("-", "−").replace("inf", "∞")


def printable(text: str) -> str:
    """The text, with a code point in place of each unprintable character, which a terminal could obey."""
    return "".join(c if c.isprintable() else f"U+{ord(c):04X}" for c in text)


def _size(array: Any) -> tuple[str, str]:
    """The shape, and the Euclidean norm of the finite entries."""
    return "×".join(map(str, array.shape)), f"{np.linalg.norm(array[np.isfinite(array)]):.3g}"


def _aligned(rows: Sequence[Sequence[str]], right: Collection[int]) -> list[str]:
    """Columns of one width each, those of the numbers in `right` aligned to the right."""
    widths = [max(map(columns_of, column)) for column in zip(*rows, strict=True)]

    def padded(n: int, cell: str) -> str:
        space = " " * (widths[n] - columns_of(cell))
        return space + cell if n in right else cell + space

    return ["  ".join(padded(n, cell) for n, cell in enumerate(row)).rstrip() for row in rows]
