"""The map of the model: where its places lie, what its bars say, and how one enters a place and comes back."""

import numpy as np
import pytest

from tests.explorer.pages import WORDS, deep_model, focused, state

OUTPUTS = ("norm", "attention", "feed_forward", "_residual", "embedding", "projection")  # modules that are places


@pytest.fixture
def live(live_page, share_page):
    return share_page(live_page, width=1440, height=900)


# By place the length of its bar, as a share of the longest.
BARS = """(which) => Object.fromEntries([...document.querySelectorAll(`#map .bar.${which}`)].map(
    (bar) => [bar.parentNode.dataset.place, Number(bar.getAttribute("height")) / BAR_HEIGHT]))"""


def test_the_bars_are_the_engines_norms(live):
    model, outputs = deep_model(), {}
    for name, module in model.named_modules():
        if name.endswith(OUTPUTS):
            module.register_forward_hook(lambda _, __, output, name=name: outputs.__setitem__(name, output))
    loss = model.loss([[*WORDS.encode("a b c"), 2]], [[*WORDS.encode("d e"), 2]])
    for output in outputs.values():
        output.retain_grad()
    loss.backward()
    outputs["output"] = outputs.pop("projection")
    for which, found in (("value", lambda output: output), ("gradient", lambda output: output.grad)):
        norms = {path: np.linalg.norm(found(output).numpy()) for path, output in outputs.items()}
        shares = {path: norm / max(norms.values()) for path, norm in norms.items()}
        assert live.evaluate(BARS, which) == pytest.approx(shares, rel=1e-9)


def test_by_keys_into_a_place_and_out_again(live):
    live.focus("#map [data-place='output']")
    for key in ("ArrowLeft", "ArrowLeft", "ArrowLeft", "ArrowUp", "End", "Home", "ArrowRight", "ArrowRight"):
        live.keyboard.press(key)
    assert focused(live) == "map:encoder.layers.0.self_attention"
    assert state(live, "place") == "output"  # the arrows only look
    live.keyboard.press("Enter")
    assert state(live, "place") == "encoder.layers.0.self_attention"
    assert live.locator("#map [aria-current]").get_attribute("data-place") == "encoder.layers.0.self_attention"
    assert focused(live) == "tile:dY"  # the first step of the backward
    live.locator("#stage .grid-box").first.focus()
    live.keyboard.press("Escape")
    assert focused(live) == "tile:dY"
    live.keyboard.press("Escape")
    assert focused(live) == "map:encoder.layers.0.self_attention"
    live.wait_for_selector(".zoom-frame", state="detached")
