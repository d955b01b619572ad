"""What the page is given: every array comes back as it was."""

import base64
import json

import numpy as np
import pytest

from tests.transformer.tiny import tiny_model
from tests.transformer.traces import KINDS, made, traced
from transformer.explore.checks import Check
from transformer.explore.data import encode_array, exact_dtype, facts_of_attention
from transformer.explore.page import embedded_json


def decoded(entry):
    """The JSON with every array in it decoded."""
    if isinstance(entry, dict) and "dtype" in entry:
        dtype = np.dtype(entry["dtype"])
        stored = np.frombuffer(base64.b64decode(entry["data"], validate=True), dtype.newbyteorder("<"))
        return stored.reshape(entry["shape"]).astype(dtype)
    if isinstance(entry, dict):
        return {name: decoded(value) for name, value in entry.items()}
    return [decoded(value) for value in entry] if isinstance(entry, list) else entry


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_arrays_come_back_as_they_were(dtype):
    tiny, huge = np.finfo(dtype).smallest_subnormal, np.finfo(dtype).max
    array = np.array([0.0, -0.0, 1 / 3, tiny, huge, np.inf, -np.inf, np.nan], dtype).reshape(2, 4)
    for given in (array, array.T, array[::-1]):
        back = decoded(json.loads(embedded_json(encode_array(given, dtype))))
        assert back.dtype == array.dtype
        np.testing.assert_array_equal(back, given)
        np.testing.assert_array_equal(np.signbit(back), np.signbit(given))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_weights_take_the_smallest_dtype_that_holds_them(dtype):
    weight = tiny_model().encoder.layers[0].self_attention.query.weight
    assert exact_dtype(weight.copy_((weight.numpy() / 3).astype(dtype))) == dtype


def test_a_check_that_is_not_finite_has_no_number():
    t, _ = traced(made())
    facts = facts_of_attention(t[KINDS[0]], {"Q": [Check(0.0, np.inf, np.nan)]})
    assert facts["checks"] == {"Q": [{"analytic": 0.0, "numeric": None, "error": None}]}
