"""The page of a live model: it opens at the loss, texts can be typed, and what is seen can be shared."""

import re
from pathlib import Path

import numpy as np
import pytest

from tests.transformer.tiny import tiny_model
from transformer.data import WordTokenizer
from transformer.explore.translation import explain
from transformer.translator import Translator

MEASURES = Path(__file__).with_name("measures.js")
MANUAL = Path(__file__).parents[2] / "docs/explorer.md"
WORDS = WordTokenizer.train(["a b c d e f g"])  # the eleven tokens of `tiny_model`


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    translator = Translator(tiny_model(num_decoder_layers=2), WORDS, WORDS)
    explanation = explain(translator, ["a b c", "f"], ["d e", "g a b c"])
    explanation.again = None  # no finite differences, which take long
    path = tmp_path_factory.mktemp("live") / "page.html"
    explanation.to_html(path)
    return path


@pytest.fixture
def page(path, share_page):
    return share_page(path, reduced_motion=True)


def state(page, *fields):
    return page.evaluate("(fields) => fields.map((field) => explorer.state[field])", list(fields))


def choose(page, **changes):
    page.evaluate("(changes) => explorer.setState(changes)", changes)


def measured(page):
    """The page, which can then be asked what measures.js answers."""
    script = {"expression": MEASURES.read_text(encoding="utf-8")}  # the page's policy refuses its element
    page.context.new_cdp_session(page).send("Runtime.evaluate", script)
    return page


def here(page):
    return page.evaluate("page.places[explorer.state.place].path")


# ------------------------------------------------------------------ opening


def test_the_page_opens_at_the_loss(page):
    """In sight without scrolling, and at the token that costs most."""
    assert here(page) == "output"
    assert page.evaluate("document.getElementById('loss').getBoundingClientRect().bottom < innerHeight / 2")
    losses = np.array(page.evaluate("explorer.matrix('L')"))[:, 0]
    row, cell, symbol = state(page, "row", "cell", "symbol")
    assert (symbol, cell["row"]) == ("P", row)  # where the story begins
    gradient = np.array(page.evaluate("explorer.matrix('dZ')"))
    assert losses[row] > losses.mean()
    assert gradient[row, cell["col"]] == gradient[row].min()  # of the token that is asked for
    assert page.locator("#stage .worked").is_visible()


# ------------------------------------------------------------------ typing


@pytest.mark.parametrize("how", ["Enter", "pause"])
def test_a_typed_target_is_computed(page, how):
    before = page.inner_text(".loss-number")
    page.fill("#text-target", "b b a")
    if how == "Enter":
        page.press("#text-target", "Enter")
    page.wait_for_function("() => explorer.state.target === 'b b a'")
    assert page.locator(".token.target").count() == 4
    assert page.inner_text(".loss-number") == page.evaluate("formatNumber(currentRun().loss, 4)") != before
    assert page.evaluate("explorer.matrix('L').length") == 4
    assert page.locator(".token.target .token-text").all_inner_texts() == ["b", "b", "a", "<eos>"]


def test_of_a_typed_source_the_model_writes_the_target_but_for_one_that_was_typed(page):
    page.fill("#text-source", "g g")
    page.press("#text-source", "Enter")
    assert state(page, "target") == [None]
    found = page.input_value("#text-target")
    assert found
    assert page.evaluate("session.greedy('g g').text").startswith(found)  # within the model's length
    assert page.is_disabled("#write")
    page.fill("#text-target", "a")
    page.press("#text-target", "Enter")
    page.fill("#text-source", "f")
    page.press("#text-source", "Enter")
    assert state(page, "source", "target") == ["f", "a"]
    page.click("#write")
    assert page.input_value("#text-target") == page.evaluate("session.greedy('f').text")


def test_a_text_that_the_model_cannot_read_is_a_line_and_changes_nothing(page):
    loss = page.inner_text(".loss-number")
    page.fill("#text-target", " ")
    page.press("#text-target", "Enter")
    assert "empty" in page.inner_text("#about-texts .refused")
    assert page.get_attribute("#text-target", "aria-invalid") == "true"
    assert page.inner_text(".loss-number") == loss
    assert state(page, "target") == ["d e"]
    page.fill("#text-target", "d zz")
    page.press("#text-target", "Enter")
    assert page.locator("#about-texts .refused").count() == 0
    assert "“zz”" in page.inner_text("#about-texts .unknown")


@pytest.mark.parametrize("broken", ["batch", "rowsum", "transpose", "mask"])
def test_a_mistake_marks_the_gradients_that_finite_differences_find_wrong(page, broken):
    """Not that of the key bias, which is 0, and whose rounding differs."""
    for layer in ("encoder.layers.0.self", "decoder.layers.1.self", "decoder.layers.0.cross"):
        place = f"{layer}_attention"
        choose(page, place=place, broken=broken, panel="softmax")
        marked, measured = page.evaluate("""() => {
          const view = currentView();
          const marked = verdictOf(view).wrong;
          const measured = checksOf(view).filter(({ok}) => !ok);
          return [[...marked], measured.map(({symbol}) => gradientOf(symbol))];
        }""")
        assert sorted(marked) == sorted(measured), place


# ------------------------------------------------------------------ sharing


def test_the_address_holds_the_texts_typed_for_every_sentence(path, page, open_page):
    """All of them have a part in the loss. An address without them has those of the page."""
    first = page.evaluate("currentRun().loss")
    choose(page, source="g g", target=None)
    choose(page, item=1)
    choose(page, source="a", target="b b")
    choose(page, item=0, place="decoder.norm")
    typed, address = page.evaluate("[currentRun().loss, location.hash]")
    assert typed != first
    again = open_page(path)
    again.evaluate("(address) => { location.hash = address; }", address)
    again.wait_for_function("(loss) => currentRun().loss === loss", arg=typed)
    assert again.evaluate("location.hash") == address
    again.evaluate("() => { location.hash = 'place=output&source.1=%20'; }")
    again.wait_for_function("(loss) => currentRun().loss === loss", arg=first)


CHOICES = [
    {"source": "g f", "target": "a a b", "place": "decoder.layers.1.cross_attention", "head": 1, "symbol": "dS",
     "cell": {"row": 2, "col": 1}, "panel": "heads", "scaling": False, "broken": "rowsum"},
    {"item": 1, "place": "encoder.layers.0.feed_forward", "symbol": "dW1", "cell": {"row": 3, "col": 5}, "row": 1,
     "masking": False},
    {"source": "g f", "target": None, "place": "output", "symbol": "P", "cell": {"row": 0, "col": 4}},
]
KEPT = ["source", "target", "place", "item", "head", "symbol", "row", "cell", "panel", "scaling", "masking", "broken"]


@pytest.mark.parametrize("choice", CHOICES)
def test_the_address_brings_everything_back(page, choice):
    choose(page, **choice)
    chosen = state(page, *KEPT), page.inner_text(".loss-number")
    page.reload()
    assert (state(page, *KEPT), page.inner_text(".loss-number")) == chosen
    for field, value in choice.items():
        assert page.evaluate("(field) => explorer.state[field]", field) == (
            page.evaluate("placeIndex", value) if field == "place" else value)


@pytest.mark.parametrize("garbage", ["place=nowhere&source=%20&target=%00",
                                     "item=77&row=-1&cell=x,2&symbol=__proto__",
                                     "source=a&broken=constructor&scaling=1&stop=1e9&story=x&panel=tab",
                                     "%%%&=&cell=,"])
def test_an_address_that_makes_no_sense_is_ignored(page, garbage):
    page.evaluate("(hash) => { location.hash = hash; location.reload(); }", garbage)
    page.wait_for_function("() => window.explorer !== undefined")
    assert here(page) == "output"
    assert state(page, "broken", "scaling", "story", "stop") == [None, True, None, 0]
    assert page.locator("#stage .worked").is_visible()


# ------------------------------------------------------------------ how it looks

ALL_PLACES = """(look) => page.places.flatMap((_, place) => {
    explorer.setState({place});
    return look().map((found) => `${page.places[place].path}: ${found}`);
})"""


@pytest.mark.parametrize(("width", "height"), [(1440, 900), (1024, 768), (390, 844)])
def test_nothing_hangs_out_of_the_window(path, open_page, width, height):
    page = measured(open_page(path, width=width, height=height, reduced_motion=True))
    assert page.evaluate(f"({ALL_PLACES})(overflowing)") == []


@pytest.mark.parametrize("dark", [False, True])
def test_every_text_is_legible(path, open_page, dark):
    page = measured(open_page(path, dark=dark, reduced_motion=True))
    contrast = "poorContrast(4.5).map(({text, ratio}) => `${text} ${ratio}`)"
    small = """shownTexts()
        .filter(([element]) => parseFloat(getComputedStyle(element).fontSize) < 12 && !element.closest("sub, sup"))
        .map(([element, text]) => `${text} in ${pathOf(element)}`)"""
    assert page.evaluate(f"({ALL_PLACES})(() => [...{contrast}, ...{small}])") == []


# ------------------------------------------------------------------ the console


def test_what_the_manual_types_into_the_console(page):
    """Each line is understood, and gives something unless it is a command."""
    blocks = re.findall(r"^```js\n(.*?)^```", MANUAL.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for line in "".join(blocks).splitlines():
        code = line.partition(" //")[0]
        assert page.evaluate(f"({code}) !== undefined") or "setState" in code, line
    assert state(page, "symbol") == ["dS"]
    assert page.evaluate("session.version") == 0, "the step was taken back"
