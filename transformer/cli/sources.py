"""The sentence pairs of a run, from the description in ``run.json``: a generated task or files of parallel text."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformer.cli.streams import standard_input
from transformer.data.parallel_text import DataError, Pairs, ParallelText, hold_out
from transformer.data.tasks import get_task
from transformer.distributed import Alone
from transformer.training.run_folder import RunError

TEXTS = "train", "valid"  # options with paths, which may be others on other machines


@dataclass
class Text:
    """The pairs of a run.

    Attributes:
        train, valid: the pairs.
        empty: the number of pairs that were left out of both, since a side of them is blank.
    """

    train: Pairs
    valid: Pairs
    empty: int = 0


def files(given: Mapping[str, Any]) -> dict[str, Any]:
    """The absolute paths of the given training and validation files, which hold in any working directory."""
    return {side: [path if path == "-" else str(Path(path).absolute()) for path in given[side]]
            for side in TEXTS if side in given}


def check_readable(paths: Iterable[str], ranks: Alone) -> None:
    """DataError if one of the files is a pipe, and several ranks are to read it: each would get a part of it."""
    for path in paths:
        if ranks.size > 1 and (path == "-" or Path(path).is_fifo()):
            raise DataError(f"{path} is a pipe, which one process alone can read; several ranks need a file")


def read(data: Mapping[str, Any], given: Container[str] = ()) -> Text:
    """The training and validation pairs that a run's ``data`` describes.

    Args:
        data: the description.
        given: the files that the command names, which may be standard input.

    Raises:
        DataError: a file is missing or malformed.
        RunError: the text came from standard input, which cannot be read again; or there is no description.
    """
    if "task" in data:
        task = get_task(data["task"])
        train, valid = (task.pairs(split, data[f"{split}_count"], data["seed"]) for split in TEXTS)
        return Text(train, valid)
    for side in TEXTS:
        paths = data.get(side, ())
        if len(paths) > 2:
            raise DataError(f"--{side} takes one table, or two files, got {len(paths)}")
        if "-" in paths and standard_input() and side not in given:
            raise RunError(f"the run's text came from standard input; give it again, by --{side}, or to evaluate by "
                           "--source and --target")
    if "train" not in data:
        raise RunError("the run has no description of its data: resume it with the program that began it, or evaluate "
                       "it on --source and --target")
    pairs = ParallelText(*data["train"])
    if "valid" not in data:
        return Text(*hold_out(pairs), pairs.left_out)
    others = ParallelText(*data["valid"])
    return Text(pairs, list(others), pairs.left_out + others.left_out)
