"""Fixtures of the tests that use the page: it is opened once for each file, and is as it was at first for each test."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minigrad

from tests.explorer.application.driver import INITIAL, choose
from tests.explorer.browser import watched_page
from tests.transformer.tiny import LABELS, SOURCE, VOCABULARY, tiny_model
from transformer import trace


@pytest.fixture(scope="module")
def engine() -> Any:
    """The trace of the model that the page shows."""
    model = tiny_model().eval()
    with trace(model) as traced:
        model.loss(SOURCE, LABELS).backward()
    return traced


@pytest.fixture(scope="module")
def opened(browser: Any, explorer_page: Path) -> Iterator[tuple[Any, list[str]]]:
    """One page for the tests of a file, and its problems."""
    problems: list[str] = []
    page = watched_page(browser, explorer_page, problems)
    yield page, problems
    page.context.close()


@pytest.fixture
def page(opened: tuple[Any, list[str]]) -> Iterator[Any]:
    """The page of the small model; the test fails if it throws, logs an error or asks for anything."""
    page, problems = opened
    choose(page, **INITIAL)
    page.evaluate("document.activeElement.blur()")
    yield page
    assert problems == []


@pytest.fixture(scope="module")
def dropped(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """The page of a model with dropout on its attention weights and without biases, and its trace."""
    model = tiny_model(dropout=0.3, bias=False)
    with trace(model) as traced, minigrad.random.fork(9):
        model.loss(SOURCE, LABELS).backward()
    path = tmp_path_factory.mktemp("dropped") / "page.html"
    traced.to_html(path)
    return path, traced


@pytest.fixture(scope="module")
def long_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a sentence whose grids are too large for tables."""
    model = tiny_model(max_length=24).eval()
    rng = np.random.default_rng(6)
    source, labels = rng.integers(3, VOCABULARY, (1, 20)), rng.integers(3, VOCABULARY, (1, 20))
    with trace(model) as traced:
        model.loss(source, labels).backward()
    path = tmp_path_factory.mktemp("long") / "page.html"
    traced.to_html(path)
    return path
