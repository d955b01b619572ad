"""Fixtures of the tests that use the page."""

from typing import Any

import pytest

import minigrad

from tests.explorer.application.driver import choose
from tests.explorer.panels import Made, make_page


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
