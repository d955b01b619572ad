"""The panels Flow, Heads and History: their numbers are the engine's."""

import numpy as np
import pytest

from tests.explorer.panels import (
    CAUSAL,
    CROSS,
    SELF,
    STEPS,
    assert_equal,
    bars,
    cells,
    each,
    history_of,
    holds,
    numbers,
    show,
)

# ------------------------------------------------------------------ flow


def flow_by_numpy(step, item, heads):
    """What each query sends to each key, (T, S, D): through keys, through values and together."""
    keys = values = 0
    for head in heads:
        engine = step.head(item, head)
        value, gradient = engine.values, engine.gradients
        keys = keys + np.einsum("ij,id->ijd", gradient["R"], value["Q"] @ value["WK"].T)
        values = values + np.einsum("ij,id->ijd", value["Ad"], gradient["O"] @ value["WV"].T)
    return {"keys": keys, "values": values, "both": keys + values}


@pytest.mark.parametrize("attention", [SELF, CAUSAL, CROSS])
def test_the_flow_is_that_of_numpy(opened, made, attention):
    step = made["pre"].trace[attention]
    for choice, heads, item in (("all", [0, 1], 0), ("all", [0, 1], 1), ("one", [1], 1)):
        show(opened, panel="flow", place=attention, head=1, item=item)
        opened.check(f"[data-key='flow-heads:{choice}']", force=True)
        sent = flow_by_numpy(step, item, heads)
        for name, vectors in sent.items():
            assert_equal(cells(opened, f"[data-flow={name}]", vectors.shape[:2]), np.linalg.norm(vectors, axis=-1))
        assert_equal(bars(opened, "sent"), np.linalg.norm(sent["both"], axis=-1).sum(axis=0))
        assert_equal(bars(opened, "arrived"), np.linalg.norm(sent["both"].sum(axis=0), axis=-1))
        assert holds(opened, "flow") == "true"
        if choice == "all":
            arrived = (step.gradient("key_input") + step.gradient("value_input")).numpy()[item]
            assert_equal(bars(opened, "arrived"), np.linalg.norm(arrived, axis=-1))


# ------------------------------------------------------------------ heads


def test_choosing_a_head(opened, made):
    step = made["pre"].trace["encoder.layers.0.self_attention"]
    show(opened, panel="heads", place=SELF, item=0, head=0)
    for symbol in ("A", "S"):
        opened.check(f"[data-key='heads-symbol:d{symbol}']", force=True)
        expected = [np.linalg.norm(step.head(0, head).gradients[symbol]) for head in range(2)]
        assert_equal(numbers(opened, "figcaption [data-value]"), expected)
    opened.check("[data-key='heads-symbol:A']", force=True)
    a = step.weights.numpy()[0]
    assert_equal(numbers(opened, "figcaption [data-value]"), np.exp(-(a * np.log(a)).sum(axis=-1)).mean(axis=-1))
    opened.focus("[data-key='heads:1']")
    opened.keyboard.press("Enter")
    assert opened.evaluate("explorer.state.head") == 1
    assert opened.get_attribute("[data-key='heads:1']", "aria-pressed") == "true"
    opened.click("[data-head='0'] canvas")
    assert opened.evaluate("explorer.state.head") == 0


# ------------------------------------------------------------------ history


def test_the_history_shows_the_checkpoints(opened, made):
    name, snapshots = "decoder.layers.0.cross_attention", history_of(made["pre"].trace)
    show(opened, panel="history", place=CROSS, item=1, head=1)
    gradients = [snapshot.gradients[name][1, 1].astype(np.float64) for snapshot in snapshots]
    assert_equal(bars(opened, "‖dS‖"), [np.linalg.norm(gradient) for gradient in gradients])
    opened.focus("[data-key='history:slider']")
    opened.keyboard.press("Home")
    for step, snapshot, gradient in zip(STEPS, snapshots, gradients, strict=True):
        assert opened.inner_text("#panel output") == f"step {step}"
        assert np.array_equal(cells(opened, "[data-history=A]", (4, 5)), snapshot.weights[name][1, 1])
        assert np.array_equal(cells(opened, "[data-history=dS]", (4, 5)), gradient)
        assert each(opened, ".multiple.chosen", "one.dataset.step") == [str(step)]
        opened.keyboard.press("ArrowRight")  # the slider keeps the focus
    opened.click("[data-key='history:1']")
    assert opened.inner_text("#panel output") == "step 200"
