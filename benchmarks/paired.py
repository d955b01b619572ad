"""Timing programs against each other: separate processes, in turn, and the ratio of each pair.

Two libraries in one process disturb each other (each brings its threads, its BLAS and its allocator), so every
measurement is made in a process of its own. They alternate, A B A B …, so that a machine that slows down slows both
down; the ratio, the peer's number over ours, is taken within a pair, and reported as the median over the pairs, with
the quartiles beside it. Above 1 is good for us.

A measured program is a command whose last line on standard output is a JSON object of numbers: `{"import": 12.5, …}`.
Programs that need long to get ready are kept, and take turns: see `turns`.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import os
import platform
import statistics
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
ONE_THREAD = dict.fromkeys(THREADS, "1")
#: What `transformer.training.memory.keep_freed_memory` asks of glibc, for every library alike: most are faster with it.
KEEP_FREED_MEMORY = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(2**31 - 1)}

Numbers = dict[str, float]
Round = dict[str, Numbers]  # what each program measured, by the program's name


def parser(description: str | None, rounds: int = 9, seconds: float = 0.7,
           threads: int = 2) -> argparse.ArgumentParser:
    """A parser with the options of every driver; the numbers are defaults."""
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--rounds", type=int, default=rounds, help=f"rounds in which each has a turn ({rounds})")
    made.add_argument("--seconds", type=float, default=seconds, help=f"length of a turn ({seconds:g})")
    made.add_argument("--threads", type=int, default=threads, help=f"threads, and processors, of each ({threads})")
    made.add_argument("--dry", action="store_true", help="one short round with a tiny model; write nothing")
    return made


def parsed(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """The options of this command."""
    options = parser.parse_args()
    if options.dry:
        options.rounds, options.seconds = 1, 0.01
    return options


def environment(changes: Mapping[str, str] = {}) -> dict[str, str]:
    """The environment of a measured process, which imports this checkout: the threads are those of `changes` alone."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    kept = {name: value for name, value in os.environ.items() if name not in THREADS}
    return {**kept, "PYTHONPATH": path, **changes}


def confine(count: int) -> None:
    """Let this process, and those it starts, run on `count` of its processors, where the system can (Linux)."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])


def require(packages: Iterable[str]) -> None:
    """SystemExit if one of them cannot be imported: rather now than from a measured process, as a traceback."""
    missing = [name for name in dict.fromkeys(packages) if importlib.util.find_spec(name) is None]
    if missing:
        raise SystemExit(f"to be measured against, but not installed: {', '.join(missing)}; in the project's folder:  "
                         "pip install -e '.[bench]'")


def measure(command: Sequence[str], changes: Mapping[str, str]) -> Numbers:
    """Run `command` in a fresh process with these changes of the environment; the numbers of its last line."""
    done = subprocess.run(command, env=environment(changes), stdout=subprocess.PIPE, text=True, check=True)
    numbers: Numbers = json.loads(done.stdout.splitlines()[-1])
    return numbers


def alternate(programs: Mapping[str, Sequence[str]], rounds: int, changes: Mapping[str, str]) -> list[Round]:
    """Run all `programs` in turn, `rounds` times, after one round that only fills the caches of the disk."""
    for command in programs.values():
        measure(command, changes)
    return [{name: measure(command, changes) for name, command in programs.items()} for _ in range(rounds)]


def spread(values: Iterable[float]) -> Numbers:
    """The median and the quartiles: half of the `values` lie between "low" and "high"."""
    values = list(values)
    low, median, high = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else 3 * values
    return {"median": round(median, 4), "low": round(low, 4), "high": round(high, 4)}


def compare(rounds: Sequence[Round], name: str, peer: str) -> dict[str, dict[str, Numbers]]:
    """For every number that both measured: each one's spread, and that of peer / ours within the pairs."""
    return {
        key: {
            name: spread(pair[name][key] for pair in rounds),
            peer: spread(pair[peer][key] for pair in rounds),
            "ratio": spread(pair[peer][key] / pair[name][key] for pair in rounds),
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
        **{package: importlib.metadata.version(package) for package in dict.fromkeys(packages)},
    }


def report(what: str, unit: str, rounds: int, packages: Iterable[str], results: Mapping[str, Any]) -> dict[str, Any]:
    """What `page.publish` takes: `results` are those of `compare`, or rows of several of them."""
    return {"what": what, "unit": unit, "machine": machine(["numpy", *packages]), "rounds": rounds,
            "results": dict(results)}
