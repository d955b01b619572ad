"""The options of a training run, beside the model's."""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any

MOST = 10**12  # more of anything, updates or tokens or sentences, would not end in a lifetime
MOST_THREADS = 4096  # more than the cores of any one machine

SCHEDULES, METRICS = ("wsd", "inverse_sqrt", "cosine", "constant"), ("exact_match", "bleu")

_RANGES: dict[str, tuple[Callable[[Any], bool], tuple[str, ...]]] = {
    "from 1 to 10**12": (lambda x: 1 <= x <= MOST, (
        "steps", "epochs", "batch_tokens", "accumulate", "valid_every", "valid_first", "valid_sentences", "keep",
        "average", "shards")),
    f"from 1 to {MOST_THREADS}": (lambda x: 1 <= x <= MOST_THREADS, ("threads",)),
    "from 0 to 10**12": (lambda x: 0 <= x <= MOST, ("warmup_steps",)),
    "from 0 to 2**64 - 1": (lambda x: 0 <= x < 2**64, ("seed",)),
    "positive": (lambda x: 0 < x < inf, ("learning_rate", "minutes")),
    "0 or more": (lambda x: 0 <= x < inf, ("clip_norm", "weight_decay")),
    "in [0, 1)": (lambda x: 0 <= x < 1, ("label_smoothing", "adam_beta2")),
    " or ".join(SCHEDULES): (lambda x: x in SCHEDULES, ("schedule",)),
    " or ".join(METRICS): (lambda x: x in METRICS, ("valid_metric",)),
}


@dataclass(frozen=True)
class TrainingOptions:
    """How to train.

    Attributes:
        steps: updates of the parameters to make, or None.
        epochs: passes over the data to make, or None. One of the two must be given; the first reached ends the run.
        batch_tokens: size of a batch, sentences × longest side, padding included.
        accumulate: gradient accumulation: the number of batches whose gradients are summed for one update.
        threads: threads that work on each batch. `ParallelGradients` divides the batch over them; those of a small
            model (see `dividing_threads`) share its matrix products instead. None: as many as the BLAS takes, for
            matrix products alone. No effect on a GPU.
        learning_rate: the highest rate of the schedule.
        warmup_steps: updates over which the rate rises from 0.
        schedule: the rate then: "inverse_sqrt" (the paper's); "cosine", to 0 at the end; "constant"; or
            "wsd", constant until the last fifth of the run and then linear to 0, whether updates, epochs or `minutes`
            end it (warm-up, stable, decay: Hu et al. 2024, arXiv:2404.06395, section 4).
        label_smoothing: ε of the loss in training; it is 0 in validation.
        clip_norm: the largest norm of the gradient over all parameters; 0 for no clipping.
        weight_decay: decoupled weight decay, as in AdamW.
        adam_beta2: decay of the second moment; the first moment's is 0.9.
        seed: the seed of the parameters, the order of the data and dropout.
        valid_every: updates between validations, each of which also saves a checkpoint.
        valid_first: the update of a validation before all others, to see early what comes; None: no such validation.
        valid_sentences: the number of validation sentences to decode for the metric (the loss uses all), spread evenly
            over them.
        valid_metric: "exact_match" or "bleu".
        keep: the number of checkpoints to keep, beside the best.
        average: at the end, average the weights of this many last checkpoints, and keep the average if it validates
            better; 1: no average.
        minutes: end after this much training time; None: no limit. With "wsd" the clock decides at the beginning of the
            decay, once, how many updates are left.
        shards: parts of each batch, which threads and ranks compute: the masks of dropout and the rounding of sums
            depend on their number, and on neither of those. None: one for each thread that divides a batch, on each
            rank.

    Raises:
        ValueError: a value out of range, or no length of the training.
    """

    steps: int | None = None
    epochs: int | None = None
    batch_tokens: int = 2048
    accumulate: int = 1
    threads: int | None = None
    learning_rate: float = 1e-3
    warmup_steps: int = 400
    schedule: str = "cosine"
    label_smoothing: float = 0.1
    clip_norm: float = 1.0
    weight_decay: float = 0.0
    adam_beta2: float = 0.98
    seed: int = 1
    valid_every: int = 500
    valid_first: int | None = None
    valid_sentences: int = 500
    valid_metric: str = "exact_match"
    keep: int = 3
    average: int = 1
    minutes: float | None = None
    shards: int | None = None

    #: The options that a resumed run may change, since they have no effect on earlier updates. With a schedule that
    #: ends at the last step, another length gives later updates the rates of that schedule; another number of shards
    #: changes their masks of dropout, and so does one of threads where no number of shards is given.
    MAY_CHANGE = ("steps", "epochs", "minutes", "keep", "average", "valid_every", "valid_first", "valid_sentences",
                  "threads", "shards")

    def __post_init__(self) -> None:
        for what, (right, names) in _RANGES.items():
            for name in names:
                value = getattr(self, name)
                if value is not None and not right(value):
                    raise ValueError(f"{name} must be {what}, got {value!r}")
        if self.steps is None and self.epochs is None:
            if self.minutes is None:
                raise ValueError("give the length of the training: steps, epochs or minutes")
            if self.schedule == "cosine":
                raise ValueError("the cosine schedule needs steps or epochs, to know where it ends")
