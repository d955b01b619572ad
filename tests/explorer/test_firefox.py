"""The page in Firefox: the same numbers, nothing in the console, no request. The other tests drive Chromium."""

from contextlib import ExitStack

import numpy as np
import pytest

from minigrad import optim

from tests.explorer.browser import NOT_RUN, NoBrowserError
from tests.explorer.firefox import REMEDY, launch_firefox
from tests.transformer.tiny import tiny_model
from transformer.data import WordTokenizer
from transformer.explore.translation import explain
from transformer.translator import Translator

WORDS = WordTokenizer.train(["a b c d e f g"])  # the eleven tokens of `tiny_model`
CROSS = "decoder.layers.0.cross_attention"
IN_REST = "!isStepping()"


@pytest.fixture(scope="module")
def firefox():
    with ExitStack() as stack:
        try:
            opened = stack.enter_context(launch_firefox())
        except NoBrowserError as error:
            pytest.skip(f"{NOT_RUN}: {error}; {REMEDY}")
        yield opened


@pytest.fixture
def open_page(firefox):
    """``open_page(path)`` opens a page; the test fails when it logs an error, breaks its policy or makes a request."""
    pages = []

    def open_it(path, **options):
        pages.append(firefox.open(path, **options))
        return pages[-1]

    yield open_it
    assert [problem for page in pages for problem in page.close()] == []


@pytest.fixture(scope="module")
def explanation():
    return explain(Translator(tiny_model(), WORDS, WORDS), "a b c", "d e")


@pytest.fixture(scope="module")
def path(explanation, tmp_path_factory):
    path = tmp_path_factory.mktemp("firefox") / "page.html"
    explanation.to_html(path)
    return path


@pytest.fixture
def page(path, open_page):
    page = open_page(path)
    page.evaluate("(leaveStory(), null)")
    return page


def trained(explanation):
    """The model of the page, and a function of its loss."""
    live = explanation.live
    return live.model, lambda: live.model.loss(*(live.json["ids"][side] for side in ("source", "target")))


def assert_parameters(page, expression, expected):
    """Each, to 1e-9 of its largest entry; the gradient of a bias of the keys is 0 but for rounding."""
    found = page.evaluate(f"Object.fromEntries(Array.from({expression}, ([name, w]) => [name, w.toNested()]))")
    assert found.keys() == expected.keys()
    for name, matrix in expected.items():
        matrix = np.atleast_2d(matrix)
        np.testing.assert_allclose(found[name], matrix, rtol=0, atol=1e-9 * abs(matrix).max(initial=1e-6), err_msg=name)


@pytest.mark.parametrize(("body", "problem"), [
    ("<script>console.error('ouch')</script>", "ouch"),
    ("<script>throw new Error('ouch')</script>", "ouch"),
    ("<img src='http://example.invalid/picture.png'>", "a request for"),
    ("<meta http-equiv='Content-Security-Policy' content=\"img-src 'none'\"><img src='http://example.invalid/a.png'>",
     "img-src forbids"),
])
def test_a_page_that_does_what_it_should_not(firefox, tmp_path, body, problem):
    """Is noticed; else the other tests of this file would show nothing."""
    path = tmp_path / "page.html"
    path.write_text(f"<!doctype html><meta charset=utf-8>{body}")
    assert problem in " ".join(firefox.open(path).close())


def test_the_numbers_are_the_engine_s(page, explanation):
    """The loss, and the gradient of every parameter."""
    model, loss_of = trained(explanation)
    model.zero_grad()
    loss = loss_of()
    loss.backward()
    assert page.evaluate("currentView().run.loss") == pytest.approx(loss.item(), rel=1e-9)
    gradients = {name: parameter.grad.numpy() for name, parameter in model.named_parameters()}
    model.zero_grad()
    assert_parameters(page, "currentView().run.parameterGradients", gradients)


@pytest.mark.slow
def test_every_place_is_entered(page):
    """And in it every step, and every panel."""
    steps = page.evaluate("""page.places.flatMap(({path}) => {
        setState({place: path});
        const view = currentView(), symbols = [...forwardSymbols(view), ...gradientSymbols(view)];
        for (const symbol of symbols) setState({symbol});
        for (const {id} of panelsOf(view)) setState({panel: id});
        return symbols;
    })""")
    assert len(steps) > 100


@pytest.mark.slow
def test_every_story_is_told(page):
    for story in page.evaluate("tellableStories().map(({id}) => id)"):
        page.evaluate("(enterStop(given[0], 0), null)", story)
        stops = page.evaluate("storyOf(given[0]).stops.length", story)
        for stop in range(1, stops):
            page.click(".story-forward")
            page.wait_for(f"explorer.state.stop === {stop}")
            assert page.evaluate("document.querySelector('.story-text').textContent.length > 20")


def test_a_text_is_typed(page, explanation):
    page.evaluate("(document.getElementById('text-target').select(), document.getElementById('text-target').focus())")
    page.press(*"g f", "Enter")
    page.wait_for("explorer.state.target === 'g f'")
    expected = explain(Translator(explanation.live.model, WORDS, WORDS), "a b c", "g f")
    assert page.evaluate("currentView().run.loss") == pytest.approx(expected.loss, rel=1e-9)


def test_steps_are_taken(page, explanation):
    """From the button, with motion; the weights are where the engine's steps lead."""
    page.click("[data-key='step:twenty']")
    page.wait_for(f"session.history.length > 1 && {IN_REST}")
    assert page.evaluate("session.history.length") == 21
    rate = page.evaluate("stepping.rates.sgd")
    model, loss_of = trained(explanation)
    first = {name: value.numpy().copy() for name, value in model.state_dict().items()}
    descent = optim.SGD(model.parameters(), lr=rate)
    for _ in range(20):
        descent.zero_grad()
        loss_of().backward()
        descent.step()
    assert_parameters(page, "session.parameters", {name: one.numpy() for name, one in model.named_parameters()})
    model.load_state_dict(first)
    model.zero_grad()
    page.click("[data-key='step:reset']")
    page.wait_for("session.version === 0")


def test_the_keyboard_walks(page):
    page.evaluate("setState({place: given[0], symbol: 'dS'})", CROSS)
    page.evaluate("document.querySelector('.tile[aria-current]').focus()")
    first = page.evaluate("explorer.state.symbol")
    page.press("ArrowLeft")
    page.wait_for(f"explorer.state.symbol !== '{first}'")
    assert page.evaluate("document.activeElement.matches('.tile[aria-current]')")
    page.press("Escape")  # one level out, to the map
    assert page.evaluate("document.activeElement.dataset.place") == CROSS
    page.press("ArrowRight", "Enter")
    assert page.evaluate("page.places[explorer.state.place].path") != CROSS


def test_a_page_without_a_live_model(explorer_page, open_page):
    page = open_page(explorer_page)
    assert page.evaluate("""page.places.every((_, place) => {
        setState({place});
        const view = currentView();
        for (const symbol of [...forwardSymbols(view), ...gradientSymbols(view)]) setState({symbol});
        for (const {id} of panelsOf(view)) setState({panel: id});
        return checks(currentResult()).every(({ok}) => ok);
    })""")


@pytest.mark.parametrize("width", [1440, 390])
def test_nothing_is_wider_than_the_screen(path, open_page, width):
    page = open_page(path, width=width, height=844)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
