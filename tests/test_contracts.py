"""docs/contracts.md: every promise names a test, and the tests that it names exist."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "contracts.md"
ROWS = re.findall(r"^\| (.+?) \| (.+) \|$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
PROMISES = [(text, tests) for text, tests in ROWS if tests not in ("test", "---")]


@cache
def defined_in(path):
    """The names of the tests of a file that pytest runs: not those that are inside of another function."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


@pytest.mark.parametrize(("text", "tests"), PROMISES, ids=[text for text, _ in PROMISES])
def test_every_promise_has_tests_that_exist(text, tests):
    named = re.findall(r"\[`(test_\w+)`\]\(\.\./(tests/[\w/]+\.py)\)", tests)
    assert named
    assert re.sub(r"\[`test_\w+`\]\([^)]+\)|, ", "", tests) == "", "something else stands among the tests"
    for name, path in named:
        assert name in defined_in(path), f"{path} has no {name}"


def test_no_row_was_lost():
    headings = re.findall(r"^## (.+)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert len(headings) == 9
    assert len(PROMISES) >= 100
    assert len({text for text, _ in PROMISES}) == len(PROMISES)
