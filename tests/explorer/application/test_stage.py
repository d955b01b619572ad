"""The strip of tiles and the stage: the grids of a step and the sum behind a cell, held to the engine."""


import numpy as np
import pytest

from tests.explorer.application.driver import (
    BACKWARD,
    CROSS,
    FORWARD,
    SELF,
    TOLERANCE,
    cell,
    choose,
    focused,
    lit,
    matrix,
    of_engine,
    state,
)


def test_the_arrow_keys_walk_the_backward_pass(page):
    choose(page, place=SELF)
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
    choose(page, symbol="dY")
    page.keyboard.press("ArrowUp")
    assert state(page, "symbol") == FORWARD[-1]


def check_every_sum(page, engine):
    """In every tile, the sum of a clicked cell is the engine's number, and its terms add up to it."""
    found = page.evaluate("""[...document.querySelectorAll(".tile")].map(({dataset: {symbol}}) => {
        explorer.setState({symbol});
        [...document.querySelectorAll(`#stage .grid[data-name="${symbol}"] td.cell`)].at(-2).click();
        const terms = [...document.querySelectorAll("#stage .worked > .terms:not(.aside) .term")];
        return {symbol, cell: explorer.state.cell, total: document.querySelector("#stage .worked .total").dataset.value,
                products: terms.map((term) => Number(term.dataset.product))};
    })""")
    for entry in found:
        expected = of_engine(page, engine, entry["symbol"])
        assert entry["cell"] == {"row": expected.shape[0] - 1, "col": expected.shape[1] - 2}
        number = expected[-1, -2]
        bound = TOLERANCE * np.abs(expected[np.isfinite(expected)]).max() + 1e-16  # some gradients are 0
        total = float(entry["total"].replace("Infinity", "inf"))
        assert total == pytest.approx(number, abs=bound, rel=0), entry["symbol"]
        if entry["products"]:
            assert sum(entry["products"]) == pytest.approx(number, abs=bound, rel=0), entry["symbol"]
    return {entry["symbol"] for entry in found}


@pytest.mark.parametrize("attention", ["encoder.layers.0.self_attention", SELF, CROSS])
def test_the_sum_of_a_clicked_cell_is_the_engines_number(page, engine, attention):
    choose(page, place=attention, item=1, head=1)
    assert set(FORWARD + BACKWARD) - {"Sm", "dSm"} <= check_every_sum(page, engine)


@pytest.mark.parametrize(
    ("symbol", "operands"),
    [
        ("dV", {"A": "column row", "dO": "column col"}),
        ("dA", {"dO": "row row", "V": "row col"}),
        ("dS", {"A": "cell", "dA": "cell"}),
        ("Q", {"X": "row row", "WQ": "column col", "bQ": "bias"}),
    ],
)
def test_a_click_highlights_the_row_and_the_column_that_made_the_cell(page, symbol, operands):
    choose(page, place=CROSS, symbol=symbol)
    row, col = 1, 2
    cell(page, symbol, row, col).click()
    for operand, lines in operands.items():
        rows, cols = matrix(page, operand).shape
        which = {"row": row, "col": col}[lines.split()[1]] if " " in lines else None
        expected = {"row": [[which, j] for j in range(cols)], "column": [[i, which] for i in range(rows)],
                    "cell": [[row, col]], "bias": [[0, col]]}[lines.split()[0]]
        assert lit(page, operand) == expected, operand
    assert cell(page, symbol, row, col).get_attribute("aria-selected") == "true"


def test_the_cells_are_reached_by_the_arrow_keys(page):
    choose(page, place=CROSS, symbol="dS", cell=None)
    cell(page, "dS", 0, 0).focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "ArrowUp", "ArrowUp", "ArrowUp", "ArrowDown"):
        page.keyboard.press(key)
    assert focused(page) == "dS:1:1"
    page.keyboard.press("End")
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    assert state(page, "symbol") == "dS"  # the keys moved in the grid, not along the strip
    page.keyboard.press("Enter")
    assert state(page, "cell") == {"row": 1, "col": 1}
    assert focused(page) == "dS:1:1"  # still, after the redraw


def test_masked_cells_are_hatched(page, engine):
    choose(page, place=SELF, item=0)
    mask = np.asarray(engine["decoder.layers.0.self_attention"].mask)[0, 0]
    for symbol in ("Sm", "A", "dA", "dSm", "dS"):
        choose(page, symbol=symbol)
        hatched = page.evaluate("""(name) => [...document.querySelectorAll(`#stage .grid[data-name="${name}"] td.cell`)]
            .map((cell) => getComputedStyle(cell).backgroundImage !== "none")""", symbol)
        np.testing.assert_array_equal(np.reshape(hatched, mask.shape), ~mask)
    choose(page, symbol="R")  # before the mask
    assert page.locator('#stage .grid[data-name="R"] td.masked').count() == 0
