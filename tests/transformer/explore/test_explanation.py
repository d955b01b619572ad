"""An explanation: what it is of, its labels, its text, and whether it fits into a page."""

import re

import numpy as np
import pytest

from tests.transformer.tiny import LABELS, SOURCE, tiny_model
from tests.transformer.traces import NAMES, made, traced
from transformer import trace
from transformer.explore.checks import Check
from transformer.explore.data import Tokens
from transformer.explore.explanation import Explanation
from transformer.explore.identities import identities
from transformer.explore.steps import steps_of

CROSS = "decoder.layers.1.cross_attention"
LIVE = {"a": "model"}  # the page takes it as it is
TOKENS = Tokens([["私", *"bcde"], [*"fghij"]], [["<bos>", "今日", "は", " "], [*"tuvw"]],
                [["今日", "は", " ", "<eos>"], [*"uvwy"]])


@pytest.fixture(scope="module")
def t():
    return traced(made())[0]


def test_labels(t):
    """Positions if there are no tokens."""
    assert Explanation(t, "").labels(CROSS) == (["0", "1", "2", "3"], ["0", "1", "2", "3", "4"])
    explained = Explanation(t, "", tokens=TOKENS)
    assert explained.labels(CROSS) == (["<bos> → 今日", "今日 → は", "は → ␣", "␣ → <eos>"], ["私", *"bcde"])
    assert explained.labels("encoder.layers.0.self_attention", 1) == ([*"fghij"],) * 2


# ------------------------------------------------------------------ the text


@pytest.mark.parametrize("name", NAMES)
def test_the_overview_has_every_step(t, name):
    explained = Explanation(t, "title", loss=1.5)
    explained._checks[name] = {"A": [Check(1.0, 1.0 + 1e-9, 1e-9), Check(2.0, 2.0, 0.0)]}
    first, second, *lines = explained.text(name, item=1, head=0).splitlines()
    assert first == "title    loss 1.5"
    layer = int(name.split(".")[2]) + 1
    assert second.startswith(f"{name} ({NAMES[name]} attention of layer {layer}), item 2, head 1 of 2: ")
    rows = [line for line in lines if re.search(r" \d+(×\d+)+ ", line)]
    assert [row[4:].split()[0] for row in rows] == [step.label for step in steps_of(t[name]).values()]
    [row] = [row for row in rows if " dA " in row]
    assert row.endswith("  1.0e-09  0.0e+00")
    assert f"{np.linalg.norm(t[name].gradient('weights').numpy()[1, 0]):.3g}" in row
    assert "\n".join(lines).count("✓") == len(identities(t[name].head(1, 0))) >= 3


@pytest.mark.parametrize("width", [120, 40])
def test_one_step(t, width):
    """A row for each query, in several parts where the terminal is narrow."""
    explained = Explanation(t, "", tokens=TOKENS)
    explained._checks[CROSS] = {"S": [Check(0.5, 0.5 + 1e-10, 2e-10)]}
    text = explained.text(CROSS, 0, 1, "ds", width)
    rows = re.findall(r"^\d: \S+ → \S+ +(.*)$", text, flags=re.MULTILINE)
    cells = [[float(number.replace("−", "-")) for number in row.split()] for row in rows]
    parts = [cells[first:first + 4] for first in range(0, len(cells), 4)]
    np.testing.assert_allclose(np.hstack(parts), t[CROSS].gradient("scaled").numpy()[0, 1], rtol=6e-4, atol=0)
    assert (len(parts) > 1) == (width == 40)
    for part in ("\n  forward:  S̄ = S where", "0: 私", "measured 0.5, the gradient says 0.5: error 2.0e-10"):
        assert part in text
    assert "−∞" in explained.text(CROSS, 1, step="Sm")


def test_tokens_that_would_move_the_cursor_are_written_out(t):
    """A control character as its number; what stands on another character takes no column."""
    tokens = Tokens([["\x1b[31m", "a\r", "\u200b", "☃\ufe0f", "\u3000"]], [[*"abcd"]], [[*"bcde"]])
    lines = Explanation(t, "", tokens=tokens).text(CROSS, step="R").splitlines()
    [header] = [line for line in lines if "☃" in line]
    assert header.split() == ["0:", "U+001B[31m", "1:", "aU+000D", "2:", "U+200B", "3:", "☃\ufe0f", "4:", "␣"]


# ------------------------------------------------------------------ the page


def test_a_page_that_would_be_too_large(t):
    with pytest.raises(ValueError, match="does not run in a page"):
        Explanation(t, "", live=LIVE, limit=0.001).page()


def test_a_trace_is_no_page(t, tmp_path):
    """A notebook falls back on the repr."""
    explained = t.explanation()
    assert explained._repr_html_() is None
    with pytest.raises(ValueError, match="the model does not run in a page: it is not the translator"):
        explained.to_html(tmp_path / "page.html")
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------------ what is explained


def test_what_no_gradient_has_reached_is_not_explained():
    model = tiny_model()
    with trace(model) as t:
        memory = model.encode(SOURCE)
        model.decode(LABELS, memory)
    with pytest.raises(ValueError, match=r"no gradient has reached context of encoder\.layers\.0.*: call backward\(\)"):
        t.explanation().text()
    memory.sum().backward()
    assert t.explanation().names == ["encoder.layers.0.self_attention"]
    with trace(model) as nothing:
        pass
    with pytest.raises(ValueError, match="no attention ran inside the trace block"):
        nothing.explanation().text()
