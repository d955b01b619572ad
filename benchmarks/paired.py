"""Timing two programs against each other: separate processes, in turn, and the ratio of each pair.

Two libraries in one process disturb each other (each brings its threads, its BLAS and its allocator), so every
measurement is a process of its own. They alternate, A B A B …, so that a machine that slows down slows both down; the
ratio is taken within a pair, and reported as the median over the pairs, with the quartiles beside it.

A measured program is a command whose last line on standard output is a JSON object of numbers: `{"add": 12.5, …}`.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import re
import statistics
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS, PAGE = ROOT / "benchmarks/results", ROOT / "docs/performance.md"
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

Numbers = dict[str, float]
Round = dict[str, Numbers]  # what each program measured, by the program's name


def measure(command: Sequence[str], environment: Mapping[str, str]) -> Numbers:
    """Run `command` in a fresh process that imports this checkout; the numbers of its last line."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(command, env={**os.environ, **environment, "PYTHONPATH": path}, stdout=subprocess.PIPE,
                          text=True, check=True)
    numbers: Numbers = json.loads(done.stdout.splitlines()[-1])
    return numbers


def alternate(programs: Mapping[str, Sequence[str]], rounds: int,
              environment: Mapping[str, str] = ONE_THREAD) -> list[Round]:
    """Run all `programs` in turn, `rounds` times, after one round that only fills the caches of the disk."""
    for command in programs.values():
        measure(command, environment)
    return [{name: measure(command, environment) for name, command in programs.items()} for _ in range(rounds)]


def spread(values: Iterable[float]) -> Numbers:
    """The median and the quartiles: half of the `values` (two at least) lie between "low" and "high"."""
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return {"median": round(median, 4), "low": round(low, 4), "high": round(high, 4)}


def compare(rounds: Sequence[Round], name: str, peer: str) -> dict[str, dict[str, Numbers]]:
    """For every number that both measured: each one's spread, and that of the ratios within the pairs."""
    return {
        key: {
            name: spread(pair[name][key] for pair in rounds),
            peer: spread(pair[peer][key] for pair in rounds),
            "ratio": spread(pair[name][key] / pair[peer][key] for pair in rounds),
        }
        for key in rounds[0][name] if key in rounds[0][peer]
    }


def machine(packages: Iterable[str]) -> dict[str, object]:
    """Where it was measured: processor, cores, load when the run ended, Python and the versions of `packages`."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        named = [line.partition(":")[2].strip() for line in cpuinfo.read_text().splitlines()
                 if line.startswith("model name")]
        model = named[0] if named else model
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{package: importlib.metadata.version(package) for package in packages},
    }


def table(results: Mapping[str, Mapping[str, Numbers]], unit: str) -> str:
    """`results` of `compare` as a table in Markdown."""
    name, peer, _ = next(iter(results.values()))
    lines = [f"| | {name} ({unit}) | {peer} ({unit}) | ratio | quartiles |", "|---|---:|---:|---:|---:|"]
    for key, row in results.items():
        ratio = row["ratio"]
        lines.append(f"| {key} | {row[name]['median']:.1f} | {row[peer]['median']:.1f} | {ratio['median']:.2f} | "
                     f"{ratio['low']:.2f} – {ratio['high']:.2f} |")
    return "\n".join(lines)


def circumstances(report: Mapping[str, Any]) -> str:
    """What stands below the table: how many pairs, on which machine, with which versions."""
    known = ("processor", "cores", "load", "system", "python")
    processor, cores, load, system, python = (report["machine"][name] for name in known)
    versions = [f"{name} {version}" for name, version in report["machine"].items() if name not in known]
    return (f"*{report['rounds']} pairs; {processor}, {cores} cores, load {load} at the end; {system}, "
            f"{', '.join([f'Python {python}', *versions])}.*")


def publish(name: str, report: Mapping[str, Any]) -> None:
    """Write `report` as RESULTS/name.json, and its results as the table that PAGE has below ``<!-- name -->``.

    The line in italics that is below the table says where it was measured.
    """
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(report, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    shown = table(report["results"], report["unit"])
    print(shown)
    page = PAGE.read_text(encoding="utf-8")
    page, places = re.subn(rf"(<!-- {name} -->\n)(?:\|.*\n)*(?:\n\*.*\*\n)?",
                           lambda match: f"{match[1]}{shown}\n\n{circumstances(report)}\n", page)
    if places != 1:
        raise ValueError(f"{PAGE}: one place <!-- {name} --> expected, found {places}")
    PAGE.write_text(page, encoding="utf-8")
