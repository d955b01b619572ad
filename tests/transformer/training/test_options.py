"""The training options: what is refused and how it is named, and their form in JSON."""

import json
import math

import pytest

from transformer.training.options import TrainingOptions

EVERY = TrainingOptions(steps=10, epochs=2, batch_tokens=64, accumulate=2, learning_rate=0.01,
                        warmup_steps=3, schedule="inverse_sqrt", label_smoothing=0.2, clip_norm=0.5, weight_decay=0.1,
                        adam_beta2=0.9, seed=5, valid_every=7, valid_first=2, valid_sentences=8, valid_metric="bleu",
                        keep=4, average=2, shards=4, threads=2, minutes=1.5)

REFUSED = [
    *[(name, value, ValueError, r"must be from 1 to 10\*\*12") for value in (0, 10**30) for name in (
        "steps", "epochs", "batch_tokens", "accumulate", "valid_every", "valid_first", "valid_sentences", "keep",
        "average")],
    *[("threads", value, ValueError, "must be from 1 to 4096") for value in (0, 5000)],
    *[(name, value, ValueError, f"must be positive, got {value}") for value in (0.0, math.nan, math.inf)
      for name in ("learning_rate", "minutes")],
    *[(name, -1, ValueError, ".*got -1") for name in ("warmup_steps", "clip_norm", "weight_decay", "seed")],
    *[(name, 1, ValueError, r"must be in \[0, 1\), got 1") for name in ("label_smoothing", "adam_beta2")],
    ("seed", 2**64, ValueError, r"must be from 0 to 2\*\*64 - 1"),
    ("schedule", "step", ValueError, "must be wsd or inverse_sqrt or cosine or constant, got 'step'"),
    ("valid_metric", "rouge", ValueError, "must be exact_match or bleu, got 'rouge'"),
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
    with pytest.raises(ValueError, match="the cosine schedule needs steps or epochs"):
        TrainingOptions(minutes=1)


def test_json():
    values = json.loads(json.dumps(EVERY.to_json()))
    assert TrainingOptions.from_json(values) == EVERY
    assert all(getattr(EVERY, name) != getattr(TrainingOptions(steps=1), name) for name in values), "none is a default"
    assert TrainingOptions.from_json({"steps": 1}).threads is None, "as of a run that was begun before they existed"
    with pytest.raises(ValueError, match=r"unknown entries: optimizer, rate$"):
        TrainingOptions.from_json({"steps": 1, "rate": 2, "optimizer": "sgd"})
    with pytest.raises(AttributeError):
        EVERY.steps = 3
