"""A walk over all places: each step shows the engine's tensor, and the sum of a cell; and what can be done there."""

import json

import numpy as np
import pytest

from tests.explorer.pages import (
    CAUSAL,
    CROSS,
    SELF,
    assert_equal,
    data_of,
    focused,
    live_explanation,
    of_engine,
    show,
    state,
)
from tests.transformer.tiny import tiny_model
from transformer.explore.steps import steps_of

# By place: its tiles, each with the matrix on the stage; and what is wrong there: the sum of the last cell, the numbers
# as they are written, entries of the sum that are not lit, rows without a name, or a view.
WALK = """() => JSON.stringify(page.places.map(({path}) => {
  const wrong = [], steps = {};
  setState({place: path, panel: "step"});
  const view = currentView();
  if (explorer.state.symbol !== gradientSymbols(view)[0]) wrong.push("the first step is not shown first");
  for (const symbol of [...forwardSymbols(view), ...gradientSymbols(view)]) {
    const {rows, cols} = matrixOf(view, symbol), cell = {row: rows - 1, col: cols - 1};
    setState({symbol, cell});
    const {matrix} = document.querySelector(`#stage .grid[data-name="${symbol}"]`);
    const sum = Number(document.querySelector("#panel .worked .total").dataset.value);
    const size = Math.max(...matrix.data.filter(Number.isFinite).map(Math.abs), 1e-3);
    const last = matrix.at(cell.row, cell.col);
    if (sum !== last && !(Math.abs(sum - last) <= 1e-12 * size)) wrong.push([symbol, sum, last]);
    const write = formatter(matrix);
    for (const value of matrix.data.filter(Number.isFinite)) {
      const [digits, power = 0] = write(value).replace("−", "-").split("·"), error = Number(digits) - value;
      if (power === 0 && !(Math.abs(error) <= 0.0051 * extent(matrix))) wrong.push([symbol, value, digits]);
    }
    const {terms, highlights} = workedCell(currentView(), symbol, cell.row, cell.col);
    const lit = ({symbol, i, j}) => highlights.some((part) => part.symbol === shownSymbol(view, symbol)
      && (part.row ?? i) === i && (part.col ?? j) === j);
    const entries = terms.flatMap(({factors}) => factors).filter(({symbol, item}) => symbol && item === undefined);
    if (highlights.length > 0 && !entries.every(lit)) wrong.push([symbol, "an operand is not lit"]);
    const names = [...document.querySelectorAll("#stage .labels.left > span")].filter((name) => name.offsetHeight > 18);
    if (names.some(({textContent, title}) => textContent === "" && title !== "")) wrong.push([symbol, "a lost name"]);
    const tops = new Set([...document.querySelectorAll("#stage .part")].map(({offsetTop}) => offsetTop)); // of lines
    const arrow = document.querySelector(".arrows > path");
    if (highlights.length > 0 && tops.size === 1 && !arrow) wrong.push([symbol, "no arrows"]);
    if (explorer.state.symbol !== symbol) wrong.push([symbol, "is not shown"]);
    const marked = document.querySelector(".tile[aria-current]").dataset.symbol;
    if (marked !== symbol) wrong.push([marked, "is marked for", symbol]);
    steps[symbol] = matrix.toNested();
  }
  for (const {id} of panelsOf(view)) {
    if (id === "checks") continue; // it takes long
    setState({panel: id});
    const text = document.querySelector("#panel").innerText.trim();
    if (text === "" || /undefined|NaN|null|object Object/.test(text)) wrong.push([id, text]);
    for (const fact of document.querySelectorAll("#panel [data-holds=false]")) wrong.push([id, fact.textContent]);
  }
  return [path, steps, wrong];
}), (_, value) => (value === -Infinity ? "-inf" : value))"""


@pytest.mark.parametrize("item", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_every_step_of_every_place_has_the_engines_numbers(opened, made, item):
    show(opened, item=item, head=1)
    for path, steps, wrong in json.loads(opened.evaluate(WALK)):
        assert wrong == [], path
        if path not in made.trace.names:
            continue
        show(opened, place=path)
        means = np.multiply(steps["A"], steps["dA"]).sum(axis=1, keepdims=True)
        assert_equal(np.array(steps.pop("D")), means)
        assert set(steps) == set(steps_of(made.trace[path]))
        for symbol, found in steps.items():
            assert_equal(np.array(found, dtype=float), of_engine(opened, made.trace, symbol))


@pytest.mark.slow
def test_every_step_of_another_model(tmp_path, open_page):
    changes = {"norm": "post", "activation": "gelu", "tie_output": True, "norm_bias": False, "positions": "learned"}
    live_explanation(tiny_model(**changes)).to_html(tmp_path / "page.html")
    walked = json.loads(open_page(tmp_path / "page.html").evaluate(WALK))
    assert {path.rpartition(".")[2] for path, _, _ in walked} >= {"embedding", "norm", "feed_forward", "output"}
    assert [(path, wrong) for path, _, wrong in walked if wrong] == []


def test_masked_cells_are_hatched(opened, made):
    show(opened, place=CAUSAL, item=0)
    masks = opened.evaluate("['A', 'dS'].map((symbol) => maskFor(currentView(), symbol).toNested())")
    assert masks == [np.asarray(made.trace[CAUSAL].mask)[0, 0].astype(int).tolist()] * 2
    assert opened.evaluate("maskFor(currentView(), 'R')") is None  # before the mask


def test_the_arrow_keys_walk_along_the_steps_and_among_the_cells(opened, made):
    show(opened, place=CAUSAL, symbol="dY", story=None)
    backward = [symbol for symbol in steps_of(made.trace[CAUSAL]) if symbol.startswith("d")]
    backward.insert(backward.index("dSm"), "D")
    opened.locator('.tile[data-symbol="dY"]').focus()
    for symbol in [*backward[1:], backward[-1]]:  # at the end it stays
        opened.keyboard.press("ArrowLeft")
        assert (state(opened, "symbol"), focused(opened)) == (symbol, f"tile:{symbol}")
    steps = opened.locator(".backward .tile-step").all_text_contents()
    assert sorted(map(int, steps)) == [*range(1, len(backward) + 1)]
    opened.keyboard.press("ArrowUp")
    assert state(opened, "symbol") == backward[-1][1:]
    show(opened, place=CROSS, symbol="dS", cell={"row": 0, "col": 0})
    opened.locator('#stage .grid[data-name="dS"] .grid-box').focus()
    for key in ("Down", "Right", "Up", "Up", "Down", "Left", "Right"):
        opened.keyboard.press(f"Arrow{key}")
    assert state(opened, "symbol") == "dS"  # the keys moved in the grid, not along the strip
    opened.keyboard.press("Enter")
    assert (state(opened, "cell"), focused(opened)) == ({"row": 1, "col": 1}, "grid:dS")  # still, after the redraw


def test_a_click_on_a_cell_shows_its_sum_and_one_on_an_operand_leads_there(opened):
    show(opened, place=CROSS, symbol="dS", panel="softmax", story=None)
    box = opened.locator("#stage .grid[data-name=A] canvas").bounding_box()
    opened.mouse.click(box["x"] + 2.5 * box["width"] / 5, box["y"] + 1.5 * box["height"] / 4)
    assert state(opened, "symbol", "cell", "panel") == ["A", {"row": 1, "col": 2}, "step"]
    assert opened.locator("#panel .worked").is_visible()


def test_a_sum_can_be_stepped_through(opened):
    show(opened, place=CROSS, symbol="dV", cell={"row": 1, "col": 1}, panel="step")
    products = [float(product) for product in data_of(opened, "#panel .terms .term", "product")]
    for button, count in (("on", 1), ("on", 2), ("on", 3), ("back", 2)):
        opened.click(f"[data-key='sum:{button}']")
        total = float(opened.get_attribute("#panel .worked .total", "data-value"))
        assert total == pytest.approx(sum(products[:count]), abs=1e-15)
        assert opened.locator("#stage .pulse").count() == 2  # the entries of the term


def test_one_row_and_one_cell_stay_chosen_through_all_steps(opened):
    """A query stays a query and a key a key, on whichever axis the tensor has them."""
    show(opened, place=CROSS, symbol="dS", cell={"row": 2, "col": 4})
    cells = {}
    for symbol in ("dV", "dO", "A", "K"):
        show(opened, symbol=symbol)
        cells[symbol], row = state(opened, "cell", "row")
        assert row == 2
    assert cells["A"] == {"row": 2, "col": 4}
    assert (cells["dO"]["row"], cells["dV"]["row"], cells["K"]["row"]) == (2, 4, 4)
    show(opened, row=1, place=CAUSAL)
    assert state(opened, "row") == 1


def test_the_switches(opened):
    show(opened, place=CAUSAL, symbol="S")
    assert opened.evaluate("explorer.value('A', 0, 1)") == 0
    opened.uncheck("[name=scaling]")
    opened.uncheck("[name=masking]")
    assert opened.evaluate("explorer.matrix('S')") == opened.evaluate("explorer.matrix('R')")
    assert opened.evaluate("explorer.value('A', 0, 1)") > 0
    assert opened.locator(".formula.forward .formula-text").inner_text() == "S = R"


@pytest.mark.parametrize("symbol", ["K", "dY"])
def test_an_entry_is_changed_and_taken_back(opened, symbol):
    show(opened, place=CROSS, head=1, symbol=symbol, cell={"row": 2, "col": 1}, panel="step")
    tensors = f"[explorer.value('{symbol}', 2, 1), explorer.matrix('dX')]"
    before = opened.evaluate(tensors)
    opened.fill("[data-key=edit]", "2.5")
    opened.click("[data-key='edit:apply']")
    value, gradient = opened.evaluate(tensors)
    assert value == pytest.approx(2.5, rel=1e-12)
    assert gradient != before[1]
    opened.click("[data-key='undo-edit']")
    assert opened.evaluate(tensors) == before


def test_a_nudge_agrees_with_the_gradient(opened):
    show(opened, place=SELF, symbol="dQ", cell={"row": 1, "col": 2}, panel="step")
    opened.click("[data-key='nudge']")
    difference, gradient = opened.evaluate("[explorer.state.nudge.difference, explorer.value('dQ', 1, 2)]")
    assert difference == pytest.approx(gradient, rel=1e-5, abs=1e-9)
    assert str(abs(gradient))[:6] in opened.inner_text("#panel .nudged")
