"""The page of a live model: it opens at the loss, texts can be typed, and what is seen can be shared."""

import re
import xml.etree.ElementTree as ET
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
SVG = "{http://www.w3.org/2000/svg}"


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


def test_the_sentence_bar_tells_probabilities_and_the_models_own_choice(page):
    run = page.evaluate("(({loss, probabilities, predicted}) => ({loss, probabilities, predicted}))(currentRun())")
    assert page.inner_text(".loss-number") == page.evaluate("(loss) => formatNumber(loss, 4)", run["loss"])
    tokens = page.evaluate("""[...document.querySelectorAll(".token.target")].map((token) => [
        token.querySelector(".token-text").textContent, token.querySelector(".token-p").textContent,
        token.querySelector(".token-own")?.textContent ?? null])""")
    written = ["d", "e", "<eos>"]
    assert [text for text, _, _ in tokens] == written
    probabilities, choices = run["probabilities"][0], run["predicted"]
    for (_, shown, own), p, choice, token in zip(tokens, probabilities, choices, written, strict=True):
        assert shown == page.evaluate("percent", p)
        expected = f"{choice['token']} {page.evaluate('percent', choice['probability'])}"
        assert own == (None if choice["token"] == token else expected)


def test_a_token_of_the_sentence_bar_chooses_its_row(page):
    page.click("[data-key='token:2']")
    assert (here(page), *state(page, "row")) == ("output", 2)
    page.click("[data-key='source-token:1']")
    assert (here(page), *state(page, "row")) == ("encoder.embedding", 1)
    choose(page, place="encoder.layers.0.self_attention")
    page.click("[data-key='source-token:3']")
    assert (here(page), *state(page, "row")) == ("encoder.layers.0.self_attention", 3)
    choose(page, place="decoder.layers.1.cross_attention", symbol="A")
    assert state(page, "row", "cell") == [2, {"row": 2, "col": 3}]  # both tokens are still chosen


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


def test_the_model_writes_token_by_token(path, open_page):
    page = open_page(path)
    page.click("#write")
    page.wait_for_function("() => explorer.state.target === null")
    assert page.input_value("#text-target") == page.evaluate("session.greedy('a b c').text")


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


def test_only_a_target_that_contradicts_the_model_is_wrong_on_purpose(page, tmp_path, open_page):
    """Not the model's own translation, whatever its tokens, and not one of which a switch has changed its mind."""
    hints = page.locator("#about-texts .hint")
    assert hints.count() == 1
    own = explain(Translator(tiny_model(num_encoder_layers=2, num_decoder_layers=2), WORDS, WORDS), "a b c")
    own.again = None
    own.to_html(tmp_path / "own.html")
    page = open_page(tmp_path / "own.html", reduced_motion=True)
    assert "<unk>" in page.input_value("#text-target")  # written by the model, and nothing that a reader typed
    assert page.locator("#about-texts .unknown").count() == 0
    target = page.input_value("#text-target")
    for switched in ({}, {"scaling": False, "masking": False}):
        choose(page, **switched)
        said = page.locator("#about-texts .hint").all_inner_texts()
        assert not any("purpose" in text for text in said), switched
        assert state(page, "target") == [target]


def test_a_switch_says_nothing_stays_in_a_model_that_is_computed_anew(page):
    """The loss follows, and so does what arrives; S is compared with itself, not with that of another input."""
    choose(page, place="decoder.layers.1.self_attention")
    loss = page.inner_text(".loss-number")
    choose(page, scaling=False)
    assert page.inner_text(".loss-number") != loss
    assert page.locator(".switched").count() == 1


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


def test_a_place_before_the_mistake_does_not_call_it_harmless(page):
    """The backward begins at the output, so nothing is wrong there; behind it, it is."""
    choose(page, place="output", broken="rowsum")
    assert page.locator(".verdict").count() == 1
    assert page.locator(".verdict.good").count() == 0
    assert "attention" in page.inner_text(".verdict")
    choose(page, place="decoder.layers.1.cross_attention")
    assert page.locator(".verdict.bad").count() == 1


def test_percentages_tell_a_probability_from_0_and_from_1(page):
    found = page.evaluate("[0, 1e-9, 0.003, 0.5, 0.9949, 0.996, 0.9994, 0.99999].map(percent)")
    assert found[0] == "0%"
    assert found[-1] == "100%"
    assert not {"0%", "100%"} & set(found[1:-1])


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


def test_what_was_measured_with_other_weights_is_gone(path, open_page):
    page = open_page(path, reduced_motion=True)  # of its own: a step stays in the page
    choose(page, symbol="Z")
    page.click("[data-key=nudge]")
    assert page.locator(".nudged").count() == 1
    page.evaluate("takeSteps(1)")
    assert page.locator(".nudged").count() == 0


@pytest.mark.parametrize("word", ["constructor", "__proto__", "toString", "true", ""])
def test_an_address_that_names_no_state_of_a_switch_leaves_it_on(page, word):
    fields = ("scaling", "masking", "place", "symbol", "cell")
    page.evaluate("(address) => { location.hash = address; }", "&".join(f"{field}={word}" for field in fields))
    page.wait_for_function("() => !location.hash.includes('scaling')")  # the page has written its own
    assert state(page, "scaling", "masking") == [True, True]


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


def test_a_link_is_copied(page):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.click("#copy-link")
    assert page.evaluate("navigator.clipboard.readText()") == page.evaluate("location.href")


@pytest.mark.parametrize("part", ["map", "strip", "stage", "panel"])
def test_a_picture_has_the_numbers_of_what_it_shows(page, part, tmp_path):
    choose(page, place="decoder.layers.1.cross_attention", symbol="dS", panel="softmax")
    with page.expect_download() as download:
        page.dispatch_event(f"[data-picture={part}]", "click")
    file = tmp_path / "picture.svg"
    download.value.save_as(file)
    drawn = [element.text for element in ET.parse(file).iter(f"{SVG}text")]
    shown = {"map": ["output"], "strip": ["softmax"], "panel": page.locator(".bar-number").all_inner_texts(),
             "stage": page.locator("#stage td.cell").all_inner_texts()}[part]
    assert {text for text in shown if text} <= {"".join(text.split("\u200b")) for text in drawn if text}
    canvases = page.locator(f"#{part} canvas").count()
    assert len(list(ET.parse(file).iter(f"{SVG}image"))) == canvases


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


def test_all_text_is_in_a_landmark(page):
    outside = """shownTexts().filter(([element]) => !element.closest("header, main, nav, aside, footer, #said"))
        .map(([, text]) => text)"""
    assert measured(page).evaluate(outside) == []


# ------------------------------------------------------------------ tokens and history


def test_the_tokens_of_the_sentence_bar_light_up_with_those_of_the_stage(page):
    choose(page, place="decoder.layers.1.cross_attention", symbol="A")
    for side, label in (("source", "thead th"), ("target", "tbody th")):
        page.locator(f"#stage .grid[data-name=A] {label}").nth(1).hover()
        lit = page.eval_on_selector_all(".token.lit-token", "all => all.map(({dataset}) => dataset.token)")
        assert lit == [f"{side}:1"]


def test_a_typed_text_has_no_history(page):
    """The checkpoints have read another."""
    choose(page, source="a b")
    assert page.evaluate("hasOtherTexts(currentView())")
    page.evaluate("const [back] = historyOfOtherTexts(currentView()).slice(-1); back.click()")
    assert not page.evaluate("hasOtherTexts(currentView())")


# ------------------------------------------------------------------ the console


def test_what_the_manual_types_into_the_console(page):
    """Each line is understood, and gives something unless it is a command."""
    blocks = re.findall(r"^```js\n(.*?)^```", MANUAL.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for line in "".join(blocks).splitlines():
        code = line.partition(" //")[0]
        assert page.evaluate(f"({code}) !== undefined") or "setState" in code, line
    assert state(page, "symbol") == ["dS"]
    assert page.evaluate("session.version") == 0, "the step was taken back"
