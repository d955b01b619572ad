"""Every optimizer, option by option, against numbers made by PyTorch (tests/reference/make_optimizers.py)."""

import json
from pathlib import Path

import numpy as np
import pytest

import minigrad
from minigrad import optim
from minigrad.checkpoint import load_tensors
from minigrad.device import to_numpy

ARRAYS, METADATA = load_tensors(Path(__file__).parents[2] / "reference" / "optimizers.safetensors")
FACTS = {key: json.loads(text) for key, text in METADATA.items()}


@pytest.mark.parametrize("name", FACTS["cases"])
def test_every_step_is_pytorchs(name, device):
    kind, options = FACTS["cases"][name]
    params = [minigrad.Tensor(ARRAYS[f"start.{i}"], device=device, requires_grad=True) for i in range(2)]
    optimizer = getattr(optim, kind)(params, **options)
    for t in range(FACTS["steps"]):
        if t == FACTS["halved"]:
            optimizer.param_groups[0]["lr"] /= 2
        for i, p in enumerate(params):
            skipped = [i, t] == FACTS["skipped"]
            p.grad = None if skipped else minigrad.Tensor(ARRAYS[f"gradient.{i}.{t}"], device=device)
        optimizer.step()
        for i, p in enumerate(params):
            np.testing.assert_allclose(
                to_numpy(p.data), ARRAYS[f"{name}.{i}.{t}"], rtol=1e-13, atol=1e-14, err_msg=f"step {t}"
            )
            assert p.dtype == np.float64
            assert p.device == ("cpu" if device == "cpu" else "cuda:0")


def test_the_reference_tells_the_cases_apart():
    """No two cases end alike, so a wrong option cannot hide."""
    last = [ARRAYS[f"{name}.0.{FACTS['steps'] - 1}"] for name in FACTS["cases"]]
    for i, a in enumerate(last):
        for b in last[i + 1 :]:
            assert np.abs(a - b).max() > 1e-4
