"""Memory ran out: what did not fit, what there is, and what to lower, in one line.

The array libraries raise MemoryError, NumPy's with the shape of the array that it could not make, CuPy's with the bytes
that it had. Who knows what the memory was for raises one of the errors below from it.
"""

from __future__ import annotations

from minigrad.gpu import memory_use
from minigrad.inspect.table import size

from transformer.model import Transformer
from transformer.options import TrainingOptions
from transformer.parallel import Shard


class BatchDoesNotFit(MemoryError):
    """There is too little memory for the forward and backward of a batch, or, if `divided`, of a part of one."""

    def __init__(self, part: Shard, divided: bool) -> None:
        (self.sentences, source), (_, target) = part.source.shape, part.labels.shape
        what = "a part of a batch," if divided else "a batch of"
        super().__init__(f"{what} {self.sentences:,} sentence{'s' * (self.sentences != 1)} × {source:,} source and "
                         f"{target:,} target tokens did not fit")


class ValidationDoesNotFit(MemoryError):
    """There is too little memory to validate."""

    def __init__(self) -> None:
        super().__init__("the validation did not fit")


def shortage(error: MemoryError) -> str:
    """What the array library says about it, in brackets; "" where it says nothing."""
    while isinstance(error.__cause__, MemoryError):
        error = error.__cause__
    text = " ".join(str(error).split()).rstrip(".")
    return f" ({text})" if text else ""


def describe(error: MemoryError, model: Transformer, options: TrainingOptions, step: int, resumable: bool) -> str:
    """One line about what a training run had no memory for.

    Args:
        error: what was raised.
        model: in training.
        options: of the run.
        step: how many updates were made.
        resumable: whether there is a checkpoint to go on from.
    """
    validating = isinstance(error, ValidationDoesNotFit)
    when = f"after step {step:,}" if validating else f"at step {step + 1:,}"
    what = error if validating or isinstance(error, BatchDoesNotFit) else "the update did not fit"
    parameters = f"the model has {sum(parameter.size for parameter in model.parameters()):,} parameters"
    use = memory_use(model.device)
    held = "" if use is None else (f", {model.device} has {size(use.total)}, of which the pool held {size(use.held)}, "
                                   f"with {size(use.used)} in use")
    lower = _for_validation(options, resumable) if validating else _for_updates(error, options, resumable)
    return f"out of memory {when}: {what}{shortage(error)}; {parameters}{held}; {lower}"


def _for_validation(options: TrainingOptions, resumable: bool) -> str:
    """Up to 64 sentences are decoded together."""
    fewer = f"give --valid-sentences (it is {options.valid_sentences:,}) a number below 64"
    return f"{fewer}{', which --resume allows' * resumable}, or use a smaller model"


def _for_updates(error: MemoryError, options: TrainingOptions, resumable: bool) -> str:
    """A run that goes on may not change its batches, but compute each in more parts."""
    if isinstance(error, BatchDoesNotFit) and error.sentences == 1:
        return "leave out the longest sentences, or use a smaller model"
    parts = f"--micro-batches {2 * options.micro_batches}, which makes the same updates of smaller parts"
    anew = (f"a lower --batch-tokens (it is {options.batch_tokens:,}; a larger --accumulate keeps the size of an "
            "update) or a smaller model")
    return f"go on with --resume {parts}, or begin anew with {anew}" if resumable else f"give {parts}, or {anew}"
