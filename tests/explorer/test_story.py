"""Stories: each stop points at something that is seen, says numbers of the engine, and can be come back to."""

import json
import re

import pytest

from tests.explorer.pages import WORDS, live_explanation, measured, state
from tests.transformer.tiny import tiny_model
from transformer.data import WordTokenizer
from transformer.explore.steps import matrices

MODELS = {"pre": {"num_decoder_layers": 2}, "post": {"norm": "post"}, "many tokens": {"vocabulary": 200}}
ENTRY = re.compile(r"([A-Za-z]+)\[(\w+)(?:, (\w+))?\]")

# What is wrong with the stop that the page shows: complaints. What a stop names is seen, has a frame, and neither the
# caption nor anything else lies over it; rows and columns that the caption names have their labels; the window does not
# scroll.
COMPLAINTS = """() => {
    const caption = seenPart(document.querySelector(".story-bar"));
    const {id, stops} = storyOf(explorer.state.story), {point} = stops[explorer.state.stop];
    const found = frameFaults();
    point.map(keyOfPoint).forEach((key, n) => {
        const element = targetOf(key, currentView());
        if (element === null) return found.push(`${key} is not on the page`);
        const {top, bottom, left, right} = seenPart(element);
        if (right - left < 8 || bottom - top < 8) return n === 0 && found.push(`${key} is out of sight`);
        const covered = left < caption.right && right > caption.left && top < caption.bottom && bottom > caption.top;
        if (covered) found.push(`the caption covers ${key}`);
        const middle = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
        if (!element.contains(middle)) found.push(`${pathOf(middle)} covers ${key}`);
        const frame = document.querySelector(`.story-frame[data-target="${key}"]`).getBoundingClientRect();
        const aside = Math.max(Math.abs(frame.top + 2 - top), Math.abs(frame.right - 2 - right));
        if (aside > 1) found.push(`the frame of ${key} is elsewhere`);
    });
    const text = document.querySelector(".story-text").innerText;
    for (const {title, textContent} of document.querySelectorAll("#stage .labels > span")) {
        if (textContent !== title && text.includes(`“${title}”`)) found.push(`${title} is told of, and has no label`);
    }
    if (text.includes("Story “") || /undefined|NaN|null|[{}]|not a number/.test(text)) found.push(text);
    return found.map((complaint) => `${id}, stop ${explorer.state.stop + 1}: ${complaint}`);
}"""


@pytest.fixture(scope="session")
def told_pages(tmp_path_factory):
    """By name: a page and its trace."""
    pages = {name: (tmp_path_factory.mktemp(name) / "page.html", explained(name)) for name in MODELS}
    for path, explanation in pages.values():
        explanation.to_html(path)
    return pages


def explained(name):
    words = WordTokenizer.train([" ".join([*"abcdefgh", *map(str, range(188))])])
    return live_explanation(tiny_model(**MODELS[name]), "a b c d", "f g a", words=words if "many" in name else WORDS)


@pytest.fixture
def live(told_pages, open_page):
    return open_page(told_pages["pre"][0], reduced_motion=True)


def caption(page):
    return page.inner_text(".story-text")


def press(page, button):
    page.click(f"[data-key='story:{button}']")


def placeholders(page):
    """The numbers of the caption: [[placeholder, value]…]."""
    read = "all => all.map(({dataset: {placeholder, value}}) => [placeholder, Number(value)])"
    return page.eval_on_selector_all(".story-text .told", read)


def assert_numbers_of_the_engine(page, trace):
    """The entries of the attention that the caption writes out; how many there are."""
    subject, place, changed = page.evaluate("[told.subject, told.place, isChanged(currentView())]")
    if changed or place != subject["place"]:
        return 0
    engine = matrices(trace[place].head(0, subject["head"]))
    engine["D"] = (engine["A"] * engine["dA"]).sum(axis=1, keepdims=True)
    entries = [(found.groups(), value) for inner, value in placeholders(page) if (found := ENTRY.fullmatch(inner))]
    for (symbol, *index), value in entries:
        row, column = (subject.get(word, 0) for word in index)
        assert value == pytest.approx(engine[symbol.replace("dSm", "dS")][row, column], rel=1e-9, abs=1e-15), symbol
    return len(entries)


@pytest.mark.parametrize(("name", "width", "height"), [
    ("pre", 1440, 900), ("many tokens", 1280, 720), ("post", 1024, 768), ("pre", 390, 844),
    pytest.param("pre", 360, 740, marks=pytest.mark.slow)])
def test_every_stop_points_at_what_is_seen_and_has_the_engines_numbers(told_pages, open_page, name, width, height):
    path, explanation = told_pages[name]
    page = measured(open_page(path, width=width, height=height, reduced_motion=True))
    stories = page.evaluate("tellableStories().map(({id, stops}) => [id, stops.length])")
    assert [story for story, _ in stories] == ["gradient", "softmax", "scale"]
    complaints, checked = [], 0
    for story, stops in stories:
        page.evaluate("(story) => enterStop(story, 0)", story)
        for stop in range(stops):
            if stop > 0:
                press(page, "forward")
            page.wait_for_timeout(60)  # a frame or two, until what is drawn has its size
            assert state(page, "story", "stop") == [story, stop]
            complaints += page.evaluate(COMPLAINTS)
            checked += assert_numbers_of_the_engine(page, explanation.trace)
        assert page.is_disabled("[data-key='story:forward']")
    assert complaints == []
    assert checked > 8


def test_buttons_and_keys_lead_on_and_back_and_out_of_the_story(live):
    first = caption(live)
    press(live, "forward")
    second = caption(live)
    live.keyboard.press("ArrowRight")  # the focus is in the bar
    assert state(live, "stop") == 2
    live.keyboard.press("ArrowLeft")
    assert caption(live) == second
    press(live, "back")
    assert caption(live) == first
    press(live, "forward")
    live.keyboard.press("Escape")
    live.reload()
    assert state(live, "story") is None  # it is not opened again
    assert live.locator(".story-frame").count() == 0
    press(live, "open")
    live.select_option("[data-key='story:choice']", "scale")
    assert state(live, "story", "stop") == ["scale", 0]


def test_the_address_comes_back_to_the_stop_and_to_where_the_reader_went(live):
    live.evaluate("enterStop('softmax', 5)")
    for change in ("", "setState({symbol: 'dQ'})"):
        live.evaluate(change)
        expected = caption(live), live.evaluate("explorer.state")
        live.reload()
        assert (caption(live), live.evaluate("explorer.state")) == expected
    live.evaluate("location.hash = 'story=softmax&stop=3'")  # as a teacher would write it
    live.wait_for_function("told.stop === 3")
    assert state(live, "symbol", "broken") == ["dS", None]
    live.evaluate("location.hash = 'story=softmax&stop=99'")
    live.wait_for_function("explorer.state.story === null")


def test_a_step_is_taken_told_and_taken_back(live):
    before = live.evaluate("session.run().loss")
    live.evaluate("enterStop('gradient', storyOf('gradient').stops.length - 1)")
    told = dict(placeholders(live))
    assert told["before loss"] == before
    assert told["loss"] == live.evaluate("session.run().loss") < before
    press(live, "step")
    assert dict(placeholders(live))["loss"] < told["loss"]
    assert live.evaluate("document.activeElement.dataset.key") == "story:step"  # it can be pressed again
    press(live, "undo")
    assert live.evaluate("session.version") == 0
    live.evaluate("stepping.rule = 'adam'")
    press(live, "step")
    done = live.evaluate("session.history.at(-1).step")
    assert live.evaluate("[stepping.rule, stepping.rates[stepping.rule]]") == [done["rule"], done["rate"]]
    press(live, "back")
    assert live.evaluate("[session.version, session.run().loss]") == [0, before]


def test_of_a_target_that_the_model_agrees_with_it_proposes_another(live):
    live.evaluate("setState({target: null})")
    assert not live.evaluate("wouldWriteAnother(told.subject.row)")
    own = live.evaluate("session.items[0].target").split()
    press(live, "ask")
    assert live.evaluate("wouldWriteAnother(told.subject.row)")
    asked = live.evaluate("session.items[0].target").split()
    assert sum(a != b for a, b in zip(asked, own, strict=True)) == 1
    assert state(live, "story", "stop") == ["gradient", 0]
    live.evaluate("() => { for (let n = 0; n < 30; n++) session.step({rule: 'adam', rate: 0.01}); setState({}); }")
    assert not live.evaluate("wouldWriteAnother(told.subject.row)")  # it has learnt the token
    assert live.locator("#story [data-key='story:ask']").count() == 1


def test_a_teachers_story_is_told_first(tmp_path, open_page):
    path = tmp_path / "mine.json"
    stops = [{"text": "Here {dA[row, key]} is.", "point": ["grid:dA"],
              "state": {"place": "attention", "symbol": "dA", "cell": ["row", "key"]}},
             {"text": "There is no {dQQ[row, key]}."}, {"text": "{dZ[row, 99]}", "state": {"place": "output"}},
             {"text": "No such layer.", "state": {"place": "decoder.layers.7.feed_forward", "symbol": "F"}},
             {"text": "No such tensor.", "state": {"place": "output", "symbol": "Q", "cell": ["row", "largest"]}}]
    story = {"id": "mine", "title": "<b>Mine", "about": "wrong token", "stops": stops}
    path.write_text(json.dumps(story))
    explained("pre").to_html(tmp_path / "page.html", stories=[path])
    page = open_page(tmp_path / "page.html", reduced_motion=True)
    assert state(page, "story", "stop", "symbol") == ["mine", 0, "dA"]
    assert measured(page).evaluate(COMPLAINTS) == []
    press(page, "forward")
    assert caption(page).startswith("Story “mine”, stop 2, text: there is no tensor dQQ at ")
    for said in ("stop 3, text: dZ", "stop 4, state, place: ", "stop 5, state, symbol: "):
        press(page, "forward")
        assert caption(page).startswith(f"Story “mine”, {said}")
