"""What the stage says and how it fits: each step in words, its grids in one row, and the numbers of large ones."""

from itertools import pairwise

import pytest

from tests.explorer.application.driver import BACKWARD, CROSS, SELF, choose


@pytest.fixture(scope="module")
def long_one(browser, long_page):
    """The page of a sentence whose grids are too large for tables."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.goto(long_page.as_uri())
    yield page
    context.close()


def grids(page):
    return page.evaluate("""[...document.querySelectorAll("#stage .equation .grid")].map((grid) => {
        const {left, right, top, bottom} = grid.getBoundingClientRect();
        return {left, right, top, bottom, table: grid.querySelector("table") !== null};
    })""")


@pytest.mark.parametrize("symbol", ["A", "dV", "dA", "dS", "dQ", "dK", "R", "O"])
def test_large_grids_stand_in_one_row(long_one, symbol):
    choose(long_one, symbol=symbol, numbers=False)
    found = grids(long_one)
    assert len(found) >= 2
    assert max(grid["top"] for grid in found) < min(grid["bottom"] for grid in found)
    assert max(grid["right"] for grid in found) <= 1280
    assert all(one["right"] < other["left"] for one, other in pairwise(found))


def test_the_numbers_of_large_grids_can_be_shown(long_one):
    choose(long_one, symbol="dS", numbers=False)
    assert "Point at a cell to read its number" in long_one.locator("#stage").inner_text()
    assert long_one.locator("#stage td.cell").count() == 0
    long_one.get_by_label("Show the numbers of large grids").check()
    assert all(grid["table"] for grid in grids(long_one))
    value = long_one.evaluate("explorer.value('dS', 7, 3)")
    cell = long_one.locator('#stage .grid[data-name="dS"] td[data-row="7"][data-col="3"]')
    assert float(cell.get_attribute("data-value")) == value
    assert long_one.evaluate("document.activeElement.dataset.key") == "switch:numbers"
    choose(long_one, symbol="V")


def test_small_grids_ask_for_nothing(page):
    choose(page, symbol="dSm")
    assert page.get_by_label("Show the numbers of large grids").count() == 0


@pytest.mark.parametrize("attention", [SELF, CROSS])
def test_every_gradient_is_told_in_words(page, attention):
    choose(page, attention=attention)
    told = {}
    for symbol in [*BACKWARD, *(["dM"] if attention == CROSS else [])]:
        choose(page, symbol=symbol)
        told[symbol] = page.locator("#stage .in-words").inner_text()
        assert len(told[symbol].split()) > 5, symbol
        assert told[symbol].endswith(".")
        assert "A′" not in told[symbol]  # no dropout
    assert len(set(told.values())) == len(told)
    choose(page, symbol="dSm", broken="rowsum")
    assert page.locator("#stage .in-words").inner_text() == ""  # what it says would not be true of that


def test_the_words_know_what_is_switched_off(page):
    choose(page, symbol="dR", scaling=False)
    assert "switched off" in page.locator("#stage .in-words").inner_text()
    choose(page, symbol="dS", masking=False)
    assert "Nothing is masked here" in page.locator("#stage .in-words").inner_text()


@pytest.mark.parametrize("width", [1280, 390])
def test_the_sum_is_seen_whole(open_page, long_page, width):
    page = open_page(long_page, width=width)
    choose(page, symbol="dV", cell={"row": 3, "col": 1})
    line = page.locator("#stage .worked > .terms")
    assert line.locator(".term").count() == 20
    hidden = line.evaluate("(line) => line.scrollHeight - line.clientHeight")
    assert hidden <= 1
