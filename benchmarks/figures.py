"""The ratios that this project aims at, beside those in benchmarks/results/: the last table of docs/performance.md.

    python benchmarks/figures.py

All are ratios peer / ours, so more is better. Each has the least that is aimed at. The table stands below its
marker, wherever that is in the page.
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
        report: the name of the report.
        value: the ratio, from the rows of that report.
        least: what it should be at least.
    """

    title: str
    report: str
    value: Callable[[Results], float]
    least: float


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
                     ratio(workload.title), 1.0 if easy else 1.3)
    yield Figure("the products alone (1 / 1.9), mid", "training_gemm", ratio("mid, dropout 0"), 1 / 1.9)
    yield Figure("greedy decoding, against PyTorch", "decoding", ratio("greedy"), 1.5)
    yield Figure("overhead of an operation, against PyTorch, median", "overhead_torch", middle, 1.0)
    for workload in variations(SIZES, paddings=[False]):
        yield Figure(f"memory (1 / 0.7), {workload.title}, against PyTorch eager", "memory", ratio(workload.title),
                     1 / 0.7)
    yield Figure("import minigrad, against PyTorch", "import_torch", ratio("import minigrad"), 5.0)
    yield Figure("growth from length 16 to 1024, against PyTorch eager", "growth_length",
                 growth("length 16", "length 1024"), 1.0)
    yield Figure("growth from batch 1 to 256, against PyTorch eager", "growth_batch", growth("batch 1", "batch 256"),
                 1.0)


def cell(figure: Figure) -> str:
    """The value and whether it suffices; "–" if there is none."""
    file = page.RESULTS / f"{figure.report}.json"
    if not file.exists():
        return "–"
    try:
        value = figure.value(json.loads(file.read_text(encoding="utf-8"))["results"])
    except KeyError:  # this row has not been measured
        return "–"
    return f"{value:.2f}" if round(value, 2) >= round(figure.least, 2) else f"{value:.2f} (not reached)"


def table() -> str:
    """The table in Markdown."""
    lines = ["| | to reach | measured |", "|---|---:|---:|"]
    lines += [f"| {figure.title} | {figure.least:.2f} | {cell(figure)} |" for figure in figures()]
    return "\n".join(lines)


def main() -> None:
    """Print the table, and put it in its place."""
    print(table())
    page.put("figures", table())


if __name__ == "__main__":
    main()
