"""The page as one view: it fits the window, whatever its size; it is legible, obeys the keyboard, and opens soon."""

import pytest

from tests.explorer.pages import CROSS, live_explanation, measured, show
from tests.transformer.tiny import tiny_model

PANELS = ["step", "softmax", "checks", "steps", "heads", "flow", "program"]
SIZES = [(1440, 900), (1280, 720), (1024, 768), (390, 844), (360, 740)]


# What is wrong with the frame after each change: at every place and of every view.
EVERYWHERE = """() => {
  const found = [];
  const look = (change) => {
    explorer.setState(change);
    for (const fault of frameFaults()) found.push(`${JSON.stringify(change)}: ${fault}`);
  };
  for (const {path} of page.places) look({place: path, story: null, panel: "step"});
  for (const {id} of PANELS) look({place: "decoder.layers.0.cross_attention", panel: id});
  const symbols = [...forwardSymbols(currentView()), ...gradientSymbols(currentView())];
  for (const symbol of symbols) look({symbol, panel: "step"});
  return found;
}"""


@pytest.mark.parametrize(("width", "height"), SIZES)
@pytest.mark.parametrize("text", ["usual", pytest.param("large", marks=pytest.mark.slow)])
def test_nothing_hangs_out_of_the_window_and_the_window_does_not_scroll(made, share_page, width, height, text):
    page = measured(share_page(made.path, width=width, height=height, reduced_motion=True))
    page.evaluate("(text) => { explorer.setState({text}); drawMap(); }", text)
    assert page.evaluate(EVERYWHERE) == []
    least = 240 if text == "usual" or width < 900 else 150
    assert page.evaluate("document.getElementById('stage').offsetHeight") >= least
    page.evaluate("() => { explorer.setState({text: 'usual'}); drawMap(); }")


def test_on_a_phone_the_views_and_the_caption_fold_away(made, share_page):
    page = share_page(made.path, width=390, height=844, reduced_motion=True)
    page.evaluate("enterStop('gradient', 0)")
    heights = "['stage', 'panel'].map((id) => document.getElementById(id).offsetHeight)"
    stage, panel = page.evaluate(heights)
    page.click("#fold summary")
    assert page.evaluate(heights)[0] > stage + panel > stage
    assert page.is_hidden(".story-text")
    assert page.is_visible("[data-key='story:forward']")
    page.click("#fold summary")
    assert page.evaluate(heights) == [stage, panel]


def test_sixty_tokens_fit_and_open_soon(open_page, tmp_path):
    path, text = tmp_path / "page.html", " ".join("abcdefg" * 9)
    live_explanation(tiny_model(max_length=70), text, text).to_html(path)
    page = measured(open_page(path, reduced_motion=True))
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})  # what else runs on the machine does not count
    page.reload()
    metrics = {metric["name"]: metric["value"] for metric in session.send("Performance.getMetrics")["metrics"]}
    assert 0 < metrics["TaskDuration"] < 1.5  # seconds
    assert page.evaluate("document.querySelectorAll('*').length") < 5000
    assert measured(page).evaluate(EVERYWHERE) == []


@pytest.mark.parametrize("dark", [False, True])
def test_every_text_is_legible(made, share_page, dark):
    page = measured(share_page(made.path, dark=dark, reduced_motion=True))
    assert (page.evaluate("luminance(coloursOf(document.body)[0])") < 0.05) == dark
    for panel in PANELS:
        for changes in ({"broken": None, "symbol": "dV"}, {"broken": "rowsum", "symbol": "dS"}):
            show(page, panel=panel, place=CROSS, item=1, cell={"row": 1, "col": 1}, story="gradient", stop=5, **changes)
            assert page.evaluate("illegible(4.5, 14)") == [], panel


def test_what_takes_the_focus_has_a_name_and_is_reached_by_tab(opened):
    page = measured(opened)
    for panel in PANELS:
        show(page, place=CROSS, panel=panel, symbol="dV", cell={"row": 1, "col": 1})
        nodes = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")["nodes"]
        focusable = [node for node in nodes if not node["ignored"] and any(
            known["name"] == "focusable" and known["value"]["value"] for known in node.get("properties", []))]
        assert len(focusable) > 15
        nameless = {node["role"]["value"] for node in focusable if not node.get("name", {}).get("value", "").strip()}
        assert nameless <= {"RootWebArea", "generic"}
        page.evaluate("() => { window.visited = new Set(); document.activeElement.blur(); }")
        for _ in range(page.evaluate("tabStops().length") + 2):
            page.keyboard.press("Tab")
            page.evaluate("visited.add(document.activeElement)")
        assert page.evaluate("tabStops().filter((element) => !visited.has(element)).map(pathOf)") == []


def test_nothing_moves_for_who_wants_no_motion(opened):
    opened.evaluate("chooseCell({symbol: 'dV', cell: {row: 1, col: 2}})")
    show(opened, place="output")
    assert opened.evaluate("document.getAnimations().length") == 0
