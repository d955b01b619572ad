"""The memory that training needs, beyond what importing the library needs: the peak during the first steps.

    python benchmarks/memory.py                    against PyTorch eager
    python benchmarks/memory.py --sizes mid

Every number is of a fresh process: the greatest resident size while it makes its first steps (parameters, gradients,
moments and activations), less the resident size after the import. PyTorch eager is whichever of its two versions needs
less, and gives freed memory back to the system, as it does by default; minigrad keeps it, as in training.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import contest
import page
import paired
import turns
import workloads

PEER = "PyTorch eager"


def peaks(workload: workloads.Workload, titles: list[str], options: argparse.Namespace) -> list[paired.Round]:
    """In each round, every program started and ended, and the memory that it answered with."""
    paired.confine(options.threads)
    rounds: list[paired.Round] = []
    with tempfile.TemporaryDirectory() as folder:
        weights = Path(folder) / "start.safetensors"
        workload.write_weights(weights)
        for _ in range(options.rounds):
            answers = {}
            for peer, command in contest.commands(titles, workload, weights, options.threads).items():
                with turns.started({peer: command}, changes={}) as processes:
                    answers[peer] = processes[peer].ready
            contest.check_losses(workload, answers)
            rounds.append({peer: {"memory": answer["memory"]} for peer, answer in answers.items()})
    return contest.by_title(rounds, titles)


def main() -> None:
    """Measure one workload after the other, and publish each as soon as it is there."""
    parser = contest.parser(__doc__, rounds=2)
    parser.add_argument("--sizes", nargs="+", choices=list(workloads.SIZES), default=list(workloads.SIZES))
    parser.add_argument("--dropout", nargs="+", type=float, default=[0.0, 0.1])
    options = parser.parse_args()
    for workload in workloads.variations(options.sizes, options.dropout, [False]):
        rounds = peaks(workload, ["minigrad", PEER], options)
        report = paired.report(
            f"peak memory of training, beyond the import, float32, {options.threads} threads", "MiB", len(rounds),
            contest.packages([PEER]), {workload.title: contest.row(rounds, PEER, "memory")})
        page.publish("memory", report, not options.dry)


if __name__ == "__main__":
    main()
