"""What was measured, as a JSON file in benchmarks/results/ and as a table in a page of docs/."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import paired

RESULTS = paired.ROOT / "benchmarks/results"
PAGE = paired.ROOT / "docs/performance.md"  # where a table goes, unless another page is named
SUMMARY = [  # the rows at the top of PAGE: what is measured, the file of its results, its row there
    ("training step, toy", "training_eager", "toy, dropout 0"),
    ("toy, dropout 0.1", "training_eager", "toy, dropout 0.1"),
    ("small", "training_eager", "small, dropout 0"),
    ("small, batches of real sentences", "training_eager", "tatoeba, dropout 0"),
    ("small, two sentences of 16 tokens", "growth_length", "length 16"),
    ("base", "training_eager", "base, dropout 0"),
    ("base, dropout 0.1", "training_eager", "base, dropout 0.1"),
    ("64 translations, greedy", "decoding", "greedy"),
    ("memory of a training step, base", "memory", "base, dropout 0"),
    ("import", "import_torch", "import minigrad"),
]
KNOWN = ("processor", "cores", "load", "system", "python")  # of the machine; the others are versions of packages


def table(results: Mapping[str, Mapping[str, paired.Numbers]], unit: str) -> str:
    """`results` of `paired.compare` as a table in Markdown."""
    name, peer, *_ = next(iter(results.values()))
    lines = [f"| | {name} ({unit}) | {peer} ({unit}) | {peer} / {name} | quartiles |", "|---|---:|---:|---:|---:|"]
    for key, row in results.items():
        ratio = row["ratio"]
        lines.append(f"| {key} | {number(row[name]['median'])} | {number(row[peer]['median'])} | "
                     f"{ratio['median']:.2f} | {ratio['low']:.2f} – {ratio['high']:.2f} |")
    return "\n".join(lines)


def number(value: float) -> str:
    """With one decimal, from a thousand on with none."""
    return f"{value:.1f}" if value < 1000 else f"{value:,.0f}"


def circumstances(report: Mapping[str, Any]) -> str:
    """What stands below the table: how many pairs, on which machine, with which versions."""
    processor, cores, load, system, python = (report["machine"][name] for name in KNOWN)
    versions = [f"{name} {version}" for name, version in report["machine"].items() if name not in KNOWN]
    return (f"*{report['rounds']} pairs; {processor}, {cores} cores, load {load} at the end; {system}, "
            f"{', '.join([f'Python {python}', *versions])}.*")


def merged(earlier: Mapping[str, Any], report: Mapping[str, Any]) -> dict[str, Any]:
    """`report` with the rows of an `earlier` one that it has not measured again, if all else but the load is equal."""
    def circumstances_but_load(one: Mapping[str, Any]) -> tuple[Any, ...]:
        machine = {name: value for name, value in one["machine"].items() if name != "load"}
        return one["what"], one["unit"], one["rounds"], machine

    if circumstances_but_load(earlier) != circumstances_but_load(report):
        return dict(report)
    return {**report, "results": {**earlier["results"], **report["results"]}}


def publish(name: str, report: Mapping[str, Any], keep: bool = True, page: Path = PAGE) -> None:
    """Print the results of `report`; write them to RESULTS/name.json, and a table to `page` below ``<!-- name -->``.

    Rows of an earlier report from the same circumstances stay where this one has none. The line below the table
    says where it was measured.

    Args:
        name: of the file and the table.
        report: from `paired.report`.
        keep: False: print it, and write nothing.
        page: a file in Markdown.
    """
    print(f"\n{report['what']} ({name})\n{table(report['results'], report['unit'])}", flush=True)
    if not keep:
        return
    file = RESULTS / f"{name}.json"
    if file.exists():
        report = merged(json.loads(file.read_text(encoding="utf-8")), report)
    RESULTS.mkdir(exist_ok=True)
    file.write_text(json.dumps(report, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    shown = f"{table(report['results'], report['unit'])}\n\n{circumstances(report)}\n"
    place(name, shown, page)
    summarize()


def place(name: str, shown: str, page: Path) -> None:
    """Write a table, and the line below it, to `page` below ``<!-- name -->``."""
    text, places = re.subn(rf"(<!-- {name} -->\n)(?:\|.*\n)*(?:\n\*\d.*\*\n)?", lambda match: match[1] + shown,
                           page.read_text(encoding="utf-8"))
    if places != 1:
        raise ValueError(f"{page}: one place <!-- {name} --> expected, found {places}")
    page.write_text(text, encoding="utf-8")


def summarize() -> None:
    """Write the table and the picture at the top of PAGE, from RESULTS."""
    from matplotlib.figure import Figure

    lines, ratios = ["| | ours | PyTorch | PyTorch / ours |", "|---|---:|---:|---:|"], {}
    for title, name, key in SUMMARY:
        report = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
        ours, peer, ratio = (measured["median"] for measured in report["results"][key].values())
        lines.append(f"| {title} | {number(ours)} {report['unit']} | {number(peer)} {report['unit']} | {ratio:.2f} |")
        ratios[title] = ratio
    place("summary", "\n".join(lines) + "\n", PAGE)
    figure = Figure(figsize=(7, 3), layout="constrained")
    axes = figure.subplots()
    axes.barh(list(ratios), [ratio - 1 for ratio in ratios.values()], left=1, color="#0072b2")
    axes.axvline(1, color="black", linewidth=1)
    axes.set(xscale="log", xticks=[0.5, 1, 2, 4, 8], xticklabels=["½", "equal", 2, 4, 8], xlabel="PyTorch / ours")
    axes.minorticks_off()
    axes.invert_yaxis()
    figure.savefig(PAGE.parent / "images/performance.png", dpi=100)
