"""The stage: the grids of a step, and the sum behind a cell, held to the engine."""

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
    numbers_shown,
    of_engine,
    printed_sum,
    state,
)


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


@pytest.mark.parametrize("attention", [0, SELF, CROSS])
def test_the_sum_of_a_clicked_cell_is_the_engines_number(page, engine, attention):
    choose(page, attention=attention, item=1, head=1)
    assert set(FORWARD + BACKWARD) <= check_every_sum(page, engine)


def test_dropout_has_tiles_of_its_own_and_missing_biases_have_none(open_page, dropped):
    path, engine = dropped
    page = open_page(path)
    choose(page, attention=CROSS)
    biases = {symbol for symbol in FORWARD + BACKWARD if symbol.removeprefix("d").startswith("b")}
    assert check_every_sum(page, engine) == set(FORWARD + BACKWARD) - biases | {"Ad", "dAd", "M", "dM"}
    choose(page, symbol="dV")
    assert page.locator(".formula.backward .formula-text").inner_text() == "dV = A′ᵀ dO"
    choose(page, symbol="Q")
    assert page.locator(".formula.forward .formula-text").inner_text().split() == ["Q", "=", "X", "WQ"]


def test_every_cell_of_a_grid_has_the_engines_number(page, engine):
    choose(page, attention=SELF, head=1)
    for symbol in ("Sm", "A", "dS", "dK"):
        choose(page, symbol=symbol)
        expected = of_engine(page, engine, symbol)
        bound = TOLERANCE * np.abs(expected[np.isfinite(expected)]).max()
        np.testing.assert_allclose(numbers_shown(page, symbol), expected, rtol=0, atol=bound)


@pytest.mark.parametrize(
    ("symbol", "operands"),
    [
        ("dV", {"A": "column row", "dO": "column col"}),
        ("dA", {"dO": "row row", "V": "row col"}),
        ("dQ", {"dR": "row row", "K": "column col"}),
        ("dK", {"dR": "column row", "Q": "column col"}),
        ("R", {"Q": "row row", "K": "row col"}),
        ("O", {"A": "row row", "V": "column col"}),
        ("dSm", {"A": "cell", "dA": "cell"}),
        ("Q", {"X": "row row", "WQ": "column col", "bQ": "bias"}),
    ],
)
def test_a_click_highlights_the_row_and_the_column_that_made_the_cell(page, symbol, operands):
    choose(page, attention=CROSS, symbol=symbol)
    row, col = 1, 2
    cell(page, symbol, row, col).click()
    for operand, lines in operands.items():
        rows, cols = matrix(page, operand).shape
        which = {"row": row, "col": col}[lines.split()[1]] if " " in lines else None
        expected = {"row": [[which, j] for j in range(cols)], "column": [[i, which] for i in range(rows)],
                    "cell": [[row, col]], "bias": [[0, col]]}[lines.split()[0]]
        assert lit(page, operand) == expected, operand
    assert cell(page, symbol, row, col).get_attribute("aria-selected") == "true"


def test_the_formulas_stand_above_and_below(page):
    choose(page, attention=CROSS, symbol="dV")
    forward, backward = page.locator(".formula.forward"), page.locator(".formula.backward")
    assert forward.inner_text().split() == ["forward:", "O", "=", "A", "V"]
    assert backward.inner_text().split() == ["so", "here:", "dV", "=", "Aᵀ", "dO"]
    grids = page.locator("#stage .equation").bounding_box()
    assert forward.bounding_box()["y"] < grids["y"] < backward.bounding_box()["y"]
    choose(page, symbol="A")  # a tensor of the forward, with the way back
    assert forward.inner_text().split() == ["forward:", "A", "=", "softmax(S̄)"]
    assert backward.inner_text().split() == ["so", "here:", "dA", "=", "dO", "Vᵀ"]


def test_a_click_on_an_operand_leads_to_where_it_comes_from(page, engine):
    choose(page, attention=CROSS, symbol="dV")
    cell(page, "dO", 2, 1).click()
    assert (state(page, "symbol"), state(page, "cell")) == ("dO", {"row": 2, "col": 1})
    assert state(page, "row") == 2  # a query: the softmax panel shows it too
    assert printed_sum(page) == pytest.approx(of_engine(page, engine, "dO")[2, 1], rel=1e-9)


def test_the_cells_are_reached_by_the_arrow_keys(page):
    choose(page, attention=CROSS, symbol="dS", cell=None)
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
    choose(page, attention=SELF, item=0)
    mask = np.asarray(engine["decoder.layers.0.self_attention"].mask)[0, 0]
    for symbol in ("Sm", "A", "dA", "dSm", "dS"):
        choose(page, symbol=symbol)
        hatched = page.evaluate("""(name) => [...document.querySelectorAll(`#stage .grid[data-name="${name}"] td.cell`)]
            .map((cell) => getComputedStyle(cell).backgroundImage !== "none")""", symbol)
        np.testing.assert_array_equal(np.reshape(hatched, mask.shape), ~mask)
    choose(page, symbol="R")  # before the mask
    assert page.locator('#stage .grid[data-name="R"] td.masked').count() == 0


def test_a_click_on_an_image_chooses_its_cell(open_page, long_page):
    """A large grid is one canvas; the pointer reads its numbers, and so do the arrow keys."""
    page = open_page(long_page)
    choose(page, symbol="A")
    image = page.locator('#stage .grid[data-name="A"] .image-grid')
    canvas = image.locator("canvas")
    size = page.evaluate("explorer.matrix('A').length")
    box = canvas.bounding_box()
    side = box["width"] / size
    canvas.hover(position={"x": 3.5 * side, "y": 7.5 * side})
    value = page.evaluate("formatNumber(explorer.value('A', 7, 3), 5)")
    assert page.locator("#tip").inner_text().endswith(f": {value}")
    canvas.click(position={"x": 3.5 * side, "y": 7.5 * side})
    assert state(page, "cell") == {"row": 7, "col": 3}
    assert printed_sum(page) == pytest.approx(page.evaluate("explorer.value('A', 7, 3)"), rel=1e-9)
    image.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    assert image.locator("[aria-live]").inner_text().startswith("A[8, 4]")
    page.keyboard.press("Enter")
    assert state(page, "cell") == {"row": 8, "col": 4}
    assert focused(page) == "A:image"
