"""The panels Softmax and Checks: their numbers are the engine's, what is wrong is said to be; and all panels fit."""

import re
from collections import Counter
from importlib.resources import files

import numpy as np
import pytest

from tests.explorer.panels import (
    CAUSAL,
    CROSS,
    SELF,
    assert_equal,
    bars,
    cells,
    each,
    holds,
    measure,
    numbers,
    show,
)
from transformer.explore.page import SCRIPTS

# ------------------------------------------------------------------ softmax


@pytest.mark.parametrize("attention", [SELF, CAUSAL, CROSS])
def test_the_softmax_panel_shows_the_engines_row(opened, made, attention):
    step = made["pre"].trace[attention]
    for item, head, row in ((0, 0, 2), (1, 0, 1), (1, 1, 3)):
        engine = step.head(item, head)
        a, dA, dS = engine.values["A"][row], engine.gradients["A"][row], engine.gradients["S"][row]
        show(opened, panel="softmax", place=attention, item=item, head=head, row=row)
        assert_equal(bars(opened, "A"), a)
        assert_equal(bars(opened, "dA"), dA)
        assert_equal(bars(opened, "dS"), dS)
        assert_equal(numbers(opened, "[data-fact=D] .exact"), [a @ dA])
        [total] = numbers(opened, "[data-fact=sum] .exact")
        assert abs(total) < 1e-15
        assert holds(opened, "sum") == "true"


def test_the_jacobian_gives_the_same(opened, made):
    engine = made["pre"].trace["decoder.layers.0.cross_attention"].head(0, 1)
    a, dA, dS = engine.values["A"][2], engine.gradients["A"][2], engine.gradients["S"][2]
    show(opened, panel="softmax", place=CROSS, item=0, head=1, row=2)
    assert opened.locator("#panel [data-part]").count() == 0
    opened.focus("[data-key='softmax:jacobian']")
    opened.keyboard.press("Space")
    assert opened.evaluate("document.activeElement.dataset.key") == "softmax:jacobian"
    assert_equal(cells(opened, "[data-part^='J =']", (5, 5)), np.diag(a) - np.outer(a, a))
    assert_equal(cells(opened, "[data-part='dA']", (5,)), dA)
    assert_equal(cells(opened, "[data-part='J · dA']", (5,)), dS)
    assert_equal(cells(opened, "[data-part='dS']", (5,)), dS)
    assert holds(opened, "jacobian") == "true"
    assert numbers(opened, "[data-fact=jacobian] .exact") < 1e-15
    show(opened, broken="rowsum")
    assert holds(opened, "jacobian") == "false"
    assert holds(opened, "sum") == "false"
    assert_equal(numbers(opened, "[data-fact=jacobian] .exact"), [abs(a * (a @ dA)).max()])


# ------------------------------------------------------------------ checks


@pytest.mark.parametrize("attention", [SELF, CAUSAL, CROSS])
def test_the_checks_are_the_engines(opened, made, attention):
    show(opened, panel="checks", place=attention)
    measure(opened)
    measured = made["pre"].checks[attention]
    assert len(measured) > 15
    for symbol, found in measured.items():
        errors = numbers(opened, f"tr[data-symbol='d{symbol}'] [data-engine]")
        assert errors.tolist() == [check.error for check in found]
    assert len(numbers(opened, "[data-here=error]")) > 20
    assert numbers(opened, "[data-here=error]").max() < 1e-5
    slopes, gradients = (numbers(opened, f"[data-here={name}]") for name in ("numeric", "analytic"))
    np.testing.assert_allclose(slopes, gradients, rtol=1e-5, atol=1e-9)
    assert holds(opened, "checks") == "true"
    assert opened.get_attribute("[data-fact=checks]", "data-wrong") == ""
    identities = each(opened, "[data-identity]", "one.dataset.holds")
    assert len(identities) >= 3
    assert set(identities) == {"true"}


def test_what_is_broken_is_red_and_named(opened):
    show(opened, panel="checks", place=CROSS, broken="rowsum")
    measure(opened)
    assert holds(opened, "checks") == "false"
    named = opened.get_attribute("[data-fact=checks]", "data-wrong").split()
    assert set(named) == {"dS", "dR", "dQ", "dK", "dWQ", "dbQ", "dWK", "dXq", "dXk", "dX", "dbK", "dM"}
    assert each(opened, ".checks tr.wrong", "one.dataset.symbol") == named
    assert "the backward is broken" in opened.inner_text("#panel .note")
    show(opened, broken=None)
    measure(opened)
    assert opened.get_attribute("[data-fact=checks]", "data-wrong") == ""
    assert opened.locator("#panel .checks tr.wrong").count() == 0


# ------------------------------------------------------------------ all panels


def test_a_check_that_is_no_number_is_not_taken_for_right(open_page, made, tmp_path):
    """JSON has null for it, which arithmetic takes for 0."""
    broken = tmp_path / "nan.html"
    html = made["pre"].path.read_text(encoding="utf-8")
    broken.write_text(re.sub(r'"error":[^,}]+', '"error":null', html), encoding="utf-8")
    page = open_page(broken)
    assert page.inner_text(".verdict").endswith("largest error not a number")
    assert page.locator(".verdict.good").count() == 0


def test_no_two_scripts_define_one_name():
    """They share one scope, where a second function of a name would quietly take the place of the first."""
    defined = Counter()
    for script in SCRIPTS:
        text = (files("transformer.explore") / "page" / f"{script}.js").read_text(encoding="utf-8")
        lines = [line for line in text.splitlines() if line.startswith(("function ", "const ", "let ", "class "))]
        defined.update(line.split()[1].split("(")[0] for line in lines)
    assert len(defined) > 100
    assert [name for name, times in defined.items() if times > 1] == []
