"""Fixtures of the tests that use the page."""

from typing import Any

import pytest

from tests.explorer.application.driver import choose
from tests.explorer.panels import SELF, Made


@pytest.fixture
def engine(made: dict[str, Made]) -> Any:
    """The trace of the model that the page shows."""
    return made["pre"].trace


@pytest.fixture
def page(opened: Any) -> Any:
    """The page of the small model, with the encoder's attention chosen."""
    choose(opened, place=SELF, symbol="dV", cell=None, row=0)
    return opened
