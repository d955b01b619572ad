"""Fixtures of the tests that use the page."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minigrad

from tests.explorer.application.driver import INITIAL, choose
from tests.transformer.tiny import LABELS, SOURCE, VOCABULARY, tiny_model
from transformer import trace


@pytest.fixture(scope="module")
def engine() -> Any:
    """The trace of the model that the page shows."""
    model = tiny_model().eval()
    with trace(model) as traced:
        model.loss(SOURCE, LABELS).backward()
    return traced


@pytest.fixture
def page(share_page: Callable[..., Any], explorer_page: Path) -> Any:
    """The page of the small model, shared by the tests of a file."""
    page = share_page(explorer_page)
    choose(page, **INITIAL)
    return page


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
