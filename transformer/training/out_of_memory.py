"""Memory ran out: what did not fit, what there is, and what helps, in one line.

The array libraries raise MemoryError, NumPy's with the shape of the array that it could not make, CuPy's with the bytes
that it had; CUDA itself has other names for it, see `ran_out`. Who knows what the memory was for says so:
``with memory_or(UpdateDoesNotFit()): …``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from minigrad.device import parse_device
from minigrad.device.memory import memory_use
from minigrad.inspect.table import size

from transformer.model import Transformer
from transformer.training.options import TrainingOptions

# A GPU's memory is not for arrays alone. Where there is none for page-locked buffers, for a kernel or for a handle,
# CuPy raises RuntimeErrors that begin with the status: cudaError_t of NVIDIA's driver_types.h, CUresult of cuda.h,
# cublasStatus_t of cublas_api.h.
_STATUSES = ("cudaErrorMemoryAllocation", "CUDA_ERROR_OUT_OF_MEMORY", "CUBLAS_STATUS_ALLOC_FAILED")


def ran_out(error: BaseException | None) -> bool:
    """Whether that is what an exception says: that there is too little memory, on the host or a GPU."""
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and str(error).startswith(_STATUSES))


class ModelDoesNotFit(MemoryError):
    """There is too little memory for a trained model."""

    def __init__(self) -> None:
        super().__init__("the model did not fit")


class DoesNotFit(MemoryError):
    """There is too little memory for something in training; the text says for what."""

    updating = False  # whether it is within an update

    def remedies(self, options: TrainingOptions) -> tuple[str, list[str]]:
        """Options that a run may be given when it goes on, "" for none; and what only a new run may have."""
        return "", []


class BatchDoesNotFit(DoesNotFit):
    """There is too little memory for the forward and backward of a batch, or of a part of it.

    Args:
        source: ids (B, S).
        labels: ids (B, T).
        whole: the sentences of the batch; more than B if this is a part of it.
    """

    updating = True

    def __init__(self, source: Any, labels: Any, whole: int) -> None:
        (self.sentences, columns), (_, steps) = source.shape, labels.shape
        self.whole, self.longest = whole, max(columns, steps)
        parts = f"a part of a batch, {self.sentences:,} of its" if self.sentences < whole else "a batch of"
        super().__init__(f"{parts} {whole:,} sentence{'s' * (whole != 1)} × {columns:,} source and {steps:,} target "
                         "tokens did not fit")

    def remedies(self, options: TrainingOptions) -> tuple[str, list[str]]:
        """Smaller parts, down to single sentences."""
        if self.sentences == 1:
            return "", ["shorter sentences"]
        parts = min(2 * options.micro_batches, self.whole)
        more = f" or more, up to {self.whole:,}" if parts < self.whole else ""
        return f"--micro-batches {parts}{more}, which makes the same updates of smaller parts", [_lower(options)]


class UpdateDoesNotFit(DoesNotFit):
    """There is too little memory for what follows the gradients: clipping, and the step and state of the optimizer."""

    updating = True

    def __init__(self) -> None:
        super().__init__("the step of the optimizer did not fit")


class LossDoesNotFit(DoesNotFit):
    """There is too little memory for the loss on the validation pairs; `batch` did not fit."""

    def __init__(self, batch: BatchDoesNotFit) -> None:
        self.batch = batch
        super().__init__(f"the loss of the validation: {batch}")

    def remedies(self, options: TrainingOptions) -> tuple[str, list[str]]:
        """Its batches have up to batch_tokens / micro_batches tokens: so many parts that this one has half of them."""
        if self.batch.sentences == 1:
            return "", ["shorter sentences"]
        parts = math.ceil(options.batch_tokens / (self.batch.sentences // 2 * self.batch.longest))
        return f"--micro-batches {parts}, which divides such a batch, too", [_lower(options)]


class DecodingDoesNotFit(DoesNotFit):
    """There is too little memory to decode `sentences` at a time for the metric of the validation."""

    def __init__(self, sentences: int) -> None:
        self.sentences = sentences
        super().__init__(f"the validation, which decodes {sentences} sentence{'s' * (sentences != 1)} at a time, did "
                         "not fit")

    def remedies(self, options: TrainingOptions) -> tuple[str, list[str]]:
        """Fewer."""
        if self.sentences == 1:
            return "", ["shorter sentences"]
        return f"--valid-sentences {self.sentences // 2} (it is {options.valid_sentences:,})", []


class AverageDoesNotFit(DoesNotFit):
    """There is too little memory, on the host, for the checkpoints to average."""

    def __init__(self) -> None:
        super().__init__("the average of the last checkpoints did not fit")

    def remedies(self, options: TrainingOptions) -> tuple[str, list[str]]:
        """None is made of one."""
        return f"--average 1 (it is {options.average:,})", []


@contextmanager
def memory_or(problem: MemoryError) -> Iterator[None]:
    """Raise `problem` where memory runs out within."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not ran_out(error):
            raise
        raise problem from error


def shortage(error: BaseException) -> str:
    """What the library that had no memory says about it, in brackets; "" where it says nothing."""
    while error.__cause__ is not None and ran_out(error.__cause__):
        error = error.__cause__
    text = " ".join(str(error).split()).rstrip(".")
    return f" ({text})" if text else ""


def describe(error: BaseException, model: Transformer, options: TrainingOptions, step: int, resumable: bool) -> str:
    """One line about what a training run had no memory for.

    Args:
        error: what was raised.
        model: in training.
        options: of the run.
        step: how many updates were made.
        resumable: whether there is a checkpoint to go on from.
    """
    when, what, now, anew = f"after step {step:,}", "", "", list[str]()
    if isinstance(error, DoesNotFit):
        when, what = f"at step {step + 1:,}" if error.updating else when, f": {error}"
        now, anew = error.remedies(options)
    count = sum(parameter.size for parameter in model.parameters())
    least = 4 * sum(parameter.data.nbytes for parameter in model.parameters())
    use = memory_use(model.device)
    if use is not None and least > use.total:
        now, anew = "", []
    return (f"out of memory {when}{what}{shortage(error)}; the model has {count:,} parameters, which with their "
            f"gradients and Adam's two moments take {size(least)}{_held(model.device)}; "
            f"{_remedy(now, anew, options, model.device, resumable)}")


def describe_setup(error: BaseException, options: TrainingOptions, device: str, resumable: bool) -> str:
    """One line about a run that had no memory to begin with, or to go on from its checkpoint."""
    return (f"out of memory in setting up the run{shortage(error)}{_held(device)}; "
            f"{_remedy('', [], options, device, resumable)}")


def describe_loading(error: BaseException, device: str, best: str) -> str:
    """One line about a run that has ended, and had no memory for its best model, which is the checkpoint `best`."""
    where = "where there is more memory" if device == "cpu" else "with --device cpu"
    return (f"the run is finished, and its best checkpoint, {best}, is intact; but there is too little memory to load "
            f"it{shortage(error)}{_held(device)}; use it {where}")


def _held(device: str) -> str:
    """What there is on a GPU."""
    use = memory_use(device)
    return "" if use is None else (f", {parse_device(device)} has {size(use.total)}, of which the pool held "
                                   f"{size(use.held)}, with {size(use.used)} in use")


def _lower(options: TrainingOptions) -> str:
    return (f"a lower --batch-tokens (it is {options.batch_tokens:,}; a larger --accumulate keeps the size of an "
            "update)")


def _remedy(now: str, anew: list[str], options: TrainingOptions, device: str, resumable: bool) -> str:
    """What to do: with the options `now`, and if there are none on the host; or with what is for a new run alone."""
    if not now and device != "cpu":
        now = "--device cpu" + " --precision float32" * (options.precision == "tf32")
    other = " or ".join([*anew, "a smaller model"])
    if resumable:
        return f"go on with --resume {now}, or begin anew with {other}" if now else f"begin anew with {other}"
    return f"give {now}, or take {other}" if now else f"take {other}"
