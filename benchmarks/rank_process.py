"""One process of a measured program whose steps several processes make together, whenever `turns` gives it a turn.

    mpirun -n 2 python benchmarks/rank_process.py --peer ranks --workload '{"name": …}' --weights FILE
    python benchmarks/rank_process.py --peer 'PyTorch DDP' …     starts its other ranks itself

Rank 0 has the input and gives the answers: when all are ready the losses, as train_process.py does; then, for each
turn, milliseconds of a step.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable, Iterator

import peers
import turns
from train_process import BATCHES, CHECKED
from workloads import Workload


def count(ranks: peers.Group, given: Iterator[float], lap: float) -> int:
    """How many laps the next turn has, the same number on all ranks; 0 after the last turn.

    Args:
        ranks: the processes.
        given: on rank 0, the seconds of each turn.
        lap: on rank 0, about how long a lap takes, in seconds.
    """
    if ranks.rank:
        return ranks.tell(0)
    seconds = next(given, None)
    return ranks.tell(0 if seconds is None else max(turns.LEAST, round(seconds / lap)))


def timed(ranks: peers.Group, laps: int, once: Callable[[], object]) -> float:
    """The seconds of a lap, on average over so many, from when all ranks begin to when all have ended."""
    ranks.meet()
    start = time.perf_counter()
    for _ in range(laps):
        once()
    ranks.meet()
    return (time.perf_counter() - start) / laps


def main() -> None:
    """Build, take the first steps, answer; then measure until the input ends."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", choices=list(peers.RANKED), required=True)
    parser.add_argument("--workload", type=Workload.from_json, required=True)
    parser.add_argument("--weights", required=True, help="a safetensors file, from Workload.write_weights")
    parser.add_argument("--threads", type=int, default=2, help="of a single process, or ranks")
    options = parser.parse_args()
    answers = turns.Answers()
    with peers.module(options.peer).trainer(options.workload, options.weights, options.threads) as ranked:
        ranks, training = ranked.group, ranked.training
        batches = [training.prepare(*batch) for batch in options.workload.batches(BATCHES)]
        losses = [ranks.total(training.loss(batches[0]))]
        stepped = [ranks.total(training.step(batch)) for batch in batches[:CHECKED]]
        losses += [] if options.workload.dropout else stepped
        following = itertools.cycle(batches)

        def once() -> None:
            training.step(next(following))

        lap, given = timed(ranks, 1, once), iter(turns.turns())
        if ranks.rank == 0:
            answers.give({"losses": losses})
        while laps := count(ranks, given, lap):
            lap = timed(ranks, laps, once)
            if ranks.rank == 0:
                answers.give({"ms": 1e3 * lap})


if __name__ == "__main__":
    main()
