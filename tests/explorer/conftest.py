"""Fixtures of the tests that look at the explorer's page in a browser."""

import os
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.explorer.browser import NOT_RUN, REMEDY, REQUIRED, NoBrowserError, launch, watched_page
from tests.explorer.pages import deep_model, live_explanation, make_page


@pytest.fixture(scope="module")
def browser():
    """A headless browser; where there is none the test is skipped, or fails if the environment says so.

    One for each file, not one for the run: the tests of other files may need the thread's event loop to themselves.
    """
    with ExitStack() as stack:
        try:
            opened = stack.enter_context(launch())
        except NoBrowserError as error:
            stop = pytest.fail if os.environ.get(REQUIRED) == "1" else pytest.skip
            stop(f"{NOT_RUN}: {error}; {REMEDY}")
        yield opened


@pytest.fixture
def open_page(browser):
    """``open_page(path, width=1280, height=800, dark=False, reduced_motion=False)`` opens an HTML file from disk.

    The playwright page that it returns makes the test fail when it throws or logs an error, and when it asks for
    anything but its own file.
    """
    problems, pages = [], []

    def open_it(path, **options):
        pages.append(watched_page(browser, Path(path), problems, **options))
        assert problems == []  # at once: a page that did not load would only be waited for in vain
        return pages[-1]

    yield open_it
    for page in pages:
        page.context.close()
    assert problems == []


# What the reader has chosen, on the page and in its panels, as it was at first.
RESET = """(first) => {
    Object.assign(trial, {key: null, by: 0.1});
    headsSymbol = "A";
    explorer.setState(first);
    document.activeElement.blur();
}"""


@pytest.fixture(scope="module")
def _shared(browser):
    """By path and options: a page, its first state, and its problems."""
    opened = {}
    yield opened
    for page, _, _ in opened.values():
        page.context.close()


@pytest.fixture
def share_page(browser, _shared):
    """``open_page``, but an explorer's page is opened once for each file, and is for every test as it was at first."""
    used = []

    def share_it(path, **options):
        key = (str(path), *sorted(options.items()))
        if key not in _shared:
            problems = []
            page = watched_page(browser, Path(path), problems, **options)
            _shared[key] = page, page.evaluate("explorer.state"), problems
        page, first, problems = _shared[key]
        page.evaluate(RESET, first)
        used.append(problems)
        return page

    yield share_it
    assert [problem for problems in used for problem in problems] == []


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """The page on which most is tested: two heads, two sentences, measured."""
    return make_page(tmp_path_factory.mktemp("explorer") / "page.html")


@pytest.fixture(scope="session")
def live_page(tmp_path_factory):
    """A page of two layers on each side, not measured."""
    path = tmp_path_factory.mktemp("live") / "page.html"
    live_explanation(deep_model()).to_html(path)
    return path


@pytest.fixture
def opened(made, share_page):
    """That page, shared by the tests of a file, for a reader who wants no motion."""
    return share_page(made.path, reduced_motion=True)
