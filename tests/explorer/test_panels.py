"""The views beside the stage: their numbers are the engine's, and what is wrong is said to be."""

import random
import re

import numpy as np
import pytest

from tests.explorer.pages import (
    CAUSAL,
    CROSS,
    SELF,
    assert_equal,
    bars,
    data_of,
    grid,
    holds,
    numbers,
    show,
    state,
)
from transformer.explore.labels import names, row_names


@pytest.mark.parametrize("attention", [CAUSAL, CROSS])
def test_the_softmax_is_the_engines_row(opened, made, attention):
    engine = made.trace[attention].head(1, 1)
    a, dA, dS = engine.values["A"][3], engine.gradients["A"][3], engine.gradients["S"][3]
    show(opened, panel="softmax", place=attention, item=1, head=1, row=3)
    for symbol, expected in (("A", a), ("dA", dA), ("dS", dS)):
        assert_equal(bars(opened, symbol), expected)
    assert_equal(numbers(opened, "[data-fact=D] .exact"), [a @ dA])
    assert holds(opened, "sum") == "true"


def test_the_checks_are_the_engines_and_name_what_is_broken(opened, made):
    show(opened, panel="checks", place=CROSS)
    opened.evaluate("measure(currentView(), () => explorer.setState({}))")
    measured = made.checks[CROSS]
    assert len(measured) > 15
    for symbol, found in measured.items():
        assert numbers(opened, f"tr[data-symbol='d{symbol}'] [data-engine]") == [max(check.error for check in found)]
    assert numbers(opened, "[data-here=error]").max() < 1e-5
    assert holds(opened, "checks") == "true"
    assert set(data_of(opened, "#panel [data-identity]", "holds")) == {"true"}
    show(opened, broken="rowsum")
    opened.evaluate("measure(currentView(), () => explorer.setState({}))")
    named = set(opened.get_attribute("#panel [data-fact=checks]", "data-wrong").split())
    assert named == {"dS", "dR", "dQ", "dK", "dWQ", "dbQ", "dWK", "dXq", "dXk", "dX", "dbK", "dM"}
    assert set(data_of(opened, ".checks tr.wrong", "symbol")) == named
    assert set(data_of(opened, ".tile.wrong", "symbol")) == named - {"dXq", "dXk"}
    assert "12 of" in opened.inner_text(".verdict.bad")
    show(opened, panel="softmax")
    assert holds(opened, "sum") == "false"
    assert "dS is not the gradient of the softmax" in opened.inner_text("#panel")


@pytest.mark.parametrize("broken", ["batch", "rowsum", "transpose", "mask"])
def test_a_mistake_marks_at_once_what_finite_differences_find_wrong(opened, broken):
    for place in (SELF, CAUSAL, CROSS):
        show(opened, place=place, broken=broken, panel="softmax")
        marked, measured = opened.evaluate("""async () => {
          const view = currentView(), marked = verdictOf(view).wrong;
          await measure(view, () => {});
          const measured = checksOf(view).filter(({ok}) => !ok);
          return [[...marked], measured.map(({symbol}) => gradientOf(symbol))];
        }""")
        assert sorted(marked) == sorted(measured), place


def test_a_check_that_is_no_number_is_not_taken_for_right(open_page, made, tmp_path):
    """JSON has null for it, which arithmetic takes for 0."""
    broken = tmp_path / "nan.html"
    html = made.path.read_text(encoding="utf-8")
    broken.write_text(re.sub(r'"error":[^,}]+', '"error":null', html), encoding="utf-8")
    page = open_page(broken)
    assert "error not a number" in page.inner_text(".verdict")
    assert page.locator(".verdict.good").count() == 0


@pytest.mark.parametrize("attention", [SELF, CROSS])
def test_the_flow_is_that_of_numpy(opened, made, attention):
    step = made.trace[attention]
    show(opened, panel="flow", place=attention, item=1)
    sent = 0
    for head in range(2):
        engine = step.head(1, head)
        value, gradient = engine.values, engine.gradients
        sent = (sent + np.einsum("ij,id->ijd", gradient["R"], value["Q"] @ value["WK"].T)
                + np.einsum("ij,id->ijd", value["Ad"], gradient["O"] @ value["WV"].T))
    arrived = (step.gradient("key_input") + step.gradient("value_input")).numpy()[1]
    assert_equal(bars(opened, "arrived"), np.linalg.norm(arrived, axis=-1))
    norms = np.linalg.norm(sent, axis=-1)
    assert_equal(bars(opened, "sent"), norms.sum(axis=0))
    assert_equal(bars(opened, "both"), norms[opened.evaluate("explorer.state.row")])


def test_the_overview_of_all_heads_leads_into_each(opened, made):
    show(opened, panel="heads", place="output", item=0)
    attentions = [SELF, CAUSAL, CROSS]
    for symbol, measure in (("A", effective_keys), ("dS", np.linalg.norm)):
        opened.check(f"[data-key='heads-symbol:{symbol}']", force=True)
        heads = [made.trace[name].head(0, head) for name in attentions for head in range(2)]
        expected = [measure(head.gradients["S"] if symbol == "dS" else head.values["A"]) for head in heads]
        assert_equal(numbers(opened, ".small-head [data-value]"), expected)
    opened.locator(f"[data-key='heads:{CAUSAL}:1']").hover()
    assert_equal(grid(opened, "#panel .grid"), made.trace[CAUSAL].head(0, 1).gradients["S"])
    opened.focus(f"[data-key='heads:{CROSS}:1']")
    opened.keyboard.press("Enter")
    assert state(opened, "place", "head", "symbol", "panel") == [CROSS, 1, "dS", "heads"]
    opened.click(f"[data-key='heads:{SELF}:0'] canvas")
    assert state(opened, "place", "head", "symbol") == [SELF, 0, "dS"]


def effective_keys(weights):
    logs = np.log(weights, out=np.zeros_like(weights), where=weights > 0)
    return np.exp(-(weights * logs).sum(axis=-1)).mean()


# --- The names of rows and columns are those of explore/labels.py ------------------------------------------

TEXTS = ["0", "2", "-", "wa", "è", " ", "\u3000", "a b", "\t", "\n", "", "<bos>", "<eos>", "<pad>", "<unk>"]


def test_the_page_names_tokens_as_the_terminal_does(opened):
    rng = random.Random(4)
    read = [rng.choices(TEXTS, k=rng.randrange(16)) for _ in range(200)]
    written = [[rng.choice([token, "2"]) for token in [*tokens[1:], "-"][: len(tokens)]] for tokens in read]
    pairs = list(zip(read, written, strict=True))
    assert opened.evaluate("(all) => all.map(tokenNames)", read) == [names(tokens) for tokens in read]
    found = opened.evaluate("(all) => all.map(([read, written]) => rowNames(read, written))", pairs)
    assert found == [row_names(*both) for both in pairs]
    assert opened.evaluate("currentView().labels.query") == ["<bos> → e", "e → f", "f → g", "g → <eos>"]
