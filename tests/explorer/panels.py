"""Pages for the tests of the panels, and what those tests read of them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.transformer.tiny import tiny_model
from transformer.data import WordTokenizer
from transformer.explore.data import Snapshot
from transformer.explore.trace import Trace
from transformer.explore.translation import explain
from transformer.translator import Translator

# Of one length on each side, so that the engine's batch has no padding: the page has none.
SOURCES, TARGETS = ["a b c d", "g f e d"], ["e f g", "c b a"]
SELF, CAUSAL = "encoder.layers.0.self_attention", "decoder.layers.0.self_attention"
CROSS = "decoder.layers.0.cross_attention"
WORDS = WordTokenizer.train(["a b c d e f g"])  # the eleven tokens of `tiny_model`
STEPS = [100, 200, 300, 400, 600, 900]  # more than a telephone shows at once


@dataclass
class Made:
    """A page, the trace that it was made from, and the differences that the engine measured for it."""

    path: Path
    trace: Trace
    checks: dict[str, Any]


def history_of(traced):
    """Checkpoints that never were: their numbers need only be told apart."""
    rng = np.random.default_rng(5)

    def drawn():
        return {name: rng.random(traced[name].scores.shape).astype(np.float32) for name in traced.names}

    return [Snapshot(step, drawn(), drawn()) for step in STEPS]


def make_page(path, measure=False, **changes):
    """The page of a small model; with `measure`, with differences by the engine and with a history."""
    explanation = live_explanation(tiny_model(**changes), SOURCES, TARGETS, measure)
    explanation.history = history_of(explanation.trace) if measure else []
    path.write_text(explanation.page(opens=CROSS), encoding="utf-8")
    return Made(path, explanation.trace, {name: explanation.checks(name) for name in explanation.names})


def make_pages(folder):
    """By norm; the page of the model with the norm first is measured."""
    return {norm: make_page(folder / f"{norm}.html", measure=norm == "pre", norm=norm) for norm in ("pre", "post")}


def live_explanation(model, source="a b c", target="d e", measure=False):
    """Of a small model; with `measure`, with finite differences by the engine, which take long."""
    explanation = explain(Translator(model, WORDS, WORDS), source, target)
    explanation.again = explanation.again if measure else None
    return explanation


def show(page, **changes):
    """Change fields of the page's state."""
    page.evaluate("(changes) => explorer.setState(changes)", changes)


def measure(page):
    """Let the checks panel measure what the page measures when it is idle."""
    if page.locator("[data-key='checks:measure']").count():
        page.click("[data-key='checks:measure']")


def each(page, selector, expression):
    """What the expression in `one` is for each element in the open panel, in order."""
    return page.eval_on_selector_all(f"#panel {selector}", f"all => all.map((one) => {expression})")


def numbers(page, selector):
    """The exact numbers of the elements."""
    return np.array(each(page, selector, "Number(one.dataset.value)"))


def bars(page, name, within=""):
    return numbers(page, f"{within} [data-bars='{name}'] td")


def cells(page, selector, shape):
    return numbers(page, f"{selector} td.cell").reshape(shape)


def holds(page, fact):
    """"true", "false", or None where it is not put as a fact that can fail."""
    return page.get_attribute(f"#panel [data-fact='{fact}']", "data-holds")


def assert_equal(actual, expected):
    """To 1e-9 of the largest expected number."""
    expected = np.asarray(expected)
    assert np.shape(actual) == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-9 * max(abs(expected).max(initial=0), 1e-30))
