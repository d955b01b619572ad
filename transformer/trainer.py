"""One training run: the model, the optimizer, the schedule, the progress, and what changes them.

A run is a function of its options, its data and its seed: batches follow from (seed, epoch), dropout from (seed, step),
and a checkpoint holds everything else. So a run that was stopped and resumed makes the same updates, bit for bit, as
one that was never stopped. The loop itself is in `transformer.train`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import minigrad
from minigrad import optim

from transformer.checkpoints import Run, RunError, load_run, numbered, point, pointed, prune, save_checkpoint
from transformer.data.batches import Batch, Example, batches_by_length, collate, encode_pairs
from transformer.log import Log
from transformer.model import Transformer
from transformer.options import TrainingOptions
from transformer.translator import Translator
from transformer.validation import Validation, validate

Pairs = Sequence[tuple[str, str]]


@dataclass
class Progress:
    """Where a run is. All of it is saved in every checkpoint.

    Attributes:
        step: updates made.
        epoch, batch: the batch to come next: its epoch, and its number in it.
        seconds: training time so far, validations included.
        tokens: real target tokens trained on.
        best_metric, best_loss: of the best validation so far.
        stale: validations since then.
        loss_sum, loss_tokens: of the training losses since the last line of the log.
    """

    step: int = 0
    epoch: int = 0
    batch: int = 0
    seconds: float = 0.0
    tokens: int = 0
    best_metric: float = -1.0
    best_loss: float = math.inf
    stale: int = 0
    loss_sum: float = 0.0
    loss_tokens: int = 0


class Trainer:
    """One run: model, optimizer, schedule and progress, and the steps that change them."""

    def __init__(self, out: Path, run: Run, train_pairs: Pairs, valid_pairs: Pairs, device: str) -> None:
        self.out, self.run = out, run
        self.options = TrainingOptions.from_json(run.training)
        self.examples = self._encode(train_pairs)
        self.valid_pairs = list(valid_pairs)
        minigrad.manual_seed(self.options.seed)
        self.model = Transformer(run.config).to(device)
        self.optimizer = optim.AdamW(self.model.parameters(), lr=self.options.learning_rate, eps=1e-9,
                                     betas=(0.9, self.options.adam_beta2), weight_decay=self.options.weight_decay)
        self.progress = Progress()
        self.total_steps = self._total_steps()
        self.scheduler = self._scheduler()
        self.log = Log(self.out / "log.csv")
        self.best = Validation(math.inf, 0.0)

    def _encode(self, pairs: Sequence[tuple[str, str]]) -> list[Example]:
        examples = encode_pairs(pairs, self.run.source_tokenizer, self.run.target_tokenizer)
        limit = self.run.config.max_length
        for (source, target), (text, _) in zip(examples, pairs, strict=True):
            if len(source) > limit or len(target) + 1 > limit:
                raise RunError(f"a training pair has {len(source)} source and {len(target) + 1} target tokens, "
                               f"more than the model's {limit} positions (--max-length): {text[:60]!r}")
        return examples

    # ----------------------------------------------------------------- plans

    def plan(self, epoch: int) -> list[np.ndarray]:
        """The batches of an epoch, as arrays of indices of examples."""
        return batches_by_length(self.examples, self.options.batch_tokens, self.options.seed, epoch)

    def _total_steps(self) -> int | None:
        """The number of updates of the whole run, if steps or epochs say so."""
        limits = [] if self.options.steps is None else [self.options.steps]
        if self.options.epochs is not None:
            batches = [len(self.plan(epoch)) for epoch in range(self.options.epochs)]
            limits.append(sum(math.ceil(count / self.options.accumulate) for count in batches))
        return min(limits) if limits else None

    def _scheduler(self) -> optim.Scheduler:
        options, total = self.options, self.total_steps or 1
        warmup = max(1, options.warmup_steps)
        if options.schedule == "cosine":
            return optim.CosineLR(self.optimizer, min(warmup, total), total + 1)
        if options.schedule == "linear":
            return optim.LinearLR(self.optimizer, min(warmup, total), total + 1)
        if options.schedule == "inverse_sqrt":  # the paper's shape, with its peak at `learning_rate`
            return optim.LambdaLR(self.optimizer, lambda step: min((step + 1) / warmup, math.sqrt(warmup / (step + 1))))
        return optim.LambdaLR(self.optimizer, lambda step: min(1.0, (step + 1) / warmup))

    def groups(self) -> Iterator[list[Batch]]:
        """From where the run is, the batches of each update, epoch after epoch; moves the position on."""
        progress = self.progress
        while self.options.epochs is None or progress.epoch < self.options.epochs:
            plan = self.plan(progress.epoch)
            while progress.batch < len(plan):
                chosen = plan[progress.batch:progress.batch + self.options.accumulate]
                progress.batch += len(chosen)
                yield [collate(self.examples, indices) for indices in chosen]
            progress.epoch, progress.batch = progress.epoch + 1, 0

    # ----------------------------------------------------------------- one update

    def update(self, batches: list[Batch]) -> tuple[Any, int]:
        """One step of the optimizer on these batches; the summed loss (a raw 0-d array) and how many target tokens."""
        options = self.options
        minigrad.random.set_step(self.progress.step)
        tokens = sum(batch.num_target_tokens for batch in batches)
        self.optimizer.zero_grad()
        total: Any = 0.0
        for batch in batches:
            loss = self.model.loss(batch.source, batch.target[:, 1:], options.label_smoothing, reduction="sum")
            (loss / tokens).backward()
            total = total + loss.data.astype(np.float64)
        if options.clip_norm is not None:
            optim.clip_grad_norm_(self.model.parameters(), options.clip_norm)
        self.optimizer.step()
        self.scheduler.step()
        self.progress.step += 1
        self.progress.tokens += tokens
        return total, tokens

    # ----------------------------------------------------------------- checkpoints

    def save(self) -> None:
        """Write a checkpoint of this moment and let "latest" name it."""
        name = f"{self.progress.step:08d}"
        if pointed(self.out, "latest") != name:
            self._write(name, self.optimizer.state_dict())
            point(self.out, "latest", name)
            prune(self.out, max(self.options.keep, self.options.average))

    def _write(self, name: str, optimizer: dict[str, Any] | None) -> None:
        self.run.progress = asdict(self.progress) | {"scheduler": self.scheduler.state_dict(),
                                                     "best": asdict(self.best)}
        save_checkpoint(self.out, name, self.run, self.model.state_dict(), optimizer)

    def restore(self) -> None:
        """Go back to the latest checkpoint of the folder, and cut the log back to it."""
        saved, arrays, optimizer = load_run(self.out, "latest")
        if optimizer is None:
            raise RunError(f"{self.out}: the latest checkpoint has no optimizer state")
        self.model.load_state_dict(arrays)
        self.optimizer.load_state_dict(optimizer)
        values = dict(saved.progress)
        self.scheduler.load_state_dict(values.pop("scheduler"))
        self.best = Validation(**values.pop("best"))
        self.progress = Progress(**values)
        self.log.cut_after(self.progress.step)

    # ----------------------------------------------------------------- validation

    def translator(self) -> Translator:
        """The model as it is now, with its tokenizers."""
        return Translator(self.model, self.run.source_tokenizer, self.run.target_tokenizer)

    def validate(self) -> Validation:
        """Validation loss and metric of the model as it is now."""
        return validate(self.translator(), self.valid_pairs, self.options)

    def validate_and_save(self) -> Validation:
        """Validate, add a line to the log, save a checkpoint, and let "best" name it if it is."""
        progress, start = self.progress, time.perf_counter()
        validation = self.validate()
        self._note(validation)
        progress.seconds += time.perf_counter() - start
        train_loss = progress.loss_sum / max(1, progress.loss_tokens)
        progress.loss_sum, progress.loss_tokens = 0.0, 0
        self.log.add(step=progress.step, epoch=progress.epoch, train_loss=train_loss, valid_loss=validation.loss,
                     metric=validation.metric, learning_rate=self.scheduler.get_last_lr()[0], tokens=progress.tokens,
                     seconds=progress.seconds)
        self.save()
        if progress.stale == 0:
            point(self.out, "best", f"{progress.step:08d}")
        return validation

    def _note(self, validation: Validation) -> None:
        """Count a validation as the best so far, or as one more that is not."""
        if validation.better_than(self.best):
            self.best, self.progress.stale = validation, 0
            self.progress.best_metric, self.progress.best_loss = validation.metric, validation.loss
        else:
            self.progress.stale += 1

    def average_checkpoints(self) -> None:
        """Average the weights of the last checkpoints; if that validates better, save it as the best."""
        names = numbered(self.out)[-self.options.average:]
        if len(names) < 2:
            return
        states = [load_run(self.out, name)[1] for name in names]
        own = {name: tensor.numpy().copy() for name, tensor in self.model.state_dict().items()}
        mean = {key: np.mean([state[key] for state in states], axis=0, dtype=np.float64).astype(array.dtype)
                for key, array in own.items()}
        self.model.load_state_dict(mean)
        validation = self.validate()
        if validation.better_than(self.best):
            self.best = validation
            name = f"{self.progress.step:08d}-average-{len(names)}"
            self._write(name, None)
            point(self.out, "best", name)
        self.model.load_state_dict(own)
