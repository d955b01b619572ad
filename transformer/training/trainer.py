"""One training run: the model, the optimizer, the schedule, the progress, and the steps that change them.

A run is a function of its options, its data and its seed: batches follow from (seed, epoch), dropout from (seed, step)
and the number of threads that a batch is divided over, which is an option; a checkpoint holds everything else. So a run
that was stopped and resumed makes the same updates, bit for bit, as one that was never stopped. The loop itself is in
`transformer.training.loop`, and going on from a checkpoint in `transformer.training.restoring`.
"""

from __future__ import annotations

import math
import textwrap
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import minigrad
from minigrad import optim
from minigrad.device import on_device, to_numpy

from transformer.data.batches import collate, divide
from transformer.data.examples import Examples
from transformer.data.extras import require
from transformer.data.parallel_text import Pairs
from transformer.distributed import ALONE, Alone, Ranks
from transformer.finite import NotFinite, check_finite, unwarned
from transformer.model import Transformer
from transformer.training.checkpoints import Run, load_run, save_checkpoint
from transformer.training.distributed_gradients import DistributedGradients
from transformer.training.log import Log
from transformer.training.messages import note
from transformer.training.options import TrainingOptions
from transformer.training.parallel_gradients import ParallelGradients, Part
from transformer.training.progress import Progress
from transformer.training.run_folder import RunError, numbered, point, prune
from transformer.training.threads import shards_of
from transformer.training.validation import Validation, spread, validate
from transformer.translator import Translator

DECAY = 0.2  # the share of a run with the schedule "wsd" in which the rate falls


class Group(NamedTuple):
    """The batches of one update: our shards of each, their target tokens in all, and the next batch after them."""

    parts: list[Part]
    tokens: int
    epoch: int
    batch: int


class Trainer:
    """One run: model, optimizer, schedule and progress, and the steps that change them.

    Attributes:
        gradients: computes the gradients of a batch; with several threads, updates need its ``with`` block.
        ranks: the processes that train together; the first alone writes.
        total_steps: the number of updates of the whole run, if the options limit steps or epochs.
        best: the validation of the checkpoint that "best" names.
        latest: the checkpoint that was saved or restored last.
    """

    def __init__(self, out: Path, run: Run, train_pairs: Pairs, valid_pairs: Pairs, device: str,
                 ranks: Alone = ALONE) -> None:
        self.out, self.run, self.ranks = out, run, ranks
        self.options = options = TrainingOptions.from_json(run.training)
        if options.valid_metric == "bleu":
            # fail here, before the first validation
            require("sacrebleu", "validating by BLEU (--metric exact_match does without)")
        self.examples = encode(train_pairs, "training", run)
        self.valid_pairs = list(valid_pairs)
        self.train_sample = spread(train_pairs, min(len(valid_pairs), 1000))  # for a loss like that of validation
        self.data_checksum = encode(valid_pairs, "validation", run, self.examples.checksum).checksum
        minigrad.manual_seed(options.seed)
        self.model = Transformer(run.config).to(device)
        self.optimizer = optim.AdamW(self.model.parameters(), lr=options.learning_rate, eps=1e-9,
                                     betas=(0.9, options.adam_beta2), weight_decay=options.weight_decay)
        threads = shards_of(run.config, options.threads or 1, options.batch_tokens // ranks.size)
        if isinstance(ranks, Ranks):
            self.gradients: ParallelGradients = DistributedGradients(self.model, ranks, threads, options.shards)
            run.training["shards"] = self.gradients.shards  # so the run goes on anywhere to the same bits
        else:
            self.gradients = ParallelGradients(self.model, threads, options.shards)
        self.progress = Progress()
        # Every epoch has as many batches: their number follows from the lengths.
        epochs = options.epochs and options.epochs * math.ceil(len(self.plan(0)) / options.accumulate)
        self.total_steps = min(filter(None, (options.steps, epochs)), default=None)
        self.scheduler = optim.LambdaLR(self.optimizer, schedule(options, self.total_steps, self.progress))
        self.log = Log(self.out / "log.csv")
        self.best = Validation(math.inf, 0.0)
        self.latest: str | None = None

    # ----------------------------------------------------------------- updates

    def plan(self, epoch: int) -> Sequence[np.ndarray]:
        """The batches of an epoch, as arrays of indices of examples: a function of (seed, epoch)."""
        return divide(self.examples.source_lengths, self.examples.steps, self.options.batch_tokens,
                      np.random.default_rng([self.options.seed, epoch]))

    def groups(self) -> Iterator[Group]:
        """The batches of each update from the present position on, epoch after epoch, on the model's device."""
        epoch, start = self.progress.epoch, self.progress.batch
        while True:
            plan = self.plan(epoch)
            for first in range(start, len(plan), self.options.accumulate):
                batches = [collate(self.examples, i) for i in plan[first:first + self.options.accumulate]]
                end = first + len(batches)
                yield Group([self.gradients.divide(batch.source, batch.target[:, 1:]) for batch in batches],
                            sum(batch.num_target_tokens for batch in batches),
                            *((epoch, end) if end < len(plan) else (epoch + 1, 0)))
            epoch, start = epoch + 1, 0

    def update(self, group: Group) -> None:
        """Make one step of the optimizer on the mean loss of all target tokens in the group; advances the progress."""
        progress, options = self.progress, self.options
        minigrad.random.set_step(progress.step)
        self.optimizer.zero_grad()
        with on_device(self.model.device), unwarned():
            for part in group.parts:
                loss = self.gradients.of(part, options.label_smoothing, group.tokens)
                progress.loss_sum = progress.loss_sum + loss
            if options.clip_norm is not None:
                optim.clip_grad_norm_(self.model.parameters(), options.clip_norm)
            self.optimizer.step()
        progress.step += 1
        progress.epoch, progress.batch = group.epoch, group.batch
        progress.tokens += group.tokens
        progress.loss_tokens += group.tokens
        progress.learning_rate = self.scheduler.get_last_lr()[0]
        self.decide_end(progress.step - 1)  # the time of this one is added later
        self.scheduler.step()

    def decide_end(self, timed: int) -> None:
        """With "wsd", once four fifths of the run are made: decide at which update it ends, and begin the decay.

        The updates that are left follow from the options, or from the pace so far, that of `timed` updates, where
        `minutes` end the run first.
        """
        progress, options = self.progress, self.options
        if options.schedule != "wsd" or progress.end:
            return
        total = self.total_steps or math.inf
        if options.minutes is not None and timed:
            total = min(total, timed * 60 * options.minutes / progress.seconds)
        if progress.step >= (1 - DECAY) * total:
            progress.decay_from = min(progress.step, math.ceil((1 - DECAY) * total))
            progress.end = max(progress.step, round(total))

    def read_loss(self) -> None:
        """Read the sum of the losses, which synchronises a GPU; NotFinite unless it is finite."""
        self.progress.loss_sum = float(to_numpy(self.progress.loss_sum))
        if not math.isfinite(self.progress.loss_sum):
            raise NotFinite(f"the loss became {self.progress.loss_sum}")

    # ----------------------------------------------------------------- validation

    def translator(self) -> Translator:
        """The model as it is now, with its tokenizers."""
        return Translator(self.model, self.run.source_tokenizer, self.run.target_tokenizer)

    def better(self, validation: Validation) -> bool:
        """Whether a validation of this run is better than the best."""
        return validation.better_than(self.best, self.options.valid_metric)

    def validate(self) -> Validation:
        """Validation loss and metric of the model as it is now."""
        return validate(self.translator(), self.valid_pairs, self.options, self.ranks)

    def validate_and_save(self) -> Validation:
        """Validate, add a line to the log, and save a checkpoint, which "best" names if it is the best."""
        progress, start = self.progress, time.perf_counter()
        self.read_loss()
        validation = self.validate()
        progress.improved = self.better(validation)
        if progress.improved:
            self.best = validation
        row = self._row(validation)
        progress.validated, progress.loss_sum, progress.loss_tokens = progress.step, 0.0, 0
        progress.seconds += time.perf_counter() - start
        self.ranks.compare(weights=self._checksum_of_weights)
        self.ranks.first(lambda: self.log.add(**row, seconds=progress.seconds))
        self.save()
        return validation

    def _row(self, validation: Validation) -> dict[str, Any]:
        """What the log has of a validation, but for the seconds."""
        progress = self.progress
        train_loss = self.translator().loss(self.train_sample, self.options.batch_tokens, self.ranks)
        return {"step": progress.step, "epoch": progress.epoch, "objective": progress.mean_loss,
                "train_loss": train_loss, "valid_loss": validation.loss, "metric": validation.metric,
                "learning_rate": progress.learning_rate, "tokens": progress.tokens}

    def average_checkpoints(self) -> None:
        """Average the weights of the last checkpoints; what validates better than the best is saved as that."""
        states, options, progress = list[dict[str, np.ndarray]](), self.options, self.progress
        for name in self.ranks.first(lambda: numbered(self.out)[-options.average:]):
            try:
                states.append(load_run(self.out, name, self.ranks)[1])
            except RunError as error:
                note(f"{error}; it is left out of the average")
        if len(states) < 2:
            note(f"no average: only {len(states)} of the last {options.average} checkpoints can be read")
            return
        own = {name: tensor.numpy().copy() for name, tensor in self.model.state_dict().items()}
        self.model.load_state_dict({name: np.mean([state[name] for state in states], axis=0, dtype=np.float64)
                                    .astype(array.dtype) for name, array in own.items()})
        validation = self.validate()
        if self.better(validation):
            self.best = validation
            average, row = f"{progress.step:08d}-average-{len(states)}", self._row(validation)
            self.ranks.first(lambda: self._write_weights(average, {}))
            self.ranks.first(lambda: point(self.out, "best", average))
            self.ranks.first(lambda: self.log.add(**row, seconds=progress.seconds))
        else:
            note(f"the average of the last {len(states)} checkpoints validates no better, and is not kept")
        self.model.load_state_dict(own)

    def _checksum_of_weights(self) -> int:
        """A checksum that is the same on all ranks, as long as every one makes the same updates."""
        total = 0
        for tensor in self.model.state_dict().values():
            total = zlib.crc32(tensor.numpy().tobytes(), total)
        return total

    # ----------------------------------------------------------------- checkpoints

    def save(self) -> None:
        """Write a checkpoint of the present step, if there is none; "latest" then names it, "best" if it is the best.

        Without a validation its name has a suffix, so that a run keeps the same checkpoints as one that was never
        interrupted.
        """
        progress, name = self.progress, f"{self.progress.step:08d}"
        if progress.step != progress.validated:
            self.read_loss()
            name += "-interrupted"
        if self.latest != name:  # else the run was resumed from it
            self.ranks.first(lambda: self._write(name))
            self.latest = name

    def _write(self, name: str) -> None:
        check_finite(dict(self.model.named_parameters()))
        moments = self.moments()
        check_finite(moments, "the optimizer's")
        self._write_weights(name, moments)
        point(self.out, "latest", name)
        if self.progress.improved and self.progress.step == self.progress.validated:
            point(self.out, "best", name)
        prune(self.out, max(self.options.keep, self.options.average))

    def _write_weights(self, name: str, moments: dict[str, np.ndarray]) -> None:
        best = self.best.to_json() if self.best.loss < math.inf else None
        self.run.progress = asdict(self.progress) | {"best": best, "data_checksum": self.data_checksum}
        save_checkpoint(self.out, name, self.run, self.model.state_dict(), moments)

    def moments(self) -> dict[str, np.ndarray]:
        """The state of the optimizer: host arrays by "parameter.name"."""
        names = [name for name, _ in self.model.named_parameters()]
        return {f"{names[i]}.{name}": np.asarray(value) for i, entry in self.optimizer.state_dict()["state"].items()
                for name, value in entry.items()}

    def load_moments(self, moments: dict[str, np.ndarray]) -> None:
        """The inverse of `moments`; KeyError for the moments of no parameter."""
        numbers = {name: i for i, (name, _) in enumerate(self.model.named_parameters())}
        state: dict[int, dict[str, Any]] = {}
        for key, value in moments.items():
            parameter, _, name = key.rpartition(".")
            state.setdefault(numbers[parameter], {})[name] = value
        self.optimizer.load_state_dict(self.optimizer.state_dict() | {"state": state})


def encode(pairs: Pairs, kind: str, run: Run, checksum: int = 0) -> Examples:
    """The token ids of `pairs`, by the tokenizers of `run`; RunError if one has more than the model's positions.

    Args:
        pairs: (source, target) texts.
        kind: "training" or "validation".
        run: has the tokenizers, and the number of positions.
        checksum: the checksum of the examples before these, see `Examples`.
    """
    limit = run.config.max_length
    examples = Examples(pairs, run.source_tokenizer, run.target_tokenizer, limit, checksum)
    too_long = np.flatnonzero(examples.too_long)
    if too_long.size:
        first = int(too_long[0])
        text = textwrap.shorten(" ".join(next(islice(pairs, first, None))), 60, placeholder="…")
        raise RunError(f"{kind} pair {first + 1}, {text!r}, has more tokens than the model's {limit:,} positions "
                       f"(too long: {len(too_long):,}); shorten or remove it, or raise --max-length")
    return examples


def schedule(options: TrainingOptions, total: int | None, progress: Progress) -> Callable[[int], float]:
    """The factor of the learning rate, from the number of updates made; a run of `total` updates ends above 0.

    With "cosine", that is Loshchilov and Hutter 2017 (SGDR), equation 5, after a linear warm-up.
    """
    warmup = max(1, options.warmup_steps if options.warmup_steps < (total or math.inf) else (total or 0) // 10)

    def factor(step: int) -> float:
        rise, after = min(1.0, (step + 1) / warmup), max(0, step + 1 - warmup)
        if options.schedule == "cosine":
            return rise * (1 + math.cos(math.pi * min(1.0, after / ((total or 0) + 1 - warmup)))) / 2
        if options.schedule == "inverse_sqrt":  # the paper's shape, with its peak at `learning_rate`
            return min(rise, math.sqrt(warmup / (step + 1)))
        return rise * progress.decay(step)  # which is 1 with "constant"

    return factor
