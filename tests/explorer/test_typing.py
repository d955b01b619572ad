"""Texts can be typed, the address brings back what was chosen, and the console does what the manual says."""

import re
from pathlib import Path

import numpy as np
import pytest

from tests.explorer.pages import live_explanation, show, state
from tests.transformer.tiny import tiny_model

MANUAL = Path(__file__).parents[2] / "docs/explorer.md"


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("live") / "page.html"
    live_explanation(tiny_model(num_decoder_layers=2), ["a b c", "f"], ["d e", "g a b c"]).to_html(path)
    return path


@pytest.fixture
def page(path, share_page):
    return share_page(path, reduced_motion=True)


# ------------------------------------------------------------------ typing


def enter(page, side, text):
    page.fill(f"#text-{side}", text)
    page.press(f"#text-{side}", "Enter")


def test_a_large_model_computes_in_a_worker(tmp_path, open_page):
    """What is drawn after a text, a place, a check, a nudge and a step is what this thread computes."""
    model = tiny_model(dtype=np.float32, d_model=160, d_ff=600)
    explanation = live_explanation(model, "a b c", "d e")
    explanation.to_html(tmp_path / "page.html")
    page = open_page(tmp_path / "page.html")
    page.wait_for_selector("#stage .grid")
    page.fill("#text-target", "b b a")
    page.wait_for_function("() => explorer.state.target === 'b b a'")
    page.evaluate("explorer.setState({place: 'decoder.layers.0.cross_attention', symbol: 'dS'})")
    page.wait_for_function("() => explorer.state.symbol === 'dS'")
    page.evaluate("takeSteps(1)")
    page.wait_for_selector("#loss[aria-busy=false]")
    symbol, step = page.evaluate("[explorer.matrix('dS'), session.history]")
    slope = page.evaluate("explorer.nudge({symbol: 'S', row: 1, col: 1}, 1e-4)")
    assert slope["difference"] == pytest.approx(slope["gradient"], rel=1e-4)
    assert page.evaluate("async () => (await explorer.checks()).every(({ok}) => ok)")
    assert page.evaluate("session.compute !== HERE")
    assert [symbol, step[-1]["loss"]] == page.evaluate("""() => {
      Object.assign(session, {compute: HERE, runs: new Map()});
      return [explorer.matrix("dS"), session.run().loss];
    }""")


def test_of_a_typed_source_the_model_writes_the_target_but_for_one_that_was_typed(page):
    enter(page, "source", "g g")
    assert state(page, "target") is None
    assert page.evaluate("session.greedy('g g').text").startswith(page.input_value("#text-target") or "nothing")
    assert page.is_disabled("#write")
    enter(page, "target", "a")
    enter(page, "source", "f")
    assert state(page, "source", "target") == ["f", "a"]
    page.click("#write")
    assert page.input_value("#text-target") == page.evaluate("session.greedy('f').text")


def test_a_text_that_the_model_cannot_read_is_a_line_and_changes_nothing(page):
    loss = page.inner_text(".loss-number")
    enter(page, "target", " ")
    assert "empty" in page.inner_text("#about-texts .refused")
    assert page.get_attribute("#text-target", "aria-invalid") == "true"
    assert (page.inner_text(".loss-number"), state(page, "target")) == (loss, "d e")
    enter(page, "target", "d zz")
    assert page.locator("#about-texts .refused").count() == 0
    assert "“zz”" in page.inner_text("#about-texts .unknown")


# ------------------------------------------------------------------ sharing


def test_the_address_holds_the_texts_typed_for_every_sentence(path, page, open_page):
    """All of them have a part in the loss. An address without them has those of the page."""
    first = page.evaluate("currentRun().loss")
    show(page, source="g g", target=None)
    show(page, item=1)
    show(page, source="a", target="b b")
    show(page, item=0, place="decoder.norm")
    typed, address = page.evaluate("[currentRun().loss, location.hash]")
    assert typed != first
    again = open_page(path)
    again.evaluate("(address) => { location.hash = address; }", address)
    again.wait_for_function("(loss) => currentRun().loss === loss", arg=typed)
    assert again.evaluate("location.hash") == address
    again.evaluate("() => { location.hash = 'place=output&source.1=%20'; }")
    again.wait_for_function("(loss) => currentRun().loss === loss", arg=first)


@pytest.mark.parametrize("choice", [
    {"source": "g f", "target": "a a b", "place": "decoder.layers.1.cross_attention", "head": 1, "symbol": "dS",
     "cell": {"row": 2, "col": 1}, "panel": "heads", "scaling": False, "broken": "rowsum"},
    {"item": 1, "place": "encoder.layers.0.feed_forward", "symbol": "dW1", "cell": {"row": 3, "col": 5}, "row": 1,
     "masking": False},
    {"source": "g f", "target": None, "place": "output", "symbol": "P", "cell": {"row": 0, "col": 4}}])
def test_the_address_brings_everything_back(page, choice):
    show(page, **choice)
    every = "JSON.stringify([explorer.state, currentRun().loss])"
    chosen = page.evaluate(every)
    page.reload()
    assert page.evaluate(every) == chosen
    for field, value in choice.items():
        assert state(page, field) == value


@pytest.mark.parametrize("garbage", ["place=nowhere&source=%20&target=%00",
                                     "item=77&row=-1&cell=x,2&symbol=__proto__",
                                     "source=a&broken=constructor&scaling=1&stop=1e9&story=x&panel=tab",
                                     "%%%&=&cell=,"])
def test_an_address_that_makes_no_sense_is_ignored(page, garbage):
    page.evaluate("(hash) => { location.hash = hash; location.reload(); }", garbage)
    page.wait_for_function("() => window.explorer !== undefined")
    assert state(page, "place") == "output"
    assert state(page, "broken", "scaling", "story", "stop") == [None, True, None, 0]
    assert page.locator("#panel .worked").is_visible()


# ------------------------------------------------------------------ the console


def test_what_the_manual_types_into_the_console(page):
    """Each line is understood, and gives something unless it is a command."""
    blocks = re.findall(r"^```js\n(.*?)^```", MANUAL.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for line in "".join(blocks).splitlines():
        code = line.partition(" //")[0]
        assert page.evaluate(f"async () => ({code}) !== undefined") or "setState" in code, line
    assert state(page, "symbol") == "dS"
    assert page.evaluate("session.version") == 0, "the step was taken back"
