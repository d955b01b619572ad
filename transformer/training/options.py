"""The options of a training run, beside the model's."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from math import isfinite
from typing import Any, Self

MOST = 10**12  # more of anything, updates or tokens or sentences, would not end in a lifetime
MOST_THREADS = 4096  # more than the cores of any one machine

_KINDS = {"int": int, "int | None": int | None, "float": int | float, "float | None": int | float | None, "str": str}


@dataclass(frozen=True)
class TrainingOptions:
    """How to train.

    Attributes:
        steps: updates of the parameters to make, or None.
        epochs: passes over the data to make, or None. One of the two must be given; the first reached ends the run.
        batch_tokens: size of a batch, sentences × longest side, padding included.
        accumulate: gradient accumulation: the number of batches whose gradients are summed for one update.
        micro_batches: parts of each batch, divided by rows, that are computed one after the other, in less memory: the
            updates are the same, but for the masks of dropout and the rounding of sums.
        threads: threads that work on each batch. `ParallelGradients` divides the batch over them; those of a small
            model (see `shards_of`) share its matrix products instead. None: as many as the BLAS takes, for matrix
            products alone. No effect on a GPU.
        precision: of updates: "float32"; or "float16", mixed precision: products in float16, the loss under a scale
            that skips updates which overflow (`minigrad.autocast`, `minigrad.optim.GradScaler`), on a GPU alone.
            Validation is in float32.
        learning_rate: the highest rate of the schedule.
        warmup_steps: updates over which the rate rises from 0.
        schedule: the rate then: "inverse_sqrt" (the paper's); "cosine" or "linear" to 0 at the end; "constant"; or
            "wsd", constant until the last fifth of the run and then linear to 0, whether updates, epochs or `minutes`
            end it (warm-up, stable, decay: Hu et al. 2024, arXiv:2404.06395, section 4).
        label_smoothing: ε of the loss in training; it is 0 in validation.
        clip_norm: the largest norm of the gradient over all parameters; None for no clipping.
        weight_decay: decoupled weight decay, as in AdamW.
        adam_beta2: decay of the second moment; the first moment's is 0.9.
        seed: the seed of the parameters, the order of the data and dropout.
        valid_every: updates between validations, each of which also saves a checkpoint.
        valid_first: the update of a validation before all others, to see early what comes; None: no such validation.
        valid_sentences: the number of validation sentences to decode for the metric (the loss uses all), spread evenly
            over them.
        valid_metric: "exact_match" or "bleu".
        patience: end after this many validations in a row without a better one; None: never.
        keep: the number of checkpoints to keep, beside the best.
        average: at the end, average the weights of this many last checkpoints, and keep the average if it validates
            better; 1: no average.
        minutes: end after this much training time; None: no limit. With "wsd" the clock decides at the beginning of the
            decay, once, how many updates are left.
        shards: parts of each batch, which threads and ranks compute: the masks of dropout and the rounding of sums
            depend on their number, and on neither of those. None: one for each thread that divides a batch, on each
            rank.

    Raises:
        TypeError: a value of another type.
        ValueError: a value out of range, or no length of the training.
    """

    steps: int | None = None
    epochs: int | None = None
    batch_tokens: int = 2048
    accumulate: int = 1
    micro_batches: int = 1
    threads: int | None = None
    precision: str = "float32"
    learning_rate: float = 1e-3
    warmup_steps: int = 400
    schedule: str = "cosine"
    label_smoothing: float = 0.1
    clip_norm: float | None = 1.0
    weight_decay: float = 0.0
    adam_beta2: float = 0.98
    seed: int = 1
    valid_every: int = 500
    valid_first: int | None = None
    valid_sentences: int = 500
    valid_metric: str = "exact_match"
    patience: int | None = None
    keep: int = 3
    average: int = 1
    minutes: float | None = None
    shards: int | None = None

    #: The options that a resumed run may change, since they have no effect on earlier updates. With a schedule that
    #: ends at the last step, another length gives later updates the rates of that schedule; another number of shards
    #: or micro-batches changes their masks of dropout, and so does one of threads where no number of shards is given;
    #: another precision changes their rounding.
    MAY_CHANGE = ("steps", "epochs", "minutes", "patience", "keep", "average", "valid_every", "valid_first",
                  "valid_sentences", "micro_batches", "threads", "shards", "precision")

    def __post_init__(self) -> None:
        for field in fields(self):
            value, kind = getattr(self, field.name), str(field.type)
            if not isinstance(value, _KINDS[kind]) or (isinstance(value, bool) and kind != "bool"):
                raise TypeError(f"{field.name} must be of type {kind}, got {value!r}")
            if isinstance(value, float) and not isfinite(value):
                raise ValueError(f"{field.name} must be finite, got {value!r}")
            most = MOST_THREADS if field.name == "threads" else MOST
            if isinstance(value, int) and value > most and field.name != "seed":
                raise ValueError(f"{field.name} must be at most {most:,}, got {value}")
        if self.steps is None and self.epochs is None and self.minutes is None:
            raise ValueError("give the length of the training: steps, epochs or minutes")
        for name in ("steps", "epochs", "batch_tokens", "accumulate", "micro_batches", "valid_every", "valid_first",
                     "valid_sentences", "patience", "keep", "average", "threads", "shards"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}")
        for name in ("learning_rate", "clip_norm", "minutes"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise ValueError(f"{name} must be positive, got {value}")
        for name in ("warmup_steps", "weight_decay", "seed"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must not be negative, got {getattr(self, name)}")
        if self.seed >= 2**64:
            raise ValueError(f"seed must be below 2**64, got {self.seed}")
        for name in ("label_smoothing", "adam_beta2"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name} must be in [0, 1), got {getattr(self, name)}")
        if self.schedule not in ("wsd", "inverse_sqrt", "cosine", "linear", "constant"):
            raise ValueError(f"schedule must be wsd, inverse_sqrt, cosine, linear or constant, got {self.schedule!r}")
        if self.precision not in ("float32", "float16"):
            raise ValueError(f"precision must be float32 or float16, got {self.precision!r}")
        if self.schedule in ("cosine", "linear") and self.steps is None and self.epochs is None:
            raise ValueError(f"the {self.schedule} schedule needs steps or epochs, to know where it ends")
        if self.valid_metric not in ("exact_match", "bleu"):
            raise ValueError(f"valid_metric must be exact_match or bleu, got {self.valid_metric!r}")

    def to_json(self) -> dict[str, Any]:
        """A dictionary of JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Self:
        """The inverse of `to_json`; ValueError names unknown entries."""
        unknown = sorted(set(values) - {f.name for f in fields(cls)})
        if unknown:
            raise ValueError(f"the training options have unknown entries: {', '.join(unknown)}")
        return cls(**values)

    def changed_from(self, earlier: Self) -> list[str]:
        """The options that differ from an earlier run's, though a resumed run may not change them."""
        fixed = [f.name for f in fields(self) if f.name not in self.MAY_CHANGE]
        return [name for name in fixed if getattr(self, name) != getattr(earlier, name)]
