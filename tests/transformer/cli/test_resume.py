"""``train --resume``: whole runs, and runs that go on."""

import shutil
import sys
from dataclasses import replace

import pytest

from tests.transformer.commands import call, contents, refused
from transformer.training.checkpoints import load_run


@pytest.mark.parametrize(("arguments", "fixed", "changed"), [
    ("--layers 2", "--encoder-layers, --decoder-layers", {}),
    ("--task reverse", "--task", {}),
    ("--seed 4 --batch-tokens 9", "--batch-tokens, --seed", {}),
    ("--config base --tokens characters", "--tokens, --config", {}),
    ("--train a b --valid c d", "--train, --valid", {}),
    ("--task copy --seed 1 --d-model 8 --layers 1", "", {}),
    ("--minutes 9 --keep 9 --steps 99", "", {"minutes": 9.0, "keep": 9, "steps": 99}),
])
def test_a_resumed_run_keeps_its_options_and_may_be_told_them(begun, small_run, arguments, fixed, changed):
    before, command = contents(small_run), ["train", "--resume", "--out", small_run, *arguments.split()]
    if fixed:
        assert f"may not change {fixed};" in refused(*command)
        assert begun == []
    else:
        assert call(*command).exit_code == 130
        stored = load_run(small_run)[0].options
        assert (begun[0].resume, begun[0].options) == ("latest", replace(stored, **changed))
    assert contents(small_run) == before


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


def test_a_finished_run_says_so(small_run, tmp_path, monkeypatch):
    """And, as every run does, what it needs to draw its curves."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    copy = shutil.copytree(small_run, tmp_path / "copy")
    result = call("train", "--resume", "--out", copy, "--quiet")
    assert result.exit_code == 0
    assert "had already finished: 2 steps in" in result.stdout
    assert result.stderr.count("no history.png: it needs matplotlib") == 1
