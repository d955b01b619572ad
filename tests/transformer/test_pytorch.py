"""Our modules compute what PyTorch's do: outputs and every gradient, against arrays that PyTorch made.

The arrays are in tests/reference/pytorch.safetensors, beside the script that makes them.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from minigrad.checkpoint import load_tensors

from tests.transformer.pytorch_cases import build, largest_difference, load, measure

ARRAYS, METADATA = load_tensors(Path(__file__).parents[1] / "reference" / "pytorch.safetensors")
FACTS = {key: json.loads(text) for key, text in METADATA.items()}
SIZES, CASES = FACTS["sizes"], FACTS["cases"]
TOLERANCE = {np.float32: 5e-5, np.float64: 1e-10}  # devices round differently, which a norm of six features magnifies


def part(prefix):
    """The arrays whose names begin so, by the rest of their names."""
    return {name[len(prefix):]: array for name, array in ARRAYS.items() if name.startswith(prefix)}


def inputs_of(case):
    inputs = part("inputs.")
    wide = {name: inputs.pop(f"wide_{name}") for name in ("key", "value")}
    return {**inputs, **wide} if case == "attention_wide" else inputs


def weights_of(case):
    """PyTorch's state_dict of the case's module: those of the whole model's weights that the case has gradients for."""
    return {name: ARRAYS[f"weights.{CASES[case][1]}{name}"] for name in part(f"{case}.gradient.")}


def loaded(case, weights, dtype=np.float64, device="cpu"):
    kind, _, options = CASES[case]
    module = build(kind, options, SIZES, dtype, device)
    load(kind, module, {name: array.astype(dtype) for name, array in weights.items()})
    return module


def difference(case, module):
    return largest_difference(measure(CASES[case][0], module, inputs_of(case)), part(f"{case}."))


@pytest.mark.parametrize(("case", "dtype"), [*((case, np.float64) for case in CASES), ("model", np.float32)])
def test_outputs_and_every_gradient_are_pytorchs(case, dtype, device):
    module = loaded(case, weights_of(case), dtype, device)
    assert difference(case, module) < (TOLERANCE[dtype], "")
