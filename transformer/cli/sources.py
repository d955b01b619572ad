"""The sentence pairs of a run, from the description in ``run.json``: a generated task or files of parallel text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from transformer.data.parallel_text import DataError, ParallelText, line_of_pair, read_parallel
from transformer.data.tasks import Task, get_task
from transformer.distributed import Alone
from transformer.training.memory import require_memory
from transformer.training.pairs import PairTooLong
from transformer.training.run_folder import RunError

Pairs = Sequence[tuple[str, str]]
PAIR = 150  # bytes of the shortest pair: a tuple and two texts


def files(given: dict[str, Any]) -> dict[str, Any]:
    """The absolute paths of the given training and validation files, which hold in any working directory."""
    return {side: [_absolute(Path(path)) for path in given[side]] for side in ("train", "valid") if side in given}


def _absolute(path: Path) -> str:
    resolved = path.resolve()
    return str(resolved if resolved.exists() else path.absolute())  # /dev/fd/63 resolves to the name of no file


def is_described(data: dict[str, Any]) -> bool:
    """Whether `data` says where the pairs come from; a run that began in a Python program need not have it."""
    return "task" in data or ("train" in data and "valid" in data)


def check_readable(paths: Iterable[str], ranks: Alone) -> None:
    """DataError if one of the files is a pipe, and several ranks are to read it: each would get a part of it."""
    pipe = next((path for path in paths if Path(path).is_fifo()), None) if ranks.size > 1 else None
    if pipe is not None:
        raise DataError(f"{pipe} is a pipe, which one process alone can read; several ranks need a file")


def read(data: dict[str, Any]) -> tuple[Pairs, Pairs]:
    """The training and validation pairs that a run's ``data`` describes.

    Raises:
        DataError: a file is missing or malformed.
        RunError: `data` is incomplete or malformed, as after an edit by hand.
    """
    try:
        if "task" not in data:
            return ParallelText(*data["train"]), read_parallel(*data["valid"])
        task = get_task(data["task"])
        train, valid = (generated(task, split, data[f"{split}_count"], data["seed"], f"{split}_count")
                        for split in ("train", "valid"))
        return train, valid
    except DataError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise RunError(f"the run does not say where its data is: {error!r} in the entry 'data' of run.json") from error


def generated(task: Task, split: str, count: int, seed: int, name: str) -> list[tuple[str, str]]:
    """The pairs of a task; DataError, which has the `name` of their `count`, if no memory could hold them."""
    try:
        require_memory(count * PAIR)
    except MemoryError as error:
        raise DataError(f"{name} {count:,} is too many pairs to generate: {error}; take fewer") from error
    return task.pairs(split, count, seed)


def task_of(data: dict[str, Any]) -> Task:
    """The generated task of a run; RunError if its name is unknown."""
    try:
        return get_task(data["task"])
    except (TypeError, ValueError) as error:
        raise RunError(f"the run's task is unknown: {error}") from error


def located(data: dict[str, Any], error: PairTooLong) -> str:
    """The message of `error`, with a file and its line in place of the number of a pair."""
    if "task" in data:
        return str(error)
    path = data["train" if error.kind == "training" else "valid"][error.side]
    if not Path(path).is_file():  # a pipe, which was read and cannot be read again
        return str(error)
    return f"{path}, line {line_of_pair(path, error.index)}: {error.problem}"
