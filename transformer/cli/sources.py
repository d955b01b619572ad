"""The sentence pairs of a run, from the description in ``run.json``: a generated task or files of parallel text."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformer.cli.streams import opened
from transformer.data.parallel_text import DataError, Pairs, ParallelText, hold_out
from transformer.data.tasks import get_task
from transformer.distributed import Alone
from transformer.training.run_folder import RunError


@dataclass
class Text:
    """The pairs of a run.

    Attributes:
        train, valid: the pairs.
        empty: the number of pairs that were left out of both, since a side of them is blank.
        held_out: whether `valid` is a part of the training text.
    """

    train: Pairs
    valid: Pairs
    empty: int = 0
    held_out: bool = False


def files(given: dict[str, Any]) -> dict[str, Any]:
    """The absolute paths of the given training and validation files, which hold in any working directory."""
    return {side: [_absolute(path) for path in given[side]] for side in ("train", "valid") if side in given}


def _absolute(path: str) -> str:
    if path == "-":
        return path
    resolved = Path(path).resolve()
    return str(resolved if resolved.exists() else Path(path).absolute())  # /dev/fd/63 resolves to the name of no file


def check_readable(paths: Iterable[str], ranks: Alone) -> None:
    """DataError if one of the files is a pipe, and several ranks are to read it: each would get a part of it."""
    pipe = next((path for path in paths if path == "-" or Path(path).is_fifo()), None) if ranks.size > 1 else None
    if pipe is not None:
        raise DataError(f"{pipe} is a pipe, which one process alone can read; several ranks need a file")


def read(data: dict[str, Any]) -> Text:
    """The training and validation pairs that a run's ``data`` describes.

    Raises:
        DataError: a file is missing or malformed.
    """
    if "task" not in data:
        return _read_text(data["train"], data.get("valid"))
    task = get_task(data["task"])
    train, valid = (task.pairs(split, data[f"{split}_count"], data["seed"]) for split in ("train", "valid"))
    return Text(train, valid)


def _read_text(train: list[str], valid: list[str] | None) -> Text:
    paths = [*train, *(valid or [])]
    if "-" in paths:
        opened(sys.stdin, "input")
    if paths.count("-") > 1:
        raise DataError("standard input can be read once, and - stands for it twice")
    pairs = ParallelText(*train)
    if valid is None:
        return Text(*hold_out(pairs), pairs.left_out, held_out=True)
    others = ParallelText(*valid)
    return Text(pairs, list(others), pairs.left_out + others.left_out)


def validation(data: dict[str, Any]) -> list[tuple[str, str]]:
    """The validation text of a run on text; RunError if it came from standard input, which cannot be read again."""
    if "-" in [*data["train"], *data.get("valid", [])]:
        raise RunError("the run's text came from standard input: give --source and --target")
    return list(read(data).valid)
