"""What lights up together, and what moves: how the sum of a cell comes about."""

import pytest

from tests.explorer.application.driver import cell, choose, state
from tests.explorer.panels import CROSS, SELF

BANDS = """() => Object.fromEntries([...document.querySelectorAll(".tile")].map((tile) => [tile.dataset.symbol,
    tile.querySelectorAll(".token-band").length]).filter(([, bands]) => bands))"""
OF_QUERY, OF_KEY = {"X", "Q", "O", "C", "Y"}, {"M", "K", "V"}
OF_BOTH = {"R", "S", "Sm", "A"}
MOVING = "document.getAnimations().filter((animation) => !(animation instanceof CSSTransition))"


def with_gradients(symbols):
    return symbols | {f"d{symbol}" for symbol in symbols}


def test_a_token_lights_up_wherever_it_plays_a_part(opened):
    choose(opened, place=CROSS, symbol="A", panel="flow")
    label = opened.locator("#stage .grid[data-name=A] thead th").nth(2)
    label.hover()
    assert opened.evaluate(BANDS) == dict.fromkeys(with_gradients(OF_KEY | OF_BOTH), 1)
    lit = opened.eval_on_selector_all(".lit-token:not(td)", "all => all.map((one) => one.textContent)")
    assert set(lit) == {"ii"}
    assert opened.locator("#panel svg .lit-token").count() == 1
    opened.locator("h1").hover()
    assert opened.evaluate(BANDS) == {}
    assert opened.locator(".lit-token, .token-band").count() == 0


def test_a_cell_lights_up_its_query_and_its_key(opened):
    """In self-attention they are of one sentence: the query's row of Q, and the key's row of K."""
    choose(opened, place=SELF, symbol="A")
    cell(opened, "A", 2, 1).hover()
    expected = {**dict.fromkeys(with_gradients(OF_QUERY | {"K", "V"}), 1), **dict.fromkeys(with_gradients(OF_BOTH), 2)}
    assert opened.evaluate(BANDS) == expected
    rows = opened.evaluate("""["Q", "K"].map((symbol) => {
        const tile = document.querySelector(`.tile[data-symbol=${symbol}]`), canvas = tile.querySelector("canvas");
        const [band, whole] = [tile.querySelector(".token-band"), canvas].map((one) => one.getBoundingClientRect());
        return Math.round((band.top - whole.top) / (whole.height / 4));
    })""")
    assert rows == [2, 1]
    cell(opened, "A", 2, 1).click()  # after the redraw it is still lit
    assert opened.evaluate(BANDS) == expected


def test_a_tap_and_the_keyboard_light_up_too(open_page, explorer_page):
    page = open_page(explorer_page, width=390, has_touch=True)
    choose(page, place=CROSS, symbol="A", cell=None)
    page.locator("#stage .grid[data-name=A] thead th").nth(1).tap()
    assert page.locator("#stage .grid[data-name=A] .token-band").count() == 1
    cell(page, "A", 0, 0).focus()
    assert page.locator("#stage .grid[data-name=A] .token-band").count() == 2


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


def test_a_key_ends_a_motion_that_has_taken_the_place_of_another(opened):
    choose(opened, place=CROSS, symbol="dV", cell={"row": 0, "col": 1})
    for _ in range(2):
        opened.evaluate("document.querySelector('[data-key=play]').click()")
        assert opened.evaluate(f"{MOVING}.length") > 0
    opened.keyboard.press("Shift")
    assert opened.evaluate(f"{MOVING}.length") == 0


def test_a_chosen_cell_plays_to_its_end(opened):
    choose(opened, place=CROSS, symbol="dV")
    cell(opened, "dV", 1, 2).click()
    assert opened.locator("#stage .grid[data-name=A] .pulse").count() == opened.locator("#stage .worked .term").count()
    opened.wait_for_function(f"() => {MOVING}.length === 0")
    opened.wait_for_function("() => document.querySelectorAll('.pulse, .flying').length === 0")
    assert state(opened, "cell") == {"row": 1, "col": 2}


def test_nothing_moves_for_who_wants_no_motion(open_page, explorer_page):
    page = open_page(explorer_page, reduced_motion=True)
    cell(page, "dV", 1, 2).click()
    assert page.evaluate("document.getAnimations().length") == 0
    assert not page.locator("[data-key=play]").is_visible()
