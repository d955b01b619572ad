"""Attention that is used in another way than a Transformer does: what is said of it is right, or it is refused."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn

from tests.transformer.tiny import jitter
from tests.transformer.traces import KINDS, NAMES, made, traced
from transformer import MultiHeadAttention, trace
from transformer.explore.checks import measure
from transformer.explore.identities import identities
from transformer.explore.steps import steps_of

NAME = "MultiHeadAttention"


def lone(**options):
    with mg.random.fork(2):
        attention = MultiHeadAttention(8, 2, **options).to(dtype=np.float64)
    jitter(attention)
    return attention


def array(seed, length=4):
    return mg.Tensor(np.random.default_rng(seed).standard_normal((2, length, 8)))


def traced_loss(model, loss):
    model.zero_grad()
    with trace(model) as t:
        loss().backward()
    return t


# ------------------------------------------------------------------ keys and values of different inputs


@pytest.mark.parametrize("one", ["query and key", "query and value", "none"])
def test_keys_and_values_of_different_inputs(one):
    """Their gradients are right, also by path; the formulas that would be shown are not."""
    attention, x = lone(), array(0)
    key, value = x if one == "query and key" else array(1), x if one == "query and value" else array(2)

    def loss():
        return (attention(x, key, value) ** 2).sum()

    t = traced_loss(attention, loss)
    assert max(check.error for found in measure(t, NAME, loss).values() for check in found) < 1e-6
    with pytest.raises(ValueError, match=f"^{NAME}: its keys and its values are made of different inputs; what"):
        t.explanation().text()


# ------------------------------------------------------------------ a loss on the weights


def test_a_loss_on_the_weights_themselves():
    """dA has a part that comes through no output: what is said of dA and O holds no more."""
    attention, x = lone(dropout=0.4), array(0)

    def loss(used=1.0):
        out, weights = attention(x, x, x, return_weights=True)
        return (out ** 2).sum() + used * (weights ** 3).sum()

    mg.manual_seed(1)
    t = traced_loss(attention, loss)
    assert t[NAME].weights_in_loss
    assert max(check.error for found in measure(t, NAME, loss).values() for check in found) < 1e-6
    facts = identities(t[NAME].head())
    assert [fact.key for fact in facts] == ["rows", "key bias"]
    assert all(fact.holds for fact in facts)
    with pytest.raises(ValueError, match=f"^{NAME}: the loss uses its weights themselves"):
        t.explanation().text()


# ------------------------------------------------------------------ hooks


@pytest.mark.parametrize("name", KINDS)
def test_backward_hooks_change_nothing(name):
    """Such a module gets parts of a bundle in place of its inputs; self-attention is self-attention all the same."""
    expected, _ = traced(made(dropout=0.0))
    model, called = made(dropout=0.0), []
    dict(model.named_modules())[name].register_full_backward_hook(lambda *_: called.append(name))
    t, _ = traced(model)
    assert called == [name]
    assert (t[name].kind, t[name].is_self) == (NAMES[name], expected[name].is_self)
    actual, right = t[name].head(1, 1).gradients, expected[name].head(1, 1).gradients
    assert actual.keys() == right.keys()
    for symbol, array in right.items():
        np.testing.assert_allclose(actual[symbol], array, rtol=1e-11, atol=1e-15, err_msg=symbol)


# ------------------------------------------------------------------ parameters


def test_frozen_parameters_have_no_step():
    model = made(dropout=0.0)
    name = next(iter(NAMES))
    attention = model.encoder.layers[0].self_attention
    attention.query.weight.requires_grad = attention.output.bias.requires_grad = False
    t, loss = traced(model)
    steps = steps_of(t[name])
    assert not {"dWQ", "dbO"} & steps.keys()
    assert {"WQ", "bO", "dbQ", "dWO"} <= steps.keys()
    explanation = t.explanation(loss=loss)
    assert "✗" not in explanation.text(name)
    with pytest.raises(ValueError, match="there is no step 'dWQ'"):
        explanation.text(name, step="dWQ")


# ------------------------------------------------------------------ lengths


def test_attentions_of_different_lengths():
    """Each has as many labels as rows and columns."""
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.long, self.short = lone(), lone()

        def forward(self, x, y):
            return (self.long(x, x, x) ** 2).sum() + (self.short(y, y, y) ** 2).sum()

    t = traced_loss(model := Two(), lambda: model(array(0, 5), array(1, 3)))
    explanation = t.explanation()
    assert explanation.labels("long") == (["0", "1", "2", "3", "4"],) * 2
    assert explanation.labels("short") == (["0", "1", "2"],) * 2
    for name, length in (("long", 5), ("short", 3)):
        lines = explanation.text(name, step="A").splitlines()
        assert lines[6].split() == [part for j in range(length) for part in (f"{j}:", str(j))]
