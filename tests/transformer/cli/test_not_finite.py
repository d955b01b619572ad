"""A run whose weights are not finite, or are too large: every command says so in one line, and translates nothing."""

import shutil

import numpy as np
import pytest

from minigrad.checkpoint import load_tensors, save_tensors

from tests.transformer.commands import contents, refused

NAME = "decoder.layers.0.feed_forward.inner.weight"
COMMANDS = {
    "translate": ["translate", "DIR"],
    "beam": ["translate", "DIR", "--beam", 3],
    "evaluate": ["evaluate", "DIR", "--count", 3],
    "explain": ["explain", "DIR", "a", "--text"],
    "info": ["info", "DIR"],
    "resume": ["train", "--resume", "--out", "DIR", "--steps", 4],
}


def spoiled(run, folder, change):
    """A copy of a run whose newest weights were changed, as an older version may have saved them."""
    shutil.copytree(run, folder)
    path = folder / "checkpoints/00000002/model.safetensors"
    arrays, metadata = load_tensors(path)
    change(arrays)
    save_tensors(path, arrays, metadata)
    return contents(folder)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_the_parameter_and_the_checkpoint_are_named(command, value, small_run, tmp_path):
    folder = tmp_path / "run"
    before = spoiled(small_run, folder, lambda arrays: arrays[NAME].__setitem__((0, 0), value))
    arguments = [folder if word == "DIR" else word for word in COMMANDS[command]]
    message = refused(*arguments, standard_input="a b\n")
    assert NAME in message
    assert str(folder / "checkpoints" / "00000002") in message
    assert contents(folder) == before


@pytest.mark.parametrize("command", ["translate", "beam", "evaluate", "explain"])
def test_weights_that_are_too_large(command, small_run, tmp_path):
    folder = tmp_path / "run"
    spoiled(small_run, folder, lambda arrays: [array.__imul__(np.float32(1e30)) for array in arrays.values()])
    arguments = [folder if word == "DIR" else word for word in COMMANDS[command]]
    assert "too large" in refused(*arguments, standard_input="a b\n")
