"""Going on from a checkpoint: a trainer takes over its contents, and the pointers and the log agree with it."""

from __future__ import annotations

import math
from typing import Any

from transformer.finite import NotFinite
from transformer.training.checkpoints import NUMERICS, Contents, load_checkpoint, load_run, one_line, others
from transformer.training.loss_meter import LossMeter
from transformer.training.messages import note
from transformer.training.options import TrainingOptions
from transformer.training.progress import Progress
from transformer.training.run_folder import RunError, point, pointed, resolve
from transformer.training.trainer import Trainer
from transformer.training.validation import Validation


def restore(trainer: Trainer, which: str = "latest") -> None:
    """Restore a checkpoint of the trainer's folder, which "latest" then names, and drop later lines of the log.

    Args:
        trainer: a new one; after an error it is not to be used.
        which: "latest", "best", or the name of a checkpoint. "best" then still names its checkpoint if that is intact;
            otherwise the restored one, which is validated anew.

    Raises:
        RunError: the checkpoint cannot be used, or was made with other pairs; the folder is unchanged.
    """
    out, ranks = trainer.out, trainer.ranks
    name = ranks.first(lambda: resolve(out, which))
    contents = load_run(out, which, ranks)
    try:
        _take_over(trainer, contents, name)
        best = _restored_best(trainer, name)
    except RunError:
        raise
    except (NotFinite, ValueError, KeyError, TypeError, AttributeError) as error:
        raise RunError(f"{out}: the checkpoint {name} cannot be used: {one_line(error)}{others(out, name)}") from error
    ranks.first(lambda: _settle(trainer, contents, name, best, which))
    trainer.latest = name


def _settle(trainer: Trainer, contents: Contents, name: str, best: str | None, which: str) -> None:
    """Let the pointers and the log agree with the restored checkpoint."""
    out = trainer.out
    trainer.log.read()  # RunError if it cannot be cut
    if contents[0].numerics != NUMERICS:
        note(f"{name} was computed by a version that rounds sums otherwise (numerics {contents[0].numerics}, here "
             f"{NUMERICS}): the run goes on, and its updates differ in the last digits from those of that version")
    for pointer, wanted in (("latest", name), ("best", best)):
        if wanted is not None and pointed(out, pointer) != wanted:
            point(out, pointer, wanted)
    if which == "latest":
        trainer.prune()
    trainer.log.cut_after(trainer.progress.validated)


def _take_over(trainer: Trainer, contents: Contents, name: str) -> None:
    """Set the model, the optimizer, the schedule and the progress to the contents of the checkpoint `name`."""
    saved, arrays, optimizer = contents
    if optimizer is None:
        raise RunError(f"{trainer.out}: the checkpoint {name} has averaged weights and no optimizer state, so that no "
                       "training goes on from it; take another")
    values = dict(saved.progress)
    if values.pop("data_checksum") != trainer.data_checksum:
        raise RunError(f"{trainer.out}: the pairs or the tokenizers are not those that this run began with; start "
                       "a new one in another folder")
    scheduler, best, scaler = values.pop("scheduler"), values.pop("best"), values.pop("scaler", None)
    progress = trainer.progress
    vars(progress).update(vars(Progress(**values)))  # in place, since the schedule reads it
    earlier = TrainingOptions.from_json(saved.training)
    if any(getattr(earlier, name) != getattr(trainer.options, name) for name in ("steps", "epochs", "minutes")):
        progress.decay_from = progress.end = 0
        trainer.decide_end(progress.step)  # of another length
    if best is not None:
        trainer.best = Validation.from_json(best)
    trainer.model.load_state_dict(arrays)
    if not optimizer["state"] and progress.step:
        note(f"{name} has no state of the optimizer, which the latest checkpoint alone keeps: it begins anew, and the "
             "updates are not those of a run that was never stopped")
    trainer.optimizer.load_state_dict(optimizer)
    trainer.check_finite(optimizer)
    trainer.scheduler.load_state_dict(scheduler)
    if scaler is not None and trainer.scaler.is_enabled():
        trainer.scaler.load_state_dict(scaler)
    else:  # after a change of precision, the scaler is new
        progress.skipped = 0
    trainer.losses = LossMeter(progress.loss_sum, progress.skipped)


def _restored_best(trainer: Trainer, name: str) -> str | None:
    """The checkpoint that "best" is to name, now that `name` is restored; sets the trainer's `best` and `later`.

    It is the one that "best" names; `name`, if a killed run left the pointer out, or if that one is damaged.
    """
    progress = trainer.progress
    was_best = progress.step == progress.validated and progress.stale == 0  # `name`, when it was made
    pointer, later, problem = trainer.ranks.first(lambda: _best_on_disk(trainer, name))
    if pointer is None and trainer.best.loss == math.inf:  # nothing was validated before it
        return None
    if later is not None:
        validation = Validation.from_json(later)
        trainer.later = validation if trainer.better(validation, trainer.best) else None
        if trainer.later is not None or not was_best:
            return str(pointer)
    if not was_best:
        trainer.best, progress.stale = trainer.validate(), 0
        note(f"{problem}{name}, validated anew, is the best now")
    elif problem:
        note(f"{problem}{name} is the best now")
    return name


def _best_on_disk(trainer: Trainer, name: str) -> tuple[str | None, dict[str, Any] | None, str]:
    """What "best" names; the validation of that checkpoint, if it is another than `name`; or what is wrong with it."""
    pointer = pointed(trainer.out, "best")
    if pointer in (None, name):
        return pointer, None, ""
    try:
        other, _, _ = load_checkpoint(trainer.out, resolve(trainer.out, "best"))
        return pointer, Validation.from_json(other.progress["best"]).to_json(), ""
    except (RunError, KeyError, TypeError, ValueError) as error:
        return pointer, None, f"{one_line(error)}; "
