"""The folder of a training run, and the checkpoints in it.

    DIR/
        log.csv                     one line for each validation
        checkpoints/00000400/       model.safetensors, optimizer.safetensors, run.json
        latest, best                each holds the name of a checkpoint

A checkpoint is complete in itself: ``run.json`` has the model's configuration, the tokenizers, the data's description,
the training options and the progress, and the safetensors files carry its checksum. It is written as a new folder under
a temporary name and renamed; then the pointer files are replaced; then old checkpoints are removed. Whenever a run is
killed, the pointers name a complete checkpoint. Names: ``00000400`` was made after the validation of step 400,
``00000433-interrupted`` by Ctrl-C, and ``00001200-average-5`` holds averaged weights, which cannot be trained on.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from minigrad.checkpoint import CheckpointError, load_tensors, save_tensors

from transformer.data.tokenizer import Tokenizer, tokenizer_from_json
from transformer.finite import NotFinite, check_finite
from transformer.model import Transformer, TransformerConfig
from transformer.training.options import TrainingOptions
from transformer.training.progress import Progress

FORMAT = 1
MODEL, OPTIMIZER, RUN = "model.safetensors", "optimizer.safetensors", "run.json"
_OURS = re.compile(r"\d{8,}(-interrupted|-average-\d+)?|\..*\.partial")  # names in checkpoints/ that `prune` may remove


class RunError(ValueError):
    """A folder is not a run, or a checkpoint cannot be used; the message is one line."""


@dataclass
class Run:
    """The contents of a checkpoint beside its arrays.

    Attributes:
        config: the configuration of the model.
        source_tokenizer, target_tokenizer: the same object if the vocabulary is shared.
        data: the source of the examples, as JSON values.
        training: the training options, as JSON values.
        progress: step, epoch, position in the epoch, best validation, and so on, as JSON values.
    """

    config: TransformerConfig
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    data: dict[str, Any]
    training: dict[str, Any]
    progress: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """A dictionary of JSON values."""
        shared = self.source_tokenizer is self.target_tokenizer
        return {"format": FORMAT, "model": self.config.to_json(), "source_tokenizer": self.source_tokenizer.to_json(),
                "target_tokenizer": None if shared else self.target_tokenizer.to_json(), "data": self.data,
                "training": self.training, "progress": self.progress}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Run:
        """The inverse of `to_json`; ValueError, KeyError or TypeError for malformed values."""
        for name in ("data", "training", "progress"):
            if not isinstance(values[name], dict):
                raise TypeError(f"{name!r} is not an object with entries")
        Progress.from_json(values["progress"])  # these two raise for malformed values
        TrainingOptions.from_json(values["training"])
        source = tokenizer_from_json(values["source_tokenizer"])
        target = source if values["target_tokenizer"] is None else tokenizer_from_json(values["target_tokenizer"])
        return cls(TransformerConfig.from_json(values["model"]), source, target, values["data"], values["training"],
                   values["progress"])


def is_run(folder: str | Path) -> bool:
    """Whether `folder` holds a run with at least one checkpoint."""
    return pointed(Path(folder), "latest") is not None


def check_new(folder: Path) -> None:
    """RunError if a new run cannot be written to `folder`: it holds a run, or is a file."""
    if folder.exists() and not folder.is_dir():
        raise RunError(f"{folder}: is a file; a run needs a folder of its own, choose another name")
    if is_run(folder):
        raise RunError(f"{folder}: already holds a training run; go on with --resume, or choose another folder")


def save_checkpoint(folder: Path, name: str, run: Run, model: dict[str, Any], optimizer: dict[str, Any] | None) -> None:
    """Write the checkpoint `name`, complete or not at all."""
    final = folder / "checkpoints" / name
    temporary = final.with_name(f".{name}.{os.getpid()}.partial")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    values = run.to_json()
    arrays: dict[str, Any] = {}
    if optimizer is not None:
        arrays, values["optimizer"] = split_arrays(optimizer)
    text = json.dumps(values, ensure_ascii=False)
    metadata = {"run": _checksum(text.encode())}
    _write_text(temporary / RUN, text)
    save_tensors(temporary / MODEL, model, metadata)
    if optimizer is not None:
        save_tensors(temporary / OPTIMIZER, arrays, metadata)
    if final.exists():  # a run left it that was killed before a pointer named it
        _remove(final)
    os.replace(temporary, final)
    _sync_folder(final.parent)


def point(folder: Path, pointer: str, name: str) -> None:
    """Write the name of a checkpoint to a pointer file, "latest" or "best", in one atomic step."""
    temporary = folder / f".{pointer}.tmp"
    _write_text(temporary, name + "\n")
    os.replace(temporary, folder / pointer)
    _sync_folder(folder)


def pointed(folder: Path, pointer: str) -> str | None:
    """The name of the checkpoint that a pointer file names, or None.

    A run that was killed before it wrote "latest" has its newest checkpoint as the latest.
    """
    try:
        return (folder / pointer).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        names = numbered(folder) if pointer == "latest" else []
        return names[-1] if names else None


def prune(folder: Path, keep: int) -> None:
    """Keep the newest `keep` numbered checkpoints and those that a pointer names; remove the others.

    Leftovers of killed runs are removed, too. Checkpoints newer than "latest" are such: the run writes them again.
    """
    latest = pointed(folder, "latest") or ""
    newest = [name for name in numbered(folder) if name <= latest][-keep:]
    kept = {*newest, latest, pointed(folder, "best")}
    for path in (folder / "checkpoints").iterdir():
        if path.name not in kept and _OURS.fullmatch(path.name):
            _remove(path)


def numbered(folder: Path) -> list[str]:
    """The names of the checkpoints that are named by their step alone, oldest first."""
    parent = folder / "checkpoints"
    return sorted(p.name for p in parent.iterdir() if p.name.isdigit()) if parent.is_dir() else []


def load_run(folder: str | Path, which: str = "best") -> tuple[Run, dict[str, np.ndarray], dict[str, Any] | None]:
    """Read a checkpoint of a run.

    Args:
        folder: the run's folder.
        which: "best", "latest", or the name of a checkpoint.

    Returns:
        The run, the model's arrays by name, and the optimizer's state (None for averaged models).

    Raises:
        RunError: there is no such run or checkpoint, its format is another version's, a file is damaged, or a weight is
            not finite.
    """
    folder = Path(folder)
    if not folder.is_dir():
        problem = "is a file, not the folder of a training run" if folder.exists() else "no such folder"
        raise RunError(f"{folder}: {problem}")
    if not is_run(folder):
        raise RunError(f"{folder}: not the folder of a training run (it has no checkpoint); train --out writes one")
    name = (pointed(folder, which) or pointed(folder, "latest")) if which in ("best", "latest") else which
    if not name or Path(name).name != name:
        raise RunError(f"{folder}: {which} is not the name of a checkpoint: {name!r}")
    checkpoint = folder / "checkpoints" / name
    if not checkpoint.is_dir():
        raise RunError(f"{folder}: the checkpoint {name} is missing")
    try:
        text = (checkpoint / RUN).read_bytes()
        values = json.loads(text)
        if not isinstance(values, dict) or "format" not in values:
            raise RunError(f"{checkpoint / RUN}: not written by this program")
        if values["format"] != FORMAT:
            raise RunError(f"{checkpoint}: the checkpoint has format {values['format']!r}, "
                           f"this version reads format {FORMAT}")
        model = _load_arrays(checkpoint / MODEL, text)
        optimizer = None
        if "optimizer" in values:
            optimizer = join_arrays(_load_arrays(checkpoint / OPTIMIZER, text), values["optimizer"])
        run = Run.from_json(values)
        _check_size(folder, run.config, model)
        check_finite(model)
    except RunError:
        raise
    except NotFinite as error:
        raise RunError(f"{checkpoint}: {error}, so that it neither translates nor trains on; take another checkpoint, "
                       "or begin anew with a lower learning rate or a longer warm-up") from error
    except (OSError, CheckpointError) as error:
        raise RunError(f"{checkpoint}: cannot be read: {one_line(error)}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RunError(f"{checkpoint / RUN}: damaged or foreign: {one_line(error)}") from error
    return run, model, optimizer


def load_model(folder: str | Path, device: str = "cpu", which: str = "best") -> tuple[Transformer, Run]:
    """The trained model, in evaluation mode on `device`, and its `Run`; raises RunError as `load_run` does."""
    run, arrays, _ = load_run(folder, which)
    model = Transformer(run.config)
    try:
        model.load_state_dict(arrays)
    except ValueError as error:
        raise RunError(f"{folder}: the weights do not fit the configuration: {one_line(error)}") from error
    return model.to(device).eval(), run


def _check_size(folder: Path, config: TransformerConfig, arrays: dict[str, np.ndarray]) -> None:
    """Raise RunError if the arrays are too few or too small for `config`, before a huge model is allocated."""
    wrong = [name for name in ("source_vocab_size", "target_vocab_size", "d_model")
             if not any(getattr(config, name) in array.shape for array in arrays.values())]
    wrong += [name for name in ("num_encoder_layers", "num_decoder_layers") if getattr(config, name) > len(arrays)]
    if config.d_ff > max((array.size for array in arrays.values()), default=0):
        wrong.append("d_ff")
    if wrong:
        raise RunError(f"{folder}: the weights do not fit the configuration: no model of this {' and '.join(wrong)}")


# --------------------------------------------------------------------------- helpers


def split_arrays(state: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """An optimizer's state_dict as (arrays by "parameter.name", the rest as JSON values)."""
    arrays: dict[str, Any] = {}
    numbers: dict[str, dict[str, Any]] = {}
    for index, entries in state["state"].items():
        for name, value in entries.items():
            if hasattr(value, "shape"):
                arrays[f"{index}.{name}"] = value
            else:
                numbers.setdefault(str(index), {})[name] = value
    return arrays, {"numbers": numbers, "param_groups": state["param_groups"]}


def join_arrays(arrays: dict[str, Any], rest: dict[str, Any]) -> dict[str, Any]:
    """The inverse of `split_arrays`."""
    state: dict[int, dict[str, Any]] = {}
    for key, array in arrays.items():
        index, _, name = key.partition(".")
        if not index.isdecimal():
            raise CheckpointError(f"{OPTIMIZER}: {key!r} is not the state of a parameter")
        state.setdefault(int(index), {})[name] = array
    for index, entries in rest["numbers"].items():
        state.setdefault(int(index), {}).update(entries)
    return {"state": state, "param_groups": rest["param_groups"]}


def one_line(error: Exception) -> str:
    """The message of an exception, on one line."""
    text = f"there is no {error}" if isinstance(error, KeyError) else str(error)
    return " ".join(text.split())


def _load_arrays(path: Path, run: bytes) -> dict[str, np.ndarray]:
    """The arrays of a checkpoint, whose ``run.json`` holds the bytes `run`."""
    arrays, metadata = load_tensors(path)
    expected = _checksum(run)
    if metadata.get("run", expected) != expected:
        raise RunError(f"{path.parent}: damaged: {path.name} and {RUN} do not belong together")
    return arrays


def _checksum(text: bytes) -> str:
    return f"{zlib.crc32(text):08x}"


def _remove(path: Path) -> None:
    """Rename a checkpoint, then remove it, so that a killed run leaves no incomplete checkpoint under that name."""
    if path.suffix != ".partial":
        hidden = path.with_name(f".{path.name}.removed.partial")
        shutil.rmtree(hidden, ignore_errors=True)
        path = path.rename(hidden)
    shutil.rmtree(path, ignore_errors=True)


def _write_text(path: Path, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(path: Path) -> None:
    if os.name == "posix":
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
