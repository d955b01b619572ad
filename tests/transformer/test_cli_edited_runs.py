"""``run.json`` edited by hand: what cannot be used is refused in one line, and nothing else happens."""

import json
import shutil

import pytest

from minigrad.checkpoint import load_tensors, save_tensors

from tests.transformer.commands import call, refused


def without_checksums(folder):
    """Let the arrays of the only checkpoint belong to any run.json, as files of another program's do."""
    [checkpoint] = (folder / "checkpoints").iterdir()
    for name in ("model.safetensors", "optimizer.safetensors"):
        save_tensors(checkpoint / name, load_tensors(checkpoint / name)[0])
    return checkpoint / "run.json"


def places(values, path=()):
    """The path of every entry of nested JSON values, but for the many tokens of a vocabulary."""
    for key, value in values.items() if isinstance(values, dict) else enumerate(values):
        yield (*path, key)
        if isinstance(value, dict | list) and len(value) < 30:
            yield from places(value, (*path, key))


WRONG = [None, "wrong", -1, [], {}, True, 0.5]


def test_any_entry_edited_by_hand_is_taken_or_refused_in_one_line(small_run, tmp_path):
    """Each entry gets one wrong value, a different one from place to place."""
    copy = shutil.copytree(small_run, tmp_path / "copy")
    described = without_checksums(copy)
    text = described.read_text(encoding="utf-8")
    refusals = 0
    for number, path in enumerate(places(json.loads(text))):
        values = json.loads(text)
        inner = values
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = WRONG[number % len(WRONG)]
        described.write_text(json.dumps(values), encoding="utf-8")
        for command in (["info", copy], ["train", "--resume", "--out", copy, "--quiet"]):
            result = call(*command)
            assert result.exit_code in (0, 2), (path, inner[path[-1]], result.exception)
            refusals += result.exit_code == 2
            if result.exit_code == 2:
                assert result.stderr.startswith("Error: "), path
                assert result.stderr.count("\n") == 1, path
    assert refusals > 50


def test_a_position_beyond_the_epoch_is_refused(small_run, tmp_path):
    copy = shutil.copytree(small_run, tmp_path / "copy")
    described = without_checksums(copy)
    values = json.loads(described.read_text(encoding="utf-8"))
    values["progress"]["batch"] = 99
    described.write_text(json.dumps(values), encoding="utf-8")
    message = refused("train", "--resume", "--out", copy, "--steps", 3)
    assert "the progress has batch 99 to come next, and epoch 0 has" in message


@pytest.mark.parametrize("name", ["num_encoder_layers", "num_decoder_layers", "d_model", "d_ff", "source_vocab_size"])
def test_a_model_of_immense_size_is_refused_before_it_is_built(small_run, tmp_path, name):
    copy = shutil.copytree(small_run, tmp_path / "copy")
    described = without_checksums(copy)
    values = json.loads(described.read_text(encoding="utf-8"))
    values["model"][name] = 2 * 10**9
    described.write_text(json.dumps(values), encoding="utf-8")
    assert "do not fit the configuration" in refused("info", copy)
    assert "do not fit the configuration" in refused("train", "--resume", "--out", copy)
