"""The selectors and the switches: what is shown first, what a change takes with it, what can be broken."""

import numpy as np
import pytest

from tests.explorer.application.driver import (
    CROSS,
    SELF,
    cell,
    choose,
    focused,
    lit,
    matrix,
    of_engine,
    printed_sum,
    state,
    symbols_of_tiles,
)
from tests.transformer.tiny import LABELS, SOURCE, tiny_model
from transformer import trace
from transformer.explore.steps import steps_of


def test_the_last_cross_attention_is_shown_first(open_page, explorer_page):
    page = open_page(explorer_page)
    assert (state(page, "place"), state(page, "symbol")) == (CROSS, "dV")
    sizes = np.abs(matrix(page, "dV"))
    assert sizes[state(page, "cell")["row"], state(page, "cell")["col"]] == sizes.max() > 0
    assert state(page, "row") == np.linalg.norm(matrix(page, "dS"), axis=-1).argmax()
    assert page.locator("#stage .worked").is_visible()


@pytest.mark.parametrize(
    ("asked", "shown"),
    [("symbol=dK&place=encoder.layers.0.self_attention&head=1", "dK"),
     ("symbol=dM&place=encoder.layers.0.self_attention", "dX"), ("symbol=Ad", "A"), ("symbol=G", "dY"),
     ("symbol=unmaskedA", "dV"),
     ("symbol=constructor&place=nowhere&head=99&row=99&cell=99,99", "dV"),
     ("place=-1&head=x&cell=1&row=-2&scaling=no", "dV")],
)
def test_an_address_is_followed_as_far_as_it_leads_somewhere(page, asked, shown):
    page.evaluate("(hash) => { location.hash = hash; }", asked)
    page.wait_for_function("(symbol) => explorer.state.symbol === symbol", arg=shown)
    assert page.locator(f'#stage .grid[data-name="{shown}"]').is_visible()


def test_another_head_shows_the_same_cell(page):
    choose(page, place=CROSS, symbol="dK", cell={"row": 1, "col": 2})
    choose(page, head=1)
    assert state(page, "cell") == {"row": 1, "col": 2}


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


def test_without_a_mask_there_is_none_to_forget(page):
    choose(page, place=SELF, broken="mask")
    assert page.locator(".verdict.bad").is_visible()
    page.get_by_label("Let the mask hide keys").uncheck()
    assert state(page, "broken") is None
    assert page.get_by_label("Break it").input_value() == ""
    assert page.locator(".explanation").count() == 0
    offered = page.get_by_label("Break it").locator("option")
    assert offered.count() == 1 + page.evaluate("BREAKAGES.length")  # all are named, whether they can be made or not
    assert [option.get_attribute("value") for option in offered.all() if option.is_disabled()] == ["mask"]


def test_the_verdict_is_of_what_is_shown(page):
    choose(page, place=SELF)
    verdict = page.locator(".verdict")
    assert "checked by finite differences" in verdict.inner_text()  # the engine's
    path = page.evaluate("explorer.page.places[explorer.state.place].path")
    edit = {"path": path, "symbol": "V", "head": 0, "row": 0, "col": 0, "value": 3}
    for change in ({"scaling": False}, {"masking": False}, {"edit": edit}):
        choose(page, **change)
        assert "measured here, as changed" in verdict.inner_text()
        choose(page, scaling=True, masking=True, edit=None)
    assert "measured here" not in verdict.inner_text()


def test_the_selectors(page):
    page.get_by_role("radio", name="cross").check(force=True)
    assert state(page, "place") == CROSS
    page.get_by_role("group", name="Head").get_by_role("radio", name="1").check(force=True)
    assert focused(page) == "head:1"
    page.get_by_label("Sentence").select_option("1")
    assert (state(page, "head"), state(page, "item")) == (1, 1)
    rows = page.locator("#stage .grid[data-name=dV] tbody th").all_inner_texts()
    assert rows == ["ame", "da", "</s>", "<pad>", "<pad>"]


def test_the_address_keeps_the_selection(page, open_page, explorer_page):
    choose(page, place=CROSS, item=1, head=1, symbol="dWO", panel="checks")
    address = page.evaluate("location.hash")
    other = open_page(explorer_page)
    other.evaluate("(hash) => { location.hash = hash; location.reload(); }", address)
    other.wait_for_function("window.explorer?.state.symbol === 'dWO'")
    assert [state(other, field) for field in ("place", "item", "head", "panel")] == [CROSS, 1, 1, "checks"]


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


@pytest.mark.parametrize(("symbol", "name"), [("K", "K"), ("dY", "G")])
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


def test_a_nudge_agrees_with_the_gradient(page, engine):
    choose(page, place=CROSS, symbol="dK", item=1, head=1)
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
        ("mask", SELF, {"dV", "dQ", "dK", "dX"}, {"dO", "dA", "dC"}),
    ],
)
def test_break_it_turns_the_wrong_tensors_red(page, broken, attention, wrong, right):
    choose(page, place=attention)
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
    assert page.locator(".explanation").inner_text()
    page.get_by_label("Break it").select_option("")
    assert page.locator(".tile.wrong").count() == 0


def test_a_broken_step_shows_its_wrong_formula_and_sum(page):
    choose(page, place=SELF, symbol="dK", broken="transpose")
    assert "dK = dR Q" in page.locator(".formula.replaced").inner_text()
    cell(page, "dK", 1, 0).click()
    assert {row for row, _ in lit(page, "dR")} == {1}  # a row now, where it ought to be the column
    assert printed_sum(page) == pytest.approx(page.evaluate("explorer.value('dK', 1, 0)"), rel=1e-9)


def said(page):
    return page.locator("#selection .switched").all_inner_texts()


def shown(page, value, digits=3):
    return page.evaluate("([value, digits]) => formatNumber(value, digits)", [float(value), digits])


@pytest.mark.parametrize(("attention", "item", "hidden"), [(SELF, 0, "the future"), (CROSS, 1, "padding")])
def test_without_the_mask_its_cells_have_weight(page, attention, item, hidden):
    choose(page, place=attention, item=item)
    forbidden, before = matrix(page, "Sm") == -np.inf, np.linalg.norm(matrix(page, "dS"))
    choose(page, masking=False)
    weights, gradient = matrix(page, "A"), matrix(page, "dS")
    text, _ = said(page)
    assert f"queries look at {hidden} too" in text
    assert f"The {forbidden.sum()} forbidden cells" in text
    percent = shown(page, 100 * weights[forbidden].sum() / len(weights))
    assert f"now hold {percent} % of all weight" in text
    assert f"has the norm {shown(page, np.linalg.norm(gradient[forbidden]))} in them" in text
    assert f"from {shown(page, before)} to {shown(page, np.linalg.norm(gradient))}." in text


def test_one_scale_for_all_gradients(page):
    choose(page, symbol="dS")
    own = page.locator("#stage .grid[data-name=dS] .legend").inner_text()
    page.get_by_label("One colour scale for all gradients").check()
    assert page.locator("#stage .grid[data-name=dS] .legend").inner_text() != own
    largest = max(np.abs(matrix(page, symbol)).max() for symbol in symbols_of_tiles(page, ".backward .tile"))
    legends = page.locator("#stage .grid .legend").all_inner_texts()
    for symbol in ("dV", "dY"):
        choose(page, symbol=symbol)
        legends += page.locator(f"#stage .grid[data-name={symbol}] .legend").all_inner_texts()
    assert len(set(legends)) == 1
    assert legends[0].split()[-1] == page.evaluate("(value) => formatNumber(value, 2)", largest)


SOURCE_TOKENS, TARGET_TOKENS = [["a", "b", "c", "d", "e"]], [["<s>", "u", "v", "w"]]


@pytest.fixture(scope="module")
def single(tmp_path_factory):
    """The page, and its trace."""
    model = tiny_model().eval()
    with trace(model) as traced:
        model.loss(SOURCE[:1], LABELS[:1]).backward()
    path = tmp_path_factory.mktemp("one") / "page.html"
    explanation = traced.explanation(SOURCE_TOKENS, TARGET_TOKENS)
    explanation.loss = 0.25
    explanation.to_html(path)
    return path, traced


@pytest.fixture
def one(single, share_page):
    return share_page(single[0])


@pytest.mark.parametrize("attention", [0, SELF, CROSS])
def test_the_steps_have_the_numbers_of_the_terminal(single, one, attention):
    choose(one, place=attention)
    steps = steps_of(single[1][single[1].names[attention]])
    backward = [symbol for symbol in steps if symbol.startswith("d")]
    assert ("dSm" in backward) == (attention == SELF)  # the one with a mask
    shown = one.evaluate("""Object.fromEntries([...document.querySelectorAll(".backward .tile")].map((tile) =>
        [tile.dataset.symbol, Number(tile.querySelector(".tile-step").textContent)]))""")
    assert shown == {symbol: number for number, symbol in enumerate(backward, start=1)}
    assert set(symbols_of_tiles(one, ".forward .tile")) == {symbol for symbol in steps if not symbol.startswith("d")}


def test_without_a_mask_ds_is_made_of_the_weights(single, one):
    choose(one, place=CROSS, symbol="dS")
    texts = [line.split("=", 1)[1].strip() for line in one.locator(".formula-text").all_inner_texts()]
    assert texts == ["softmax(S)", "A∘(dA − D)"]
    names = one.evaluate("[...document.querySelectorAll('#stage .equation .grid')].map(({dataset}) => dataset.name)")
    assert names == ["A", "dA", "D", "dS"]
    cell(one, "dS", 1, 2).click()
    expected = single[1]["decoder.layers.0.cross_attention"].head(0, 0).gradients["S"][1, 2]
    assert printed_sum(one) == pytest.approx(expected, rel=1e-9)
    for symbol in ("dS", "S", "A", "dA", "D"):
        choose(one, symbol=symbol, cell={"row": 1, "col": 0})
        seen = one.inner_text("#stage") + one.inner_text("#panel")
        assert "S̄" not in seen, symbol
        assert "mask" not in seen, symbol
    choose(one, symbol="dS", broken="rowsum")
    assert one.locator(".formula.replaced .formula-text").inner_text() == "dS = A∘dA"
    assert one.locator("#stage .operator").all_inner_texts() == ["∘", "="]
