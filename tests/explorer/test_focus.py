"""What lights up together, and what moves: how the sum of a cell comes about."""

import pytest

from tests.explorer.application.driver import cell, choose
from tests.explorer.panels import CROSS, SELF

BANDS = """() => Object.fromEntries([...document.querySelectorAll(".tile")].map((tile) => [tile.dataset.symbol,
    tile.querySelectorAll(".token-band").length]).filter(([, bands]) => bands))"""
OF_QUERY, OF_KEY = {"X", "Q", "O", "C", "Y"}, {"M", "K", "V"}
OF_BOTH = {"R", "S", "A"}
MOVING = "document.getAnimations().filter((animation) => !(animation instanceof CSSTransition))"


def with_gradients(symbols):
    return symbols | {f"d{symbol}" for symbol in symbols}


def test_a_token_lights_up_wherever_it_plays_a_part(opened):
    choose(opened, place=CROSS, symbol="A", panel="flow")
    label = opened.locator("#stage .grid[data-name=A] thead th").nth(2)
    label.hover()
    assert opened.evaluate(BANDS) == dict.fromkeys(with_gradients(OF_KEY | OF_BOTH), 1)
    lit = opened.eval_on_selector_all(".lit-token:not(td)", "all => all.map((one) => one.textContent)")
    assert set(lit) == {"c"}
    assert opened.locator("#panel svg .lit-token").count() == 1
    opened.locator("h1").hover()
    assert opened.evaluate(BANDS) == {}
    assert opened.locator(".lit-token, .token-band").count() == 0


@pytest.mark.parametrize("place", [pytest.param(SELF, marks=pytest.mark.slow), CROSS])
def test_the_motion_of_a_sum_is_short_and_any_key_ends_it(opened, place):
    choose(opened, place=place)
    for symbol in opened.eval_on_selector_all(".tile", "all => all.map((one) => one.dataset.symbol)"):
        choose(opened, symbol=symbol, cell={"row": 0, "col": 1}, row=0)
        opened.evaluate("document.querySelector('[data-key=play]').click()")
        ends = opened.evaluate(f"{MOVING}.map(({{effect}}) => effect.getComputedTiming().endTime)")
        assert 0 < max(ends) <= 1500, symbol
        opened.keyboard.press("Shift")
        assert opened.evaluate(f"{MOVING}.length") == 0
        assert opened.locator("#stage .pulse, #stage .flying").count() == 0
        assert opened.locator("#stage .worked .total").first.is_visible()


def test_nothing_moves_for_who_wants_no_motion(open_page, explorer_page):
    page = open_page(explorer_page, reduced_motion=True)
    cell(page, "dV", 1, 2).click()
    assert page.evaluate("document.getAnimations().length") == 0
    assert not page.locator("[data-key=play]").is_visible()
