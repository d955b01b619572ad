"""The explorer in a terminal: the steps of one head with their norms and checks, or one step as a matrix."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from transformer.explore.checks import Check
from transformer.explore.identities import Identity
from transformer.explore.labels import columns_of
from transformer.explore.steps import matrices, step_named, steps_of
from transformer.explore.traced import AttentionTrace

Checks = Mapping[str, Sequence[Check]]


def overview(attention: AttentionTrace, item: int, head: int, checks: Checks, identities: Sequence[Identity]) -> str:
    """The steps of one head, the forward's and, numbered, the backward's: name, shape, norm, formula, check.

    Args:
        attention: a traced attention, after a backward.
        item, head: the batch item and the head, counted from 0.
        checks: finite differences by symbol, empty if there are none.
        identities: the identities of the head, with residuals.
    """
    values, steps = matrices(attention.head(item, head)), steps_of(attention)
    rows = [["", "forward", "shape", "norm", "", "finite differences"]]
    backward = [symbol for symbol in steps if symbol.startswith("d")]
    for symbol, step in steps.items():
        if symbol in backward[:1]:
            rows += [[""] * 6, ["", "backward", *[""] * 4]]
        count = str(backward.index(symbol) + 1) if symbol in backward else ""
        errors = "  ".join(f"{check.error:.1e}" for check in checks.get(symbol[1:], ()) if count)
        rows.append([count, step.label, *_size(values[symbol]), step.formula if "=" in step.formula else step.title,
                     errors])
    return "\n".join([heading(attention, item, head), "", *_aligned(rows, {0, 3}), "", *_facts(identities), "",
                      "One of them: --step dS"])


def one_step(attention: AttentionTrace, item: int, head: int, name: str, queries: Sequence[str], keys: Sequence[str],
             checks: Checks, identities: Sequence[Identity], width: int = 120) -> str:
    """One step of one head: its formula, the matrix, the identities, the check.

    Args:
        attention, item, head, checks, identities: as for `overview`.
        name: the symbol of the step, such as "dS" or "dWQ", or its label, "dW_Q".
        queries, keys: the names of rows and columns (transformer/explore/labels.py).
        width: of the terminal, in columns; a wider matrix is written in several parts.

    Raises:
        ValueError: there is no such step.
    """
    step = step_named(attention, name)
    array = matrices(attention.head(item, head))[step.symbol]
    shape, norm = _size(array)
    finite = "" if np.isfinite(array).all() else " without −∞"
    formulas = [f"  forward:  {step.because}", f"  so here:  {step.formula}"] if step.because else [f"  {step.formula}"]
    lines = [heading(attention, item, head), "", f"{step.label}: {step.title}, {shape}, norm {norm}{finite}", *formulas]
    labels = {"query": queries, "key": keys}
    down, across = ([f"{n}: {printable(labels[axis][n])}" if axis in labels else str(n) for n in range(count)]
                    for axis, count in zip((step.rows, step.columns), array.shape, strict=True))
    cells = [across, *([number(value, 4) for value in row] for row in array)]
    for part in _parts(cells, width - max(map(columns_of, down))):
        rows = [[name, *row[part]] for name, row in zip(["", *down], cells, strict=True)]
        lines += ["", *_aligned(rows, set(range(1, len(rows[0]))))]
    measured = checks.get(step.symbol.removeprefix("d"), ()) if step.because else ()
    if measured:
        lines += ["", "finite differences of the whole loss along two random directions:"]
    lines += [f"  measured {number(check.numeric)}, the gradient says {number(check.analytic)}: error {check.error:.1e}"
              for check in measured]
    return "\n".join([*lines, "", *_facts(identities)])


def number(value: float, digits: int = 6) -> str:
    """The number in so many digits, with a true minus sign and a sign for infinity."""
    return f"{value:.{digits}g}".replace("-", "−").replace("inf", "∞")


def printable(text: str) -> str:
    """The text, with a code point in place of each unprintable character, which a terminal could obey."""
    return "".join(c if c.isprintable() else f"U+{ord(c):04X}" for c in text)


def heading(attention: AttentionTrace, item: int, head: int) -> str:
    """A line that names the attention, the item and the head, with their sizes."""
    queries, keys = attention.scores.shape[-2:]
    dropout = f", dropout p = {attention.p:g}" if attention.p else ""
    kind = "attention" if attention.kind == "attention" else f"{attention.kind} attention"
    return (f"{attention.name} ({kind}), item {item}, head {head} of {attention.num_heads}: "
            f"{queries} queries, {keys} keys, d_k = {attention.queries.shape[-1]}{dropout}")


def _size(array: Any) -> tuple[str, str]:
    """The shape, and the Euclidean norm of the finite entries."""
    return "×".join(map(str, array.shape)), f"{np.linalg.norm(array[np.isfinite(array)]):.3g}"


def _facts(identities: Sequence[Identity]) -> list[str]:
    return [f"{'✓' if fact.holds else '✗'} {fact.statement} (residual {fact.residual:.1e})" for fact in identities]


def _parts(rows: Sequence[Sequence[str]], room: int) -> Iterator[slice]:
    """Ranges of columns that fit side by side, each at least one."""
    widths = [max(map(columns_of, column)) + 2 for column in zip(*rows, strict=True)]
    first = 0
    for last in range(1, len(widths) + 1):
        if last == len(widths) or sum(widths[first:last + 1]) > room:
            yield slice(first, last)
            first = last


def _aligned(rows: Sequence[Sequence[str]], right: set[int]) -> list[str]:
    """Columns of one width each, those of the numbers in `right` aligned to the right."""
    widths = [max(map(columns_of, column)) for column in zip(*rows, strict=True)]

    def padded(cell: str, n: int) -> str:
        space = " " * (widths[n] - columns_of(cell))
        return space + cell if n in right else cell + space

    return ["  ".join(padded(cell, n) for n, cell in enumerate(row)).rstrip() for row in rows]
