"""Pages in English and Japanese have equal code, formulas, numbers, names and links. Their words are not compared."""

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

pages = pytest.mark.parametrize(("japanese", "english"), PAGES, ids=lambda path: path.name)
translated = pytest.mark.parametrize(("japanese", "english"), TRANSLATED, ids=lambda path: path.name)


def sections(page):
    """The prose: of a page, without its fenced blocks, from heading to heading; of a lesson, from cell to cell."""
    if page.suffix == ".py":
        return [text for kind, _, text in story.cells(page) if kind == "markdown"]
    if page.parent == LESSONS / "ja":
        return re.split(r"^\+\+\+$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return re.split(r"^(?=#+ )", prose(page), flags=re.MULTILINE)


# --- What is compared ------------------------------------------------------------------------------------------

# Words of either language. `da` and `ds` are gradients, the others functions.
WORDS = (r"(?:\ba )?(?!\b(?:da|ds|diag|log|softmax)\b)\b(?:[A-Z]?[a-z]{2,}|[A-Z][a-z])\b"
         r"|[\u3040-\u30ff\u3400-\u9fff々〜∴∵]+")


def code_spans(section):
    return set(re.findall(r"`([^`]+)`", section))


def decimals(section):
    """Numbers with a point, a comma, an exponent or a per cent sign."""
    return Counter(re.findall(r"[−∓±]?\d+(?:[.,]\d+)+(?:e[-−]?\d+)?(?: %)?|\d+e[-−]?\d+|\d+ %", section))


def tex(section):
    """What stands between dollars, without blanks and without the words in it."""
    found = (a or b for a, b in re.findall(r"\$\$(.+?)\$\$|\$([^$\n]+?)\$", section, flags=re.DOTALL))
    return Counter(re.sub(r"\\text\{[^}]*\}|\s", "", formula) for formula in found)


def symbols(line):
    """The characters of a line of formulas, without words and punctuation, which stand elsewhere in Japanese."""
    return Counter(re.sub(WORDS + r"|[\s,;:、。]", "", line))


def linked(page):
    """Addresses of the web, and files: the one in English for one in Japanese."""
    in_english = {LESSONS / "ja/README.md": LESSONS / "README.md", **dict(TRANSLATED)}
    found = set()
    for link in re.findall(r"\]\(([^)#\s]+)", "\n".join(sections(page))):
        target = (page.parent / link).resolve()
        found.add(link if "://" in link else str(in_english.get(target, target)))
    return found


# --- Pages and lessons -----------------------------------------------------------------------------------------


@translated
def test_every_section_has_its_numbers_formulas_and_names(japanese, english):
    here, there = sections(japanese), sections(english)
    assert len(here) == len(there), "as many sections, or cells"
    for ours, theirs in zip(here, there, strict=True):
        where = f"{japanese.name}: {ours.strip()[:40]}"
        assert re.findall("^#+ ", ours, flags=re.MULTILINE) == re.findall("^#+ ", theirs, flags=re.MULTILINE), where
        assert decimals(ours) == decimals(theirs), where
        assert tex(ours) == tex(theirs), where
        assert code_spans(theirs) - code_spans(ours) == set(), where


@translated
def test_no_link_is_lost_and_each_resolves(japanese, english):
    there = linked(japanese)
    assert linked(english) - there == set()
    assert [target for target in there if "://" not in target and not Path(target).exists()] == []


@pages
def test_code_blocks_are_equal_and_blocks_of_formulas_but_for_their_words(japanese, english):
    here, there = blocks(japanese), blocks(english)
    assert [language for _, language, _ in here] == [language for _, language, _ in there]
    for (_, language, ours), (_, _, theirs) in zip(here, there, strict=True):
        if language == "text":
            assert list(map(symbols, ours.splitlines())) == list(map(symbols, theirs.splitlines())), ours
        else:
            assert ours == theirs
