"""Pages in English and Japanese have equal code, numbers and names. Their words are not compared."""

import re
from collections import Counter
from pathlib import Path

import pytest

from examples.lessons import story
from tests.test_docs import blocks, prose

ROOT = Path(__file__).parents[2]
LESSONS = ROOT / "examples/lessons"
PAGES = [  # in Japanese, with the page in English that each renders
    (ROOT / "README.ja.md", ROOT / "README.md"),
    (ROOT / "docs/ja/backprop_through_attention.md", ROOT / "docs/backprop_through_attention.md"),
]
TRANSLATED = [*PAGES, *((page, LESSONS / f"{page.stem}.py") for page in sorted((LESSONS / "ja").glob("[0-9]*.md")))]


def sections(page):
    """The prose: of a page, without its fenced blocks, from heading to heading; of a lesson, from cell to cell."""
    if page.suffix == ".py":
        return [text for kind, _, text in story.cells(page) if kind == "markdown"]
    if page.parent == LESSONS / "ja":
        return re.split(r"^\+\+\+$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return re.split(r"^(?=#+ )", prose(page), flags=re.MULTILINE)


def code_spans(section):
    return set(re.findall(r"`([^`]+)`", section))


def decimals(section):
    """Numbers with a point, a comma, an exponent or a per cent sign."""
    return Counter(re.findall(r"[−∓±]?\d+(?:[.,]\d+)+(?:e[-−]?\d+)?(?: %)?|\d+e[-−]?\d+|\d+ %", section))


@pytest.mark.parametrize(("japanese", "english"), TRANSLATED, ids=lambda path: path.name)
def test_every_section_has_its_numbers_and_names(japanese, english):
    for ours, theirs in zip(sections(japanese), sections(english), strict=True):
        where = f"{japanese.name}: {ours.strip()[:40]}"
        assert decimals(ours) == decimals(theirs), where
        assert code_spans(theirs) - code_spans(ours) == set(), where


@pytest.mark.parametrize(("japanese", "english"), PAGES, ids=lambda path: path.name)
def test_code_blocks_are_equal(japanese, english):
    here, there = ([block[1:] for block in blocks(page) if block[1] != "text"] for page in (japanese, english))
    assert here == there
