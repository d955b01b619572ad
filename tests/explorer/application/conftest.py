"""Fixtures of the tests that use the page."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minigrad

from tests.explorer.application.driver import choose
from tests.explorer.panels import Made, make_page
from tests.transformer.tiny import VOCABULARY, tiny_model
from transformer import trace


@pytest.fixture
def engine(made: dict[str, Made]) -> Any:
    """The trace of the model that the page shows."""
    return made["pre"].trace


@pytest.fixture
def page(opened: Any) -> Any:
    """The page of the small model, with the encoder's attention chosen."""
    choose(opened, place=0, symbol="dV", cell=None, row=0)
    return opened


@pytest.fixture(scope="module")
def dropped(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """The page of a model with dropout on its attention weights and without biases."""
    with minigrad.random.fork(9):
        return make_page(tmp_path_factory.mktemp("dropped") / "page.html", dropout=0.3, bias=False)


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
