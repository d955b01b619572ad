"""The page of one sentence: nothing is padded, and where nothing is masked there is no step that masks."""

import numpy as np
import pytest

from tests.explorer.application.driver import CROSS, SELF, cell, choose, matrix, printed_sum, state, symbols_of_tiles
from tests.transformer.tiny import LABELS, SOURCE, tiny_model
from transformer import trace
from transformer.explore.steps import steps_of

SOURCE_TOKENS, TARGET_TOKENS = [["a", "b", "c", "d", "e"]], [["<s>", "u", "v", "w"]]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
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
def one(made, share_page):
    return share_page(made[0])


@pytest.mark.parametrize("attention", [0, SELF, CROSS])
def test_the_steps_have_the_numbers_of_the_terminal(made, one, attention):
    choose(one, attention=attention)
    steps = steps_of(made[1][made[1].names[attention]])
    backward = [symbol for symbol in steps if symbol.startswith("d")]
    assert ("dSm" in backward) == (attention == SELF)  # the one with a mask
    shown = one.evaluate("""Object.fromEntries([...document.querySelectorAll(".backward .tile")].map((tile) =>
        [tile.dataset.symbol, Number(tile.querySelector(".tile-step").textContent)]))""")
    assert shown == {symbol: number for number, symbol in enumerate(backward, start=1)}
    assert set(symbols_of_tiles(one, ".forward .tile")) == {symbol for symbol in steps if not symbol.startswith("d")}


def test_without_a_mask_ds_is_made_of_the_weights(made, one):
    choose(one, attention=CROSS, symbol="dS")
    texts = [line.split("=", 1)[1].strip() for line in one.locator(".formula-text").all_inner_texts()]
    assert texts == ["softmax(S)", "A∘(dA − D)"]
    names = one.evaluate("[...document.querySelectorAll('#stage .equation .grid')].map(({dataset}) => dataset.name)")
    assert names == ["A", "dA", "D", "dS"]
    cell(one, "dS", 1, 2).click()
    expected = made[1]["decoder.layers.0.cross_attention"].head(0, 0).gradients["S"][1, 2]
    assert printed_sum(one) == pytest.approx(expected, rel=1e-9)
    for symbol in ("dS", "S", "A", "dA", "D"):
        choose(one, symbol=symbol, cell={"row": 1, "col": 0})
        seen = one.inner_text("#stage") + one.inner_text("#panel")
        assert "S̄" not in seen, symbol
        assert "mask" not in seen, symbol
    choose(one, symbol="dS", broken="rowsum")
    assert one.locator(".formula.replaced .formula-text").inner_text() == "dS = A∘dA"
    assert one.locator("#stage .operator").all_inner_texts() == ["∘", "="]


@pytest.mark.parametrize(("asked", "shown"), [("dSm", "dS"), ("Sm", "S")])
def test_what_leads_to_the_masked_scores_leads_to_the_scores(one, asked, shown):
    choose(one, attention=SELF, symbol=asked)
    assert state(one, "symbol") == asked  # here there is a mask
    choose(one, attention=CROSS)
    assert state(one, "symbol") == shown
    choose(one, attention=0, symbol="dV")
    one.evaluate("(symbol) => { location.hash = `symbol=${symbol}&attention=2`; }", asked)
    one.wait_for_function("(symbol) => explorer.state.symbol === symbol", arg=shown)


def test_the_loss_is_that_of_the_model(one):
    choose(one, attention=SELF, scaling=False)
    assert one.locator("#loss").inner_text() == "loss of the model 0.2500"
    assert one.locator(".switched").last.inner_text() == "Still those of the unchanged model: dY, the loss at the top."


def test_only_several_sentences_are_chosen_from(one, page):
    assert one.get_by_label("Sentence").count() == 0
    assert page.get_by_label("Sentence").count() == 1


def test_the_rows_of_a_decoder_say_what_is_read_and_written(one):
    choose(one, attention=CROSS, symbol="dS", cell=None)
    line = one.locator("#stage .about-rows")
    assert line.inner_text() == "The rows are queries: at row 0 the decoder read “<s>” and is to write “u”."
    titles = one.locator("#stage .grid[data-name=dS] tbody th").evaluate_all("all => all.map(({title}) => title)")
    assert titles[1] == "the decoder read “u” and is to write “v”"
    assert titles[3] == "the decoder read “w”"  # nobody has told what comes then
    cell(one, "dS", 2, 0).click()
    assert "at row 2 the decoder read “v” and is to write “w”" in line.inner_text()
    options = one.locator("#softmax-row option").all_inner_texts()
    assert options == ["0 · <s> → u", "1 · u → v", "2 · v → w", "3 · w"]
    choose(one, symbol="K")  # its rows are keys
    assert line.count() == 0
    choose(one, attention=0, symbol="dS")  # the encoder reads, and writes nothing
    assert line.count() == 0
    assert one.locator("#softmax-row option").all_inner_texts()[1] == "1 · b"


def test_dividing_by_a_batch_of_one_says_what_it_pretends(one, page):
    right = matrix(one, "dS")
    choose(one, broken="batch", symbol="dS")
    assert "there is one sentence" in one.locator(".explanation").inner_text()
    assert "pretends that B = 8" in one.locator(".explanation").inner_text()
    assert "B = 8" in one.locator(".formula.replaced").inner_text()
    np.testing.assert_allclose(matrix(one, "dS"), right / 8, rtol=1e-12)
    choose(page, broken="batch")  # of two sentences
    assert page.locator(".explanation").inner_text().endswith("Here B = 2.")
