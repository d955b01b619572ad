"""Every lesson: it runs, saves its picture, reads in five minutes, and its words quote the numbers that it prints."""

import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from tests.examples.conftest import LESSONS, cells

PATHS = sorted(LESSONS.glob("[0-9][0-9]_*.py"))
lessons = pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
README = LESSONS / "README.md"


def prose(path: Path) -> str:
    return "\n".join(cell.text for cell in cells(path) if cell.kind == "markdown")


def png_size(data: bytes) -> tuple[int, int]:
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    return struct.unpack(">II", data[16:24])


def test_there_are_twelve():
    assert [path.name[:3] for path in PATHS] == [f"{number:02d}_" for number in range(1, 13)]


@lessons
def test_it_opens_as_a_notebook(path):
    found = cells(path)
    assert found[0].kind == "markdown"
    assert re.match(rf"# Lesson {int(path.name[:2])}: \S", found[0].text)
    for cell in found:
        assert cell.text.strip(), f"{path.name}:{cell.line}: an empty cell"
    assert "\n# %matplotlib inline\n" in path.read_text(encoding="utf-8")  # without it Jupyter shows no Figure
    assert "__file__" not in path.read_text(encoding="utf-8")  # a notebook has none


@lessons
def test_it_takes_five_minutes(path):
    words = len(prose(path).split())
    assert 250 <= words <= 1200, f"{words} words of prose"
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 300


@lessons
def test_it_ends_with_a_question_and_its_answer(path):
    found = cells(path)
    headings = [(number, heading) for number, cell in enumerate(found) if cell.kind == "markdown"
                for heading in re.findall(r"^## (.+)$", cell.text, flags=re.MULTILINE)]
    (asked, question), (answered, answer) = headings[-2:]
    assert (question, answer) == ("A question", "The answer")
    assert asked < answered, "the answer is in a cell of its own, so that one can think before one reads it"
    assert any(cell.kind == "code" for cell in found[answered:]), "the answer is worked in code"


@lessons
def test_it_runs_and_shows_its_picture(path, lesson):
    run = lesson(int(path.name[:2]))
    pictures = [file for file in run.folder.glob("runs/lessons/*") if file.stem == path.stem]
    assert pictures, "no picture of its name"
    for file in pictures:
        if file.suffix == ".png":
            assert png_size(file.read_bytes())[0] >= 700
    assert any(isinstance(value, Figure) or file.suffix == ".gif" for value in run.shown for file in pictures)
    assert [file.name for file in run.folder.iterdir()] == ["runs"], "it writes under runs/lessons alone"


@lessons
def test_its_words_quote_what_it_prints(path, lesson):
    printed = lesson(int(path.name[:2])).printed
    known = set(re.findall(r"\d+\.\d+", printed))
    quoted = re.findall(r"(?<![\w.:])\d+\.\d+(?!\w|\.\d|:)", prose(path))
    assert [number for number in quoted if number not in known] == []


@lessons
def test_the_list_has_it_with_its_picture(path):
    text = README.read_text(encoding="utf-8")
    assert f"({path.name})" in text
    (picture,) = re.findall(rf"\((images/{path.stem}\.(?:png|gif))\)", text)
    data = (LESSONS / picture).read_bytes()
    assert len(data) <= (60_000 if picture.endswith("png") else 1_000_000)
    assert data[:4] in (b"\x89PNG", b"GIF8")


def test_every_link_of_the_list_leads_somewhere():
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", README.read_text(encoding="utf-8")):
        assert target.startswith("https://") or (LESSONS / target).exists(), target


def test_as_a_program_from_any_folder(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(LESSONS.parents[1]), "PYTHONUTF8": "1"}
    done = subprocess.run([sys.executable, "-W", "error", PATHS[0]], cwd=tmp_path, env=environment, text=True,
                          capture_output=True, encoding="utf-8", check=True)
    told = [line for line in done.stderr.splitlines() if not line.startswith("Fontconfig warning")]  # of the drawing
    assert told == []
    assert (tmp_path / f"runs/lessons/{PATHS[0].stem}.png").exists()
