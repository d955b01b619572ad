"""Messages for a lack of memory: what did not fit, how much memory the device has, and a remedy, in one line.

The array libraries raise MemoryError, NumPy with the shape of the array, CuPy with the bytes in use; CUDA itself raises
other errors, see `ran_out`. A block names what its memory is for: ``with memory_or(UpdateDoesNotFit()): …``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

from minigrad.device import parse_device
from minigrad.device.memory import memory_use
from minigrad.inspect.table import size

from transformer.model import Transformer, TransformerConfig
from transformer.training.options import TrainingOptions

# CUDA also needs memory for page-locked buffers, kernels and handles. Without it, CuPy raises RuntimeErrors that begin
# with the status: cudaError_t of NVIDIA's driver_types.h, CUresult of cuda.h, cublasStatus_t of cublas_api.h.
_STATUSES = ("cudaErrorMemoryAllocation", "CUDA_ERROR_OUT_OF_MEMORY", "CUBLAS_STATUS_ALLOC_FAILED")


def ran_out(error: BaseException | None) -> bool:
    """Whether an exception means that memory ran out, on the host or on a GPU."""
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and str(error).startswith(_STATUSES))


class ModelDoesNotFit(MemoryError):
    """There is too little memory for a trained model."""

    def __init__(self) -> None:
        super().__init__("the model did not fit")


class DoesNotFit(MemoryError):
    """There is too little memory for a part of training, which the message names."""

    updating = False  # whether that part belongs to an update

    def remedies(self, options: TrainingOptions) -> tuple[str, list[str]]:
        """The options that help a resumed run, "" for none; and the remedies that need a new run."""
        return "", []


class BatchDoesNotFit(DoesNotFit):
    """There is too little memory for the forward and backward of a batch, or of a part of it.

    Args:
        sentences: their number, B.
        columns, steps: of their ids, source (B, columns) and labels (B, steps).
        whole: the number of sentences in the batch; more than B for a part of it.
    """

    updating = True

    def __init__(self, sentences: int, columns: int, steps: int, whole: int) -> None:
        self.sentences = sentences
        self.whole, self.longest = whole, max(columns, steps)
        parts = f"a part of a batch, {self.sentences:,} of its" if self.sentences < whole else "a batch of"
        super().__init__(f"{parts} {whole:,} sentence{'s' * (whole != 1)} × {columns:,} source and {steps:,} target "
                         "tokens did not fit")

    def remedies(self, options: TrainingOptions) -> tuple[str, list[str]]:
        """More micro-batches, down to single sentences."""
        if self.sentences == 1:
            return "", ["shorter sentences"]
        parts = min(2 * options.micro_batches, self.whole)
        more = f" or more, up to {self.whole:,}" if parts < self.whole else ""
        return f"--micro-batches {parts}{more}, which makes the same updates of smaller parts", [_lower(options)]


class UpdateDoesNotFit(DoesNotFit):
    """There is too little memory for the end of an update: clipping, and the step and state of the optimizer."""

    updating = True

    def __init__(self) -> None:
        super().__init__("the step of the optimizer did not fit")


class LossDoesNotFit(DoesNotFit):
    """There is too little memory for the loss on the validation pairs; `batch` did not fit."""

    def __init__(self, batch: BatchDoesNotFit) -> None:
        self.batch = batch
        super().__init__(f"the loss of the validation: {batch}")

    def remedies(self, options: TrainingOptions) -> tuple[str, list[str]]:
        """More micro-batches, which halve this batch: it has at most batch_tokens / micro_batches tokens."""
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
        """Fewer validation sentences."""
        if self.sentences == 1:
            return "", ["shorter sentences"]
        return f"--valid-sentences {self.sentences // 2} (it is {options.valid_sentences:,})", []


class AverageDoesNotFit(DoesNotFit):
    """There is too little memory, on the host, for the checkpoints to average."""

    def __init__(self) -> None:
        super().__init__("the average of the last checkpoints did not fit")

    def remedies(self, options: TrainingOptions) -> tuple[str, list[str]]:
        """No average, which is ``--average 1``."""
        return f"--average 1 (it is {options.average:,})", []


def least_memory(config: TransformerConfig, device: str) -> int:
    """The fewest bytes of the host that training a model takes, from the sizes of its matrices.

    On a CPU they are there with their gradients and Adam's two moments; for a GPU they are drawn on the host.
    """
    square, inner = config.d_model ** 2, config.d_model * config.d_ff
    layers = config.num_encoder_layers * (4 * square + 2 * inner) + config.num_decoder_layers * (8 * square + 2 * inner)
    rows = config.max_length + config.target_vocab_size + config.source_vocab_size * (not config.share_embeddings)
    return (16 if device == "cpu" else 4) * (layers + rows * config.d_model)


@contextmanager
def memory_or(problem: MemoryError) -> Iterator[None]:
    """Raise `problem` if memory runs out inside the block."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not ran_out(error):
            raise
        raise problem from error


def shortage(error: BaseException) -> str:
    """The message of the library that ran out of memory, in brackets; "" if it has none."""
    while error.__cause__ is not None and ran_out(error.__cause__):
        error = error.__cause__
    text = " ".join(str(error).split()).rstrip(".")
    return f" ({text})" if text else ""


def describe(error: BaseException, model: Transformer, options: TrainingOptions, step: int, resumable: bool) -> str:
    """One line on a training run that ran out of memory.

    Args:
        error: the exception.
        model: the model in training.
        options: the options of the run.
        step: the number of updates so far.
        resumable: whether there is a checkpoint to resume from.
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
            f"gradients and Adam's two moments take {size(least)}{_gpu_memory(model.device)}; "
            f"{_remedy(now, anew, model.device, resumable)}")


def describe_setup(error: BaseException, device: str, resumable: bool) -> str:
    """One line on a run that ran out of memory before its first update, in setup or in loading its checkpoint."""
    return (f"out of memory in setting up the run{shortage(error)}{_gpu_memory(device)}; "
            f"{_remedy('', [], device, resumable)}")


def describe_loading(error: BaseException, device: str, best: str) -> str:
    """One line on a finished run that ran out of memory in loading its best model, the checkpoint `best`."""
    where = "where there is more memory" if device == "cpu" else "with --device cpu"
    return (f"the run is finished, and its best checkpoint, {best}, is intact; but there is too little memory to load "
            f"it{shortage(error)}{_gpu_memory(device)}; use it {where}")


def _gpu_memory(device: str) -> str:
    """The memory of a GPU in words; "" for the CPU."""
    use = memory_use(device)
    return "" if use is None else (f", {parse_device(device)} has {size(use.total)}, of which the pool held "
                                   f"{size(use.held)}, with {size(use.used)} in use")


def _lower(options: TrainingOptions) -> str:
    return (f"a lower --batch-tokens (it is {options.batch_tokens:,}; a larger --accumulate keeps the size of an "
            "update)")


def _remedy(now: str, anew: list[str], device: str, resumable: bool) -> str:
    """The remedy: the options `now`, by default a move from a GPU to the CPU; or `anew`, the remedies of a new run."""
    if not now and device != "cpu":
        now = "--device cpu"
    other = " or ".join([*anew, "a smaller model"])
    if resumable:
        return f"go on with --resume {now}, or begin anew with {other}" if now else f"begin anew with {other}"
    return f"give {now}, or take {other}" if now else f"take {other}"
