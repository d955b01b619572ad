"""docs/contracts.md: every promise names a test, and the tests that it names exist."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/contracts.md"


@cache
def defined_in(path):
    """The names of the tests of a file that pytest runs: not those that are inside of another function."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_promise_names_tests_that_exist():
    rows = re.findall(r"^\| (.+?) \| (.+) \|$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    promises = [(text, tests) for text, tests in rows if tests not in ("test", "---")]
    assert promises
    for text, tests in promises:
        named = re.findall(r"\[`(test_\w+)`\]\(\.\./(tests/[\w/]+\.py)\)", tests)
        assert named, text
        for name, path in named:
            assert name in defined_in(path), f"{path} has no {name}"
