"""The selectors and the switches: what is shown first, what a change takes with it, what can be broken."""

import numpy as np
import pytest

from tests.explorer.application.driver import (
    CROSS,
    SELF,
    cell,
    choose,
    focused,
    printed_sum,
    state,
    symbols_of_tiles,
)
from transformer.explore.steps import steps_of


@pytest.mark.parametrize(
    ("asked", "shown"),
    [("symbol=dK&place=encoder.layers.0.self_attention&head=1", "dK"),
     ("symbol=dM&place=encoder.layers.0.self_attention", "dX"),
     ("symbol=unmaskedA", "dV"),
     ("symbol=constructor&place=nowhere&head=99&row=99&cell=99,99", "dV"),
     ("place=-1&head=x&cell=1&row=-2&scaling=no", "dV")],
)
def test_an_address_is_followed_as_far_as_it_leads_somewhere(page, asked, shown):
    page.evaluate("(hash) => { location.hash = hash; }", asked)
    page.wait_for_function("(symbol) => explorer.state.symbol === symbol", arg=shown)
    assert page.locator(f'#stage .grid[data-name="{shown}"]').is_visible()


def test_one_row_and_one_cell_stay_chosen_through_all_steps(page):
    """A query stays a query and a key a key, on whichever axis the tensor has them; every step shows its sum."""
    choose(page, place=CROSS, symbol="dS", cell={"row": 2, "col": 4})
    cells = {}
    for symbol in ("dV", "dO", "A", "K", "dS"):
        choose(page, symbol=symbol)
        cells[symbol] = state(page, "cell")
        assert state(page, "row") == 2
        assert page.locator("#stage .worked").is_visible()
    assert cells["A"] == cells["dS"] == {"row": 2, "col": 4}
    assert cells["dO"]["row"] == 2
    assert cells["dV"]["row"] == cells["K"]["row"] == 4
    assert cells["dV"]["col"] == cells["dO"]["col"]
    choose(page, row=1)
    assert state(page, "cell") == {"row": 1, "col": 4}
    choose(page, place=SELF)
    assert (state(page, "row"), state(page, "cell")["row"]) == (1, 1)


def test_the_selectors(page):
    page.get_by_role("group", name="Head").get_by_role("radio", name="1").check(force=True)
    assert focused(page) == "head:1"
    page.get_by_label("Sentence").select_option("1")
    assert (state(page, "head"), state(page, "item")) == (1, 1)
    rows = page.locator("#stage .grid[data-name=dV] tbody th").all_inner_texts()
    assert rows == ["g", "f", "e", "d", "<eos>"]


def test_the_switches_recompute(page):
    choose(page, place=SELF)
    scores, scaled = (np.array(page.evaluate(f"explorer.matrix('{symbol}')")) for symbol in ("R", "S"))
    width = page.evaluate("explorer.matrix('Q')[0].length")
    np.testing.assert_allclose(scaled, scores / np.sqrt(width), rtol=1e-12)
    page.get_by_label("Divide the scores by the root of d_k").uncheck()
    np.testing.assert_array_equal(page.evaluate("explorer.matrix('S')"), scores)
    assert page.evaluate("explorer.value('A', 0, 1)") == 0
    page.get_by_label("Let the mask hide keys").uncheck()
    assert page.evaluate("explorer.value('A', 0, 1)") > 0
    choose(page, symbol="A")
    assert page.locator("#stage td.masked").count() == 0
    choose(page, symbol="S")
    assert page.locator(".formula.forward .formula-text").inner_text() == "S = R"
    assert page.locator("#stage .operator").all_inner_texts() == ["÷", "1", "="]


@pytest.mark.parametrize(("symbol", "name"), [("K", "K"), ("dY", "dY")])
def test_an_entry_is_changed_and_taken_back(page, symbol, name):
    choose(page, place=CROSS, head=1, symbol=symbol)
    before, gradient = (page.evaluate("(symbol) => explorer.matrix(symbol)", which) for which in (symbol, "dX"))
    cell(page, symbol, 2, 1).click()
    field = page.get_by_label(f"Set this entry of {name} to")
    field.fill("2.5")
    page.get_by_role("button", name="change").click()
    assert page.evaluate("(symbol) => explorer.value(symbol, 2, 1)", symbol) == pytest.approx(2.5, rel=1e-12)
    assert float(cell(page, symbol, 2, 1).get_attribute("data-value")) == pytest.approx(2.5, rel=1e-12)
    assert printed_sum(page) == pytest.approx(2.5, rel=1e-9)
    assert page.evaluate("explorer.matrix('dX')") != gradient
    assert "set to 2.500" in page.locator("#selection").inner_text()
    page.get_by_role("button", name="Undo the change").click()
    assert page.evaluate("(symbol) => explorer.matrix(symbol)", symbol) == before
    assert page.evaluate("explorer.matrix('dX')") == gradient


@pytest.mark.parametrize("attention", ["encoder.layers.0.self_attention", SELF, CROSS])
def test_the_steps_have_the_numbers_of_the_terminal(page, engine, attention):
    choose(page, place=attention)
    steps = steps_of(engine[attention])
    backward = [symbol for symbol in steps if symbol.startswith("d")]
    assert ("dSm" in backward) == (attention == SELF)  # the one with a mask
    shown = page.evaluate("""Object.fromEntries([...document.querySelectorAll(".backward .tile")].map((tile) =>
        [tile.dataset.symbol, Number(tile.querySelector(".tile-step").textContent)]))""")
    assert shown == {symbol: number for number, symbol in enumerate(backward, start=1)}
    assert set(symbols_of_tiles(page, ".forward .tile")) == {symbol for symbol in steps if not symbol.startswith("d")}
