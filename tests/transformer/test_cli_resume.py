"""``train``: whole runs, and runs that go on."""

import shutil
import sys

import pytest

from tests.transformer.commands import SMALL, call, contents, refused
from transformer.training.checkpoints import load_run
from transformer.training.options import TrainingOptions


def test_a_resumed_run_with_more_steps_ends_where_a_longer_one_does(tmp_path):
    result = call("train", *SMALL, "--steps", 4, "--valid-every", 2, "--out", tmp_path / "parts")
    assert result.exit_code == 0, result.output
    assert "4 steps" in result.stdout
    assert f"python -m transformer translate {tmp_path / 'parts'}" in result.stdout
    assert call("train", "--out", tmp_path / "parts", "--resume", "--steps", 7, "--quiet").exit_code == 0
    assert call("train", *SMALL, "--steps", 7, "--valid-every", 2, "--out", tmp_path / "whole").exit_code == 0
    parts, whole = (load_run(tmp_path / name, "latest")[1] for name in ("parts", "whole"))
    assert parts.keys() == whole.keys()
    assert all((parts[name] == whole[name]).all() for name in whole)
    rows = (tmp_path / "parts" / "log.csv").read_text(encoding="utf-8").splitlines()
    assert [row.partition(",")[0] for row in rows] == ["step", "2", "4", "6", "7"]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ("--d-model 16", "--d-model"),
        ("--layers 2", "--encoder-layers, --decoder-layers"),
        ("--task reverse", "--task"),
        ("--seed 4 --batch-tokens 9", "--batch-tokens, --seed"),
        ("--config base", "--config"),
        ("--tokens characters --shared-vocab", "--tokens, --shared-vocab"),
        ("--train a b --valid c d", "--train, --valid"),
        ("--schedule cosine", "--schedule"),
    ],
)
def test_a_resumed_run_keeps_its_options(begun, small_run, arguments, named):
    before = contents(small_run)
    assert f"may not change {named};" in refused("train", "--resume", "--out", small_run, *arguments.split())
    assert begun == []
    assert contents(small_run) == before


@pytest.mark.parametrize(
    "arguments",
    ["--task copy --seed 1 --d-model 8 --layers 1", "--minutes 9 --patience 5 --keep 9 --average 2 --steps 99",
     "--valid-every 7 --valid-sentences 3 --epochs 2"],
)
def test_a_resumed_run_may_be_told_its_options_and_change_some(begun, small_run, arguments):
    assert call("train", "--resume", "--out", small_run, *arguments.split()).exit_code == 130
    [run] = begun
    assert run.resume
    words = arguments.split()
    given = dict(zip([word[2:].replace("-", "_") for word in words[::2]], words[1::2], strict=True))
    stored = TrainingOptions.from_json(load_run(small_run)[0].training)
    for name in TrainingOptions.MAY_CHANGE:
        if name in given:
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


# --- Runs that a program began, not a command ---------------------------------------------------------------


def test_a_run_that_does_not_know_its_data_is_told(without_data, tmp_path):
    copy = shutil.copytree(without_data, tmp_path / "copy")
    before = contents(copy)
    assert "or name the same data: --task NAME or --train SRC TGT" in refused("train", "--resume", "--out", copy)
    assert "belong together" in refused("train", "--resume", "--out", copy, "--train", "a", "b")
    other = ["--resume", "--out", copy, "--task", "copy", "--valid-count", 5, "--train-count"]
    assert "the pairs or the tokenizers are not those" in refused("train", *other, 59)
    assert contents(copy) == before
    result = call("train", *other, 60, "--steps", 3, "--quiet")
    assert result.exit_code == 0, result.output
    assert load_run(copy, "latest")[0].data == {"task": "copy", "train_count": 60, "valid_count": 5, "seed": 1}
    assert call("train", "--resume", "--out", copy, "--steps", 4, "--quiet").exit_code == 0


# --- How a run that goes on ends ----------------------------------------------------------------------------


def test_a_finished_run_says_so(small_run, tmp_path):
    copy = shutil.copytree(small_run, tmp_path / "copy")
    result = call("train", "--resume", "--out", copy, "--quiet")
    assert result.exit_code == 0
    assert "had already finished: 2 steps in" in result.stdout
    assert f"--steps (it has 2): python -m transformer train --out {copy} --resume --steps N" in \
        " ".join(result.stdout.split())


def test_without_matplotlib_the_missing_picture_is_explained_once(small_run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    copy = shutil.copytree(small_run, tmp_path / "copy")
    (copy / "history.png").unlink()
    result = call("train", "--resume", "--out", copy, "--steps", 3, "--quiet")
    assert result.exit_code == 0
    assert result.stderr.count("no history.png: it needs matplotlib, from  pip install -e '.[plot]'  in the project's "
                               "folder\n") == 1
    assert not (copy / "history.png").exists()
