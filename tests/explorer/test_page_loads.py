"""The page as a whole: it opens from disk alone and fast, fits a telephone, is legible, and obeys the keyboard."""

import itertools
from pathlib import Path

import pytest

import minigrad

from tests.explorer.panels import CAUSAL, CROSS, SELF
from transformer import Transformer, TransformerConfig
from transformer.data import WordTokenizer
from transformer.explore.translation import explain
from transformer.training.recipes import RECIPES, options_of
from transformer.translator import Translator

MEASURES = Path(__file__).with_name("measures.js")
DEMO = RECIPES["dates"]  # what make demo trains


def page_of(path, length):
    """Write the page of a model of the demo's configuration, for a source and a target of so many tokens, unchecked."""
    with minigrad.random.fork(3):
        model = Transformer(getattr(TransformerConfig, DEMO["preset"])(120, 20, **options_of(TransformerConfig, DEMO)))
    source, target = ([f"w{n % words}" for n in range(length - 1)] for words in (116, 16))
    tokenizers = [WordTokenizer.train([" ".join(f"w{n}" for n in range(words))]) for words in (116, 16)]
    explanation = explain(Translator(model, *tokenizers), " ".join(source), " ".join(target))
    explanation.again = None
    path.write_text(explanation.page(opens="decoder.layers.0.cross_attention"), encoding="utf-8")


@pytest.fixture(scope="module")
def long_page(tmp_path_factory):
    """The page of 60 tokens."""
    path = tmp_path_factory.mktemp("long") / "page.html"
    page_of(path, 60)
    return path


@pytest.fixture
def measured(share_page):
    """Share a page that can be asked what measures.js answers."""

    def share_it(path, **options):
        page = share_page(path, **options)
        if page.evaluate("typeof everywhere") == "undefined":
            script = {"expression": MEASURES.read_text(encoding="utf-8")}  # the page's policy refuses its element
            page.context.new_cdp_session(page).send("Runtime.evaluate", script)
        return page

    return share_it


@pytest.fixture
def desktop(measured, explorer_page):
    """The page of the small model at 1280×800."""
    return measured(explorer_page)


PANELS = ["softmax", "checks", "paths", "flow", "heads", "history", "steps"]


# --- Loading -----------------------------------------------------------------------------------------------


def test_the_page_loads(open_page, explorer_page):
    page = open_page(explorer_page)
    assert page.locator("h1").inner_text() == "Backpropagation through a Transformer"
    assert page.locator("html").get_attribute("lang") == "en"
    assert page.title()
    assert page.locator(".tile").count() > 20
    assert page.evaluate("panelsOf(currentView()).map((panel) => panel.id)") == PANELS


@pytest.mark.parametrize("place", [pytest.param(SELF, marks=pytest.mark.slow), CAUSAL, CROSS])
def test_every_item_head_tile_and_view_can_be_selected_on_a_telephone(measured, explorer_page, place):
    page = measured(explorer_page, width=390)
    for item, head in itertools.product(range(2), range(2)):
        where = {"place": place, "item": item, "head": head}
        assert page.evaluate("(where) => { explorer.setState(where); return complaints({}) }", where) == []
        chosen = "({place: page.places[state.place].path, item: state.item, head: state.head})"
        assert page.evaluate(chosen) == where
    look = "(change) => [...complaints(change), ...overflowing()]"
    assert page.evaluate(f"(where) => everywhere(where, {look})", where) == []


# --- Sixty tokens ------------------------------------------------------------------------------------------


class MainThread:
    """How long the page's main thread has worked, in milliseconds of CPU time: what else runs does not count."""

    def __init__(self, page):
        self.session = page.context.new_cdp_session(page)
        self.session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def worked(self):
        metrics = self.session.send("Performance.getMetrics")["metrics"]
        return 1000 * next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration")

    def while_it(self, action, *arguments):
        before = self.worked()
        result = action(*arguments)
        return self.worked() - before, result


def test_sixty_tokens_open_soon(open_page, long_page):
    page = open_page(long_page)
    thread = MainThread(page)
    page.reload()
    assert 0 < thread.worked() < 1500  # 400 when this was written
    assert page.evaluate("document.querySelectorAll('*').length") < 5000  # large grids are images, not tables


# --- Widths and preferences --------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [390, pytest.param(1280, marks=pytest.mark.slow)])
def test_sixty_tokens_hang_out_of_no_window(measured, long_page, width):
    page = measured(long_page, width=width)
    kinds = ["X", "WQ", "Q", "A", "C", "WO", "dV", "dSm", "dWQ", "dX", "dM"]  # one of each shape and equation
    assert page.evaluate("(kinds) => everywhere({}, overflowing, false, kinds)", kinds) == []


@pytest.mark.parametrize("dark", [False, True])
def test_every_text_is_legible(measured, explorer_page, dark):
    page = measured(explorer_page, dark=dark)
    lightness = page.evaluate("luminanceOf(groundOf(document.body))")
    assert lightness < 0.05 if dark else lightness > 0.8
    assert page.evaluate("(place) => everywhere({place, item: 1}, () => poorContrast(4.5))", CROSS) == []


# --- Keyboard and screen readers ---------------------------------------------------------------------------


@pytest.mark.parametrize("panel", PANELS)
def test_what_takes_the_focus_has_a_name(desktop, panel):
    page = desktop
    page.evaluate("(panel) => explorer.setState({panel, symbol: 'dV', cell: {row: 1, col: 1}})", panel)
    nodes = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")["nodes"]
    focusable = [node for node in nodes if not node["ignored"] and any(
        known["name"] == "focusable" and known["value"]["value"] for known in node.get("properties", []))]
    assert len(focusable) > 15
    roles = {"RootWebArea", "generic"}
    nameless = [node["role"]["value"] for node in focusable
                if not node.get("name", {}).get("value", "").strip() and node["role"]["value"] not in roles]
    assert nameless == []


@pytest.mark.parametrize("panel", PANELS)
def test_the_tab_key_reaches_everything(desktop, panel):
    page = desktop
    page.evaluate("(panel) => explorer.setState({panel, symbol: 'dV', cell: {row: 1, col: 1}})", panel)
    expected = page.evaluate("tabStops().length")
    assert page.evaluate("[...document.querySelectorAll('[tabindex]')].every((element) => element.tabIndex <= 0)")
    page.evaluate("window.visited = new Set()")
    for _ in range(expected + 2):
        page.keyboard.press("Tab")
        page.evaluate("visited.add(document.activeElement)")
    assert page.evaluate("tabStops().filter((element) => !visited.has(element)).map(pathOf)") == []
