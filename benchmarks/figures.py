"""The ratios that this project aims at, beside those in benchmarks/results/: the last table of docs/performance.md.

    python benchmarks/figures.py

All are ratios peer / ours, so more is better. Each has the least that is aimed at, on plain NumPy and with the compiled
kernels. The table stands below its marker, wherever that is in the page.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import page
from workloads import SIZES, variations

Results = dict[str, Any]  # title of a row -> the row


class Figure(NamedTuple):
    """One line of the table.

    Attributes:
        title: what it is.
        report: the name of the report; with the compiled kernels, "_jit" follows.
        value: the ratio, from the rows of that report.
        plain, jit: what it should be at least; None: nothing is asked, or there is nothing to measure.
    """

    title: str
    report: str
    value: Callable[[Results], float]
    plain: float
    jit: float | None


def ratio(row: str) -> Callable[[Results], float]:
    """The median ratio of this row."""
    return lambda results: results[row]["ratio"]["median"]


def growth(first: str, last: str) -> Callable[[Results], float]:
    """How many times more the peer's time grows from the first row to the last one."""
    return lambda results: results[last]["ratio"]["median"] / results[first]["ratio"]["median"]


def middle(results: Results) -> float:
    """The median of all rows."""
    return statistics.median(row["ratio"]["median"] for row in results.values())


def figures() -> Iterator[Figure]:
    """All of them, in the order of the table."""
    for workload in variations(SIZES):
        easy = not workload.dropout and not workload.padded
        yield Figure(f"training step, {workload.title}, against PyTorch eager", "training_eager",
                     ratio(workload.title), *((1.0, 1.2) if easy else (1.3, 1.6)))
    yield Figure("the products alone (1 / 1.9 and 1 / 1.5), mid", "training_gemm", ratio("mid, dropout 0"),
                 1 / 1.9, 1 / 1.5)
    yield Figure("greedy decoding, against PyTorch", "decoding", ratio("greedy"), 1.5, 1.5)
    yield Figure("overhead of an operation, against PyTorch, median", "overhead_torch", middle, 1.0, None)
    for workload in variations(SIZES, paddings=[False]):
        yield Figure(f"memory (1 / 0.7), {workload.title}, against PyTorch eager", "memory", ratio(workload.title),
                     1 / 0.7, 1 / 0.7)
    yield Figure("import minigrad, against PyTorch", "import_torch", ratio("import minigrad"), 5.0, None)
    yield Figure("growth from length 16 to 1024, against PyTorch eager", "growth_length",
                 growth("length 16", "length 1024"), 1.0, None)
    yield Figure("growth from batch 1 to 256, against PyTorch eager", "growth_batch", growth("batch 1", "batch 256"),
                 1.0, None)


def cell(figure: Figure, suffix: str, least: float | None) -> str:
    """The value and whether it suffices; "–" if there is none."""
    file = page.RESULTS / f"{figure.report}{suffix}.json"
    if least is None or not file.exists():
        return "–"
    try:
        value = figure.value(json.loads(file.read_text(encoding="utf-8"))["results"])
    except KeyError:  # this row has not been measured
        return "–"
    return f"{value:.2f}" if round(value, 2) >= round(least, 2) else f"{value:.2f} (not reached)"


def table() -> str:
    """The table in Markdown."""
    lines = ["| | to reach | plain NumPy | to reach | compiled |", "|---|---:|---:|---:|---:|"]
    for figure in figures():
        least = "–" if figure.jit is None else f"{figure.jit:.2f}"
        lines.append(f"| {figure.title} | {figure.plain:.2f} | {cell(figure, '', figure.plain)} | {least} | "
                     f"{cell(figure, '_jit', figure.jit)} |")
    return "\n".join(lines)


def main() -> None:
    """Print the table, and put it in its place."""
    print(table())
    page.put("figures", table())


if __name__ == "__main__":
    main()
