"""A step of training, forward, backward and AdamW, against PyTorch eager: the same model, data, dtype and threads.

    python benchmarks/training.py                                   sizes, growth and memory
    python benchmarks/training.py sizes --sizes mid --dropout 0     a part of it
    python benchmarks/training.py --dry                             one short round with a tiny model

- sizes: the sizes of workloads.py; tatoeba is the small model on real batches, if the text is there;
- length, batch: the small model on longer sentences (a batch of 2), and on more of them (16 tokens each);
- memory: the peak of the first steps in a fresh process (parameters, gradients, moments, activations), less what the
  process had after the import. PyTorch gives freed memory back to the system, as it does by default; minigrad keeps
  it, as in training.

The peers are in peers/. Before anything is timed, the losses are compared.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import page
import paired
import peers
import turns
import workloads
from workloads import REAL, SIZES, Workload

US, THEM = "minigrad", "PyTorch eager"
TOLERANCE = 1e-4  # the greatest relative difference between losses


@contextmanager
def commands(workload: Workload, threads: int, devices: Mapping[str, str] = {}) -> Iterator[dict[str, list[str]]]:
    """The command of each program, on the CPU unless `devices` has another; their weights are there in the block."""
    paired.require(["torch"])
    paired.confine(threads)
    with tempfile.TemporaryDirectory() as folder:
        weights = Path(folder) / "start.safetensors"
        workload.write_weights(weights)
        yield {peer: [sys.executable, str(Path(__file__).with_name("train_process.py")), "--peer", peer,
                      "--workload", workload.to_json(), "--weights", str(weights), "--threads", str(threads),
                      "--device", devices.get(peer, "cpu")] for peer in peers.PEERS}


def check_losses(workload: Workload, answers: Mapping[str, Mapping[str, Any]], reference: str = US) -> None:
    """SystemExit if a program's losses are not those of the `reference`: then it computed something else."""
    expected = answers[reference]["losses"]
    for peer, answer in answers.items():
        found = answer["losses"]
        if not all(math.isclose(a, b, rel_tol=TOLERANCE) for a, b in zip(found, expected, strict=True)):
            raise SystemExit(f"{workload.title}: {peer} has other losses than {reference}; nothing is published:\n"
                             f"  {reference} {expected}\n  {peer} {found}")


def times(workload: Workload, options: argparse.Namespace, devices: Mapping[str, str] = {}) -> list[paired.Round]:
    """Train `workload` in turns. Every round has the "memory" of a program's first steps, too."""
    with commands(workload, options.threads, devices) as programs, turns.started(programs) as processes:
        check_losses(workload, {peer: process.ready for peer, process in processes.items()})
        rounds = turns.take(processes, options.rounds, options.seconds)
        return [{peer: numbers | {"memory": processes[peer].ready["memory"]} for peer, numbers in each.items()}
                for each in rounds]


def peaks(workload: Workload, options: argparse.Namespace) -> list[paired.Round]:
    """In each round, every program started and ended, and the memory that it answered with."""
    rounds: list[paired.Round] = []
    with commands(workload, options.threads) as programs:
        for _ in range(min(options.rounds, 3)):
            answers = {}
            for peer, command in programs.items():
                with turns.started({peer: command}, changes={}) as processes:
                    answers[peer] = processes[peer].ready
            check_losses(workload, answers)
            rounds.append({peer: {"memory": answer["memory"]} for peer, answer in answers.items()})
    return rounds


def measured(measure: str, options: argparse.Namespace) -> dict[str, Workload]:
    """The workloads of a measure, by the titles of their rows."""
    small = SIZES["small"]
    if options.dry:
        return {measure: workloads.DRY}
    if measure == "length":
        return {f"length {length}": replace(small, batch=2, length=length)
                for length in (16, 32, 64, 128, 256, 512, 1024)}
    if measure == "batch":
        return {f"batch {batch}": replace(small, batch=batch) for batch in (1, 4, 16, 64, 256)}
    sizes = [name for name in options.sizes
             if name != REAL.name or (measure == "sizes" and Path(str(REAL.text)).is_file())]
    if measure == "sizes" and len(sizes) < len(options.sizes):
        print(f"{REAL.name} is left out: there is no {REAL.text}")
    return {workload.title: workload for workload in workloads.variations(sizes, options.dropout)}


REPORTS = {"sizes": "training_eager", "length": "growth_length", "batch": "growth_batch", "memory": "memory"}


def main() -> None:
    """Measure one workload after the other, and publish each as soon as it is there."""
    parser = paired.parser(__doc__)
    parser.add_argument("measures", nargs="*", help=f"of {', '.join(REPORTS)} (all)")
    parser.add_argument("--sizes", nargs="+", choices=[*SIZES, REAL.name], default=[*SIZES, REAL.name])
    parser.add_argument("--dropout", nargs="+", type=float, default=[0.0, 0.1])
    options = paired.parsed(parser)
    if unknown := set(options.measures) - set(REPORTS):
        parser.error(f"no measure: {', '.join(unknown)}")
    for measure in options.measures or REPORTS:
        key, unit, take = ("memory", "MiB", peaks) if measure == "memory" else ("ms", "ms", times)
        what = f"{'memory' if measure == 'memory' else 'time'} of a training step, float32, {options.threads} threads"
        for title, workload in measured(measure, options).items():
            rounds = take(workload, options)
            report = paired.report(what, unit, len(rounds), ["torch"],
                                   {title: paired.compare(rounds, US, THEM)[key]})
            page.publish(REPORTS[measure], report, not options.dry)


if __name__ == "__main__":
    main()
