"""What the page says of the switches ÷ √d_k and masks: in the numbers of the chosen head."""

import numpy as np
import pytest

from tests.explorer.application.driver import CROSS, SELF, choose, matrix


def said(page):
    return page.locator("#selection .switched").all_inner_texts()


def shown(page, value, digits=3):
    return page.evaluate("([value, digits]) => formatNumber(value, digits)", [float(value), digits])


def test_without_the_root_the_scores_are_larger(page):
    choose(page, attention=CROSS, head=1)
    assert said(page) == []
    width, before, weights = matrix(page, "Q").shape[1], np.linalg.norm(matrix(page, "dS")), matrix(page, "A")
    page.get_by_label("Divide the scores by the root of d_k").uncheck()
    after, sharper = np.linalg.norm(matrix(page, "dS")), matrix(page, "A")
    text, kept = said(page)
    assert f"= {shown(page, np.sqrt(width)).rstrip('0').rstrip('.')} times as large (dk = {width})" in text
    assert f"rises from {shown(page, weights.max(axis=1).mean())} to {shown(page, sharper.max(axis=1).mean())}" in text
    verb = "rises" if after > before else "falls"
    assert f"‖dS‖ {verb} from {shown(page, before)} to {shown(page, after)}." in text
    assert kept == "Still those of the unchanged model: dY, the engine’s finite differences."
    colours = page.evaluate("""["--accent", "--bad"].map((name) => {
        const probe = document.body.appendChild(make("i"));
        probe.style.color = `var(${name})`;
        const {color} = getComputedStyle(probe);
        probe.remove();
        return color;
    })""")
    border = page.evaluate("getComputedStyle(document.querySelector('.switched')).borderLeftColor")
    assert border == colours[0] != colours[1]


@pytest.mark.parametrize(("attention", "item", "hidden"), [(SELF, 0, "the future"), (CROSS, 1, "padding")])
def test_without_the_mask_its_cells_have_weight(page, attention, item, hidden):
    choose(page, attention=attention, item=item)
    forbidden, before = matrix(page, "Sm") == -np.inf, np.linalg.norm(matrix(page, "dS"))
    choose(page, masking=False)
    weights, gradient = matrix(page, "A"), matrix(page, "dS")
    text, _ = said(page)
    assert f"queries look at {hidden} too" in text
    assert f"The {forbidden.sum()} forbidden cells" in text
    percent = shown(page, 100 * weights[forbidden].sum() / len(weights))
    assert f"now hold {percent} % of all weight" in text
    assert f"has the norm {shown(page, np.linalg.norm(gradient[forbidden]))} in them" in text
    assert f"from {shown(page, before)} to {shown(page, np.linalg.norm(gradient))}." in text


def test_a_mask_that_hides_nothing_says_so(page):
    choose(page, attention=CROSS, item=0, masking=False)  # the longer sentence
    assert "nothing changes" in said(page)[0]


def test_the_two_switches_are_told_apart(page):
    choose(page, attention=SELF, scaling=False, masking=False, broken="rowsum")
    root, mask, _ = said(page)
    assert root.startswith("Without ÷")
    assert mask.startswith("Masks are off")
    right = page.evaluate("""(() => {
        const options = {scaling: false, masking: false};
        return normOf(compute(explorer.page, explorer.state.attention, 0, options).heads[0].dS);
    })()""")
    for text in (root, mask):
        assert f"to {shown(page, right)}." in text  # the mistake is not the switch's


def test_every_step_of_a_nudge_can_be_read(page):
    choose(page, attention=CROSS, symbol="dK", cell={"row": 0, "col": 0})
    steps = page.locator("select[name=epsilon] option").all_inner_texts()
    assert steps == ["0.1", "0.01", "0.001", "1·10⁻⁴", "1·10⁻⁵", "1·10⁻⁶"]
