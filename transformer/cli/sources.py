"""Where the pairs of a run come from, as its ``run.json`` describes it: a generated task, or files of parallel text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transformer.data.parallel_text import DataError, line_of_pair, read_parallel
from transformer.data.tasks import Task, get_task
from transformer.training.checkpoints import RunError
from transformer.training.pairs import PairTooLong

Pairs = list[tuple[str, str]]


def files(given: dict[str, Any]) -> dict[str, Any]:
    """The files that are given for training and validation, in a form that holds in any working directory."""
    return {side: [str(Path(path).resolve()) for path in given[side]] for side in ("train", "valid") if side in given}


def is_described(data: dict[str, Any]) -> bool:
    """Whether a run knows where its pairs come from. One that a program of the user's began need not."""
    return "task" in data or ("train" in data and "valid" in data)


def read(data: dict[str, Any]) -> tuple[Pairs, Pairs]:
    """The training and validation pairs that a run's ``data`` describes.

    Raises:
        DataError: a file is not what it should be, or no longer there.
        RunError: it describes nothing, as after an edit by hand.
    """
    try:
        if "task" not in data:
            return read_parallel(*data["train"]), read_parallel(*data["valid"])
        task = get_task(data["task"])
        train, valid = (task.pairs(split, data[f"{split}_count"], data["seed"]) for split in ("train", "valid"))
        return train, valid
    except DataError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise RunError(f"the run does not say where its data is: {error!r} in the entry 'data' of run.json") from error


def task_of(data: dict[str, Any]) -> Task:
    """The generated task of a run; RunError if there is none of its name."""
    try:
        return get_task(data["task"])
    except (TypeError, ValueError) as error:
        raise RunError(f"the run's task is unknown: {error}") from error


def located(data: dict[str, Any], error: PairTooLong) -> str:
    """What `error` says, with the line of a file in place of the number of a pair."""
    if "task" in data:
        return str(error)
    path = data["train" if error.kind == "training" else "valid"][error.side]
    return f"{path}, line {line_of_pair(path, error.index)}: {error.problem}"
