"""How the time of a training step grows with the length of the sentences and with the size of the batch.

    python benchmarks/growth.py                    against PyTorch eager
    python benchmarks/growth.py --curves batch

The model is the small one, without dropout or padding; a batch of 2 for the lengths, 16 tokens for the batches.
"""

from __future__ import annotations

from dataclasses import replace

import contest
import page
import paired
from workloads import SIZES, Workload

PEER = "PyTorch eager"


def curve(name: str) -> dict[str, Workload]:
    """The workloads along a curve, by the titles of their rows."""
    small = SIZES["small"]
    if name == "length":
        return {f"length {length}": replace(small, batch=2, length=length)
                for length in (16, 32, 64, 128, 256, 512, 1024)}
    return {f"batch {batch}": replace(small, batch=batch) for batch in (1, 4, 16, 64, 256)}


def main() -> None:
    """Measure the curves, and publish each point as soon as it is there."""
    parser = contest.parser(__doc__, rounds=5, seconds=0.5)
    parser.add_argument("--curves", nargs="+", choices=["length", "batch"], default=["length", "batch"])
    options = parser.parse_args()
    for name in options.curves:
        for title, workload in curve(name).items():
            rounds = contest.train(workload, ["minigrad", PEER], options)
            report = paired.report(
                f"time of a training step by {name}, float32, {options.threads} threads", "ms", len(rounds),
                contest.packages([PEER]), {title: contest.row(rounds, PEER)})
            page.publish(f"growth_{name}", report, not options.dry)


if __name__ == "__main__":
    main()
