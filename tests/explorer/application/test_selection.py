"""What is shown first, and what a change of the selection takes with it."""

import numpy as np
import pytest

from tests.explorer.application.driver import CROSS, SELF, choose, matrix, state


def test_the_last_cross_attention_is_shown_first(open_page, explorer_page):
    page = open_page(explorer_page)
    assert (state(page, "attention"), state(page, "symbol")) == (CROSS, "dV")
    sizes = np.abs(matrix(page, "dV"))
    assert sizes[state(page, "cell")["row"], state(page, "cell")["col"]] == sizes.max() > 0
    assert state(page, "row") == np.linalg.norm(matrix(page, "dS"), axis=-1).argmax()
    assert page.locator("#stage .worked").is_visible()


@pytest.mark.parametrize(("symbol", "instead"), [("M", "X"), ("dM", "dX")])
def test_self_attention_has_no_memory_to_stay_at(page, symbol, instead):
    choose(page, attention=CROSS, symbol=symbol)
    choose(page, attention=SELF)
    assert page.locator(".tile[aria-current]").get_attribute("data-symbol") == instead
    assert page.locator(f'#stage .grid[data-name="{instead}"]').is_visible()


@pytest.mark.parametrize(
    ("asked", "shown"),
    [("symbol=dK&attention=0&head=1", "dK"), ("symbol=dM&attention=0", "dX"), ("symbol=Ad", "A"), ("symbol=G", "dY"),
     ("symbol=unmaskedA", "dV"), ("symbol=constructor&attention=99&head=99", "dV"), ("attention=-1&head=x", "dV")],
)
def test_an_address_is_followed_as_far_as_it_leads_somewhere(page, asked, shown):
    page.evaluate("(hash) => { location.hash = hash; }", asked)
    page.wait_for_function("(symbol) => explorer.state.symbol === symbol", arg=shown)
    assert page.locator(f'#stage .grid[data-name="{shown}"]').is_visible()


def test_a_missing_bias_is_not_shown(open_page, dropped):
    page = open_page(dropped[0])
    page.evaluate("location.hash = 'symbol=dbQ'")
    page.wait_for_function("location.hash.includes('symbol=dV')")


def test_another_head_shows_the_same_cell(page):
    choose(page, attention=CROSS, symbol="dK", cell={"row": 1, "col": 2})
    choose(page, head=1)
    assert state(page, "cell") == {"row": 1, "col": 2}
    choose(page, attention=SELF)
    assert state(page, "cell") is None


def test_without_a_mask_there_is_none_to_forget(page):
    choose(page, attention=SELF, broken="mask")
    assert page.locator(".verdict.bad").is_visible()
    page.get_by_label("Let the mask hide keys").uncheck()
    assert state(page, "broken") is None
    assert page.get_by_label("Break it").input_value() == ""
    assert page.locator(".explanation").count() == 0


def test_the_verdict_is_of_what_is_shown(page):
    choose(page, attention=SELF)
    verdict = page.locator(".verdict")
    assert "checked by finite differences" in verdict.inner_text()  # the engine's
    edit = {"symbol": "V", "head": 0, "row": 0, "col": 0, "value": 3}
    for change in ({"scaling": False}, {"masking": False}, {"edit": edit}):
        choose(page, **change)
        assert "measured here, as changed" in verdict.inner_text()
        choose(page, scaling=True, masking=True, edit=None)
    assert "measured here" not in verdict.inner_text()


def test_the_verdict_counts_what_the_checks_count(page):
    choose(page, attention=CROSS, broken="rowsum", panel="checks")
    named = page.get_attribute("[data-fact=checks]", "data-wrong").split()
    assert page.locator(".verdict").inner_text().startswith(f"✗ {len(named)} of ")
    assert page.locator("#panel table.checks tbody tr").count() == page.evaluate("checksOf(currentView()).length")
    assert "dAd" not in page.evaluate("checksOf(currentView()).map(({symbol}) => `d${symbol}`)")  # no dropout: it is dA


def test_in_self_attention_there_is_no_m(page):
    choose(page, attention=SELF)
    for symbol in ("dX", "X", "dWK", "K", "V"):
        choose(page, symbol=symbol, panel="checks")
        for part in ("#stage", "#panel table.checks"):
            text = page.locator(part).inner_text()
            assert not {"M", "dM", "Mᵀ"} & set(text.replace(",", " ").split()), (symbol, text)
    choose(page, symbol="dX")
    assert "dX via K" in page.locator("#stage .equation").inner_text()
    formula = page.locator(".formula.backward .formula-text")
    assert formula.inner_text() == "dX = Σ (dQ WQᵀ + dK WKᵀ + dV WVᵀ) over the heads"
    choose(page, attention=CROSS)
    assert formula.inner_text() == "dX = Σ dQ WQᵀ over the heads"
