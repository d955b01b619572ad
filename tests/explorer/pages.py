"""Pages for the tests of the explorer, and what those tests do with a page and read of it."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tests.transformer.tiny import tiny_model
from transformer.data import WordTokenizer
from transformer.explore.trace import Trace
from transformer.explore.translation import explain
from transformer.translator import Translator

MEASURES = Path(__file__).with_name("measures.js")
# Of one length on each side, so that the engine's batch has no padding: the page has none.
SOURCES, TARGETS = ["a b c d", "g f e d"], ["e f g", "c b a"]
SELF, CAUSAL = "encoder.layers.0.self_attention", "decoder.layers.0.self_attention"
CROSS = "decoder.layers.0.cross_attention"
WORDS = WordTokenizer.train(["a b c d e f g"])  # the eleven tokens of `tiny_model`


class Made(NamedTuple):
    """A page, the trace that it was made from, and the differences that the engine measured for it."""

    path: Path
    trace: Trace
    checks: dict[str, Any]


def make_page(path):
    """The page of a small model, with differences by the engine."""
    explanation = live_explanation(tiny_model(), SOURCES, TARGETS, measure=True)
    path.write_text(explanation.page(opens=CROSS), encoding="utf-8")
    return Made(path, explanation.trace, {name: explanation.checks(name) for name in explanation.names})


def deep_model():
    return tiny_model(num_encoder_layers=2, num_decoder_layers=2)


def live_explanation(model, source="a b c", target="d e", measure=False, words=WORDS):
    """Of a small model; with `measure`, with finite differences by the engine, which take long."""
    explanation = explain(Translator(model, words, words), source, target)
    if not measure:
        explanation.again = None
    return explanation


def show(page, **changes):
    """Change fields of the page's state."""
    page.evaluate("(changes) => explorer.setState(changes)", changes)


def state(page, *fields):
    """Fields of the page's state; of the place, its path."""
    paths = "field === 'place' ? page.places[explorer.state.place].path : explorer.state[field]"
    found = page.evaluate(f"(fields) => fields.map((field) => {paths})", list(fields))
    return found if len(fields) > 1 else found[0]


def focused(page):
    return page.evaluate("document.activeElement.dataset.key")


def measured(page):
    """The page, which can then be asked what measures.js answers."""
    if page.evaluate("typeof frameFaults") == "undefined":
        script = {"expression": MEASURES.read_text(encoding="utf-8")}  # the page's policy refuses its element
        page.context.new_cdp_session(page).send("Runtime.evaluate", script)
    return page


def numbers(page, selector):
    """The exact numbers of the elements in the open panel."""
    read = "all => all.map((one) => Number(one.dataset.value))"
    return np.array(page.eval_on_selector_all(f"#panel {selector}", read))


def data_of(page, selector, field):
    return page.eval_on_selector_all(selector, "(all, field) => all.map(({dataset}) => dataset[field])", field)


def bars(page, name):
    return numbers(page, f"[data-bars='{name}'] .bar-cell")


def grid(page, selector):
    """The matrix that a grid shows."""
    return np.array(page.evaluate("(selector) => document.querySelector(selector).matrix.toNested()", selector))


def of_engine(page, trace, symbol):
    """The engine's matrix for a symbol, in the page's present selection."""
    place, item, head = state(page, "place", "item", "head")
    traced = trace[place].head(item, head)
    matrices = traced.gradients if symbol.startswith("d") else traced.values
    return np.atleast_2d(np.asarray(matrices[symbol.removeprefix("d")]))


def holds(page, fact):
    """"true", "false", or None where it is not put as a fact that can fail."""
    return page.get_attribute(f"#panel [data-fact='{fact}']", "data-holds")


def assert_equal(actual, expected):
    """To 1e-9 of the largest expected number; some gradients are 0."""
    expected = np.asarray(expected, dtype=float)
    assert np.shape(actual) == expected.shape
    largest = abs(expected[np.isfinite(expected)]).max(initial=0)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-9 * largest + 1e-16)
