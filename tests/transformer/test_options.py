"""The training options: what is refused and how it is named, and their form in JSON."""

import json
import math

import pytest

from transformer.training.options import TrainingOptions

EVERY = TrainingOptions(steps=10, epochs=2, batch_tokens=64, accumulate=2, micro_batches=3, learning_rate=0.01,
                        warmup_steps=3, schedule="linear", label_smoothing=0.2, clip_norm=0.5, weight_decay=0.1,
                        adam_beta2=0.9, seed=5, valid_every=7, valid_sentences=8, valid_metric="bleu", patience=3,
                        keep=4, average=2, threads=2, precision="tf32", minutes=1.5, jit=True)

COUNTS = ("steps", "epochs", "batch_tokens", "accumulate", "micro_batches", "valid_every", "valid_sentences",
          "patience", "keep", "average", "threads")
POSITIVE = ("learning_rate", "clip_norm", "minutes")
NOT_NEGATIVE = ("warmup_steps", "weight_decay", "seed")
FRACTIONS = ("label_smoothing", "adam_beta2")
INTEGERS = (*COUNTS, "warmup_steps", "seed")
NUMBERS = (*POSITIVE, "weight_decay", *FRACTIONS)
NEEDED = ("batch_tokens", "keep", "learning_rate", "schedule")
REFUSED = [
    *[(name, value, ValueError, f"{name} must be at least 1, got {value}") for name in COUNTS for value in (0, -3)],
    *[(name, value, ValueError, f"{name} must be positive, got {value}") for name in POSITIVE for value in (0.0, -0.5)],
    *[(name, -1, ValueError, f"{name} must not be negative, got -1") for name in NOT_NEGATIVE],
    *[(name, bad, ValueError, rf"{name} must be in \[0, 1\), got {bad}") for name in FRACTIONS for bad in (1, -0.1)],
    *[(name, bad, ValueError, f"{name} must be finite, got {bad}") for name in NUMBERS for bad in (math.inf, math.nan)],
    *[(name, 2.0, TypeError, rf"{name} must be of type int.*, got 2.0") for name in INTEGERS],
    *[(name, "0.5", TypeError, rf"{name} must be of type float.*, got '0.5'") for name in NUMBERS],
    *[(name, True, TypeError, rf"{name} must be of type .*, got True") for name in (*INTEGERS, *NUMBERS)],
    *[(name, None, TypeError, rf"{name} must be of type .*, got None") for name in NEEDED],
    *[("jit", value, TypeError, f"jit must be of type bool, got {value}") for value in (1, None)],
    ("seed", 2**64, ValueError, r"seed must be below 2\*\*64, got 18446744073709551616"),
    ("schedule", "step", ValueError, "schedule must be inverse_sqrt, cosine, linear or constant, got 'step'"),
    ("precision", "bfloat16", ValueError, "precision must be float32, tf32 or float16, got 'bfloat16'"),
    ("precision", None, TypeError, "precision must be of type str, got None"),
    ("valid_metric", "rouge", ValueError, "valid_metric must be exact_match or bleu, got 'rouge'"),
]


@pytest.mark.parametrize(("name", "value", "error", "message"), REFUSED)
def test_what_is_refused(name, value, error, message):
    with pytest.raises(error, match=f"^{message}"):
        TrainingOptions(**EVERY.to_json() | {name: value})


@pytest.mark.parametrize("changes", [
    {"warmup_steps": 0}, {"weight_decay": 0}, {"seed": 0}, {"seed": 2**64 - 1}, {"label_smoothing": 0},
    {"adam_beta2": 0.0}, {"clip_norm": None}, {"patience": None}, {"minutes": None}, {"minutes": 2}, {"steps": None},
    {"epochs": None},
])
def test_what_is_at_the_edge(changes):
    options = TrainingOptions(**EVERY.to_json() | changes)
    assert {name: getattr(options, name) for name in changes} == changes


def test_a_run_needs_a_length():
    with pytest.raises(ValueError, match="give the length of the training: steps, epochs or minutes"):
        TrainingOptions()
    for length in ({"steps": 1}, {"epochs": 1}, {"minutes": 0.5, "schedule": "constant"}):
        TrainingOptions(**length)


@pytest.mark.parametrize("schedule", ["cosine", "linear"])
def test_a_schedule_that_ends_needs_to_know_when(schedule):
    with pytest.raises(ValueError, match=f"the {schedule} schedule needs steps or epochs"):
        TrainingOptions(minutes=1, schedule=schedule)


def test_json_gives_back_what_was_written():
    values = json.loads(json.dumps(EVERY.to_json()))
    assert TrainingOptions.from_json(values) == EVERY
    assert all(getattr(EVERY, name) != getattr(TrainingOptions(steps=1), name) for name in values), "none is a default"


def test_json_of_another_program():
    with pytest.raises(ValueError, match=r"unknown entries: optimizer, rate$"):
        TrainingOptions.from_json({"steps": 1, "rate": 2, "optimizer": "sgd"})
    with pytest.raises(TypeError, match="steps must be of type int"):
        TrainingOptions.from_json({"steps": "1"})


def test_options_cannot_be_changed():
    with pytest.raises(AttributeError):
        EVERY.steps = 3
