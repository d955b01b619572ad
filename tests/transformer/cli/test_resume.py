"""``train --resume``: whole runs, and runs that go on."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.transformer.commands import SIZES, call, refused
from tests.transformer.runs import snapshot
from transformer.training.checkpoints import load_run


@pytest.mark.parametrize(("arguments", "fixed", "changed"), [
    ("--layers 2", "--encoder-layers, --decoder-layers", {}),
    ("--seed 4 --batch-tokens 9", "--batch-tokens, --seed", {}),
    ("--train a b --valid c d", "--train, --valid", {}),
    ("--minutes 9 --keep 9 --steps 99", "", {"minutes": 9.0, "keep": 9, "steps": 99}),
])
def test_a_resumed_run_keeps_its_options_and_may_be_told_them(begun, small_run, arguments, fixed, changed):
    before, command = snapshot(small_run), ["train", "--resume", "--out", small_run, *arguments.split()]
    if fixed:
        assert f"may not change {fixed};" in refused(*command)
        assert begun == []
    else:
        assert call(*command).exit_code == 130
        stored = load_run(small_run)[0].options
        assert (begun[0].resume, begun[0].options) == ("latest", replace(stored, **changed))
    assert snapshot(small_run) == before


TEXT = "".join(f"{a} {b}\t{b} {a}\n" for a in "abcdefgh" for b in "abcdefgh")


@pytest.mark.parametrize("given", ["table.tsv", "-"])
def test_a_resumed_run_needs_the_data_it_began_with(given, tmp_path, monkeypatch):
    """The files may move; what is in them may not change; standard input is given again."""
    monkeypatch.chdir(tmp_path)
    Path("table.tsv").write_text(TEXT, encoding="utf-8")
    command = ["train", "--out", "run", "--quiet", "--steps"]
    assert call(*command, 2, "--train", given, "--tokens", "words", "--metric", "exact_match", *SIZES,
                standard_input=TEXT).exit_code == 0
    before, moved = snapshot(tmp_path / "run"), Path("table.tsv").rename("moved.tsv")
    changed = TEXT.replace("a a", "a b")
    if given != "-":
        given = moved
    assert ("give it again" if given == "-" else "cannot read") in refused(*command, 4, "--resume", standard_input=TEXT)
    moved.write_text(changed, encoding="utf-8")
    again = [*command, 4, "--resume", "--train", given]
    assert "this run began with" in refused(*again, standard_input=changed)
    assert snapshot(tmp_path / "run") == before
    moved.write_text(TEXT, encoding="utf-8")
    assert call(*again, standard_input=TEXT).exit_code == 0
    described = load_run(tmp_path / "run", "latest")[0]
    assert (described.progress.step, described.data["train"]) == (4, [given if given == "-" else str(tmp_path / given)])


def test_a_finished_run_says_so(small_run, tmp_path):
    copy = shutil.copytree(small_run, tmp_path / "copy")
    result = call("train", "--resume", "--out", copy, "--quiet")
    assert result.exit_code == 0
    assert "had already finished: 2 steps in" in result.stdout
