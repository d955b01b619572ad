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
    grid,
    live_explanation,
    of_engine,
    show,
    state,
)
from tests.transformer.tiny import tiny_model
from transformer.explore.steps import steps_of

# By place: its tiles, each with the matrix on the stage; and what is wrong there, such as the sum of the last cell, or
# in a view.
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


# The texts that are drawn while `change` is made.
DRAWN = """(change) => {
  const drawn = [], draw = CanvasRenderingContext2D.prototype.fillText;
  CanvasRenderingContext2D.prototype.fillText = function fillText(text, ...where) {
    drawn.push(text);
    draw.call(this, text, ...where);
  };
  explorer.setState(change);
  CanvasRenderingContext2D.prototype.fillText = draw;
  return drawn;
}"""


@pytest.mark.parametrize("symbol", ["A", "dS"])
def test_the_numbers_in_a_grid_are_written_out(opened, made, symbol):
    """Without a power of ten to be multiplied with: as a text says them."""
    shown = {"place": CROSS, "symbol": symbol, "head": 1, "item": 0, "cell": {"row": 0, "col": 0}}
    drawn = opened.evaluate(DRAWN, shown)
    expected = of_engine(opened, made.trace, symbol)
    texts = [text.replace("−", "-") for text in drawn[-expected.size:]]
    digits = max(len(text.partition(".")[2]) for text in texts)
    assert_close = np.testing.assert_allclose
    assert_close([float(text) for text in texts], expected.ravel(), atol=0.5000001 * 10.0**-digits, rtol=0)
    assert max(len(text.replace("0", "").strip("-.")) for text in texts) >= 3


@pytest.mark.parametrize(("symbol", "operands"), [
    ("dV", {"A": "column row", "dO": "column col"}), ("dA", {"dO": "row row", "V": "row col"}),
    ("dS", {"A": "cell", "dA": "cell"}), ("Q", {"X": "row row", "WQ": "column col", "bQ": "bias"})])
def test_what_made_a_cell_is_highlighted(opened, symbol, operands):
    cell = {"row": 1, "col": 2}
    show(opened, place=CROSS, symbol=symbol, cell=cell)
    lit = opened.evaluate("""([symbol, operands]) => {
        const view = currentView(), worked = workedCell(view, symbol, 1, 2);
        return operands.map((operand) => highlightsOf(worked, {symbol: operand})
            .map(({row, col}) => [row ?? null, col ?? null]));
    }""", [symbol, list(operands)])
    for found, lines in zip(lit, operands.values(), strict=True):
        which = cell[lines.split()[1]] if " " in lines else None
        kinds = {"row": [which, None], "column": [None, which], "cell": [1, 2], "bias": [0, 2]}
        assert found == [kinds[lines.split()[0]]]


def test_masked_cells_are_hatched(opened, made):
    show(opened, place=CAUSAL, item=0)
    for symbol in ("Sm", "A", "dA", "dSm", "dS"):
        mask = np.array(opened.evaluate("(symbol) => maskFor(currentView(), symbol).toNested()", symbol))
        np.testing.assert_array_equal(mask, np.asarray(made.trace[CAUSAL].mask)[0, 0])
    assert opened.evaluate("maskFor(currentView(), 'R')") is None  # before the mask


def test_the_arrow_keys_walk_along_the_steps_and_among_the_cells(opened, made):
    show(opened, place=CAUSAL, symbol="dY", story=None)
    backward = [symbol for symbol in steps_of(made.trace[CAUSAL]) if symbol.startswith("d")]
    opened.locator('.tile[data-symbol="dY"]').focus()
    for symbol in backward[1:]:
        opened.keyboard.press("ArrowLeft")
        assert (state(opened, "symbol"), focused(opened)) == (symbol, f"tile:{symbol}")
    numbered = opened.eval_on_selector_all(
        ".backward .tile", "all => all.map((one) => [one.dataset.symbol, one.querySelector('.tile-step').textContent])")
    assert dict(numbered) == {symbol: str(n) for n, symbol in enumerate(backward, start=1)}
    opened.keyboard.press("ArrowLeft")
    assert state(opened, "symbol") == backward[-1]  # the end
    opened.keyboard.press("ArrowUp")
    assert state(opened, "symbol") == backward[-1][1:]
    show(opened, place=CROSS, symbol="dS", cell={"row": 0, "col": 0})
    opened.locator('#stage .grid[data-name="dS"] .grid-box').focus()
    for key in ("Down", "Down", "Right", "Up", "Up", "Up", "Down", "Left", "Left", "Right"):
        opened.keyboard.press(f"Arrow{key}")
    assert state(opened, "symbol") == "dS"  # the keys moved in the grid, not along the strip
    opened.keyboard.press("Enter")
    assert state(opened, "cell") == {"row": 1, "col": 1}
    assert focused(opened) == "grid:dS"  # still, after the redraw


def test_a_click_on_a_cell_shows_its_sum_and_one_on_an_operand_leads_there(opened):
    show(opened, place=CROSS, symbol="dS", panel="softmax", story=None)
    box = opened.locator("#stage .grid[data-name=A] canvas").bounding_box()
    opened.mouse.click(box["x"] + 2.5 * box["width"] / 5, box["y"] + 1.5 * box["height"] / 4)
    assert state(opened, "symbol", "cell", "panel") == ["A", {"row": 1, "col": 2}, "step"]
    assert opened.locator("#panel .worked").is_visible()


def test_a_sum_can_be_stepped_through(opened):
    show(opened, place=CROSS, symbol="dV", cell={"row": 1, "col": 1}, panel="step")
    products = [float(product) for product in data_of(opened, "#panel .terms .term", "product")]
    total = "Number(document.querySelector('#panel .worked .total').dataset.value)"
    for count in (1, 2, 3):
        opened.click("[data-key='sum:on']")
        assert opened.evaluate(total) == pytest.approx(sum(products[:count]), abs=1e-15)
        assert opened.locator("#stage .pulse").count() == 2  # the entries of the term
    opened.click("[data-key='sum:back']")
    assert opened.evaluate(total) == pytest.approx(sum(products[:2]), abs=1e-15)
    assert opened.evaluate("document.getAnimations().length") == 0


def test_a_token_lights_up_wherever_its_name_stands(opened):
    show(opened, place=CROSS, symbol="A", panel="flow")
    opened.locator("#stage .grid[data-name=A] .labels.top > span").nth(2).hover()
    assert set(opened.locator(".lit-token:not(.bar-cell)").all_text_contents()) == {"c"}
    assert opened.locator("#stage .lit-token").count() == 2
    opened.locator("#place h2").hover()
    assert opened.locator(".lit-token").count() == 0


def test_one_row_and_one_cell_stay_chosen_through_all_steps(opened):
    """A query stays a query and a key a key, on whichever axis the tensor has them."""
    show(opened, place=CROSS, symbol="dS", cell={"row": 2, "col": 4})
    cells = {}
    for symbol in ("dV", "dO", "A", "K", "dS"):
        show(opened, symbol=symbol)
        cells[symbol] = state(opened, "cell")
        assert state(opened, "row") == 2
    assert cells["A"] == cells["dS"] == {"row": 2, "col": 4}
    assert cells["dO"]["row"] == 2
    assert cells["dV"]["row"] == cells["K"]["row"] == 4
    show(opened, row=1)
    assert state(opened, "cell") == {"row": 1, "col": 4}
    show(opened, place=CAUSAL)
    assert state(opened, "row") == 1


def test_the_selectors_and_the_switches(opened):
    show(opened, place=CAUSAL, symbol="A")
    opened.get_by_role("group", name="Head").get_by_role("radio", name="2").check(force=True)
    assert focused(opened) == "head:1"
    opened.get_by_label("Sentence").select_option("1")
    assert state(opened, "head", "item") == [1, 1]
    scores, scaled = (np.array(opened.evaluate(f"explorer.matrix('{symbol}')")) for symbol in ("R", "S"))
    assert_equal(scaled, scores / np.sqrt(4))
    opened.get_by_label("Divide the scores by the root of d_k").uncheck()
    np.testing.assert_array_equal(opened.evaluate("explorer.matrix('S')"), scores)
    assert opened.evaluate("explorer.value('A', 0, 1)") == 0
    opened.get_by_label("Let the mask hide keys").uncheck()
    assert opened.evaluate("explorer.value('A', 0, 1)") > 0
    show(opened, symbol="S")
    assert opened.locator(".formula.forward .formula-text").inner_text() == "S = R"


@pytest.mark.parametrize("symbol", ["K", "dY"])
def test_an_entry_is_changed_and_taken_back(opened, symbol):
    show(opened, place=CROSS, head=1, symbol=symbol, cell={"row": 2, "col": 1}, panel="step")
    before, gradient = (opened.evaluate("(symbol) => explorer.matrix(symbol)", which) for which in (symbol, "dX"))
    opened.get_by_label(f"Set this entry of {symbol} to").fill("2.5")
    opened.get_by_role("button", name="change").click()
    assert opened.evaluate("(symbol) => explorer.value(symbol, 2, 1)", symbol) == pytest.approx(2.5, rel=1e-12)
    assert grid(opened, f'#stage .grid[data-name="{symbol}"]')[2, 1] == pytest.approx(2.5, rel=1e-12)
    assert opened.evaluate("explorer.matrix('dX')") != gradient
    opened.get_by_role("button", name="Undo the change").click()
    assert opened.evaluate("(symbol) => explorer.matrix(symbol)", symbol) == before


def test_a_nudge_agrees_with_the_gradient(opened):
    show(opened, place=SELF, symbol="dQ", cell={"row": 1, "col": 2}, panel="step")
    opened.click("[data-key='nudge']")
    said = opened.locator("#panel .nudged")
    difference, gradient = (float(said.get_attribute(f"data-{name}")) for name in ("difference", "gradient"))
    assert gradient == opened.evaluate("explorer.value('dQ', 1, 2)")
    assert difference == pytest.approx(gradient, rel=1e-5, abs=1e-9)
