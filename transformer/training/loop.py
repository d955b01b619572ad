"""The training loop, the same for every task."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from minigrad.device import to_numpy
from minigrad.device.memory import pool_use
from minigrad.engine.watch import span
from minigrad.inspect.table import size

from transformer.data.parallel_text import Pairs
from transformer.data.tokenizer import Tokenizer
from transformer.distributed import ALONE, Alone, RankError
from transformer.distributed.launch import code_digest
from transformer.finite import NotFinite
from transformer.model import TransformerConfig
from transformer.training.checkpoints import Run, load_description
from transformer.training.files import replace_file
from transformer.training.lock import only_writer
from transformer.training.memory import keep_freed_memory
from transformer.training.messages import Messages, note
from transformer.training.options import TrainingOptions
from transformer.training.profiling import StepProfile
from transformer.training.progress import Lines, Progress
from transformer.training.restoring import restore
from transformer.training.run_folder import RunError, check_new, is_run, pointed
from transformer.training.signals import Request, Stopped, stop_request, stopping_at_once
from transformer.training.threads import decoding_threads, limit_threads, shards_of, suitable_products
from transformer.training.trainer import Trainer
from transformer.training.validation import NOISE, Validation, decoded, score
from transformer.translator import Translator, choose_alpha

REPORT_EVERY = 10  # steps between readings of the loss: each reading synchronises a GPU
ALPHAS = 0.6, 1.0, 1.4, 1.8
LINE_EVERY = 30.0  # seconds between the lines of progress in a file


class TrainingError(RuntimeError):
    """Training cannot continue; the message is one line, and the last checkpoint is intact."""


@dataclass(frozen=True)
class TrainingResult:
    """How a run ended: its folder, the model with the best weights, and the progress.

    Attributes:
        kept: the name of the checkpoint with the best weights.
        best: the validation of these.
        by_alpha: the BLEU of a beam of 4 on validation sentences for each `ALPHAS`, where that was to be chosen.
    """

    out: Path
    translator: Translator
    kept: str
    best: Validation
    progress: Progress
    by_alpha: dict[float, float]


def fit(trainer: Trainer, show_progress: bool = True, profile: Path | None = None) -> None:
    """Train to the end of the run.

    Raises:
        Stopped: a KeyboardInterrupt; Ctrl-C, SIGTERM or SIGHUP came. It is raised between two updates, after saving.
        TrainingError: the loss or a weight is not finite, or float16 overflows at every update, or a file cannot be
            written.
    """
    try:
        _make_updates(trainer, show_progress, profile)
        if trainer.options.average > 1:
            trainer.average_checkpoints()
    except NotFinite as error:
        raise TrainingError(f"{error} by step {trainer.progress.step}; begin anew with a lower learning rate or a "
                            f"longer warm-up{_last_checkpoint(trainer.out, trainer.ranks)}") from error
    except OSError as error:
        reason = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        go_on = "when that is mended, go on with --resume" if _resumable(trainer) else "when that is mended, begin anew"
        raise TrainingError(f"the run cannot be saved: {reason}; {go_on}"
                            f"{_last_checkpoint(trainer.out, trainer.ranks)}") from error
    except RankError as error:
        raise RankError(f"{error}{_last_checkpoint(trainer.out, trainer.ranks)}", error.details) from error


def _make_updates(trainer: Trainer, show_progress: bool, profile: Path | None) -> None:
    progress, options, reports = trainer.progress, trainer.options, trainer.ranks.rank == 0
    messages = Messages(sys.stderr if reports else None)
    profiling = StepProfile(trainer.model, profile, messages, trainer.gradients.communication)
    trainer.model.train()
    groups, group = trainer.groups(), None
    ahead = trainer.model.device != "cpu"
    bar_shown = show_progress and reports
    with trainer.gradients, stop_request() as stop, _bar(trainer, bar_shown, messages) as bar, profiling:
        while True:
            signal = _agree(trainer, stop)
            finished = _finished(trainer)
            if signal is not None:
                _read_losses(trainer)
                trainer.save_interrupted()
                raise Stopped(signal)
            due = progress.step % options.valid_every == 0 or progress.step == options.valid_first
            if progress.step != progress.validated and (finished or due):
                _read_losses(trainer)
                with profiling.paused(), span("validation"):
                    validation = trainer.validate_and_save()
                said = [f"step {progress.step:6d}  {validation.describe(options.valid_metric)}", *validation.samples]
                messages.say("\n".join(map(str, said)))
            elif finished:
                break
            else:
                start = time.perf_counter()
                profiling.step()
                with span("update"):
                    trainer.update(group or next(groups))
                    # Prefetch: the host prepares the next group while the GPU computes, see `prefetch`.
                    group = next(groups) if ahead and not _finished(trainer) else None
                if progress.step % REPORT_EVERY == 0:
                    scale = _read_losses(trainer)
                progress.seconds += time.perf_counter() - start
                bar.update(1)
                if progress.step % REPORT_EVERY == 0:
                    bar.total = progress.end or trainer.total_steps
                    bar.set_postfix_str(_state(trainer, scale), refresh=False)


def _agree(trainer: Trainer, stop: Request) -> int | None:
    """A signal that came to any rank; all ranks take the time of the first, so that they end at the same update."""
    told: list[Any] = trainer.ranks.exchange([stop.number, trainer.progress.seconds])
    trainer.progress.seconds = told[0][1]
    return next((number for number, _ in told if number is not None), None)


def _state(trainer: Trainer, scale: float) -> str:
    """The figures beside the progress bar, without a synchronisation."""
    progress = trainer.progress
    parts = [f"loss {progress.mean_loss:.3f}", f"{progress.tokens / progress.seconds:,.0f} tokens/s"]
    if trainer.scaler.is_enabled():
        parts.append(f"loss scale {scale:g}")
    if trainer.model.device != "cpu":
        used, held = pool_use(trainer.model.device)
        parts.append(f"memory: {size(used)} in use, {size(held)} held")
    return ", ".join(parts)


def _last_checkpoint(out: Path, ranks: Alone) -> str:
    """The checkpoint that a failed run leaves, in parentheses; nothing on a rank that need not see the folder."""
    if ranks.rank > 0:
        return ""
    last = pointed(out, "latest")
    return f" (the last checkpoint, {last}, is intact)" if last else " (there is no checkpoint yet)"


def _resumable(trainer: Trainer) -> bool:
    """Whether there is a checkpoint to go on from."""
    return is_run(trainer.out) if trainer.ranks.rank == 0 else trainer.latest is not None


def _read_losses(trainer: Trainer) -> float:
    """Read the loss meter into the progress, which synchronises a GPU; returns the last update's loss scale, or 1.

    A scale that is too large is halved until it fits. Gradients that overflow at a scale below 1 have another cause.
    """
    progress, losses = trainer.progress, trainer.losses
    total, scale = float(to_numpy(losses.total)), losses.scale
    if not math.isfinite(total):
        raise NotFinite(f"the loss became {total}")
    if losses.skipped >= REPORT_EVERY and scale < 1:
        resumable = _resumable(trainer)
        remedy = "go on with --resume --precision float32" if resumable else "begin anew with --precision float32"
        if losses.skipped < progress.step:  # else no update changed the parameters, and the rate had no effect
            remedy += f"{', or begin anew with' if resumable else ' or'} a lower learning rate"
        raise TrainingError(f"the last {losses.skipped} updates by step {progress.step} were skipped: their gradients "
                            f"are not finite in float16, even at a loss scale of {scale:g}; {remedy}"
                            f"{_last_checkpoint(trainer.out, trainer.ranks)}")
    progress.loss_sum, progress.loss_tokens, losses.left_out = total, progress.loss_tokens - losses.left_out, 0
    progress.skipped = losses.skipped
    return scale


def limits_reached(progress: Progress, options: TrainingOptions) -> list[str]:
    """The options that a training has reached; one of them ends it."""
    counts = {"steps": progress.step, "epochs": progress.epoch, "minutes": progress.seconds / 60,
              "patience": progress.stale}
    if options.schedule == "wsd":  # the minutes decide the last update before they are over, see `Trainer.decide_end`
        del counts["minutes"]
    reached = [name for name, count in counts.items() if count >= (getattr(options, name) or math.inf)]
    return reached or ["minutes"] * (0 < progress.end <= progress.step)


def _finished(trainer: Trainer) -> bool:
    return bool(limits_reached(trainer.progress, trainer.options))


def _bar(trainer: Trainer, show_progress: bool, messages: Messages) -> Any:
    from tqdm import tqdm

    where: dict[str, Any] = {"file": messages, "dynamic_ncols": True, "mininterval": 0.5}
    if not messages.isatty():
        where = {"file": Lines(messages), "mininterval": LINE_EVERY, "maxinterval": 2 * LINE_EVERY}
    return tqdm(total=trainer.total_steps, initial=trainer.progress.step, unit="step", disable=not show_progress,
                **where)


def train(out: str | Path, config: TransformerConfig, source_tokenizer: Tokenizer, target_tokenizer: Tokenizer,
          train_pairs: Pairs, valid_pairs: Pairs, options: TrainingOptions, data: dict[str, Any] | None = None,
          device: str = "cpu", resume: bool | str = False, progress: bool = True,
          started: Callable[[], object] | None = None, profile: str | Path | None = None,
          ranks: Alone = ALONE) -> TrainingResult:
    """Train a Transformer on pairs of texts, in the folder `out`.

    Args:
        out: the run's folder; `transformer.training.run_folder` describes its files.
        config: the model's sizes and options.
        source_tokenizer, target_tokenizer: the tokenizers; one object if the vocabulary is shared.
        train_pairs, valid_pairs: (source, target) texts.
        options: how to train.
        data: the source of the pairs, which is saved with the model.
        device: the device to train on.
        resume: continue from the latest checkpoint in `out`, or from the one with this name; the updates are those of a
            run that was never stopped. See `restore`.
        progress: show a progress bar on standard error.
        started: a function to call after all checks, before the first update.
        profile: a file for a trace of some updates, whose tables go to standard error; see `StepProfile`.
        ranks: the processes that train together, each of which calls this with the same arguments; the first alone
            reads and writes `out`. By default this process trains alone. An exception of one rank that ends its program
            reaches the others; a program that catches it calls ``ranks.fail``, or they wait for the timeout.

    Returns:
        The folder, a translator with the best weights, the best validation, and the progress.

    Raises:
        RunError: float16 on the host; `out` is a file; it holds a run and `resume` is False, or the reverse; another
            training writes to it; a pair is longer than the positions; `resume` with options or pairs that may not
            change, or from a checkpoint that cannot be used. Nothing was changed.
        ImportError: the metric is BLEU, and sacrebleu is not installed.
        TrainingError: the loss or a weight is not finite, or float16 overflows at every update, or a file cannot be
            written.
        Stopped: a KeyboardInterrupt; on Ctrl-C, SIGTERM or SIGHUP, after a checkpoint was saved.
        RankError: another rank failed, is gone, or has other code, configuration, data or vocabularies.
    """
    out = Path(out)
    if not train_pairs or not valid_pairs:
        raise RunError("training needs at least one training pair and one validation pair")
    if options.precision == "float16" and device == "cpu":
        raise RunError("float16 is mixed precision, which needs a GPU: train with --device cuda, or with --precision "
                       "float32")
    which = resume if isinstance(resume, str) else "latest"
    with stopping_at_once(), only_writer(out, new=not resume) if ranks.rank == 0 else nullcontext():
        if resume:
            _check_changes(load_description(out, which, ranks), out, config, options)
        else:
            ranks.first(lambda: check_new(out))
            options = _with_shards(options, config, ranks)
        run = Run(config, source_tokenizer, target_tokenizer, data or {}, options.to_json())
        keep_freed_memory()
        ranks.compare(the_version_of_the_code=code_digest, the_configuration=config.to_json,
                      the_options=options.to_json)
        trainer = Trainer(out, run, train_pairs, valid_pairs, device, ranks)
        checksum = trainer.data_checksum
        ranks.compare(the_data_or_the_vocabularies=lambda: checksum)
        if resume:
            restore(trainer, which)
        else:
            ranks.first(partial(_begin, trainer))
        if started is not None:
            started()
        try:
            with _products(trainer):
                fit(trainer, progress, None if profile is None or ranks.rank else Path(profile))
        finally:
            # Of several ranks that end early, the first reports why; the launcher leaves it little time.
            if ranks.rank == 0 and (ranks.size == 1 or sys.exception() is None):
                trainer.log.draw(options.valid_metric)
        best, reached = trainer.later or trainer.best, trainer.progress
        del trainer  # frees its memory, which the best model may need
        kept = ranks.first(lambda: pointed(out, "best") or "")
        translator = Translator.load(out, device, ranks=ranks)
        by_alpha = _choose_alpha(translator, valid_pairs, options, out, ranks) if options.valid_metric == "bleu" else {}
    return TrainingResult(out, translator, kept, best, reached, by_alpha)


def _choose_alpha(translator: Translator, pairs: Pairs, options: TrainingOptions, out: Path,
                  ranks: Alone) -> dict[float, float]:
    """Store the exponent of the length normalisation with which a beam of 4 has the highest BLEU; all BLEUs.

    A model without any BLEU to speak of keeps the default, and the result is empty.
    """
    with decoding_threads(translator.model.config, options.threads, translator.model.device):
        found = {alpha: score(translator, decoded(pairs, options), options, ranks, beam=4, alpha=alpha)[0]
                 for alpha in ALPHAS}
    if max(found.values()) < NOISE["bleu"]:
        return {}
    translator.alpha = max(found, key=lambda alpha: found[alpha])
    ranks.first(lambda: choose_alpha(out, translator.alpha))
    return found


def _begin(trainer: Trainer) -> None:
    """Begin the log, write the tokenizers as other programs read them, and tell of options that make no sense."""
    for doubt in trainer.doubts():
        note(doubt)
    trainer.log.start()
    source, target = trainer.run.source_tokenizer, trainer.run.target_tokenizer
    names = {"tokenizer": source} if source is target else {"source_tokenizer": source, "target_tokenizer": target}
    for name, tokenizer in names.items():
        with suppress(ValueError):  # a file with other ids: who gave it has it
            replace_file(trainer.out / f"{name}.json", tokenizer.to_hugging_face().encode())


def _products(trainer: Trainer) -> AbstractContextManager[None]:
    """A block in which matrix products have the threads of the options, or one each where threads divide a batch."""
    if trainer.options.threads is None:
        return suitable_products(trainer.run.config)
    return limit_threads(1 if trainer.gradients.shards > 1 else trainer.options.threads)


def _with_shards(options: TrainingOptions, config: TransformerConfig, ranks: Alone) -> TrainingOptions:
    """The options with a number of shards, if several ranks begin a run: so it goes on anywhere to the same bits."""
    if ranks.size == 1 or options.shards is not None:
        return options
    threads = shards_of(config, options.threads or 1, options.batch_tokens // ranks.size)
    return replace(options, shards=threads * ranks.size)


def _check_changes(earlier: Run, out: Path, config: TransformerConfig, options: TrainingOptions) -> None:
    """Raise RunError if the `earlier` run has another configuration, or options that a resumed run may not change."""
    changed = [f.name for f in fields(config) if getattr(config, f.name) != getattr(earlier.config, f.name)]
    changed += options.changed_from(TrainingOptions.from_json(earlier.training))
    if changed:
        raise RunError(f"{out}: a resumed run may not change {', '.join(changed)}; start a new one in another folder")
