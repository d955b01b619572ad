"""Each name and keyword that the sources take from an array module is one of CuPy's, by names.json.

The sources are read, not run, so lines that no test on the stand-in reaches are checked too. What is seen is written
plainly: ``xp(x).name``, or ``namespace.name``, and a keyword in the call itself.
"""

import ast
import importlib
import re
from pathlib import Path

import pytest

from tests.strict_cupy.ndarray import NAMES, bind

ROOT = Path(__file__).parents[1]
MODULE = re.compile(r"(?:xp\([^()]*(?:\([^()]*\))?\)|namespace|cupy)\.([\w.]+)")

# Every name by its path: the parameters of what is called, None for anything else.
UFUNC = "x1, x2, out=, *, dtype=, casting="
KNOWN = NAMES["functions"] | dict.fromkeys(NAMES["ufuncs"], UFUNC) | dict.fromkeys(NAMES["constants"])
for part in ("cuda", "linalg", "random"):
    KNOWN |= {part: None} | {f"{part}.{name}": value for name, value in NAMES[part].items()}
KNOWN |= {f"{ufunc}.{name}": value for ufunc in NAMES["ufuncs"] for name, value in NAMES["ufunc"].items()}


def uses_in(text):
    """(line, path, keywords if it is called) of all that a module takes from CuPy."""
    nodes = list(ast.walk(ast.parse(text)))
    keywords = {node.func: [keyword.arg for keyword in node.keywords if keyword.arg] for node in nodes
                if isinstance(node, ast.Call)}
    for node in nodes:
        if isinstance(node, ast.Attribute) and (found := MODULE.fullmatch(ast.unparse(node))):
            yield node.lineno, found[1], keywords.get(node, [])


def faults_in(uses):
    """Those that are wrong: of a name that CuPy lacks, or with a keyword that it does not take."""
    for line, path, keywords in uses:
        try:
            parameters = KNOWN[path]
            bind(path, "**kwargs" if parameters is None else parameters, (), dict.fromkeys(keywords))
        except (KeyError, TypeError) as error:
            yield f"line {line}: {path}: {error!r}"


def test_each_name_that_is_used_exists_and_takes_its_arguments():
    uses = {path.relative_to(ROOT): list(uses_in(path.read_text(encoding="utf-8")))
            for package in ("minigrad", "transformer") for path in (ROOT / package).rglob("*.py")}
    assert [f"{file}, {fault}" for file, found in uses.items() for fault in faults_in(found)] == []
    assert {path for found in uses.values() for _, path, _ in found} >= {"sqrt", "add.at", "cuda.Device"}


def test_the_names_are_those_of_the_installed_cupy():
    cupy = pytest.importorskip("cupy", exc_type=ImportError)
    if cupy.__version__ != NAMES["cupy"]:
        pytest.skip(f"CuPy {cupy.__version__} is installed, and names.json is of {NAMES['cupy']}")
    assert importlib.import_module("tests.strict_cupy.make_names").names() == NAMES
