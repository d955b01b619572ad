"""The browser of the tests that open pages of the site."""

from tests.explorer.conftest import browser

__all__ = ["browser"]
