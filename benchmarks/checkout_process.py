"""One measured process of `old_against_new`: it runs the checkout on PYTHONPATH whenever `turns` gives it a turn.

    PYTHONPATH=CHECKOUT python benchmarks/checkout_process.py training --checkout CHECKOUT --workload '{"name": …}'

When it is ready it answers with where minigrad was imported from, and with what the driver compares: the losses of the
first updates and a checksum of the weights after them, or the translations. It imports names that both checkouts have;
minigrad and transformer are imported within the functions, so that each measured process imports what it needs.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import resident
import turns
from workloads import FIRST, LEARNING_RATE, Workload

CHECKED = 2  # updates whose losses are compared; they also warm up
BATCHES = 8
WITHOUT_END = 10**9  # updates: more than a process makes


def origin(checkout: Path) -> dict[str, str]:
    """Where minigrad was imported from; SystemExit if it, or transformer, is not the one in `checkout`."""
    files = [str(sys.modules[name].__file__) for name in ("minigrad", "transformer") if name in sys.modules]
    for file in files:
        if not Path(file).is_relative_to(checkout):
            raise SystemExit(f"{file} was imported, and {checkout} was to be measured")
    return {"file": files[0]}


def training(options: argparse.Namespace, answers: turns.Answers) -> None:
    """Let `transformer.training.loop.fit`, the loop of the command ``train``, make updates whenever there is a turn."""
    from transformer.data import Vocabulary, WordTokenizer
    from transformer.training.checkpoints import Run
    from transformer.training.loop import fit
    from transformer.training.options import TrainingOptions
    from transformer.training.threads import limit_threads
    from transformer.training.trainer import Trainer

    imported, workload = resident.now(), options.workload
    laps = answers.laps()

    class Paced(Trainer):
        """A trainer on the batches of the workload as they are; after the first updates each waits for a turn."""

        def plan(self, epoch: int) -> list[np.ndarray]:
            return list(np.arange(len(self.examples)).reshape(-1, workload.batch))

        def update(self, group: Any) -> None:
            if self.progress.step == CHECKED:
                answers.give({**origin(options.checkout), "losses": losses, "weights": self.checksum(),
                              "memory": resident.peak() - imported})
            if self.progress.step >= CHECKED:
                end_of_input = object()
                if next(laps, end_of_input) is end_of_input:
                    raise SystemExit
            before = self.loss()
            super().update(group)
            if len(losses) < CHECKED:
                losses.append((self.loss() - before) / group.tokens)

        def loss(self) -> float:
            """The sum of the losses so far; older checkouts have a meter of it."""
            return float(self.losses.total if hasattr(self, "losses") else self.progress.loss_sum)

        def checksum(self) -> str:
            """Of all weights."""
            state = self.model.state_dict()
            return hashlib.sha256(b"".join(state[name].numpy().tobytes() for name in sorted(state))).hexdigest()

    losses: list[float] = []
    tokenizer = WordTokenizer(Vocabulary([str(i) for i in range(FIRST + 1, workload.vocabulary)]))  # FIRST is <unk>
    chosen = TrainingOptions(
        steps=WITHOUT_END, valid_every=WITHOUT_END, batch_tokens=workload.batch * workload.length,
        learning_rate=LEARNING_RATE, schedule="constant", threads=options.threads)
    pairs = [(text(source), text(labels)) for batch in workload.batches(BATCHES)
             for source, labels in zip(*batch, strict=True)]
    stored: Any = chosen if "options" in Run.__annotations__ else chosen.to_json()  # older checkouts have the latter
    with tempfile.TemporaryDirectory() as folder:
        trainer = Paced(Path(folder) / "run", Run(workload.config(), tokenizer, tokenizer, {}, stored),
                        pairs, pairs[:1], "cpu")
        resident.forget_peak()
        with limit_threads(1 if trainer.gradients.threads > 1 else options.threads):
            fit(trainer, show_progress=False)


def text(ids: np.ndarray) -> str:
    """The sentence that a word tokenizer encodes as `ids`, end-of-sentence and padding left out."""
    return " ".join(str(i) for i in ids if i >= FIRST)


def decoding(options: argparse.Namespace, answers: turns.Answers) -> None:
    """Translate the first batch greedily."""
    from transformer.decode import greedy
    from transformer.training.threads import decoding_threads

    workload = options.workload
    model = workload.model(endless=True).eval()
    (source, _), = workload.batches(1)

    def decode() -> list[list[int]]:
        return [best.ids for best in greedy(model, source, workload.length)]

    with decoding_threads(model.config, options.threads):
        answers.give({"translations": decode(), **origin(options.checkout)})
        answers.serve(decode)


KINDS = {"training": training, "decoding": decoding}


def main() -> None:
    """Get ready, answer, and measure until the input ends."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=list(KINDS))
    parser.add_argument("--checkout", type=Path, required=True, help="the folder that the packages must come from")
    parser.add_argument("--workload", type=Workload.from_json, required=True)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    KINDS[options.kind](options, turns.Answers())


if __name__ == "__main__":
    main()
