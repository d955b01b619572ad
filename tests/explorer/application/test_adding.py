"""The slider on the stage, which adds the outer product of one token at a time."""

import numpy as np
import pytest

from tests.explorer.application.driver import CROSS, choose, lit, numbers_shown, of_engine, printed_sum
from tests.transformer.tiny import SOURCE


def test_the_slider_adds_one_outer_product_at_a_time(page, engine):
    choose(page, attention=CROSS, symbol="dV", item=0, head=1)
    weights, gradient = of_engine(page, engine, "A"), of_engine(page, engine, "dO")
    slider = page.get_by_label("Add one token at a time")
    slider.focus()
    page.keyboard.press("Home")
    for count in range(len(weights) + 1):
        shown = numbers_shown(page, "dV")
        np.testing.assert_allclose(shown, weights[:count].T @ gradient[:count], rtol=0, atol=1e-12)
        if count:
            product = np.outer(weights[count - 1], gradient[count - 1])
            np.testing.assert_allclose(numbers_shown(page, "dV (added)"), product, rtol=0, atol=1e-12)
            assert {row for row, _ in lit(page, "A")} == {row for row, _ in lit(page, "dO")} == {count - 1}
        assert f"{count} of {len(weights)}" in slider.get_attribute("aria-valuetext")
        page.keyboard.press("ArrowRight")
    np.testing.assert_allclose(shown, of_engine(page, engine, "dV"), rtol=0, atol=1e-12)


def test_the_slider_goes_over_all_sentences_for_a_weight(page, engine):
    choose(page, attention=CROSS, symbol="dWK", item=1, head=0, cell={"row": 3, "col": 1})
    slider = page.get_by_label("Add one token at a time")
    assert slider.get_attribute("max") == str(SOURCE.size)
    slider.fill("5")
    name = page.evaluate("explorer.page.attentions[explorer.state.attention].name")
    head = engine[name].head(1, 0)
    partial = head.values["M"].T @ head.gradients["K"]  # its own sentence comes first: 5 tokens
    assert printed_sum(page) == pytest.approx(partial[3, 1], rel=1e-9)
    slider.fill(str(SOURCE.size))
    assert printed_sum(page) == pytest.approx(head.gradients["WK"][3, 1], rel=1e-9)
