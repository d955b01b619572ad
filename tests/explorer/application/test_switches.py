"""The selectors and the switches, and what can be done to a cell or to the whole backward."""

import numpy as np
import pytest

from tests.explorer.application.driver import CROSS, SELF, cell, choose, focused, lit, of_engine, printed_sum, state


def test_the_selectors(page):
    page.get_by_role("radio", name="cross").check(force=True)
    assert state(page, "attention") == CROSS
    page.get_by_role("group", name="Head").get_by_role("radio", name="1").check(force=True)
    assert focused(page) == "head:1"
    page.get_by_label("Sentence").select_option("1")
    assert (state(page, "head"), state(page, "item")) == (1, 1)
    rows = page.locator("#stage .grid[data-name=dV] tbody th").all_inner_texts()
    assert rows == ["hello", "world", "</s>", "<pad>", "<pad>"]


def test_the_address_keeps_the_selection(page, open_page, explorer_page):
    choose(page, attention=CROSS, item=1, head=1, symbol="dWO", panel="checks")
    address = page.evaluate("location.hash")
    other = open_page(explorer_page)
    other.evaluate("(hash) => { location.hash = hash; location.reload(); }", address)
    other.wait_for_function("window.explorer?.state.symbol === 'dWO'")
    assert [state(other, field) for field in ("attention", "item", "head", "panel")] == [CROSS, 1, 1, "checks"]


def test_the_switches_recompute(page):
    choose(page, attention=SELF)
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


@pytest.mark.parametrize(("symbol", "name"), [("Q", "Q"), ("K", "K"), ("V", "V"), ("dY", "G")])
def test_an_entry_is_changed_and_taken_back(page, symbol, name):
    choose(page, attention=CROSS, head=1, symbol=symbol)
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


def test_the_entries_that_can_be_changed_are_found_from_the_switches(page):
    page.locator("select[name=change]").select_option(label="an entry of K")
    assert (state(page, "symbol"), focused(page)) == ("K", "edit")
    page.keyboard.type("1.5")
    page.keyboard.press("Enter")
    assert page.evaluate("explorer.state.edit")["value"] == 1.5
    assert page.locator("select[name=change]").count() == 0  # in its place stands what was changed
    assert "set to 1.500" in page.locator("#selection").inner_text()


def test_a_nudge_agrees_with_the_gradient(page, engine):
    choose(page, attention=CROSS, symbol="dK", item=1, head=1)
    cell(page, "dK", 1, 1).click()
    page.get_by_role("button", name="Nudge").click()
    output = page.locator("#stage .tools output")
    expected = of_engine(page, engine, "dK")[1, 1]
    assert float(output.get_attribute("data-gradient")) == pytest.approx(expected, rel=1e-9)
    assert float(output.get_attribute("data-difference")) == pytest.approx(expected, rel=1e-5)
    assert "bad" not in output.get_attribute("class")
    choose(page, broken="batch")
    page.get_by_role("button", name="Nudge").click()
    assert float(output.get_attribute("data-difference")) == pytest.approx(expected, rel=1e-5)
    assert "bad" in output.get_attribute("class")


@pytest.mark.parametrize(
    ("broken", "attention", "wrong", "right"),
    [
        ("batch", CROSS, {"dSm", "dS", "dR", "dQ", "dK", "dWQ", "dX"}, {"dY", "dV", "dA", "dWV", "dO"}),
        ("rowsum", CROSS, {"dSm", "dS", "dQ", "dK", "dWK", "dM"}, {"dV", "dA", "dC", "dWO"}),
        ("transpose", SELF, {"dK", "dWK", "dX"}, {"dQ", "dR", "dV", "dWQ"}),
        ("transpose", CROSS, {"dC", "dO", "dV", "dA", "dQ", "dX", "dM"}, {"dY", "dWO", "dbO"}),
        ("mask", SELF, {"dV", "dQ", "dK", "dX"}, {"dO", "dA", "dC"}),
    ],
)
def test_break_it_turns_the_wrong_tensors_red(page, broken, attention, wrong, right):
    choose(page, attention=attention)
    assert page.locator(".verdict.good").inner_text().startswith("✓")
    page.get_by_label("Break it").select_option(broken)
    marked = set(page.evaluate("[...document.querySelectorAll('.tile.wrong')].map((tile) => tile.dataset.symbol)"))
    assert wrong <= marked
    assert not marked & right
    verdict = page.locator(".verdict.bad")
    paths = {"dXq", "dXk", "dXv"}  # they are checked, and have no tiles
    failed = {f"d{check['symbol']}" for check in page.evaluate("explorer.checks()") if not check["ok"]}
    failed.discard("dAd")  # without dropout it is dA
    assert marked == failed - paths
    assert verdict.inner_text().startswith(f"✗ {len(failed)} of ")
    assert verdict.get_attribute("role") == "status"
    border = page.evaluate("getComputedStyle(document.querySelector('.tile.wrong')).borderTopColor")
    red, green, blue = (int(part) for part in border.removeprefix("rgb(").removesuffix(")").split(","))
    assert red > 2 * max(green, blue)
    assert page.locator(".explanation").inner_text()
    page.get_by_label("Break it").select_option("")
    assert page.locator(".tile.wrong").count() == 0


def test_a_broken_step_shows_its_wrong_formula_and_sum(page):
    choose(page, attention=SELF, symbol="dK", broken="transpose")
    assert "dK = dR Q" in page.locator(".formula.replaced").inner_text()
    cell(page, "dK", 1, 0).click()
    assert {row for row, _ in lit(page, "dR")} == {1}  # a row now, where it ought to be the column
    assert printed_sum(page) == pytest.approx(page.evaluate("explorer.value('dK', 1, 0)"), rel=1e-9)
