"""The page's mathematics in a browser, without the page."""

from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import pytest

from tests.explorer.mathematics.asking import ASKING
from transformer.explore.page import SCRIPTS

MATHEMATICS = SCRIPTS[: SCRIPTS.index("faults/identities") + 1]


@pytest.fixture(scope="module")
def page(browser: Any) -> Iterator[Any]:
    """A blank page with the mathematics in it."""
    opened = browser.new_page()
    source = files("transformer.explore") / "page"
    scripts = [(source / f"{name}.js").read_text(encoding="utf-8") for name in MATHEMATICS]
    opened.add_script_tag(content="\n".join(scripts) + ASKING)
    yield opened
    opened.close()
