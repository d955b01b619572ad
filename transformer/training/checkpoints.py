"""The checkpoints of a training run: a folder each, complete in itself.

``run.json`` has the model's configuration, the tokenizers, the data's description, the training options and the
progress, and the safetensors files carry its checksum. `transformer.training.run_folder` describes the folder of a run.

A run saves in this order, so that the pointers name complete checkpoints whenever it is killed:

1. a line is added to ``log.csv``, after a validation; a resumed run drops the lines after its checkpoint,
2. the checkpoint is written as a new folder under a hidden name, and renamed,
3. ``latest`` is replaced,
4. ``best`` is replaced,
5. old checkpoints, and what killed runs left under hidden names, are removed.

The average of checkpoints, which no run goes on from, is written before its line.
"""

import json
import math
import os
import shutil
import zlib
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

from minigrad.checkpoint import CheckpointError, load_tensors, save_tensors

from transformer.data.tokenizer import Tokenizer, tokenizer_from_json
from transformer.distributed import ALONE, Alone
from transformer.finite import NotFinite, check_finite
from transformer.model import Transformer, TransformerConfig
from transformer.training.messages import one_line
from transformer.training.options import TrainingOptions
from transformer.training.run_folder import (
    OPTIMIZER,
    RunError,
    checkpoint_names,
    newest,
    pointed,
    read_file,
    remove,
    replace_file,
    resolve,
    sync_folder,
)

FORMAT = 3
NUMERICS = 6  # raised when the last digits of updates change: by sums, kernels, or the division of batches
MODEL, RUN = "model.safetensors", "run.json"
NOISE = {"exact_match": 0.0, "bleu": 5.0}  # of so little BLEU, a few chance words decide


@dataclass(frozen=True)
class Validation:
    """The loss per target token, without smoothing, and the metric: exact match (a fraction) or BLEU (0 to 100)."""

    loss: float
    metric: float

    def better_than(self, other: Self | None, metric: str = "exact_match") -> bool:
        """Whether the metric is higher, or the same with a lower loss; below `NOISE` all metrics are the same."""
        def rank(one: Validation) -> tuple[float, float]:
            return max(one.metric, NOISE[metric]), -one.loss

        return other is None or rank(self) > rank(other)

    def describe(self, metric: str) -> str:
        """The loss and the metric, in one line of text."""
        value = f"exact match {100 * self.metric:.2f} %" if metric == "exact_match" else f"BLEU {self.metric:.2f}"
        return f"validation loss {self.loss:.4f}, {value}"


@dataclass
class Progress:
    """The progress of a run.

    Attributes:
        step: updates made.
        epoch, batch: the epoch of the next batch, and its number in the epoch.
        seconds: training time so far, validations included.
        tokens: real target tokens trained on.
        validated: the step of the last validation.
        validation: what it found; None if updates were made since.
        learning_rate: the rate of the last update.
        decay_from, end: with the schedule "wsd": the number of updates before the decay and in the whole run, once they
            are decided; 0 before that.
        loss_sum, loss_tokens: the sum of the training losses since the last validation and the number of their tokens.
            The sum is a raw number on the model's device until `Trainer.read_loss`. Losses are added one by one, so
            that it depends neither on readings nor on a stop and a resume.
        data_checksum: a checksum of the token ids of all pairs.
    """

    step: int = 0
    epoch: int = 0
    batch: int = 0
    seconds: float = 0.0
    tokens: int = 0
    validated: int = 0
    validation: Validation | None = None
    learning_rate: float = 0.0
    decay_from: int = 0
    end: int = 0
    loss_sum: Any = 0.0
    loss_tokens: int = 0
    data_checksum: int = 0

    @property
    def mean_loss(self) -> float:
        """The training loss per token since the last validation; NaN before the first update."""
        return float(self.loss_sum) / self.loss_tokens if self.loss_tokens else math.nan


@dataclass
class Run:
    """What is trained and how, and the contents of a checkpoint beside its arrays.

    Attributes:
        config: the configuration of the model.
        tokenizers: of source and target; the same object twice if the vocabulary is shared.
        data: the source of the examples, as JSON values.
        options: the training options.
        progress: what the training has reached.
        numerics: the `NUMERICS` of the version that computed it. Updates have the same bits within one of them.
        name: of the checkpoint that it was read from.
    """

    config: TransformerConfig
    tokenizers: tuple[Tokenizer, Tokenizer]
    data: dict[str, Any]
    options: TrainingOptions
    progress: Progress = field(default_factory=Progress)
    numerics: int = NUMERICS
    name: str = ""

    def to_json(self) -> dict[str, Any]:
        """A dictionary of JSON values."""
        source, target = self.tokenizers
        return {"format": FORMAT, "numerics": self.numerics, "model": vars(self.config),
                "source_tokenizer": source.to_json(),
                "target_tokenizer": None if target is source else target.to_json(), "data": self.data,
                "training": vars(self.options), "progress": asdict(self.progress)}

    @classmethod
    def from_json(cls, values: dict[str, Any], name: str) -> Self:
        """The inverse of `to_json`; ValueError, KeyError or TypeError for malformed values."""
        if values["format"] != FORMAT:
            raise ValueError(f"it has format {values['format']!r}, this version reads format {FORMAT}")
        source = tokenizer_from_json(values["source_tokenizer"])
        target = source if values["target_tokenizer"] is None else tokenizer_from_json(values["target_tokenizer"])
        progress = Progress(**values["progress"])
        if progress.validation is not None:
            progress.validation = Validation(**values["progress"]["validation"])
        return cls(TransformerConfig(**values["model"]), (source, target), values["data"],
                   TrainingOptions(**values["training"]), progress, values["numerics"], name)


Arrays = dict[str, np.ndarray]


def save_checkpoint(folder: Path, name: str, run: Run, model: dict[str, Any], moments: dict[str, Any]) -> None:
    """Write the checkpoint `name`, complete or not at all; raises NotFinite, or an OSError."""
    check_finite(model)
    check_finite(moments, "the optimizer's")
    final = folder / "checkpoints" / name
    temporary = final.with_name(f".{name}.{os.getpid()}.partial")
    # A path that is not UTF-8 has lone surrogates, for which this error handler writes the escape that JSON has.
    text = json.dumps(run.to_json(), ensure_ascii=False).encode("utf-8", "backslashreplace")
    belongs = {"run": _checksum(text)}
    try:
        temporary.mkdir(parents=True, exist_ok=True)
        replace_file(temporary / RUN, text)
        save_tensors(temporary / MODEL, model, belongs)
        save_tensors(temporary / OPTIMIZER, moments, belongs)
        if final.exists():  # of a run that was killed before a pointer named it, or that went back to an older one
            remove(final)
        os.replace(temporary, final)
        sync_folder(final.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def write_empty_moments(folder: Path, name: str) -> None:
    """Write an empty optimizer's file to a checkpoint whose own was removed, so that it can be the latest."""
    checkpoint = folder / "checkpoints" / name
    save_tensors(checkpoint / OPTIMIZER, {}, {"run": _checksum((checkpoint / RUN).read_bytes())})


# --------------------------------------------------------------------------- reading


def load_run(folder: str | Path, which: str = "best", ranks: Alone = ALONE) -> tuple[Run, Arrays, Arrays]:
    """Read a checkpoint of a run.

    Args:
        folder: the run's folder.
        which: "best", "latest", or the name of a checkpoint.
        ranks: the processes that need it, each of which calls this; rank 0 reads, for all.

    Returns:
        The run, the model's arrays by name, and the optimizer's by "parameter.name"; none of these for a checkpoint
        that is no longer the latest.

    Raises:
        RunError: there is no such run or checkpoint, its format is another version's, a file is damaged, or a weight is
            not finite.
    """
    folder, arrays = Path(folder), list[Arrays]()

    def read() -> tuple[dict[str, Any], str]:
        name = resolve(folder, which)
        try:
            run, *arrays[:] = load_checkpoint(folder, name)
            return run.to_json(), name
        except RunError as error:
            if name not in (which, resolve(folder, which)):
                return read()  # a training that goes on has moved the pointer meanwhile
            raise RunError(f"{error}; info --verify names those that are intact, for translate --checkpoint NAME and "
                           "train --resume-from NAME") from error

    run = Run.from_json(*ranks.first(read))
    model, moments = (ranks.broadcast_arrays(arrays[place] if arrays else None) for place in (0, 1))
    return run, model, moments


def load_checkpoint(folder: Path, name: str) -> tuple[Run, Arrays, Arrays]:
    """As `load_run`, of a checkpoint by its name; the message says what is wrong with it alone."""
    checkpoint = folder / "checkpoints" / name
    if not checkpoint.is_dir():
        raise RunError(f"{folder}: the checkpoint {name} is missing")
    try:
        text = read_file(checkpoint / RUN)
        model = _load_arrays(checkpoint / MODEL, text)
        moments = Arrays()
        if _needs_moments(folder, name) or os.path.lexists(checkpoint / OPTIMIZER):
            moments = _load_arrays(checkpoint / OPTIMIZER, text)
        check_finite(model)
        check_finite(moments, "the optimizer's")
        return Run.from_json(json.loads(text), name), model, moments
    except NotFinite as error:
        raise RunError(f"{checkpoint}: {error}, so that it neither translates nor trains on; begin anew with a lower "
                       "learning rate or a longer warm-up") from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise RunError(f"{checkpoint}: cannot be read: {one_line(error)}") from error


def check(folder: Path, name: str) -> str | None:
    """What is wrong with a checkpoint, in one line; None if it is intact: every value agrees with its checksum."""
    try:
        load_checkpoint(folder, name)
    except RunError as error:
        return str(error)
    return None


def load_model(folder: str | Path, device: str = "cpu", which: str = "best",
               ranks: Alone = ALONE) -> tuple[Transformer, Run]:
    """The trained model, in evaluation mode on `device`, and its `Run`; raises RunError as `load_run` does."""
    run, arrays, _ = load_run(folder, which, ranks)
    model = Transformer(run.config)
    try:
        model.load_state_dict(arrays)
    except ValueError as error:
        raise RunError(f"{folder}: the weights do not fit the configuration: {one_line(error)}") from error
    return model.eval().to(device), run


def _needs_moments(folder: Path, name: str) -> bool:
    """Whether a checkpoint must have the optimizer's file: the newest one, unless "latest" names another that is there.

    `prune` removes the file of all that are not the latest. An older checkpoint may be without it even where "latest"
    names it: the pointer may be damaged.
    """
    others = {*checkpoint_names(folder)} - {name}
    return name == newest(folder) and pointed(folder, "latest") not in others


def _load_arrays(path: Path, run: bytes) -> Arrays:
    """The arrays of a checkpoint, whose ``run.json`` holds the bytes `run`."""
    arrays, metadata = load_tensors(path)
    if metadata.get("run") != _checksum(run):
        raise CheckpointError(f"{path.name} and {RUN} do not belong together")
    return arrays


def _checksum(text: bytes) -> str:
    return f"{zlib.crc32(text):08x}"
