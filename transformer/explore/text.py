"""The explorer in a terminal: the steps of one head with their norms and checks, or one step as a matrix.

Colour shows the sign of a number (orange positive, blue negative, as on the page; the colour-blind can tell them
apart), and weight its size (faint, normal, bold). Without colour the text has the same words and numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from minigrad.device import to_numpy

from transformer.explore.checks import Check
from transformer.explore.identities import Identity
from transformer.explore.labels import columns_of
from transformer.explore.steps import Step, matrices, matrix, step_named, steps_of
from transformer.explore.traced import AttentionTrace

Checks = Mapping[str, Sequence[Check]]
POSITIVE, NEGATIVE = "38;5;208", "38;5;33"
WIDTH = 120


def overview(attention: AttentionTrace, item: int, head: int, checks: Checks, identities: Sequence[Identity],
             colour: bool = False) -> str:
    """The steps of one head, the forward's and, numbered, the backward's: name, shape, norm, formula, check.

    Args:
        attention: a traced attention, after a backward.
        item, head: the batch item and the head, counted from 0.
        checks: finite differences by symbol, empty if there are none.
        identities: the identities of the head, with residuals.
        colour: whether to write ANSI colours.
    """
    values, steps = matrices(attention.head(item, head)), steps_of(attention)
    lines = [heading(attention, item, head), ""]
    forward = [step for symbol, step in steps.items() if not symbol.startswith("d")]
    backward = [step for symbol, step in steps.items() if symbol.startswith("d")]
    for title, part, numbered in (("forward", forward, False), ("backward", backward, True)):
        rows = [["", title, "shape", "norm", "", "finite differences" if numbered else ""]]
        for count, step in enumerate(part, start=1):
            measured = checks.get(step.symbol[1:], ()) if numbered else ()
            rows.append([str(count) if numbered else "", step.label, _shape(values[step.symbol]),
                         _norm(values[step.symbol]), step.formula, _errors(measured)])
        lines += [*_table(rows, colour), ""]
    lines += [*_facts(identities), "", "One of them: --step dS"]
    return "\n".join(lines)


def one_step(attention: AttentionTrace, item: int, head: int, symbol: str, queries: Sequence[str],
             keys: Sequence[str], checks: Checks, identities: Sequence[Identity], colour: bool = False,
             width: int = WIDTH) -> str:
    """One step of one head: its formula, the matrix, the identities, the check.

    Args:
        attention, item, head, checks, identities, colour: as for `overview`.
        symbol: the symbol of the step, such as "dS" or "dWQ", or its label, "dW_Q".
        queries, keys: the names of rows and columns (transformer/explore/labels.py).
        width: of the terminal, in columns; a wider matrix is written in several parts.

    Raises:
        ValueError: there is no such step.
    """
    step, values = step_named(attention, symbol), matrices(attention.head(item, head))
    symbol = step.symbol
    shown = matrix(values, symbol)
    labels = {"queries": queries, "keys": keys}
    finite = "" if np.isfinite(shown).all() else " without −∞"
    about = f"{step.label}: {step.title}, {_shape(values[symbol])}, norm {_norm(values[symbol])}{finite}"
    lines = [heading(attention, item, head), "", about]
    lines += [f"  forward:  {step.because}", f"  so here:  {step.formula}"] if step.because else [f"  {step.formula}"]
    lines += ["", *_matrix(step, shown, labels, _masked(attention, item, head, step), colour, width)]
    measured = checks.get(symbol.removeprefix("d"), ())
    if measured and step.because:
        lines += ["", "finite differences of the whole loss along two random directions:"]
        lines += [f"  measured {number(check.numeric)}, the gradient says {number(check.analytic)}: "
                  f"error {check.error:.1e}" for check in measured]
    return "\n".join([*lines, "", *_facts(identities)])


def number(value: float) -> str:
    """Six digits, with a true minus sign."""
    return f"{value:.6g}".replace("-", "−")


def printable(text: str) -> str:
    """The text, with a code point in place of each unprintable character, which a terminal could obey."""
    return "".join(c if c.isprintable() else f"U+{ord(c):04X}" for c in text)


def heading(attention: AttentionTrace, item: int, head: int) -> str:
    """A line that names the attention, the item and the head, with their sizes."""
    queries, keys = attention.scores.shape[-2:]
    width = attention.queries.shape[-1]
    dropout = f", dropout p = {attention.p:g}" if attention.p else ""
    kind = "attention" if attention.kind == "attention" else f"{attention.kind} attention"
    return (f"{attention.name} ({kind}), item {item}, head {head} of {attention.num_heads}: "
            f"{queries} queries, {keys} keys, d_k = {width}{dropout}")


# --------------------------------------------------------------------------- parts of the text


def _shape(array: Any) -> str:
    return "×".join(map(str, array.shape))


def _norm(array: Any) -> str:
    """The Euclidean norm of the finite entries, in three digits."""
    return f"{np.linalg.norm(array[np.isfinite(array)]):.3g}"


def _errors(checks: Sequence[Check]) -> str:
    return "  ".join(f"{check.error:.1e}" for check in checks)


def _facts(identities: Sequence[Identity]) -> list[str]:
    """A line for each identity: whether it holds, and its residual."""
    return [f"{'✓' if fact.holds else '✗'} {fact.statement} (residual {fact.residual:.1e})" for fact in identities]


def _masked(attention: AttentionTrace, item: int, head: int, step: Step) -> Any:
    """The cells of a queries × keys matrix that the mask forbids; None for another matrix, or without a mask."""
    if attention.mask is None or (step.rows, step.columns) != ("queries", "keys"):
        return None
    return ~to_numpy(attention.mask[item, head])


def _matrix(step: Step, array: Any, labels: Mapping[str, Sequence[str]], masked: Any, colour: bool,
            width: int) -> list[str]:
    """The numbers in aligned columns, with a common power of ten taken out, in parts that fit the width."""
    finite = abs(array[np.isfinite(array)])
    largest = float(finite.max()) if finite.size else 0.0
    exponent = math.floor(math.log10(largest)) if largest > 0 else 0
    power = exponent if not -3 < exponent < 3 else 0
    decimals = max(0, 3 - max(0, exponent - power)) + (1 if power == 0 and exponent < 0 else 0)
    cells = [[_cell(value, 10.0 ** power, decimals, masked is not None and bool(masked[i, j]))
              for j, value in enumerate(row)] for i, row in enumerate(array)]
    paint = _painter(largest) if colour else _plain
    down = _titles(labels.get(step.rows), len(array)) if step.rows else [""]
    across = _titles(labels.get(step.columns), array.shape[1])
    margin = max(map(columns_of, down))
    widths = [max(columns_of(title), *(columns_of(row[j]) for row in cells)) for j, title in enumerate(across)]
    lines = [f"in units of 1e{power}"] if power else []
    for first, last in _parts(widths, width - margin):
        chosen = range(first, last)
        lines += ["", _pad("", margin) + "".join("  " + _pad_left(across[j], widths[j]) for j in chosen)]
        for i, row in enumerate(cells):
            numbers = "".join("  " + paint(array[i, j], _pad_left(row[j], widths[j])) for j in chosen)
            lines.append(_pad(down[i], margin) + numbers)
    return lines[1:] if lines[0] == "" else lines


def _titles(labels: Sequence[str] | None, count: int) -> list[str]:
    """The numbers of rows or columns, each with its name if there is one."""
    if labels is None:
        return [str(number) for number in range(count)]
    return [f"{number}: {printable(label)}" for number, label in enumerate(labels)]


def _cell(value: float, unit: float, decimals: int, masked: bool) -> str:
    if math.isinf(value):
        return "−∞" if value < 0 else "∞"
    if masked and value == 0:
        return "·"
    return f"{value / unit:.{decimals}f}".replace("-", "−")


def _parts(widths: Sequence[int], room: int) -> list[tuple[int, int]]:
    """Ranges of columns that fit side by side, each at least one."""
    parts, first, used = [], 0, 0
    for j, wide in enumerate(widths):
        if j > first and used + wide + 2 > room:
            parts.append((first, j))
            first, used = j, 0
        used += wide + 2
    return [*parts, (first, len(widths))]


def _painter(largest: float) -> Callable[[float, str], str]:
    def paint(value: float, text: str) -> str:
        if value == 0 or not math.isfinite(value):
            return f"\x1b[2m{text}\x1b[0m"
        size = abs(value) / largest
        weight = "1;" if size > 0.5 else "2;" if size < 0.05 else ""
        return f"\x1b[{weight}{POSITIVE if value > 0 else NEGATIVE}m{text}\x1b[0m"

    return paint


def _plain(value: float, text: str) -> str:
    return text


def _table(rows: Sequence[Sequence[str]], colour: bool) -> list[str]:
    """Aligned columns, the first row bold where there is colour."""
    widths = [max(columns_of(row[j]) for row in rows) for j in range(len(rows[0]))]
    right = (True, False, False, True, False, False)
    lines = ["  ".join(_pad_left(cell, wide) if aligned else _pad(cell, wide)
                       for cell, wide, aligned in zip(row, widths, right, strict=True)).rstrip() for row in rows]
    return [f"\x1b[1m{lines[0]}\x1b[0m" if colour else lines[0], *lines[1:]]


def _pad(text: str, width: int) -> str:
    return text + " " * (width - columns_of(text))


def _pad_left(text: str, width: int) -> str:
    return " " * (width - columns_of(text)) + text
