"""``train --resume``: whole runs, and runs that go on."""

import shutil
import sys

import pytest

from tests.transformer.commands import call, contents, refused
from transformer.training.checkpoints import load_run
from transformer.training.options import TrainingOptions


@pytest.fixture
def copy(small_run, tmp_path):
    """A copy of a run of two steps."""
    return shutil.copytree(small_run, tmp_path / "copy")


@pytest.mark.parametrize(("arguments", "named"), [
    ("--layers 2", "--encoder-layers, --decoder-layers"),
    ("--task reverse", "--task"),
    ("--seed 4 --batch-tokens 9", "--batch-tokens, --seed"),
    ("--config base --tokens characters", "--tokens, --config"),
    ("--train a b --valid c d", "--train, --valid"),
])
def test_a_resumed_run_keeps_its_options(begun, small_run, arguments, named):
    before = contents(small_run)
    assert f"may not change {named};" in refused("train", "--resume", "--out", small_run, *arguments.split())
    assert begun == []
    assert contents(small_run) == before


@pytest.mark.parametrize("arguments", [
    "--task copy --seed 1 --d-model 8 --layers 1", "--minutes 9 --keep 9 --steps 99"])
def test_a_resumed_run_may_be_told_its_options_and_change_some(begun, small_run, arguments):
    assert call("train", "--resume", "--out", small_run, *arguments.split()).exit_code == 130
    [run] = begun
    assert run.resume
    words = arguments.split()
    given = dict(zip([word[2:].replace("-", "_") for word in words[::2]], words[1::2], strict=True))
    stored = load_run(small_run)[0].options
    for name in given.keys() & set(TrainingOptions.MAY_CHANGE):
        assert getattr(run.options, name) == float(given[name]) != getattr(stored, name)


def test_a_resumed_run_needs_the_data_it_began_with(files, tmp_path):
    """The files may move; what is in them may not change."""
    text = [files["good.src"], files["good.tgt"]]
    sizes = ["--steps", 1, "--d-model", 8, "--heads", 2, "--d-ff", 8, "--layers", 1, "--schedule", "constant"]
    out = tmp_path / "run"
    assert call("train", "--train", *text, "--valid", *text, *sizes, "--quiet", "--out", out).exit_code == 0
    moved = [path.rename(tmp_path / f"moved{path.suffix}") for path in text]
    before = contents(out)
    assert "cannot read" in refused("train", "--resume", "--out", out)
    resume = ["train", "--resume", "--out", out, "--train", *moved, "--valid", *moved, "--steps", 2, "--quiet"]
    right = moved[1].read_text(encoding="utf-8")
    moved[1].write_text(right.replace("三", "二"), encoding="utf-8")
    assert "this run began with" in refused(*resume)
    assert contents(out) == before
    moved[1].write_text(right, encoding="utf-8")
    assert call(*resume).exit_code == 0
    assert load_run(out, "latest")[0].data["train"] == [str(path) for path in moved]


def test_text_from_standard_input_is_given_again(tmp_path):
    text = "".join(f"{a} {b}\t{b} {a}\n" for a in "abcdefgh" for b in "abcdefgh")
    model = ["--tokens", "words", "--d-model", 8, "--heads", 1, "--layers", 1, "--d-ff", 8, "--metric", "exact_match"]
    command = ["train", "--out", tmp_path / "run", "--quiet", "--steps"]
    assert call(*command, 2, "--train", "-", *model, standard_input=text).exit_code == 0
    assert "give it again" in refused(*command, 4, "--resume", standard_input=text)
    assert call(*command, 4, "--resume", "--train", "-", standard_input=text).exit_code == 0
    assert load_run(tmp_path / "run", "latest")[0].progress.step == 4


def test_a_run_of_a_program_that_does_not_know_its_data_is_told(without_data, tmp_path):
    copy = shutil.copytree(without_data, tmp_path / "copy")
    before = contents(copy)
    assert "has no description of its data" in refused("train", "--resume", "--out", copy)
    assert contents(copy) == before


def test_a_finished_run_says_so(copy, monkeypatch):
    """And, as every run does, what it needs to draw its curves."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = call("train", "--resume", "--out", copy, "--quiet")
    assert result.exit_code == 0
    assert "had already finished: 2 steps in" in result.stdout
    assert result.stderr.count("no history.png: it needs matplotlib") == 1
