"""Taking steps on a live page: the weights move by the page's gradient, everything follows, and there is a way back."""

import numpy as np
import pytest

from tests.explorer.panels import each, live_explanation
from tests.transformer.tiny import tiny_model

RATE = 0.05
LOSSES = "session.history.map(({loss}) => loss)"
# The losses of steps that nothing else takes part in.
ALONE = """([rule, rate, count, broken]) => {
    const alone = new Session(explorer.page.model);
    for (let n = 0; n < count; n++) alone.step({rule, rate}, {broken});
    return alone.history.map(({loss}) => loss);
}"""


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("steps") / "page.html"
    live_explanation(tiny_model()).to_html(path)
    return path


@pytest.fixture
def page(path, share_page):
    """The page without motion, with the trained weights, no story, and a rate at which the loss falls."""
    page = share_page(path, reduced_motion=True)
    page.evaluate("""(rate) => {
        Object.assign(stepping, {rule: "sgd", rates: {sgd: rate, adam: rate}, report: null, turn: null, right: null});
        session.reset();
        explorer.setState({...explorer.state, ...openingTexts(0), story: null, panel: "steps", broken: null});
    }""", RATE)
    return page


def press(page, name, prefix="step"):
    """A button, and what comes of it."""
    page.click(f"[data-key='{prefix}:{name}']", force=True)  # those that do nothing are marked as disabled
    page.locator("[data-key='step:twenty']", has_text="Twenty").wait_for()


def said(page):
    return page.inner_text(".step-said")


def curve(page, figure, kind):
    """The heights of a curve's points, from the bottom."""
    points = page.get_attribute(f"#panel [data-curve={figure}] .curve-line.{kind}", "points")
    return -np.array([float(point.split(",")[1]) for point in points.split()])


@pytest.mark.parametrize(("prefix", "rule"), [("step", "sgd"), ("steps", "adam")])
def test_a_step_moves_the_model_and_nothing_else(page, prefix, rule):
    page.evaluate("(rule) => { stepping.rule = rule; explorer.setState({row: 1}); }", rule)
    before = page.evaluate("[location.hash, JSON.stringify(explorer.state)]")
    press(page, "once", prefix)
    expected = page.evaluate(ALONE, [rule, RATE, 1, None])
    assert page.evaluate(LOSSES) == expected
    assert expected[1] < expected[0]
    assert page.evaluate("currentView().run.loss") == expected[1]
    assert page.inner_text("#loss .loss-number") == page.evaluate("(loss) => formatNumber(loss, 4)", expected[1])
    assert page.evaluate("[location.hash, JSON.stringify(explorer.state)]") == before


def test_there_is_a_way_back(page):
    trained = page.evaluate("currentView().run.loss")
    for _ in range(2):
        press(page, "once")
    [_, once, _] = page.evaluate(LOSSES)
    press(page, "undo")
    assert page.evaluate("currentView().run.loss") == once
    press(page, "reset")
    assert page.evaluate("[currentView().run.loss, session.version]") == [trained, 0]
    assert page.evaluate("session.parameters === session.first")
    press(page, "undo")  # there is nothing to undo
    assert page.evaluate("currentView().run.loss") == trained


def test_the_gradient_s_promise_is_minus_eta_times_its_square(page):
    squares = page.evaluate("""[...currentRun().parameterGradients.values()]
        .reduce((sum, {data}) => sum + data.reduce((part, g) => part + g * g, 0), 0)""")
    press(page, "once")
    assert page.evaluate("stepping.report.promised") == pytest.approx(-RATE * squares, rel=1e-9)


def test_twenty_steps_make_a_curve(page):
    press(page, "twenty")
    losses = page.evaluate(LOSSES)
    assert losses == page.evaluate(ALONE, ["sgd", RATE, 20, None])
    heights = curve(page, "loss", "now")
    share = (heights - heights.min()) / np.ptp(heights)
    np.testing.assert_allclose(share, (losses - np.min(losses)) / np.ptp(losses), atol=1e-9)
    row, asked = page.evaluate("(() => { const {row, asked} = choiceOf(currentView()); return [row, asked]; })()")
    probabilities = page.evaluate("([row, id]) => session.history.map(({P}) => P[0].at(row, id))", [row, asked])
    heights = curve(page, "choice", "now")
    np.testing.assert_allclose((heights - heights[0]) / np.ptp(heights),
                               (probabilities - np.float64(probabilities[0])) / np.ptp(probabilities), atol=1e-9)


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


def test_then_and_now(page):
    """Bars of the probabilities and of an attention's row, with marks where they were in the trained model."""
    page.evaluate("explorer.setState({place: 'decoder.layers.0.cross_attention', head: 1, row: 2, panel: 'steps'})")
    first = page.evaluate("[...currentView().result.heads[1].A.row(2)]")
    press(page, "twenty")
    now = page.evaluate("[...currentView().result.heads[1].A.row(2)]")
    assert each(page, "[data-bars='step-A'] td", "Number(one.dataset.value)") == now
    assert now != first
    assert page.evaluate("[...trainedRun().places.get('decoder.layers.0.cross_attention').heads[1].A.row(2)]") == first


@pytest.mark.parametrize("broken", ["batch", "rowsum", "transpose", "mask"])
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


def test_the_right_slope_of_a_wrong_step(page):
    """What the right gradient says of the movement that a wrong one made."""
    page.evaluate("explorer.setState({broken: 'rowsum'})")
    press(page, "once")
    expected = page.evaluate("""(rate) => {
        const s = new Session(explorer.page.model);
        const gradients = (broken) => s.run({options: {...optionsOf(state), broken}}).parameterGradients;
        const [right, wrong] = [null, "rowsum"].map(gradients);
        const inner = (name, {data}) => data.reduce((sum, g, n) => sum + g * wrong.get(name).data[n], 0);
        return -rate * [...right].reduce((sum, [name, matrix]) => sum + inner(name, matrix), 0);
    }""", RATE)
    assert page.evaluate("stepping.report.slope") == pytest.approx(expected, rel=1e-9)


def test_how_far_the_wrong_gradient_is_from_the_right_one(page):
    page.evaluate("explorer.setState({broken: 'rowsum'})")
    flat = "[...gradients].flatMap(([, {data}]) => [...data])"
    gradients = f"""(broken) => {{
        const gradients = session.run({{options: {{...optionsOf(state), broken}}}}).parameterGradients;
        return {flat};
    }}"""
    wrong, right = (np.array(page.evaluate(gradients, broken)) for broken in ("rowsum", None))
    press(page, "once")
    beside = page.evaluate("stepping.report.beside")
    lengths = np.linalg.norm(wrong), np.linalg.norm(right)
    assert beside["ratio"] == pytest.approx(lengths[0] / lengths[1], rel=1e-9)
    assert np.cos(np.radians(beside["angle"])) == pytest.approx(wrong @ right / np.prod(lengths), rel=1e-9)


def test_with_what_the_right_steps_began(page):
    """They begin where the curve does, which other texts begin anew."""
    page.evaluate("explorer.setState({broken: 'rowsum'})")
    press(page, "once")
    press(page, "once")
    assert page.evaluate("stepping.report.fromTrained")
    page.evaluate("explorer.setState({target: 'b'})")
    press(page, "once")
    assert not page.evaluate("stepping.report.fromTrained")


@pytest.mark.parametrize("change", ["explorer.setState({target: 'b'})", "session.undo(); explorer.setState({})"])
@pytest.mark.parametrize("last", ["once", "reset"])
def test_what_was_said_is_of_these_texts_and_weights(page, last, change):
    press(page, "once")
    press(page, "once")
    if last == "reset":
        press(page, "reset")
        change = change.replace("session.undo()", "session.step({rule: 'sgd', rate: 1})")
    assert said(page) != ""
    page.evaluate(f"() => {{ {change}; }}")
    assert said(page) == ""


def test_while_steps_are_taken_nothing_is_said_of_those_before(page):
    press(page, "once")
    before = said(page)
    during = page.evaluate("""async () => {
        const steps = takeSteps(20);
        const text = document.querySelector(".step-said").innerText;
        stopSteps();
        await steps;
        return text;
    }""")
    assert before not in during


def test_too_large_a_rate(page):
    page.evaluate("stepping.rates.sgd = 100")
    press(page, "once")
    before, after = page.evaluate(LOSSES)
    assert after > before
    assert "too far" in said(page)


def test_a_step_to_no_number_is_taken_back(page):
    page.evaluate("stepping.rates.sgd = 1e300")
    press(page, "twenty")
    assert page.evaluate("currentView().run.loss === session.run({options: optionsOf(state)}).loss")
    assert np.isfinite(page.evaluate("currentView().run.loss"))
    assert "taken back" in said(page)
    page.evaluate("stepping.rates.sgd = 0.01")
    press(page, "once")
    assert "taken back" not in said(page)


def test_other_texts_begin_another_curve(page):
    press(page, "twenty")
    page.evaluate("explorer.setState({target: 'b'})")
    assert len(curve(page, "loss", "now")) == 1
    press(page, "once")
    assert len(page.evaluate(LOSSES)) == 2


def test_what_other_weights_wrote_is_written_anew(page):
    page.evaluate("explorer.setState({target: null})")
    trained = page.input_value("#text-target")
    page.evaluate("explorer.setState({target: openingTexts(0).target})")
    assert trained != page.input_value("#text-target")
    for _ in range(40):
        press(page, "once")
    page.click("#write")
    stepped = page.input_value("#text-target")
    assert stepped != trained
    press(page, "reset")
    page.click("#write")
    assert page.input_value("#text-target") == trained
    assert page.is_disabled("#write")
    page.evaluate("session.step({rule: 'sgd', rate: 1e-9}), explorer.setState({})")
    page.click("#write")
    assert page.input_value("#text-target") == trained
    assert page.is_disabled("#write")  # the same text, and now of these weights


def test_the_slider_and_the_rule_are_used(page):
    page.locator("#step-rate").focus()
    rate = page.evaluate("stepping.rates.sgd")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("stepping.rates.sgd") > rate
    assert page.evaluate("document.activeElement.id") == "step-rate"
    page.locator("[name='steps-rule'][value=adam]").check(force=True)
    press(page, "once", "steps")
    assert page.evaluate("session.history.at(-1).step.rule") == "adam"


def test_steps_need_a_live_model(explorer_page, open_page):
    page = open_page(explorer_page)
    assert not page.is_visible("#steps")
    assert page.evaluate("panelsOf(currentView()).every(({id}) => id !== 'steps')")


@pytest.mark.parametrize("width", [1440, 1024, 390])
def test_nothing_is_wider_than_the_screen(path, open_page, width):
    page = open_page(path, width=width, height=844, reduced_motion=True)
    page.evaluate("explorer.setState({panel: 'steps', broken: 'rowsum'})")
    press(page, "twenty")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
