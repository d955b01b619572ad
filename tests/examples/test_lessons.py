"""Every lesson runs as a notebook does, shows its picture, and its words quote the numbers that it prints."""

import os
import re
import subprocess
import sys

import pytest
from matplotlib.figure import Figure

from tests.examples.conftest import LESSONS, cells

PATHS = sorted(LESSONS.glob("[0-9][0-9]_*.py"))
LONG = ("09", "11", "12")  # these lessons take most of the time: they draw a film, train three nets, make a page


@pytest.mark.parametrize("path", [
    pytest.param(path, id=path.stem, marks=[pytest.mark.slow] if path.name.startswith(LONG) else []) for path in PATHS])
def test_it_runs_and_shows_its_picture_and_quotes_what_it_prints(path, lesson):
    run = lesson(int(path.name[:2]))
    pictures = [file for file in run.folder.glob("runs/lessons/*") if file.stem == path.stem]
    assert any(isinstance(value, Figure) or file.suffix == ".gif" for value in run.shown for file in pictures)
    assert [file.name for file in run.folder.iterdir()] == ["runs"], "it writes under runs/lessons alone"
    known = set(re.findall(r"\d+\.\d+", run.printed))
    prose = "\n".join(cell.text for cell in cells(path) if cell.kind == "markdown")
    assert set(re.findall(r"(?<![\w.:])\d+\.\d+(?!\w|\.\d|:)", prose)) <= known


def test_every_link_of_the_list_leads_somewhere():
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", (LESSONS / "README.md").read_text(encoding="utf-8")):
        assert target.startswith("https://") or (LESSONS / target).exists(), target


def test_as_a_program_from_any_folder(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(LESSONS.parents[1]), "PYTHONUTF8": "1"}
    done = subprocess.run([sys.executable, "-W", "error", PATHS[0]], cwd=tmp_path, env=environment, text=True,
                          capture_output=True, encoding="utf-8", check=True)
    told = [line for line in done.stderr.splitlines() if not line.startswith("Fontconfig warning")]  # of the drawing
    assert told == []
    assert (tmp_path / f"runs/lessons/{PATHS[0].stem}.png").exists()
