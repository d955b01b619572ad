"""What the page is given beside its texts."""

import numpy as np
import pytest

from tests.transformer.tiny import tiny_model
from tests.transformer.traces import KINDS, made, traced
from transformer.explore.checks import Check
from transformer.explore.data import exact, facts_of_attention


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_weights_take_the_smallest_dtype_that_holds_them(dtype):
    weight = tiny_model().encoder.layers[0].self_attention.query.weight
    assert exact(weight.copy_((weight.numpy() / 3).astype(dtype))).dtype == dtype


def test_a_check_that_is_not_finite_has_no_number():
    t, _ = traced(made())
    facts = facts_of_attention(t[KINDS[0]], {"Q": [Check(0.0, np.inf, np.nan)]})
    assert facts["checks"] == {"Q": [{"analytic": 0.0, "numeric": None, "error": None}]}
