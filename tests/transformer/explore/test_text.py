"""The terminal's view: every step of every kind of attention, and what a reader sees."""

import re

import numpy as np
import pytest

import minigrad as mg

from tests.transformer.traces import made, traced
from transformer import MultiHeadAttention, trace
from transformer.explore.checks import Check
from transformer.explore.identities import identities
from transformer.explore.steps import steps_of
from transformer.explore.text import one_step, overview

QUERIES, KEYS = ["<bos> → 今日", "今日 → は", "は → ␣", "␣ → <eos>"], ["私", "b", "c", "d", "e"]
CROSS = "decoder.layers.1.cross_attention"


@pytest.fixture(scope="module")
def t():
    return traced(made())[0]


@pytest.fixture(scope="module")
def without_dropout():
    return traced(made(dropout=0.0))[0]


def test_steps_that_do_not_happen_are_not_named():
    """No mask, no biases, one tensor for queries, keys and values, no dropout."""
    mg.manual_seed(1)
    attention = MultiHeadAttention(8, 2, bias=False).to(dtype=np.float64)
    x = mg.Tensor(np.random.default_rng(1).normal(size=(1, 3, 8)))
    with trace(attention) as t:
        (attention(x, x, x) ** 2).sum().backward()
    traced_call = t["MultiHeadAttention"]
    steps = steps_of(traced_call)
    assert not {"M", "Sm", "Ad", "bQ", "dM", "dSm", "dAd", "dbK"} & set(steps)


def test_overview(t):
    attention = t[CROSS]
    checks = {"A": [Check(1.0, 1.0 + 1e-9, 1e-9), Check(2.0, 2.0, 0.0)]}
    text = overview(attention, 1, 0, checks, identities(attention.head(1, 0)))
    assert text.startswith(f"{CROSS} (cross attention), item 1, head 0 of 2")
    row = next(line for line in text.splitlines() if re.match(r" *\d+ +dA +4×5", line))
    assert "1.0e-09  0.0e+00" in row
    norm = np.linalg.norm(attention.gradient("weights").numpy()[1, 0])
    assert f"{norm:.3g}" in row
    assert text.count("✓") == len(identities(attention.head(1, 0))) >= 3
    assert "✗" not in text


def test_one_step(t):
    attention = t[CROSS]
    checks = {"S": [Check(0.5, 0.5 + 1e-10, 2e-10)]}
    text = one_step(attention, 0, 1, "dS", QUERIES, KEYS, checks, identities(attention.head(0, 1)))
    lines = text.splitlines()
    header = next(i for i, line in enumerate(lines) if "0: 私" in line)
    assert lines[header + 2].startswith("1: 今日 → は")
    gradient = attention.gradient("scaled").numpy()[0, 1]
    power = next((float(line.split()[-1]) for line in lines if line.startswith("in units of")), 1.0)
    for i in range(4):
        numbers = [float(n.replace("−", "-")) for n in lines[header + 1 + i].split()[-5:]]
        rounding = 6e-4 * max(abs(gradient).max(), power)
        np.testing.assert_allclose(np.array(numbers) * power, gradient[i], rtol=0, atol=rounding)
    assert "error 2.0e-10" in text


def test_tokens_that_would_move_the_cursor_are_written_out(t):
    """A control character as its number; what stands on another character takes no column."""
    keys = ["\x1b[31m", "a\r", "\u200b", "☃\ufe0f", "\u3000"]
    lines = one_step(t[CROSS], 0, 0, "R", QUERIES, keys, {}, []).splitlines()
    header = next(i for i, line in enumerate(lines) if "☃" in line)
    assert lines[header].split() == [
        "0:", "U+001B[31m", "1:", "aU+000D", "2:", "U+200B", "3:", "☃\ufe0f", "4:", "U+3000"]


# ------------------------------------------------------------------ the identities can fail


def test_identities_hold_and_a_wrong_gradient_breaks_them(t):
    for name in t:
        for item in range(2):
            facts = identities(t[name].head(item, 1))
            assert all(fact.holds for fact in facts), (name, facts)
            assert len(facts) >= 3
    attention = t["decoder.layers.0.self_attention"]
    assert len(identities(attention.head(0, 0))) == 5
    recorded = attention._recorded["scaled"]
    right = recorded.grad
    try:
        recorded.grad = right * (1 + mg.Tensor(np.arange(5.0)[:4]) * 1e-9)  # as if some columns were slightly off
        broken = [fact.key for fact in identities(attention.head(0, 0)) if not fact.holds]
        assert broken == ["rows"]
    finally:
        recorded.grad = right
