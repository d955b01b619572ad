"""Makes a folder of tests/runs_of_older_versions with the code as it is: an interrupted run, and what becomes of it.

    python -m tests.runs_of_older_versions.record VERSION

The command trains with dropout, in one thread, on sentences of different lengths. Ctrl-C stops it in the middle of an
epoch, between two validations.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from minigrad.checkpoint import save_tensors

from transformer.cli import main
from transformer.training.checkpoints import load_run
from transformer.training.trainer import Trainer

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
STOP, END = 50, 100
OPTIONS = ("--task copy --train-count 200 --valid-count 10 --d-model 16 --heads 2 --layers 1 --d-ff 24 --max-length 16 "
           f"--dropout 0.1 --steps {END} --valid-every 40 --keep 1 --batch-tokens 256 --learning-rate 0.02 --warmup 10 "
           "--seed 3 --threads 1 --quiet").split()
SOURCES = ["a b c", "j i h g", "c", "d d e d d e", "b e a d f a c e"]


def command(*arguments: str | Path, code: str = "-m transformer", given: str = "") -> str:
    """What Python writes to standard output in a process of its own, with one thread."""
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, *code.split(), *arguments], cwd=ROOT, env=environment, input=given,
                          capture_output=True, text=True, encoding="utf-8", timeout=100)
    if done.returncode:
        raise RuntimeError(f"{arguments} exits with {done.returncode}: {done.stderr}")
    return done.stdout


def environment() -> dict[str, Any]:
    """What decides the last bits of a result: NumPy, its vector instructions, and the BLAS with its kernels."""
    found: dict[str, Any] = json.loads(command(code="-m tests.runs_of_older_versions.environment"))
    return found


def translations(run: Path) -> list[str]:
    """What the best model of a run makes of `SOURCES`."""
    return command("translate", run, given="\n".join(SOURCES) + "\n").splitlines()


def resume(run: Path) -> dict[str, Mapping[str, Any]]:
    """The arrays of the model and of the optimizer by name, when the run has gone on to its end."""
    command("train", "--out", run, "--resume", "--quiet")
    described, model, optimizer = load_run(run, "latest")
    if optimizer is None or described.progress["step"] != END:
        raise RuntimeError(f"the run ended at step {described.progress['step']}")
    state = {f"{index}.{name}": value for index, entry in optimizer["state"].items() for name, value in entry.items()}
    return {"model": model, "optimizer": state}


def digest(arrays: Mapping[str, Any]) -> str:
    """The SHA-256 of names, dtypes, shapes and bytes."""
    found = hashlib.sha256()
    for name, value in sorted(arrays.items()):
        array = np.asarray(value)
        found.update(f"{name} {array.dtype} {array.shape}\n".encode() + array.tobytes())
    return found.hexdigest()


def _interrupted(run: Path) -> None:
    update = Trainer.update

    def update_and_press(trainer: Trainer, group: Any) -> None:
        update(trainer, group)
        if trainer.progress.step == STOP:
            signal.raise_signal(signal.SIGINT)

    Trainer.update = update_and_press
    with suppress(SystemExit):
        main(["train", "--out", str(run), *OPTIONS])


def record(folder: Path) -> None:
    """Write the run as it was stopped, and what this code makes of it."""
    _interrupted(folder / "run")
    (folder / "run/history.png").unlink(missing_ok=True)
    stopped = load_run(folder / "run", "latest")[1]
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(shutil.copytree(folder / "run", Path(scratch) / "run"))
        before, end = translations(copy), resume(copy)
        after = translations(copy)
    save_tensors(folder / "end.safetensors", end["model"])
    expected = {"environment": environment(), "stopped": digest(stopped),
                "end": {name: digest(arrays) for name, arrays in end.items()},
                "translations": {"stopped": before, "end": after}}
    (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    record(HERE / sys.argv[1])
