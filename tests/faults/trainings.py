"""The trainings that are disturbed, and what each leaves when nothing disturbs it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sacrebleu

from tests.faults.children import Ended, Steps, command
from tests.transformer.runs import bits, contents
from transformer.data.tasks import get_task
from transformer.training.checkpoints import load_run
from transformer.training.log import COLUMNS, Log

MODEL = ["--d-model", "8", "--heads", "2", "--layers", "1", "--d-ff", "8", "--dropout", "0.1"]
SMALL = ["--task", "copy", *MODEL, "--train-count", "60", "--valid-count", "4", "--valid-sentences", "2",
         "--batch-tokens", "100", "--quiet"]
PLAIN = [*SMALL, "--steps", "12", "--valid-every", "2", "--keep", "1", "--schedule", "constant"]
LIMIT = 60.0  # seconds that an undisturbed training may take beside others


@dataclass(frozen=True)
class Training:
    """A training, done once without a disturbance.

    Attributes:
        options: its options, but for ``--out``.
        finished: its folder at the end.
        stopped: the folder of another that Ctrl-C stopped halfway.
        contents: what the end of it, or of any that goes on to the same end, must hold.
        checkpoints: the values of each checkpoint.
        seconds: its duration in a process that had imported everything.
    """

    options: list[str]
    finished: Path
    stopped: Path
    contents: dict[str, Any]
    checkpoints: dict[str, Any]
    seconds: float


@dataclass(frozen=True)
class Base:
    """What all faults begin with: trainings, the first two of which differ in their seed alone, and a new process.

    These two keep one checkpoint beside the best, so that a reader finds what it begins to read removed, if it can be.

    Attributes:
        trainings: in order.
        imports: seconds that a new process takes before the command begins.
    """

    trainings: list[Training]
    imports: float


def prepare(folder: Path) -> Base:
    """Make the trainings in `folder`, after what would be slow in each process that is forked from this one."""
    log = Log(folder / "log.csv")
    log.start()
    log.add(**dict.fromkeys(COLUMNS, 1))
    log.draw("exact_match")
    sacrebleu.sentence_bleu("a b", ["a b"])
    files = [str(folder / name) for name in ("train.from", "train.to", "valid.from", "valid.to")]
    for split, count, (source, target) in (("train", 90, files[:2]), ("valid", 4, files[2:])):
        for path, texts in zip((source, target), zip(*get_task("dates").pairs(split, count, 1), strict=True),
                               strict=True):
            Path(path).write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    text = ["--train", *files[:2], "--valid", *files[2:], "--tokens", "characters", *MODEL, "--epochs", "2",
            "--valid-every", "2", "--valid-sentences", "1", "--batch-tokens", "600", "--schedule", "cosine", "--keep",
            "1", "--threads", "2", "--accumulate", "2", "--quiet"]
    averaged = [*PLAIN, "--valid-every", "3", "--keep", "2", "--average", "3"]  # the last of each option holds
    variants = {"one": [*PLAIN, "--seed", "1"], "two": [*PLAIN, "--seed", "2"], "averaged": averaged, "text": text}
    trainings = [_trained(folder / name, options) for name, options in variants.items()]
    return Base(trainings, _ended(["--version"], folder, 0, new=True).seconds)


def values(folder: Path, which: str) -> dict[str, Any]:
    """All that a checkpoint holds, to compare with ``==``; raises RunError as `load_run` does."""
    run, arrays, optimizer = load_run(folder, which)
    found: dict[str, Any] = {"run": json.dumps(run.to_json(), sort_keys=True), "model": bits(arrays)}
    if optimizer is not None:
        found |= {"optimizer": {index: bits(entry) for index, entry in optimizer["state"].items()},
                  "groups": optimizer["param_groups"]}
    return found


def left(folder: Path) -> dict[str, Any]:
    """All that a finished training leaves, but for its seconds and its picture, to compare with ``==``."""
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))
    return contents(folder) | {"names": names}


def difference(folder: Path, training: Training) -> str | None:
    """What a training left in `folder` that it would not leave undisturbed, or the reverse."""
    found = left(folder)
    wrong = [f"{key} ({found[key]} and not {expected})" if len(str(expected)) < 300 else key
             for key, expected in training.contents.items() if found[key] != expected]
    if not (folder / "history.png").read_bytes().endswith(b"IEND\xaeB`\x82"):
        wrong.append("history.png, which is cut short")
    return f"the end differs in {'; '.join(wrong)}" if wrong else None


def _trained(folder: Path, options: list[str]) -> Training:
    folder.mkdir()
    finished, stopped = folder / "finished", folder / "stopped"
    ended = _ended(["train", *options, "--out", finished], folder, 0)
    last = load_run(finished, "latest")[0].progress["step"]
    _ended(["train", *options, "--out", stopped], folder, 130, steps=Steps(interrupted=last // 2 + 1))
    checkpoints = {path.name: values(finished, path.name) for path in (finished / "checkpoints").iterdir()}
    return Training(options, finished, stopped, left(finished), checkpoints, ended.seconds)


def _ended(arguments: list[Any], folder: Path, expected: int, **how: Any) -> Ended:
    """A command that nothing disturbs; RuntimeError if it ends otherwise than expected."""
    child = command(arguments, folder, **how)
    child.wait(LIMIT)
    ended = child.end()
    if ended.status != expected:
        raise RuntimeError(f"{arguments[0]} ended with status {ended.status} undisturbed: {ended.errors}")
    return ended
