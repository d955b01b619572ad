"""Run folders of older versions load, translate as they did then, and end with the weights of then when they go on."""

import json
import shutil

import numpy as np
import pytest

from minigrad.checkpoint import load_tensors

from tests.runs_of_older_versions.record import HERE, digest, environment, resume, translations
from transformer.training.checkpoints import load_run

TOLERANCE = 1e-6  # of an array's norm, where another BLAS or NumPy rounds differently


@pytest.mark.parametrize("version", sorted(path.parent.name for path in HERE.glob("*/expected.json")))
def test_a_run_translates_and_goes_on_as_it_did(version, tmp_path):
    """To the same bits where NumPy, its instructions and the BLAS are those of the record, else within `TOLERANCE`.

    But for the biases of keys: they move each row of scores by a constant, which softmax ignores. Their gradient is
    rounding alone, and Adam scales it up to steps of the learning rate.
    """
    expected = json.loads((HERE / version / "expected.json").read_text(encoding="utf-8"))
    run = shutil.copytree(HERE / version / "run", tmp_path / "run")
    assert digest(load_run(run, "latest")[1]) == expected["stopped"]
    assert translations(run) == expected["translations"]["stopped"]
    end = resume(run)
    if environment() == expected["environment"]:
        assert {name: digest(arrays) for name, arrays in end.items()} == expected["end"]
    right, _ = load_tensors(HERE / version / "end.safetensors")
    assert end["model"].keys() == right.keys()
    assert [name for name, array in end["model"].items() if not name.endswith("attention.key.bias")
            and np.linalg.norm(array.astype(float) - right[name]) > TOLERANCE * np.linalg.norm(right[name])] == []
