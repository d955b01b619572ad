"""The scripts of benchmarks/ import each other by name, as Python lets the files of one folder do."""

import importlib
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def load(monkeypatch):
    """A module of benchmarks/ by its name."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module
