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
            expected = ARRAYS[f"{name}.{i}.{t}"]
            np.testing.assert_allclose(to_numpy(p.data), expected, rtol=1e-13, atol=1e-14, err_msg=f"step {t}")
            assert (p.dtype, p.device) == (np.float64, device)
