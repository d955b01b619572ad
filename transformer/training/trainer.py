"""One training run: the model, the optimizer, the progress, and the steps that change them.

A run is a function of its options, its data and its seed: batches follow from (seed, epoch), dropout from (seed, step)
and the number of shards that a batch is divided into, which is an option; a checkpoint holds everything else. So a run
that was stopped and resumed makes the same updates, bit for bit, as one that was never stopped. The loop itself is in
`transformer.training.loop`.
"""

import math
import time
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import minigrad
from minigrad import optim
from minigrad.device import on_device, to_numpy

from transformer.data.batches import collate, divide
from transformer.data.examples import Examples
from transformer.data.extras import require
from transformer.data.parallel_text import Pairs, first_of_each
from transformer.distributed import ALONE, Alone
from transformer.finite import NotFinite, unwarned
from transformer.model import Transformer
from transformer.training.checkpoints import (
    NUMERICS,
    Arrays,
    Progress,
    Run,
    Validation,
    load_checkpoint,
    load_run,
    save_checkpoint,
    write_empty_moments,
)
from transformer.training.log import Log
from transformer.training.messages import note, one_line
from transformer.training.metrics import bleu, bleu_tokenizer, exact_match
from transformer.training.options import TrainingOptions
from transformer.training.parallel_gradients import ParallelGradients, Shard
from transformer.training.run_folder import RunError, checkpoint_names, numbered, point, prune
from transformer.training.threads import dividing_threads
from transformer.translator import Translator

DECAY = 0.2  # the share of a run with the schedule "wsd" in which the rate falls
Sample = tuple[str, str, str]  # a validation sentence, its reference, and what the model makes of it


class Group(NamedTuple):
    """The batches of one update, each in shards, and their target tokens in all."""

    batches: list[list[Shard | None]]
    tokens: int


class Trainer:
    """One run: model, optimizer and progress, and the steps that change them.

    Attributes:
        translator: the model as it is now, with its tokenizers.
        gradients: computes the gradients of a batch; with several threads, updates need its ``with`` block.
        ranks: the processes that train together; the first alone writes.
        total_steps: the number of updates of the whole run; infinite if the options limit neither steps nor epochs.
        latest: the checkpoint that was saved or restored last.
        best: on the first rank, the checkpoint that validated best, and its validation; None before there is one.
        samples: three of the sentences behind the last validation, the same ones every time.
        train_loss: the loss of a sample of the training text at the last validation, computed as that of validation.
    """

    def __init__(self, out: Path, run: Run, train_pairs: Pairs, valid_pairs: Pairs, device: str,
                 ranks: Alone = ALONE) -> None:
        options = self.options = run.options
        self.run = run = replace(run, numerics=Run.numerics)  # those that it goes on with
        self.ranks = ranks
        self.out, self.log = out, Log(out / "log.csv")
        self.latest = ""
        self.best: tuple[str, Validation] | None = None
        self.train_loss = math.nan
        self.samples: Sequence[Sample] = ()
        if options.valid_metric == "bleu":
            # fail here, before the first validation
            require("sacrebleu", "validating by BLEU (--metric exact_match does without)")
        self.examples = self._encoded("training", train_pairs)
        self.valid_pairs = list(valid_pairs)
        self.train_sample = spread(train_pairs, min(len(valid_pairs), 1000))
        checksum = self._encoded("validation", valid_pairs, self.examples.checksum).checksum
        self.progress = run.progress = Progress(data_checksum=checksum)
        minigrad.manual_seed(options.seed)
        self.model = Transformer(run.config).to(device)
        self.translator = Translator(self.model, *run.tokenizers)
        self.optimizer = optim.AdamW(self.model.parameters(), lr=options.learning_rate, eps=1e-9,
                                     betas=(0.9, options.adam_beta2), weight_decay=options.weight_decay)
        threads = dividing_threads(run.config, options.threads or 1, options.batch_tokens // ranks.size)
        self.gradients = ParallelGradients(self.model, threads, options.shards, ranks)
        if ranks is not ALONE:
            run.options = replace(options, shards=self.gradients.shards)  # so the run goes on anywhere to the same bits
        # Every epoch has as many batches: their number follows from the lengths.
        self.updates_of_an_epoch = math.ceil(len(self.plan(0)) / options.accumulate)
        self.total_steps = min(options.steps or math.inf, (options.epochs or math.inf) * self.updates_of_an_epoch)

    def _encoded(self, kind: str, pairs: Pairs, checksum: int = 0) -> Examples:
        """The token ids of `pairs`, whose checksum goes on from `checksum`; RunError for one beyond the positions."""
        limit = self.run.config.max_length
        examples = Examples(pairs, *self.run.tokenizers, limit, checksum)
        too_long = np.flatnonzero(examples.too_long) + 1
        if too_long.size:
            raise RunError(f"{kind} pair {too_long[0]} has more tokens than the model's {limit:,} positions (too long: "
                           f"{too_long.size:,}); shorten or remove it, or raise --max-length")
        return examples

    # ----------------------------------------------------------------- updates

    def plan(self, epoch: int) -> Sequence[np.ndarray]:
        """The batches of an epoch, as arrays of indices of examples: a function of (seed, epoch)."""
        return divide(self.examples.source_lengths, self.examples.steps, self.options.batch_tokens,
                      np.random.default_rng([self.options.seed, epoch]))

    def groups(self) -> Iterator[Group]:
        """The batches of each update from the present position on, epoch after epoch, on the model's device."""
        first, accumulate = self.progress.batch, self.options.accumulate
        for epoch in count(self.progress.epoch):
            plan = self.plan(epoch)
            for number in range(first, len(plan), accumulate):
                batches = [collate(self.examples, indices) for indices in plan[number:number + accumulate]]
                yield Group([self.gradients.divide(batch.source, batch.target[:, 1:]) for batch in batches],
                            sum(batch.num_target_tokens for batch in batches))
            first = 0

    def update(self, group: Group) -> None:
        """Make one step of the optimizer on the mean loss of all target tokens in the group; advances the progress."""
        progress, options = self.progress, self.options
        minigrad.random.set_step(progress.step)
        progress.learning_rate = options.learning_rate * self.rate(progress.step)
        self.optimizer.param_groups[0]["lr"] = progress.learning_rate
        self.optimizer.zero_grad()
        with on_device(self.model.device), unwarned():
            for shards in group.batches:
                progress.loss_sum += self.gradients.accumulate(shards, options.label_smoothing, group.tokens)
            if options.clip_norm:
                optim.clip_grad_norm_(self.model.parameters(), options.clip_norm)
            self.optimizer.step()
        progress.step, progress.validation = progress.step + 1, None
        progress.epoch, updates = divmod(progress.step, self.updates_of_an_epoch)
        progress.batch = updates * options.accumulate
        progress.tokens += group.tokens
        progress.loss_tokens += group.tokens

    def rate(self, step: int) -> float:
        """The factor of the learning rate after `step` updates; the last update of a run has one above 0, too.

        With "cosine", that is Loshchilov and Hutter 2017 (SGDR), equation 5, after a linear warm-up.
        """
        options, progress, total = self.options, self.progress, self.total_steps
        warmup = max(1, options.warmup_steps if options.warmup_steps < total else total // 10)
        rise = min(1.0, (step + 1) / warmup)
        if options.schedule == "inverse_sqrt":  # the paper's shape, with its peak at `learning_rate`
            return min(rise, math.sqrt(warmup / (step + 1)))
        if options.schedule == "cosine":
            done = min(1.0, max(0, step + 1 - warmup) / (total + 1 - warmup))
            return rise * (1 + math.cos(math.pi * done)) / 2
        if progress.end and step >= progress.decay_from:  # with "wsd" alone
            return rise * (progress.end - step) / (progress.end - progress.decay_from + 1)
        return rise

    def decide_end(self) -> None:
        """With "wsd", once four fifths of the run are made: decide at which update it ends, and begin the decay.

        The updates that are left follow from the options, or from the pace so far, where `minutes` end the run first.
        """
        progress, options, total = self.progress, self.options, self.total_steps
        if options.schedule != "wsd" or progress.end or not progress.step:
            return
        if options.minutes is not None:
            total = min(total, progress.step * 60 * options.minutes / progress.seconds)
        if progress.step >= (1 - DECAY) * total:
            progress.decay_from = min(progress.step, math.ceil((1 - DECAY) * total))
            progress.end = max(progress.step, round(total))

    def read_loss(self) -> None:
        """Read the sum of the losses, which synchronises a GPU; NotFinite unless it is finite."""
        self.progress.loss_sum = float(to_numpy(self.progress.loss_sum))
        if not math.isfinite(self.progress.loss_sum):
            raise NotFinite(f"the loss became {self.progress.loss_sum}")

    # ----------------------------------------------------------------- validation

    def validate(self) -> Validation:
        """Validation loss and metric of the model as it is now; modes, random state and gradients stay as they are."""
        loss, self.train_loss = (self.translator.loss(pairs, self.options.batch_tokens, self.ranks)
                                 for pairs in (self.valid_pairs, self.train_sample))
        metric, samples = self.score()
        self.samples = spread(samples, 3)
        return Validation(loss, metric)

    def score(self, beam: int = 1, alpha: float | None = None) -> tuple[float, list[Sample]]:
        """The metric that `Translator.evaluate` reports, on `valid_sentences` of the pairs, and the outputs behind it.

        Each source is translated once, and compared with the first of its targets. The ranks divide the work, and all
        have the result. Modes, random state and gradients stay as they are.
        """
        translator, options = self.translator, self.options
        sources, targets = zip(*spread(first_of_each(self.valid_pairs), options.valid_sentences), strict=True)
        references = [translator.as_decoded(target) for target in targets]
        found = translator.translate(sources, beam, 1, 64 // beam, alpha, ranks=self.ranks)
        outputs = [best.text for [best] in found]
        samples = [*zip(sources, targets, outputs, strict=True)]
        if options.valid_metric == "exact_match":
            return exact_match(outputs, references), samples
        return bleu(outputs, references, bleu_tokenizer(translator.target_tokenizer.kind, references))[0], samples

    def validate_and_save(self) -> Validation:
        """Validate, add a line to the log, and save a checkpoint, which "best" names if it is the best."""
        progress, start = self.progress, time.perf_counter()
        self.read_loss()
        progress.validation = validation = self.validate()
        progress.seconds += time.perf_counter() - start
        self.ranks.compare(weights=self._checksum_of_weights)
        self.ranks.first(self._add_to_log)
        progress.validated, progress.loss_sum, progress.loss_tokens = progress.step, 0.0, 0
        self.save()
        return validation

    def _add_to_log(self) -> None:
        validation: Any = self.progress.validation
        self.log.add(**vars(self.progress), objective=self.progress.mean_loss, train_loss=self.train_loss,
                     valid_loss=validation.loss, metric=validation.metric)

    def _checksum_of_weights(self) -> int:
        """A checksum that is the same on all ranks, as long as every one makes the same updates."""
        total = 0
        for tensor in self.model.state_dict().values():
            total = zlib.crc32(tensor.numpy().tobytes(), total)
        return total

    def average_checkpoints(self) -> None:
        """Average the weights of the last checkpoints; if that validates better, keep it as the best."""
        names = self.ranks.first(lambda: numbered(self.out)[-self.options.average:])
        try:
            states = [load_run(self.out, name, self.ranks)[1] for name in names]
        except RunError as error:
            note(f"no average: {error}")
            return
        self.model.load_state_dict({name: np.mean([state[name] for state in states], axis=0, dtype=np.float64)
                                    .astype(array.dtype) for name, array in states[0].items()})
        self.progress.validation = validation = self.validate()
        average = f"{self.progress.step:08d}-average-{len(states)}"

        def keep_the_better() -> None:
            if self._improves(average, validation):
                self._write(average, self.latest)
                self._add_to_log()

        self.ranks.first(keep_the_better)

    # ----------------------------------------------------------------- checkpoints

    def _improves(self, name: str, validation: Validation | None) -> bool:
        """Whether a checkpoint has a validation that is better than the best so far, which it then is."""
        best = self.best and self.best[1]
        if validation is None or not validation.better_than(best, self.options.valid_metric):
            return False
        self.best = name, validation
        return True

    def save(self) -> None:
        """Write a checkpoint of the present step, if there is none; "latest" then names it, "best" if it is the best.

        Without a validation its name has a suffix, so that a run keeps the same checkpoints as one that was never
        interrupted.
        """
        name = f"{self.progress.step:08d}"
        if self.progress.validation is None:
            self.read_loss()
            name += "-interrupted"
        if self.latest != name:  # else the run was resumed from it
            self._improves(name, self.progress.validation)
            self.ranks.first(lambda: self._write(name, name))
            self.latest = name

    def _write(self, name: str, latest: str) -> None:
        save_checkpoint(self.out, name, self.run, self.model.state_dict(), self.moments())
        self._point(latest)

    def _point(self, latest: str, pruned: bool = True) -> None:
        """Name the latest checkpoint and the best; then remove those that are no longer to be kept."""
        best = self.best[0] if self.best else None
        point(self.out, "latest", latest)
        point(self.out, "best", best)
        if pruned:
            prune(self.out, latest, best, max(self.options.keep, self.options.average))

    def moments(self) -> Arrays:
        """The state of the optimizer: host arrays by "parameter.name"."""
        names = [*dict(self.model.named_parameters())]
        return {f"{names[i]}.{name}": np.asarray(value) for i, entry in self.optimizer.state_dict()["state"].items()
                for name, value in entry.items()}

    def load_moments(self, moments: Arrays) -> None:
        """The inverse of `moments`; ValueError for the moments of no parameter."""
        names, state = [*dict(self.model.named_parameters())], dict[int, Any]()
        for key, value in moments.items():
            parameter, _, name = key.rpartition(".")
            state.setdefault(names.index(parameter), {})[name] = value
        self.optimizer.load_state_dict(self.optimizer.state_dict() | {"state": state})

    def load_best(self) -> Run:
        """Free the memory of updates, of which there are no more, and load the best checkpoint's weights; its `Run`."""
        self.optimizer.zero_grad()
        self.optimizer.state.clear()
        run, weights, _ = load_run(self.out, ranks=self.ranks)
        self.model.eval().load_state_dict(weights)
        return run

    def restore(self, which: str = "latest") -> None:
        """Go on from a checkpoint in `out`, which "latest" then names; later lines of the log are dropped.

        Args:
            which: "latest", "best", or the name of a checkpoint. "best" then names the best of this one and those of
                earlier steps: by their own validations, and of those that are intact.

        Raises:
            RunError: the checkpoint cannot be used, or was made with other pairs, another configuration, or options
                that a resumed run may not change. The folder is unchanged; the trainer is not to be used.
        """
        out = self.out
        run, arrays, moments = load_run(out, which, self.ranks)
        wanted, found = (vars(one.config) | vars(one.options) for one in (self.run, run))
        changed = [key for key in wanted if wanted[key] != found[key] and key not in TrainingOptions.MAY_CHANGE]
        if run.progress.data_checksum != self.progress.data_checksum:
            changed.append("the pairs and tokenizers that this run began with")
        if changed:
            raise RunError(f"{out}: a resumed run may not change {', '.join(changed)}; start a new one in another "
                           "folder")
        progress = self.progress = self.run.progress = run.progress
        if any(wanted[limit] != found[limit] for limit in ("steps", "epochs", "minutes")):
            progress.decay_from = progress.end = 0
        try:
            self.model.load_state_dict(arrays)
            self.load_moments(moments)
        except (ValueError, TypeError) as error:
            raise RunError(f"{out}: the checkpoint {run.name} cannot be used: {one_line(error)}") from error
        if not moments:
            note(f"{run.name} has no state of the optimizer, which the latest checkpoint alone keeps: it begins anew, "
                 "and the updates are not those of a run that was never stopped")
        if run.numerics != NUMERICS:
            note(f"{run.name} was computed by a version that rounds sums otherwise (numerics {run.numerics}, here "
                 f"{NUMERICS}): the run goes on, and its updates differ in the last digits from those of that version")

        def settle() -> None:
            self.log.read()  # RunError if it cannot be cut
            for other in reversed(checkpoint_names(out)):
                with suppress(RunError):
                    earlier = load_checkpoint(out, other)[0].progress
                    if earlier.step <= progress.step:
                        self._improves(other, earlier.validation)
            if not moments:
                write_empty_moments(out, run.name)
            self._point(run.name, pruned=which == "latest" and bool(moments))  # else later ones stay until it saves
            self.log.cut_after(progress.validated)

        self.latest, self.best = run.name, None
        self.ranks.first(settle)


def spread(items: Collection[Any] | Pairs, count: int) -> list[Any]:
    """At most `count` items at equal distances, so that text in order of length gives all lengths."""
    count = min(count, len(items))
    places = {(2 * i + 1) * len(items) // (2 * count) for i in range(count)}
    return [item for place, item in enumerate(items) if place in places]
