"""The strip: tiles for the tensors and their gradients, and the keys that walk along them."""

import numpy as np
import pytest

from tests.explorer.application.driver import (
    BACKWARD,
    CROSS,
    FORWARD,
    choose,
    focused,
    of_engine,
    state,
    symbols_of_tiles,
)


def test_every_gradient_stands_under_its_tensor(page):
    choose(page, attention=CROSS)
    places = page.evaluate("""Object.fromEntries([...document.querySelectorAll(".tile")].map((tile) => {
        const {left, right, top} = tile.getBoundingClientRect();
        return [tile.dataset.symbol, {left, right, top}];
    }))""")
    assert len(places) == 2 * (len(FORWARD) + 1)  # and M
    for symbol in [*FORWARD, "M"]:
        assert places[symbol]["left"] == pytest.approx(places[f"d{symbol}"]["left"], abs=1), symbol
        assert places[symbol]["right"] == pytest.approx(places[f"d{symbol}"]["right"], abs=1), symbol
        assert places[symbol]["top"] < places[f"d{symbol}"]["top"]
    along = [places[symbol]["left"] for symbol in ("X", "WQ", "Q", "R", "S", "Sm", "A", "O", "C", "WO", "Y")]
    assert along == sorted(along)


def test_a_tile_shows_its_name_shape_and_norm(page, engine):
    choose(page, attention=CROSS, item=1, head=1)
    for symbol in ("WQ", "dbQ", "A", "dS", "dM", "dWO"):
        matrix = of_engine(page, engine, symbol)
        tile = page.locator(f'.tile[data-symbol="{symbol}"]')
        assert f"{matrix.shape[0]}×{matrix.shape[1]}" in tile.inner_text()
        assert float(tile.get_attribute("data-norm")) == pytest.approx(np.linalg.norm(matrix), rel=1e-9)
        spoken = tile.get_attribute("aria-label")
        assert spoken.startswith(f"{symbol}: ")
        assert f"{matrix.shape[0]} by {matrix.shape[1]}" in spoken
        assert ("of the backward pass" in spoken) == symbol.startswith("d")
    step = page.locator('.tile[data-symbol="dV"] .tile-step').inner_text()
    assert step == str(BACKWARD.index("dV") + 1)


def test_the_arrow_keys_walk_the_backward_pass(page):
    page.locator('.tile[data-symbol="dY"]').click()
    walked = [state(page, "symbol")]
    for number in range(1, len(BACKWARD)):
        page.keyboard.press("ArrowLeft")
        walked.append(state(page, "symbol"))
        assert focused(page) == f"tile:{walked[-1]}"
        assert f"step {number + 1} of {len(BACKWARD)}" in page.locator(".stage-head").inner_text()
    assert walked == BACKWARD
    page.keyboard.press("ArrowLeft")
    assert state(page, "symbol") == BACKWARD[-1]  # the end
    page.keyboard.press("ArrowRight")
    assert state(page, "symbol") == BACKWARD[-2]


def test_the_arrow_keys_walk_the_forward_pass_and_change_rows(page):
    page.locator('.tile[data-symbol="X"]').click()
    walked = ["X"]
    for _ in FORWARD[1:]:
        page.keyboard.press("ArrowRight")
        walked.append(state(page, "symbol"))
    assert walked == FORWARD
    page.keyboard.press("ArrowDown")
    assert state(page, "symbol") == "dY"
    page.keyboard.press("ArrowUp")
    assert state(page, "symbol") == "Y"


def test_the_keys_work_without_the_focus_and_leave_fields_alone(page):
    choose(page, symbol="dY")
    page.keyboard.press("ArrowLeft")
    assert state(page, "symbol") == "dbO"
    page.get_by_label("Sentence").focus()
    page.keyboard.press("ArrowDown")
    assert (state(page, "item"), state(page, "symbol")) == (1, "dbO")


def test_the_strip_is_one_stop_of_the_tab_key(page):
    choose(page, symbol="dQ")
    assert symbols_of_tiles(page, ".tile[tabindex='0']") == ["dQ"]
    assert len(symbols_of_tiles(page, ".tile[tabindex='-1']")) == len(FORWARD + BACKWARD) - 1


def test_the_buttons_of_the_stage_lead_to_the_neighbours(page):
    choose(page, symbol="dV")
    page.get_by_role("button", name="Next step").click()
    assert state(page, "symbol") == "dA"
    page.get_by_role("button", name="Next step").click()  # the focus, and the button, are still there
    page.get_by_role("button", name="Previous step").click()
    assert state(page, "symbol") == "dA"
