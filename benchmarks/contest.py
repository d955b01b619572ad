"""One workload, trained by several peers that take turns: what training.py, growth.py and memory.py have in common."""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import paired
import peers
import turns
from workloads import Workload

TOLERANCE = 1e-4  # the greatest relative difference between losses
#: What a table calls minigrad or a peer -> the programs of which the fastest counts.
PROGRAMS = {
    "minigrad": ("minigrad",),
    "PyTorch eager": ("torch-transformer", "torch-sdpa"),
    "torch.compile": ("torch-compile",),
    "JAX jit": ("jax",),
    "HIPS autograd": ("autograd",),
    "GEMM floor": ("gemm",),
}
OPTIONAL = ("torch-compile",)  # it needs a C++ compiler
SHORT = {"eager": "PyTorch eager", "compile": "torch.compile", "jax": "JAX jit", "autograd": "HIPS autograd",
         "gemm": "GEMM floor"}  # on the command line and in names of files


def parser(description: str | None, rounds: int, seconds: float = 0.7) -> argparse.ArgumentParser:
    """A parser with the options of every driver; `rounds` and `seconds` are defaults."""
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--rounds", type=int, default=rounds, help=f"rounds in which each has a turn ({rounds})")
    made.add_argument("--seconds", type=float, default=seconds, help=f"length of a turn ({seconds:g})")
    made.add_argument("--threads", type=int, default=2, help="threads, and processors, of every program (2)")
    made.add_argument("--dry", action="store_true", help="print the results, and write nothing")
    return made


def programs(titles: Iterable[str]) -> list[str]:
    """The peers behind these titles."""
    return [peer for title in titles for peer in PROGRAMS[title]]


def packages(titles: Iterable[str]) -> list[str]:
    """The packages whose versions a report on these titles names."""
    return [peers.PEERS[peer][1] for peer in programs(titles)]


def commands(titles: Iterable[str], workload: Workload, weights: Path, threads: int,
             devices: Mapping[str, str] = {}) -> dict[str, list[str]]:
    """The command of each program, on the CPU unless `devices` has another; SystemExit if a peer is not installed."""
    paired.require(packages(titles))
    process = Path(__file__).with_name("train_process.py")
    return {peer: [sys.executable, str(process), "--peer", peer, "--workload", workload.to_json(),
                   "--weights", str(weights), "--threads", str(threads), "--device", devices.get(peer, "cpu")]
            for peer in programs(titles)}


def check_losses(workload: Workload, answers: Mapping[str, Mapping[str, Any]], reference: str = "minigrad") -> None:
    """SystemExit if a program's losses are not those of the `reference`: then it computed something else."""
    expected = answers[reference]["losses"]
    for peer, answer in answers.items():
        found = answer["losses"]
        if found and not all(math.isclose(a, b, rel_tol=TOLERANCE) for a, b in zip(found, expected, strict=True)):
            raise SystemExit(f"{workload.title}: {peer} has other losses than {reference}; nothing is published:\n"
                             f"  {reference} {expected}\n  {peer} {found}")


def train(workload: Workload, titles: Sequence[str], options: argparse.Namespace,
          devices: Mapping[str, str] = {}) -> list[paired.Round]:
    """Let the programs of `titles` train `workload` in turns; rounds by title, the fastest where it has several.

    A title of which no program could start is left out. Every round has the "memory" of a program's first steps.
    """
    paired.confine(options.threads)
    with tempfile.TemporaryDirectory() as folder:
        weights = Path(folder) / "start.safetensors"
        workload.write_weights(weights)
        programs_of = commands(titles, workload, weights, options.threads, devices)
        with turns.started(programs_of, optional=OPTIONAL) as processes:
            check_losses(workload, {peer: process.ready for peer, process in processes.items()})
            memory = {peer: process.ready["memory"] for peer, process in processes.items()}
            rounds = turns.take(processes, options.rounds, options.seconds)
    rounds = [{peer: numbers | {"memory": memory[peer]} for peer, numbers in each.items()} for each in rounds]
    return by_title(rounds, [title for title in titles if any(name in rounds[0] for name in programs([title]))])


def by_title(rounds: list[paired.Round], titles: Iterable[str]) -> list[paired.Round]:
    """The rounds with the names that a table has, the programs' own beside them."""
    for title in titles:
        rounds = paired.fastest(rounds, programs([title]), title)
    return rounds


def row(rounds: Sequence[paired.Round], title: str, key: str = "ms") -> dict[str, Any]:
    """The row of one workload: ours, theirs, the ratio, and where the peer is several programs each of them."""
    result: dict[str, Any] = paired.compare(rounds, "minigrad", title)[key]
    several = programs([title])
    return result | ({peer: paired.spread(pair[peer][key] for pair in rounds) for peer in several}
                     if len(several) > 1 else {})
