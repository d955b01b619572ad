"""The page's mathematics in a browser, without the page."""

import pytest

from tests.explorer.mathematics.whole_model import ASKING
from transformer.explore.page import SCRIPTS, joined_scripts

MATHEMATICS = SCRIPTS[: SCRIPTS.index("faults/identities") + 1]


@pytest.fixture(scope="module")
def page(browser):
    """A blank page with the mathematics in it."""
    opened = browser.new_page()
    opened.add_script_tag(content=joined_scripts(MATHEMATICS) + ASKING)
    yield opened
    opened.close()
