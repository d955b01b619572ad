"""One training run: the model, the optimizer, the schedule, the progress, and the steps that change them.

A run is a function of its options, its data and its seed: batches follow from (seed, epoch), dropout from (seed, step)
and the number of threads that a batch is divided over, which is an option; a checkpoint holds everything else. So a run
that was stopped and resumed makes the same updates, bit for bit, as one that was never stopped. The loop itself is in
`transformer.training.loop`, and going on from a checkpoint in `transformer.training.restoring`.
"""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

import minigrad
from minigrad import optim
from minigrad.device import on_device

from transformer.data.batches import divide
from transformer.data.extras import require
from transformer.data.parallel_text import Pairs
from transformer.distributed import ALONE, Alone, Ranks
from transformer.finite import check_finite, unwarned
from transformer.model import Transformer
from transformer.training.checkpoints import Run, load_checkpoint, save_checkpoint
from transformer.training.distributed_gradients import DistributedGradients
from transformer.training.log import Log
from transformer.training.loss_meter import LossMeter
from transformer.training.messages import note
from transformer.training.options import TrainingOptions
from transformer.training.pairs import encode
from transformer.training.parallel_gradients import ParallelGradients
from transformer.training.prefetch import Group, prepare
from transformer.training.progress import Progress
from transformer.training.run_folder import RunError, numbered, point, prune
from transformer.training.threads import shards_of
from transformer.training.validation import Validation, loss_of, spread, validate
from transformer.translator import Translator

FEW_BATCHES = 3  # an epoch of fewer is told of
DECAY = 0.2  # the share of a run with the schedule "wsd" in which the rate falls


class Trainer:
    """One run: model, optimizer, schedule and progress, and the steps that change them.

    Attributes:
        gradients: computes the gradients of a batch; with several threads, updates need its ``with`` block.
        ranks: the processes that train together; the first alone writes.
        losses: the loss meter, which the loop reads into `Progress.loss_sum` and `loss_tokens`.
        scaler: the loss scale of float16, and the updates that it skips.
        best: the best validation of the updates so far.
        later: after a return to an older checkpoint: the validation of a later one, if that is better than `best`; the
            pointer "best" names it until an update of this run does better.
    """

    def __init__(self, out: Path, run: Run, train_pairs: Pairs, valid_pairs: Pairs, device: str,
                 ranks: Alone = ALONE) -> None:
        self.out, self.run, self.ranks = out, run, ranks
        self.options = TrainingOptions.from_json(run.training)
        if self.options.valid_metric == "bleu":
            # fail here, before the first validation
            require("sacrebleu", "validating by BLEU (--metric exact_match does without)")
        self.examples = encode(train_pairs, "training", run)
        self.valid_pairs = list(valid_pairs)
        self.train_sample = spread(train_pairs, min(len(valid_pairs), 1000))  # for a loss like that of validation
        self.data_checksum = encode(valid_pairs, "validation", run, self.examples.checksum).checksum
        minigrad.manual_seed(self.options.seed)
        self.model = Transformer(run.config).to(device)
        self.optimizer = optim.AdamW(self.model.parameters(), lr=self.options.learning_rate, eps=1e-9,
                                     betas=(0.9, self.options.adam_beta2), weight_decay=self.options.weight_decay)
        threads = shards_of(run.config, self.options.threads or 1, self.options.batch_tokens // ranks.size)
        self.gradients = (DistributedGradients(self.model, ranks, threads, self.options.shards)
                          if isinstance(ranks, Ranks) else
                          ParallelGradients(self.model, threads, self.options.shards))
        self.progress = Progress()
        self.total_steps = self._total_steps()
        self.scheduler = self._scheduler()
        self.losses = LossMeter()
        self.scaler = optim.GradScaler(enabled=self.options.precision == "float16")
        self.log = Log(self.out / "log.csv")
        self.best = Validation(math.inf, 0.0)
        self.later: Validation | None = None
        self.latest: str | None = None  # the checkpoint that was saved or restored last

    # ----------------------------------------------------------------- plans

    def plan(self, epoch: int) -> Sequence[np.ndarray]:
        """The batches of an epoch, as arrays of indices of examples: a function of (seed, epoch)."""
        return divide(self.examples.source_lengths, self.examples.steps, self.options.batch_tokens,
                      np.random.default_rng([self.options.seed, epoch]))

    def _total_steps(self) -> int | None:
        """The number of updates of the whole run, if the options limit steps or epochs."""
        limits = [] if self.options.steps is None else [self.options.steps]
        if self.options.epochs is not None:
            # Every epoch has as many batches: their number follows from the lengths.
            limits.append(self.options.epochs * math.ceil(len(self.plan(0)) / self.options.accumulate))
        return min(limits) if limits else None

    def _scheduler(self) -> optim.LambdaLR:
        options, total = self.options, self.total_steps or 1
        warmup = max(1, options.warmup_steps)
        if self.total_steps is not None and warmup >= total:  # `doubts` tells so
            warmup = max(1, total // 10)
        if options.schedule == "cosine":
            return optim.CosineLR(self.optimizer, warmup, total + 1)
        if options.schedule == "linear":
            return optim.LinearLR(self.optimizer, warmup, total + 1)
        if options.schedule == "inverse_sqrt":  # the paper's shape, with its peak at `learning_rate`
            return optim.LambdaLR(self.optimizer, lambda step: min((step + 1) / warmup, math.sqrt(warmup / (step + 1))))
        progress = self.progress
        return optim.LambdaLR(self.optimizer, lambda step: min(1.0, (step + 1) / warmup) * progress.decay(step))

    def doubts(self) -> Iterator[str]:
        """What makes no sense in the options together, a line each."""
        options, total = self.options, self.total_steps or math.inf
        if options.warmup_steps >= total:
            yield f"a warm-up of {options.warmup_steps:,} updates leaves nothing of the {total:,}: a tenth is used"
        if options.valid_every >= total and options.valid_first is None:
            yield f"with --valid-every {options.valid_every:,} a run of {total:,} updates is validated once, at its end"
        if len(self.plan(0)) < FEW_BATCHES * options.accumulate:
            yield (f"an epoch is {len(self.plan(0))} batches of up to {options.batch_tokens:,} tokens, so that it has "
                   "few updates; --batch-tokens makes them smaller")

    def decide_end(self, timed: int) -> None:
        """With "wsd", once four fifths of the run are made: decide at which update it ends, and begin the decay.

        The updates that are left follow from the options, or from the pace so far, that of `timed` updates, where
        `minutes` end the run first.
        """
        progress, options = self.progress, self.options
        if options.schedule != "wsd" or progress.end:
            return
        total = math.inf if self.total_steps is None else self.total_steps
        if options.minutes is not None and timed:
            total = min(total, timed * 60 * options.minutes / progress.seconds)
        if progress.step >= (1 - DECAY) * total:
            progress.decay_from = min(progress.step, math.ceil((1 - DECAY) * total))
            progress.end = max(progress.step, round(total))

    def groups(self) -> Iterator[Group]:
        """The batches of each update from the present position on, epoch after epoch."""
        epoch, start = self.progress.epoch, self.progress.batch
        while True:
            plan = self.plan(epoch)
            for first in range(start, len(plan), self.options.accumulate):
                chosen = plan[first:first + self.options.accumulate]
                end = first + len(chosen)
                following = (epoch, end) if end < len(plan) else (epoch + 1, 0)
                yield prepare(self.gradients, self.examples, chosen, *following, self.options.micro_batches)
            epoch, start = epoch + 1, 0

    # ----------------------------------------------------------------- one update

    def update(self, group: Group) -> None:
        """Make one step of the optimizer on the mean loss of all target tokens in the group; advances the progress.

        With float16, an update with a gradient that is not finite changes no parameter. It counts as a step all the
        same: the learning rate and the masks of dropout advance.
        """
        progress = self.progress
        minigrad.random.set_step(progress.step)
        self.optimizer.zero_grad()
        with on_device(self.model.device), unwarned():
            loss = self._gradients(group)
            self.scaler.unscale_(self.optimizer)
            if self.options.clip_norm is not None:
                optim.clip_grad_norm_(self.model.parameters(), self.options.clip_norm)
            self.scaler.step(self.optimizer)
            self.losses.add(loss, group.tokens, self.scaler.found_inf, self.scaler.get_scale())
            self.scaler.update()
        progress.step += 1
        progress.learning_rate = self.scheduler.get_last_lr()[0]
        self.decide_end(progress.step - 1)  # the time of this one is added later
        self.scheduler.step()
        progress.epoch, progress.batch = group.epoch, group.batch
        progress.tokens += group.tokens
        progress.loss_tokens += group.tokens

    def _gradients(self, group: Group) -> Any:
        """Compute the gradients, with float16 multiplied by the loss scale; returns the sum of the losses."""
        scale = self.scaler.get_scale() if self.scaler.is_enabled() else None
        total: Any = 0.0
        for part in group.parts:
            total = total + self.gradients.of(part, self.options.label_smoothing, group.tokens, scale)
        return total

    # ----------------------------------------------------------------- checkpoints

    def save(self) -> None:
        """Write the checkpoint of a validation; "latest" then names it, and "best" if it is the best."""
        self._save(f"{self.progress.step:08d}", best=self.progress.stale == 0)

    def save_interrupted(self) -> None:
        """Write a checkpoint of the present step, if there is none; "latest" then names it.

        Its name has a suffix, so that a run keeps and averages the same checkpoints as one without interruptions.
        """
        if self.progress.step != self.progress.validated:
            self._save(f"{self.progress.step:08d}-interrupted", best=False)

    def _save(self, name: str, best: bool) -> None:
        if self.latest == name:  # the run was resumed from this checkpoint
            return
        best = best and (self.later is None or not self.better(self.later, self.best))
        self.ranks.first(lambda: self._save_to_disk(name, best))
        self.latest, self.later = name, None if best else self.later

    def _save_to_disk(self, name: str, best: bool) -> None:
        self._write(name, self.optimizer.state_dict())
        point(self.out, "latest", name)
        if best:
            point(self.out, "best", name)
        self.prune()

    def prune(self) -> None:
        """Remove the checkpoints that the options do not keep."""
        prune(self.out, max(self.options.keep, self.options.average))

    def _write(self, name: str, optimizer: dict[str, Any] | None) -> None:
        self.check_finite(optimizer)
        best = self.best.to_json() if self.best.loss < math.inf else None
        self.run.progress = asdict(self.progress) | {"scheduler": self.scheduler.state_dict(), "best": best,
                                                     "data_checksum": self.data_checksum}
        if self.scaler.is_enabled():
            self.run.progress["scaler"] = self.scaler.state_dict()
        save_checkpoint(self.out, name, self.run, self.model.state_dict(), optimizer)

    def check_finite(self, optimizer: dict[str, Any] | None) -> None:
        """Raise NotFinite if the model, or the state of its optimizer, is not finite: no update makes it so again."""
        check_finite(dict(self.model.named_parameters()))
        if optimizer is not None:
            names = [name for name, _ in self.model.named_parameters()]
            moments = {f"{name} of {names[index]}": value for index, entries in optimizer["state"].items()
                       for name, value in entries.items() if hasattr(value, "shape")}
            check_finite(moments, "the optimizer's")

    # ----------------------------------------------------------------- validation

    def translator(self) -> Translator:
        """The model as it is now, with its tokenizers."""
        return Translator(self.model, self.run.source_tokenizer, self.run.target_tokenizer)

    def better(self, one: Validation, other: Validation) -> bool:
        """Whether one validation of this run is better than another."""
        return one.better_than(other, self.options.valid_metric)

    def validate(self) -> Validation:
        """Validation loss and metric of the model as it is now."""
        return validate(self.translator(), self.valid_pairs, self.options, self.ranks)

    def validate_and_save(self) -> Validation:
        """Validate, add a line to the log, and save a checkpoint, which "best" names if it is the best."""
        progress, start = self.progress, time.perf_counter()
        validation = self.validate()
        train_loss = loss_of(self.translator(), self.train_sample, self.options, self.ranks)
        if self.better(validation, self.best):
            self.best, progress.stale = validation, 0
        else:
            progress.stale += 1
        progress.validated = progress.step
        progress.seconds += time.perf_counter() - start
        objective = progress.mean_loss
        self.losses.total, progress.loss_sum, progress.loss_tokens = 0.0, 0.0, 0
        self.ranks.compare(weights=self._checksum_of_weights)
        self._add_to_log(validation, train_loss, objective)
        self.save()
        return validation

    def _add_to_log(self, validation: Validation, train_loss: float, objective: float) -> None:
        progress = self.progress
        self.ranks.first(lambda: self.log.add(
            step=progress.step, epoch=progress.epoch, objective=objective, train_loss=train_loss,
            valid_loss=validation.loss, metric=validation.metric, learning_rate=progress.learning_rate,
            tokens=progress.tokens, seconds=progress.seconds))

    def average_checkpoints(self) -> None:
        """Average the weights of the last checkpoints; if that validates better, save it as the best, with a row."""
        states = list(self._weights_of_last()) if self.ranks.rank == 0 else []
        count = self.ranks.broadcast(len(states))
        if count < 2:
            note(f"no average: only {count} of the last {self.options.average} checkpoints can be read")
            return
        own = {name: tensor.numpy().copy() for name, tensor in self.model.state_dict().items()}
        mean = self.ranks.broadcast_arrays({
            key: np.mean([state[key] for state in states], axis=0, dtype=np.float64).astype(array.dtype)
            for key, array in own.items() if states})
        self.model.load_state_dict(mean)
        validation = self.validate()
        if self.better(validation, self.later or self.best):
            self.best, self.later = validation, None
            self.ranks.first(lambda: self._save_average(f"{self.progress.step:08d}-average-{count}"))
            train_loss = loss_of(self.translator(), self.train_sample, self.options, self.ranks)
            self._add_to_log(validation, train_loss, math.nan)
        else:
            note(f"the average of the last {count} checkpoints validates no better, and is not kept")
        self.model.load_state_dict(own)

    def _save_average(self, name: str) -> None:
        self._write(name, None)
        point(self.out, "best", name)

    def _weights_of_last(self) -> Iterator[dict[str, np.ndarray]]:
        """The weights of the last checkpoints, of those to average that are intact."""
        for name in [name for name in numbered(self.out) if int(name) <= self.progress.step][-self.options.average:]:
            try:
                yield load_checkpoint(self.out, name)[1]
            except RunError as error:
                note(f"{error}; it is left out of the average")

    def _checksum_of_weights(self) -> int:
        """A checksum that is the same on all ranks, as long as every one makes the same updates."""
        total = 0
        for tensor in self.model.state_dict().values():
            total = zlib.crc32(tensor.numpy().tobytes(), total)
        return total
