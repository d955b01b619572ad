"""The checkpoints of a training run: a folder each, complete in itself.

``run.json`` has the model's configuration, the tokenizers, the data's description, the training options and the
progress, and the safetensors files carry its checksum. A checkpoint is written as a new folder under a temporary name
and renamed; then the pointer files are replaced; then old checkpoints are removed. Whenever a run is killed, the
pointers name a complete checkpoint. `transformer.training.run_folder` describes the folder of a run.
"""

from __future__ import annotations

import json
import os
import shutil
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from minigrad.checkpoint import CheckpointError, load_tensors, save_tensors

from transformer.data.tokenizer import Tokenizer, tokenizer_from_json
from transformer.distributed import ALONE, Alone
from transformer.finite import NotFinite, check_finite
from transformer.model import Transformer, TransformerConfig
from transformer.training.files import naming, read_file, sync_folder, write_synced
from transformer.training.messages import shortened
from transformer.training.options import TrainingOptions
from transformer.training.run_folder import OPTIMIZER, RunError, checkpoint_names, remove, resolve

FORMAT = 1
NUMERICS = 4  # raised when the last digits of updates change: by sums, kernels, or the division of batches
MODEL, RUN = "model.safetensors", "run.json"
LARGEST_RUN = 2**28  # bytes of run.json, most of which are the tokens of the vocabularies
_AVERAGE = "-average-"  # in the name of a checkpoint without an optimizer's state


@dataclass
class Run:
    """The contents of a checkpoint beside its arrays.

    Attributes:
        config: the configuration of the model.
        source_tokenizer, target_tokenizer: the same object if the vocabulary is shared.
        data: the source of the examples, as JSON values.
        training: the training options, as JSON values.
        progress: step, epoch, position in the epoch, best validation, and so on, as JSON values.
        numerics: the `NUMERICS` of the version that computed it. Updates have the same bits within one of them.
    """

    config: TransformerConfig
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    data: dict[str, Any]
    training: dict[str, Any]
    progress: dict[str, Any] = field(default_factory=dict)
    numerics: int = NUMERICS

    def to_json(self) -> dict[str, Any]:
        """A dictionary of JSON values."""
        shared = self.source_tokenizer is self.target_tokenizer
        return {"format": FORMAT, "numerics": self.numerics, "model": self.config.to_json(),
                "source_tokenizer": self.source_tokenizer.to_json(),
                "target_tokenizer": None if shared else self.target_tokenizer.to_json(), "data": self.data,
                "training": self.training, "progress": self.progress}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Run:
        """The inverse of `to_json`; ValueError, KeyError or TypeError for malformed values."""
        TrainingOptions.from_json(values["training"])  # raises for those of another version
        source = tokenizer_from_json(values["source_tokenizer"])
        target = source if values["target_tokenizer"] is None else tokenizer_from_json(values["target_tokenizer"])
        return cls(TransformerConfig.from_json(values["model"]), source, target, values["data"], values["training"],
                   values["progress"], values["numerics"])


def save_checkpoint(folder: Path, name: str, run: Run, model: dict[str, Any], optimizer: dict[str, Any] | None) -> None:
    """Write the checkpoint `name`, complete or not at all; an OSError names it."""
    final = folder / "checkpoints" / name
    temporary = final.with_name(f".{name}.{os.getpid()}.partial")
    values = run.to_json()
    arrays: dict[str, Any] = {}
    if optimizer is not None:
        arrays, values["optimizer"] = split_arrays(optimizer)
    # A path that is not UTF-8 has lone surrogates, for which this error handler writes the escape that JSON has.
    text = json.dumps(values, ensure_ascii=False).encode("utf-8", "backslashreplace")
    metadata = {"run": _checksum(text)}
    with naming(final):
        try:
            shutil.rmtree(temporary, ignore_errors=True)
            temporary.mkdir(parents=True)
            write_synced(temporary / RUN, text)
            save_tensors(temporary / MODEL, model, metadata)
            if optimizer is not None:
                save_tensors(temporary / OPTIMIZER, arrays, metadata)
            if final.exists():  # of a run that was killed before a pointer named it, or that went back to an older one
                remove(final)
            os.replace(temporary, final)
            sync_folder(final.parent)
        except OSError:
            shutil.rmtree(temporary, ignore_errors=True)
            raise


# --------------------------------------------------------------------------- reading


Contents = tuple[Run, dict[str, np.ndarray], dict[str, Any] | None]


def load_run(folder: str | Path, which: str = "best", ranks: Alone = ALONE) -> Contents:
    """Read a checkpoint of a run.

    Args:
        folder: the run's folder.
        which: "best", "latest", or the name of a checkpoint.
        ranks: the processes that need it, each of which calls this; rank 0 reads, for all.

    Returns:
        The run, the model's arrays by name, and the optimizer's state: without moments for a checkpoint that is no
        longer the latest, None for averaged models.

    Raises:
        RunError: there is no such run or checkpoint, its format is another version's, a file is damaged, or a weight is
            not finite; the message names checkpoints that are intact.
    """
    if ranks.size > 1:
        return _read_for_all(ranks, folder, which)
    folder, failed = Path(folder), None
    while True:
        name = None
        try:
            name = resolve(folder, which)
            return load_checkpoint(folder, name)
        except RunError as error:
            if name in (None, which, failed):
                raise RunError(f"{error}{others(folder, name)}") from error
            failed = name  # a training that goes on may have removed it meanwhile: the pointer then names another


def _read_for_all(ranks: Alone, folder: str | Path, which: str) -> Contents:
    arrays = state = None

    def read() -> list[Any]:
        nonlocal arrays, state
        run, arrays, optimizer = load_run(folder, which)
        rest = None
        if optimizer is not None:
            state, rest = split_arrays(optimizer)
        return [run.to_json(), rest]

    values, rest = ranks.first(read)
    model, state = ranks.broadcast_arrays(arrays), ranks.broadcast_arrays(state)
    return Run.from_json(values), model, None if rest is None else join_arrays(state, rest)


def load_description(folder: str | Path, which: str, ranks: Alone) -> Run:
    """As `load_run`, without the arrays."""
    return Run.from_json(ranks.first(lambda: load_run(folder, which)[0].to_json()))


def load_checkpoint(folder: Path, name: str) -> Contents:
    """As `load_run`, of a checkpoint by its name; the message says what is wrong with it alone."""
    checkpoint = folder / "checkpoints" / name
    if not checkpoint.is_dir():
        raise RunError(f"{folder}: the checkpoint {name} is missing")
    try:
        text = read_file(checkpoint / RUN, LARGEST_RUN)
        model = _load_arrays(checkpoint / MODEL, text)
        values = json.loads(text)
        if values["format"] != FORMAT:
            raise RunError(f"{checkpoint}: the checkpoint has format {values['format']!r}, this version reads format "
                           f"{FORMAT}")
        optimizer = None
        if "optimizer" in values:
            newest = next((other for other in checkpoint_names(folder) if _AVERAGE not in other), name)
            if name == newest or os.path.lexists(checkpoint / OPTIMIZER):
                optimizer = join_arrays(_load_arrays(checkpoint / OPTIMIZER, text), values["optimizer"])
            else:  # others followed, see `prune`
                optimizer = join_arrays({}, values["optimizer"] | {"numbers": {}})
        run = Run.from_json(values)
        check_finite(model)
    except RunError:
        raise
    except NotFinite as error:
        raise RunError(f"{checkpoint}: {error}, so that it neither translates nor trains on; begin anew with a lower "
                       "learning rate or a longer warm-up") from error
    except (OSError, CheckpointError) as error:
        raise RunError(f"{checkpoint}: cannot be read: {one_line(error)}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RunError(f"{checkpoint / RUN}: damaged or foreign: {one_line(error)}") from error
    return run, model, optimizer


def check(folder: Path, name: str) -> str | None:
    """What is wrong with a checkpoint, in one line; None if it is intact: every value agrees with its checksum."""
    try:
        load_checkpoint(folder, name)
    except RunError as error:
        return str(error)
    return None


def others(folder: Path, name: str | None) -> str:
    """The end of a message on a checkpoint that cannot be used: which others are intact, and how to use one."""
    names = [other for other in checkpoint_names(folder) if other != name]
    intact = [other for other in names if check(folder, other) is None]
    if not intact:
        return "; no other checkpoint is intact" if name or names else ""
    return f"; intact: {', '.join(intact)}; translate --checkpoint NAME and train --resume-from NAME use one of them"


def load_model(folder: str | Path, device: str = "cpu", which: str = "best",
               ranks: Alone = ALONE) -> tuple[Transformer, Run]:
    """The trained model, in evaluation mode on `device`, and its `Run`; raises RunError as `load_run` does."""
    run, arrays, _ = load_run(folder, which, ranks)
    return build(folder, run, arrays).to(device), run


def build(folder: str | Path, run: Run, arrays: dict[str, np.ndarray]) -> Transformer:
    """The model with the arrays of a checkpoint, in evaluation mode on the host; RunError if they do not fit."""
    model = Transformer(run.config)
    try:
        model.load_state_dict(arrays)
    except ValueError as error:
        raise RunError(f"{folder}: the weights do not fit the configuration: {one_line(error)}") from error
    return model.eval()


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
        state.setdefault(int(index), {})[name] = array
    for index, entries in rest["numbers"].items():
        state.setdefault(int(index), {}).update(entries)
    return {"state": state, "param_groups": rest["param_groups"]}


def one_line(error: Exception) -> str:
    """The message of an exception on one short line."""
    return shortened(f"there is no {error}" if isinstance(error, KeyError) else str(error), 600)


def _load_arrays(path: Path, run: bytes) -> dict[str, np.ndarray]:
    """The arrays of a checkpoint, whose ``run.json`` holds the bytes `run`."""
    arrays, metadata = load_tensors(path)
    if metadata.get("run") != _checksum(run):
        raise RunError(f"{path.parent}: damaged: {path.name} and {RUN} do not belong together")
    return arrays


def _checksum(text: bytes) -> str:
    return f"{zlib.crc32(text):08x}"
