"""One measured process: it trains a workload with one peer, whenever `turns` gives it a turn.

    python benchmarks/train_process.py --peer minigrad --workload '{"name": …}' --weights start.safetensors

When it is ready it answers with losses, which the driver compares between the peers: in evaluation mode on the first
batch and, without dropout, those of the first steps. And with the memory that these steps needed: the greatest resident
size during them, over that after importing the library; on a GPU, what the library took from the GPU.
"""

from __future__ import annotations

import argparse
import itertools

import peers
import resident
import turns
from workloads import Workload

CHECKED = 4  # steps whose losses are compared; they also warm up
BATCHES = 8


def main() -> None:
    """Build, take the first steps, answer; then measure until the input ends."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", choices=list(peers.PEERS), required=True)
    parser.add_argument("--workload", type=Workload.from_json, required=True)
    parser.add_argument("--weights", required=True, help="a safetensors file, from Workload.write_weights")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    answers = turns.Answers()
    trainer = peers.module(options.peer).trainer  # imports the library
    imported = resident.now()
    with trainer(options.workload, options.weights, options.threads, options.device) as training:
        batches = [training.prepare(*batch) for batch in options.workload.batches(BATCHES)]
        losses = [training.loss(batches[0])]
        resident.forget_peak()
        stepped = [float(training.step(batch)) for batch in batches[:CHECKED]]
        losses += [] if options.workload.dropout else stepped
        memory = resident.peak() - imported if training.memory is None else training.memory()
        answers.give({"losses": losses, "memory": memory})
        following, each = itertools.cycle(batches), BATCHES if options.workload.text else 1  # real ones are unlike
        answers.serve(lambda: [training.step(next(following)) for _ in range(each)], training.settle, each)


if __name__ == "__main__":
    main()
