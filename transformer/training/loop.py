"""The training loop, the same for every task."""

import math
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from itertools import repeat
from pathlib import Path
from typing import Any, NamedTuple

import minigrad
from minigrad.device.memory import pool_use
from minigrad.engine.watch import span
from minigrad.inspect.table import size

from transformer.data.parallel_text import Pairs
from transformer.data.tokenizer import Tokenizer
from transformer.distributed import ALONE, Alone, RankError
from transformer.distributed.launch import code_digest
from transformer.finite import NotFinite
from transformer.training.checkpoints import NOISE, Progress, Run, Validation
from transformer.training.memory import keep_freed_memory
from transformer.training.messages import Messages, progress_bar, shortened
from transformer.training.options import TrainingOptions
from transformer.training.run_folder import RunError, only_writer, pointed, replace_file
from transformer.training.signals import Stopped, stop_request, stopping_at_once
from transformer.training.threads import decoding_threads, suitable_products
from transformer.training.trainer import Trainer
from transformer.translator import Translator, choose_alpha, chosen_alpha

REPORT_EVERY = 10  # steps between readings of the loss: each reading synchronises a GPU
WARM_UP, MEASURED = 5, 10  # updates before a profile, which start threads and allocate memory; those in it
ALPHAS = 0.6, 1.0, 1.4, 1.8
SAMPLE = "    source    {}\n    reference {}\n    output    {}"


class TrainingError(RuntimeError):
    """Training cannot continue; the message is one line, and the last checkpoint is intact."""


class TrainingResult(NamedTuple):
    """How a run ended: the model with the best weights, and the progress.

    Attributes:
        kept: the name of the checkpoint with the best weights.
        best: the validation of these.
        by_alpha: the BLEU of a beam of 4 on validation sentences for each `ALPHAS`, where that was to be chosen.
    """

    translator: Translator
    kept: str
    best: Validation
    progress: Progress
    by_alpha: dict[float, float]


def train(out: str | Path, run: Run, train_pairs: Pairs, valid_pairs: Pairs, device: str = "cpu",
          resume: bool | str = False, progress: bool = True, started: Callable[[], object] | None = None,
          profile: str | Path | None = None, ranks: Alone = ALONE) -> TrainingResult:
    """Train a Transformer on pairs of texts, in the folder `out`.

    Args:
        out: the run's folder; `transformer.training.run_folder` describes its files.
        run: the model's configuration, the tokenizers, how to train, and the source of the pairs, which is saved.
        train_pairs, valid_pairs: (source, target) texts.
        device: the device to train on.
        resume: continue from the latest checkpoint in `out`, or from the one with this name; the updates are those of a
            run that was never stopped. See `Trainer.restore`.
        progress: show a progress bar on standard error.
        started: a function to call after all checks, before the first update.
        profile: a file for a trace of some updates, whose tables go to standard error; see `step_profiles`.
        ranks: the processes that train together, each of which calls this with the same arguments; the first alone
            reads and writes `out`. By default this process trains alone. An exception of one rank that ends its program
            reaches the others; a program that catches it calls ``ranks.fail``, or they wait for the timeout.

    Returns:
        A translator with the best weights, the best validation, and the progress.

    Raises:
        RunError: `out` is a file; it holds a run and `resume` is False, or the reverse; another training writes to it;
            a pair is longer than the positions; `resume` with options or pairs that may not change, or from a
            checkpoint that cannot be used. Nothing was changed.
        ImportError: the metric is BLEU, and sacrebleu is not installed.
        TrainingError: the loss or a weight is not finite, or a file cannot be written.
        Stopped: a KeyboardInterrupt; on Ctrl-C, SIGTERM or SIGHUP, after a checkpoint was saved.
        RankError: another rank failed, is gone, or has other code, configuration, data or vocabularies.
    """
    out, first, options = Path(out), ranks.rank == 0, run.options
    if not train_pairs or not valid_pairs:
        raise RunError("training needs at least one training pair and one validation pair")
    with stopping_at_once(), only_writer(out, new=not resume) if first else nullcontext():
        keep_freed_memory()
        trainer = Trainer(out, run, train_pairs, valid_pairs, device, ranks)
        ranks.compare(the_version_of_the_code=code_digest, the_configuration=lambda: vars(run.config),
                      the_options=lambda: vars(options),
                      the_data_or_the_vocabularies=lambda: trainer.progress.data_checksum)
        if resume:
            trainer.restore(resume if isinstance(resume, str) else "latest")
        elif first:
            trainer.log.cut_after(0)
            _write_tokenizers(out, *run.tokenizers)
        if started is not None:
            started()
        try:
            with suitable_products(run.config, options.threads):
                fit(trainer, progress, profile if first else None)
        finally:
            # Of several ranks that end early, the first reports why; the launcher leaves it little time.
            if first and (ranks.size == 1 or sys.exception() is None):
                trainer.log.draw(options.valid_metric)
        kept = trainer.load_best()
        by_alpha = _choose_alpha(trainer) if options.valid_metric == "bleu" else {}
        trainer.translator.alpha = chosen_alpha(out, ranks)
    best: Any = kept.progress.validation  # not None, since a run ends with a validation
    return TrainingResult(trainer.translator, kept.name, best, trainer.progress, by_alpha)


def fit(trainer: Trainer, show_progress: bool = True, profile: str | Path | None = None) -> None:
    """Train to the end of the run.

    Raises:
        Stopped: a KeyboardInterrupt; Ctrl-C, SIGTERM or SIGHUP came. It is raised between two updates, after saving.
        TrainingError: the loss or a weight is not finite, or a file cannot be written.
    """
    progress, options = trainer.progress, trainer.options
    messages = Messages(sys.stderr if trainer.ranks.rank == 0 else None)
    trainer.model.train()
    with (_in_one_line(trainer), trainer.gradients, stop_request() as stop,
          progress_bar(trainer.total_steps, progress.step, messages, show_progress) as bar,
          closing(step_profiles(trainer.model, profile, messages)) as profiles):
        measuring: Any = None
        groups = trainer.groups()
        group = next(groups)
        # A round validates, or leaves, or makes an update. A validation takes time, and signals may come in it: so the
        # next round asks everything anew. Step 0 is not validated, since nothing is learnt: `validated` is 0, too.
        while True:
            _heed(stop, trainer)
            trainer.decide_end()
            reached = limits_reached(progress, options)  # names of limits; none while the run goes on
            due = reached or progress.step % options.valid_every == 0 or progress.step == options.valid_first
            if due and progress.step != progress.validated:
                with measuring.pause() if measuring else nullcontext(), span("validation"):
                    found = trainer.validate_and_save().describe(options.valid_metric)
                shown = [SAMPLE.format(*(shortened(text, 160) for text in sample)) for sample in trainer.samples]
                messages.say("\n".join([f"step {progress.step:6d}  {found}", *shown]))
            elif reached:
                break
            else:
                start, measuring = time.perf_counter(), next(profiles)
                with span("update"):
                    trainer.update(group)
                    group = next(groups)  # which the host prepares while a GPU computes
                _show(trainer, bar)
                progress.seconds += time.perf_counter() - start
        if options.average > 1:
            trainer.average_checkpoints()


def _heed(stop: list[int], trainer: Trainer) -> None:
    """Save and raise `Stopped` if a signal came to any rank.

    All ranks take the time of the first, so that they end at the same update.
    """
    progress = trainer.progress
    told: list[Any] = trainer.ranks.exchange([stop, progress.seconds])
    progress.seconds = told[0][1]
    if signals := [number for came, _ in told for number in came]:
        if progress.step != progress.validated:
            trainer.save()
        raise Stopped(signals[0])


def _show(trainer: Trainer, bar: Any) -> None:
    """Advance the progress bar by an update; every `REPORT_EVERY` updates, read the loss and put figures beside it."""
    progress, device = trainer.progress, trainer.model.device
    bar.update(1)
    if progress.step % REPORT_EVERY == 0:
        trainer.read_loss()
        figures = f"loss {progress.mean_loss:.3f}, {progress.tokens / progress.seconds:,.0f} tokens/s"
        if device != "cpu":
            used, held = pool_use(device)
            figures += f", memory: {size(used)} in use, {size(held)} held"
        bar.total = progress.end or bar.total
        bar.set_postfix_str(figures, refresh=False)


def step_profiles(model: Any, path: str | Path | None, messages: Messages) -> Generator[Any, None, None]:
    """For each update the profile that measures it, from ``next`` before it to ``next`` before the following, or None.

    After the last of `MEASURED` updates, or when the generator is closed among them, tables go to the messages and the
    trace to the file.

    Args:
        model: the model, whose modules have dotted names in the profile.
        path: the file for the trace; None: no update is measured.
        messages: where the tables go.
    """
    while path is None:
        yield None
    yield from repeat(None, WARM_UP)
    measured = 0
    try:
        with minigrad.profile(model) as profile:
            for _ in range(MEASURED):
                measured += 1
                yield profile
    finally:
        messages.say(f"profile of {measured} updates\n{profile}\n")
        with suppress(OSError):  # a full disk must not end the training
            profile.save(path)
            messages.say(f"wrote {path}: open it in https://ui.perfetto.dev")
    yield from repeat(None)


def limits_reached(progress: Progress, options: TrainingOptions) -> list[str]:
    """The options that a training has reached; one of them ends it."""
    # With "wsd" the minutes decide the last update before they are over, see `Trainer.decide_end`.
    minutes = progress.seconds / 60 * (options.schedule != "wsd")
    counts = {"steps": progress.step, "epochs": progress.epoch, "minutes": minutes}
    reached = [name for name, count in counts.items() if count >= (getattr(options, name) or math.inf)]
    return reached or ["minutes"] * (0 < progress.end <= progress.step)


@contextmanager
def _in_one_line(trainer: Trainer) -> Iterator[None]:
    """What ends a training, in one line with the remedy and the checkpoint that is left."""
    try:
        yield
    except (NotFinite, OSError, RankError) as error:
        last = pointed(trainer.out, "latest") if trainer.ranks.rank == 0 else trainer.latest
        intact = f" (the last checkpoint, {last}, is intact)" if last else " (there is no checkpoint yet)"
        if isinstance(error, RankError):
            raise RankError(f"{error}{intact}", error.details) from error
        if isinstance(error, NotFinite):
            raise TrainingError(f"{error} by step {trainer.progress.step}; begin anew with a lower learning rate or a "
                                f"longer warm-up{intact}") from error
        reason = f"{error.filename or trainer.out}: {error.strerror or error}"
        raise TrainingError(f"the run cannot be saved: {reason}; when that is mended, "
                            f"{'go on with --resume' if last else 'begin anew'}{intact}") from error


def _choose_alpha(trainer: Trainer) -> dict[float, float]:
    """Store the exponent of the length normalisation with which a beam of 4 has the highest BLEU; all BLEUs.

    A model without any BLEU to speak of keeps the default, and the result is empty.
    """
    with decoding_threads(trainer.run.config, trainer.options.threads, trainer.model.device):
        found = {alpha: trainer.score(4, alpha)[0] for alpha in ALPHAS}
    if max(found.values()) < NOISE["bleu"]:
        return {}
    trainer.ranks.first(lambda: choose_alpha(trainer.out, max(found, key=found.__getitem__)))
    return found


def _write_tokenizers(out: Path, source: Tokenizer, target: Tokenizer) -> None:
    """Write the tokenizers as other programs read them."""
    names = {"tokenizer": source} if source is target else {"source_tokenizer": source, "target_tokenizer": target}
    for name, tokenizer in names.items():
        with suppress(ValueError):  # a file with other ids: who gave it has it
            replace_file(out / f"{name}.json", tokenizer.to_hugging_face().encode())
