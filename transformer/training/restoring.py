"""Going on from a checkpoint: a trainer takes over its contents, and the pointers and the log agree with it."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import numpy as np

from transformer.training.checkpoints import NUMERICS, Run, load_checkpoint, load_run, one_line, others
from transformer.training.messages import note
from transformer.training.options import TrainingOptions
from transformer.training.progress import Progress
from transformer.training.run_folder import RunError, point, pointed, prune, resolve
from transformer.training.trainer import Trainer
from transformer.training.validation import Validation


def restore(trainer: Trainer, which: str = "latest") -> None:
    """Restore a checkpoint of the trainer's folder, which "latest" then names, and drop later lines of the log.

    Args:
        trainer: a new one; after an error it is not to be used.
        which: "latest", "best", or the name of a checkpoint. "best" then still names its checkpoint if that is intact;
            otherwise the restored one, which is validated anew.

    Raises:
        RunError: the checkpoint cannot be used, or was made with other pairs, another configuration, or options that a
            resumed run may not change; the folder is unchanged.
    """
    out, ranks = trainer.out, trainer.ranks
    run, arrays, moments = load_run(out, which, ranks)
    name = ranks.first(lambda: resolve(out, which))
    try:
        _check_changes(trainer, run)
        _take_over(trainer, run, arrays, moments)
        best = _best(trainer, name)
    except RunError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RunError(f"{out}: the checkpoint {name} cannot be used: {one_line(error)}{others(out, name)}") from error
    if not moments and trainer.progress.step:
        note(f"{name} has no state of the optimizer, which the latest checkpoint alone keeps: it begins anew, and the "
             "updates are not those of a run that was never stopped")

    def settle() -> None:
        trainer.log.read()  # RunError if it cannot be cut
        if run.numerics != NUMERICS:
            note(f"{name} was computed by a version that rounds sums otherwise (numerics {run.numerics}, here "
                 f"{NUMERICS}): the run goes on, and its updates differ in the last digits from those of that version")
        for pointer, wanted in (("latest", name), ("best", best)):
            if wanted is not None and pointed(out, pointer) != wanted:
                point(out, pointer, wanted)
        if which == "latest":
            prune(out, max(trainer.options.keep, trainer.options.average))
        trainer.log.cut_after(trainer.progress.validated)

    ranks.first(settle)
    trainer.latest = name


def _check_changes(trainer: Trainer, earlier: Run) -> None:
    config, options = trainer.run.config, TrainingOptions.from_json(earlier.training)
    changed = [f.name for f in fields(config) if getattr(config, f.name) != getattr(earlier.config, f.name)]
    changed += trainer.options.changed_from(options)
    if changed:
        raise RunError(f"{trainer.out}: a resumed run may not change {', '.join(changed)}; start a new one in another "
                       "folder")
    if earlier.progress.get("data_checksum") != trainer.data_checksum:
        raise RunError(f"{trainer.out}: the pairs or the tokenizers are not those that this run began with; start "
                       "a new one in another folder")


def _take_over(trainer: Trainer, run: Run, arrays: dict[str, np.ndarray], moments: dict[str, np.ndarray]) -> None:
    """Set the model, the optimizer, the schedule and the progress to the contents of a checkpoint."""
    progress, earlier = trainer.progress, TrainingOptions.from_json(run.training)
    vars(progress).update(vars(Progress.from_json(run.progress)))  # in place, since the schedule reads it
    if any(getattr(earlier, name) != getattr(trainer.options, name) for name in ("steps", "epochs", "minutes")):
        progress.decay_from = progress.end = 0
        trainer.decide_end(progress.step)  # of another length
    if run.progress["best"] is not None:
        trainer.best = Validation.from_json(run.progress["best"])
    trainer.model.load_state_dict(arrays)
    trainer.load_moments(moments)
    trainer.scheduler.load_state_dict({"last_step": progress.step})


def _best(trainer: Trainer, name: str) -> str | None:
    """The checkpoint that "best" is to name, now that `name` is restored, and its validation as `trainer.best`.

    It is the one that "best" names; or `name`, if a killed run left the pointer out, or if that one is damaged.
    """
    pointer, problem, found = trainer.ranks.first(lambda: _named_best(trainer, name))
    own = trainer.progress.improved and trainer.progress.step == trainer.progress.validated  # `name` was, when made
    if found is not None:
        other = Validation.from_json(found)
        if not own or trainer.better(other):
            trainer.best = other
            return str(pointer)
    elif not own:
        if pointer is None and trainer.best.loss == math.inf:  # nothing was validated before
            return None
        trainer.best, trainer.progress.improved = trainer.validate(), True
        note(f"{problem}{name}, validated anew, is the best now")
    elif problem:
        note(f"{problem}{name} is the best now")
    return name


def _named_best(trainer: Trainer, name: str) -> tuple[str | None, str, Any]:
    """What "best" names, what is wrong with that, and else its validation, if it is another than `name`."""
    pointer = pointed(trainer.out, "best")
    if pointer in (None, name):
        return pointer, "", None
    try:
        return pointer, "", load_checkpoint(trainer.out, resolve(trainer.out, "best"))[0].progress["best"]
    except RunError as error:
        return pointer, f"{one_line(error)}; ", None
