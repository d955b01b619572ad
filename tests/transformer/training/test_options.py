"""The training options: what is refused and how it is named, and their form in JSON."""

import json
import math

import pytest

from transformer.training.options import TrainingOptions

EVERY = TrainingOptions(steps=10, epochs=2, batch_tokens=64, accumulate=2, micro_batches=3, learning_rate=0.01,
                        warmup_steps=3, schedule="linear", label_smoothing=0.2, clip_norm=0.5, weight_decay=0.1,
                        adam_beta2=0.9, seed=5, valid_every=7, valid_first=2, valid_sentences=8, valid_metric="bleu",
                        patience=3, keep=4, average=2, shards=4, threads=2, precision="float16", minutes=1.5)

REFUSED = [
    *[(name, 0, ValueError, "must be at least 1, got 0") for name in (
        "steps", "epochs", "batch_tokens", "accumulate", "micro_batches", "valid_every", "valid_sentences", "patience",
        "keep", "average", "threads")],
    *[(name, 0.0, ValueError, "must be positive, got 0.0") for name in ("learning_rate", "clip_norm", "minutes")],
    *[(name, -1, ValueError, "must not be negative, got -1") for name in ("warmup_steps", "weight_decay", "seed")],
    *[(name, 1, ValueError, r"must be in \[0, 1\), got 1") for name in ("label_smoothing", "adam_beta2")],
    ("learning_rate", math.nan, ValueError, "must be finite, got nan"),
    ("steps", 2.0, TypeError, "must be of type int.*, got 2.0"),
    *[(name, 10**30, ValueError, "must be at most") for name in ("steps", "warmup_steps", "keep")],
    ("seed", 2**64, ValueError, r"must be below 2\*\*64"),
    ("schedule", "step", ValueError, "must be wsd, inverse_sqrt, cosine, linear or constant"),
    ("valid_metric", "rouge", ValueError, "must be exact_match or bleu"),
]


@pytest.mark.parametrize(("name", "value", "error", "message"), REFUSED)
def test_what_is_refused(name, value, error, message):
    with pytest.raises(error, match=f"^{name} {message}"):
        TrainingOptions(**EVERY.to_json() | {name: value})


def test_a_run_needs_a_length_and_some_schedules_need_to_know_it():
    with pytest.raises(ValueError, match="steps, epochs or minutes"):
        TrainingOptions()
    for length in ({"steps": 1, "seed": 0, "warmup_steps": 0}, {"epochs": 1, "adam_beta2": 0.0, "seed": 2**64 - 1},
                   {"minutes": 0.5, "schedule": "constant"}):
        TrainingOptions(**length)
    for schedule in ("cosine", "linear"):
        with pytest.raises(ValueError, match=f"the {schedule} schedule needs steps or epochs"):
            TrainingOptions(minutes=1, schedule=schedule)


def test_json():
    values = json.loads(json.dumps(EVERY.to_json()))
    assert TrainingOptions.from_json(values) == EVERY
    assert all(getattr(EVERY, name) != getattr(TrainingOptions(steps=1), name) for name in values), "none is a default"
    assert TrainingOptions.from_json({"steps": 1}).threads is None, "as of a run that was begun before they existed"
    with pytest.raises(ValueError, match=r"unknown entries: optimizer, rate$"):
        TrainingOptions.from_json({"steps": 1, "rate": 2, "optimizer": "sgd"})
    with pytest.raises(AttributeError):
        EVERY.steps = 3
