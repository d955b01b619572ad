"""The training options: what is refused and how it is named."""

import itertools
import math

import pytest

from transformer.training.options import TrainingOptions

REFUSED = [
    ("steps epochs batch_tokens accumulate valid_every valid_first valid_sentences keep average shards", (0, 10**30),
     r"from 1 to 10\*\*12"),
    ("threads", (0, 5000), "from 1 to 4096"),
    ("learning_rate minutes", (0.0, math.nan, math.inf), "positive"),
    ("clip_norm weight_decay", (-1, math.nan, math.inf), "0 or more"),
    ("warmup_steps", (-1,), r"from 0 to 10\*\*12"),
    ("seed", (-1, 2**64), r"from 0 to 2\*\*64 - 1"),
    ("label_smoothing adam_beta2", (-0.1, 1), r"in \[0, 1\)"),
    ("schedule", ("step",), "wsd or inverse_sqrt or cosine or constant"),
    ("valid_metric", ("rouge",), "exact_match or bleu"),
]


@pytest.mark.parametrize(("names", "values", "right"), REFUSED)
def test_what_is_refused(names, values, right):
    for name, value in itertools.product(names.split(), values):
        with pytest.raises(ValueError, match=f"^{name} must be {right}, got {value!r}"):
            TrainingOptions(**{"steps": 1, name: value})


def test_a_run_needs_a_length_and_some_schedules_need_to_know_it():
    with pytest.raises(ValueError, match="steps, epochs or minutes"):
        TrainingOptions()
    for length in ({"steps": 1, "seed": 0, "warmup_steps": 0}, {"epochs": 1, "adam_beta2": 0.0, "seed": 2**64 - 1},
                   {"minutes": 0.5, "schedule": "constant"}):
        TrainingOptions(**length)
    with pytest.raises(ValueError, match="the cosine schedule needs steps or epochs"):
        TrainingOptions(minutes=1)
