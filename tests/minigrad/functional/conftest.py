"""For every test of a functional: its two forms."""

from collections.abc import Iterator

import pytest

from minigrad import fused


@pytest.fixture(params=[True, False], ids=["fused", "by steps"])
def form(request: pytest.FixtureRequest) -> Iterator[None]:
    """Runs the functions as one operation each, and as their compositions."""
    with fused(request.param):
        yield
