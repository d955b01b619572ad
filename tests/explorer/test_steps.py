"""Taking steps on a live page: the weights move by the page's gradient, everything follows, and there is a way back."""

import numpy as np
import pytest

RATE = 0.01
LOSSES = "session.history.map(({loss}) => loss)"
# The losses of steps that nothing else takes part in.
ALONE = """([rule, rate, count, broken]) => {
    const alone = new Session(explorer.page.model);
    for (let n = 0; n < count; n++) alone.step({rule, rate}, {broken});
    return alone.history.map(({loss}) => loss);
}"""


@pytest.fixture
def page(live_page, share_page):
    """The page without motion, with the trained weights, no story, and a rate at which the loss falls."""
    page = share_page(live_page, reduced_motion=True)
    page.evaluate("""(rate) => {
        Object.assign(stepping, {rule: "sgd", rates: {sgd: rate, adam: rate}, report: null, turn: null, right: null});
        session.reset();
        explorer.setState({...explorer.state, ...openingTexts(0), story: null, panel: "steps", broken: null});
    }""", RATE)
    return page


def press(page, name):
    """A button, and what comes of it."""
    page.click(f"[data-key='steps:{name}']", force=True)  # those that do nothing are marked as disabled
    page.locator("[data-key='steps:twenty']", has_text="Twenty").wait_for()


def curve(page, figure, kind):
    """The heights of a curve's points, from the bottom."""
    points = page.get_attribute(f"#panel [data-curve={figure}] .curve-line.{kind}", "points")
    return -np.array([float(point.split(",")[1]) for point in points.split()])


@pytest.mark.parametrize("rule", ["sgd", "adam"])
def test_steps_move_the_model_and_nothing_else_and_there_is_a_way_back(page, rule):
    page.evaluate("(rule) => { stepping.rule = rule; explorer.setState({row: 1}); }", rule)
    before = page.evaluate("[location.hash, JSON.stringify(explorer.state)]")
    press(page, "once")
    press(page, "twenty")
    losses = page.evaluate(LOSSES)
    assert losses == page.evaluate(ALONE, [rule, RATE, 21, None])
    assert page.evaluate("currentView().run.loss") == losses[-1] < losses[0]
    assert page.inner_text("#loss .loss-number") == page.evaluate("(loss) => formatNumber(loss, 4)", losses[-1])
    assert page.evaluate("[location.hash, JSON.stringify(explorer.state)]") == before
    heights = curve(page, "loss", "now")
    share = (heights - heights.min()) / np.ptp(heights)
    np.testing.assert_allclose(share, (losses - np.min(losses)) / np.ptp(losses), atol=1e-9)
    assert len(curve(page, "choice", "now")) == 22
    press(page, "undo")
    assert page.evaluate("currentView().run.loss") == losses[-2]
    for button in ("reset", "undo"):  # after which there is nothing to undo
        press(page, button)
        assert page.evaluate("[currentView().run.loss, session.version]") == [losses[0], 0]


def test_the_gradient_s_promise_is_minus_eta_times_its_square(page):
    squares = page.evaluate("""[...currentRun().parameterGradients.values()]
        .reduce((sum, {data}) => sum + data.reduce((part, g) => part + g * g, 0), 0)""")
    press(page, "once")
    assert page.evaluate("stepping.report.promised") == pytest.approx(-RATE * squares, rel=1e-9)


@pytest.mark.parametrize("change", [
    "stopSteps()", "explorer.setState({target: 'b'})", "explorer.setState({broken: 'rowsum'})", "backToTrained()",
    "explorer.session.undo()"])
def test_steps_stop_when_anything_else_happens(page, change):
    """And leave the model where it then is."""
    version = page.evaluate(f"""async () => {{
        const steps = takeSteps(20);
        await new Promise((after) => setTimeout(after, 60));
        {change};
        const {{version}} = session;
        await steps;
        return [version, session.version, isStepping()];
    }}""")
    assert version == [version[0], version[0], False]
    assert page.evaluate("session.past.length") < 20


@pytest.mark.parametrize("broken", ["rowsum", "mask"])
def test_with_a_mistake_the_right_gradient_goes_along(page, broken):
    page.evaluate("(broken) => explorer.setState({broken})", broken)
    press(page, "once")
    press(page, "twenty")
    wrong, right = (page.evaluate(ALONE, ["sgd", RATE, 21, mistake]) for mistake in (broken, None))
    assert page.evaluate(LOSSES) == wrong
    assert page.evaluate("historyBeside().map(({loss}) => loss)") == right
    assert wrong[1] != right[1]
    assert len(curve(page, "loss", "wrong")) == len(curve(page, "loss", "right")) == 22
    press(page, "undo")
    assert page.evaluate("historyBeside().map(({loss}) => loss)") == right[:-1]
    page.evaluate("explorer.setState({target: 'b'})")
    assert page.evaluate("historyBeside()") is None


def test_a_step_to_no_number_is_taken_back(page):
    page.evaluate("stepping.rates.sgd = 1e300")
    press(page, "twenty")
    assert page.evaluate("[session.version, stepping.report.stopped]") == [0, "no number"]
    assert "taken back" in page.inner_text(".step-said")
