"""Every attention of a table: the gradients that finite differences confirm, the identities, the formulas, the text."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import ops

from tests.transformer.explore.attentions import ATTENTIONS, OF_MODELS, Formulas, traced
from tests.transformer.tiny import LABELS, SOURCE, tiny_model
from tests.transformer.traces import made
from tests.transformer.traces import traced as traced_model
from transformer import trace
from transformer.explore.checks import measure, relative_error
from transformer.explore.identities import identities
from transformer.explore.steps import steps_of
from transformer.explore.traced import PER_HEAD, TAPS

ENCODER, CROSS = "encoder.layers.0.self_attention", "decoder.layers.1.cross_attention"


@pytest.fixture(scope="module", params=[*ATTENTIONS, *OF_MODELS], ids=str)
def example(request):
    return traced(request.param)


def worst(checks):
    return max((check.error, symbol) for symbol, found in checks.items() for check in found)


def test_every_gradient_is_that_of_finite_differences(example):
    """Of every tensor and every parameter, along two directions; and nothing but a key's bias has none."""
    found, t, name = example
    attention = t[name]
    there = {tap for tap in TAPS if tap in attention}
    assert there == {*PER_HEAD.values(), *found.known}
    assert (attention.kind, "".join(attention.projections), attention.group) == (
        found.kind, found.letters, found.group)
    for tap in there:
        assert attention.gradient(tap).shape == attention.value(tap).shape
    checks = measure(t, name, found.loss)
    assert len(checks) >= len(there) - 2 + len(found.letters)  # without a mask and dropout two are others
    assert worst(checks)[0] < 1e-6
    assert all(check.analytic != 0 for symbol, both in checks.items() if symbol != "bK" for check in both)


def test_every_formula_and_every_identity_holds(example):
    """What is printed of a step is how its matrix comes about; what is not known comes from the module."""
    _, t, name = example
    attention = t[name]
    formulas, steps = Formulas(attention), steps_of(attention)
    for item, of_item in enumerate(formulas.of):
        for head, matrices in enumerate(of_item):
            facts = identities(attention.head(item, head))
            assert all(fact.holds for fact in facts), facts
            assert ("dots" in [fact.key for fact in facts]) != attention.weights_in_loss
            for symbol, step in steps.items():
                if "=" in step.formula and not (symbol == "dA" and attention.weights_in_loss):
                    np.testing.assert_allclose(matrices[symbol], formulas.expected(step.formula, item, head), rtol=1e-9,
                                               atol=1e-12, err_msg=step.formula)
    assert {"R", "S", "A", "O", "dV", "dA", "dS", "dR", "dQ", "dK"} <= {
        symbol for symbol, step in steps.items() if "=" in step.formula}
    assert "✗" not in t.explanation().text(name, step="ds")


@pytest.mark.parametrize(("name", "symbol", "formula"), [
    ("three inputs", "dWV", "dW_V, from the module"), ("rotary", "dX", "dX, from the module"),
    ("gated", "C", "C, from the module"), ("frozen", "bO", "b_O"), ("self", "K", "K = X W_K + b_K"),
    ("no bias", "K", "K = M W_K"), ("biased", "Sm", "S̄ = S + B"),
    ("weights in the loss", "dA", "dA = dA′∘kept/(1 − p) + what the loss makes of A itself"),
    *(("no bias", none, None) for none in ("dSm", "dAd", "dbK")), ("self", "M", None), ("scaled", "X", None),
    ("frozen", "dWQ", None)])
def test_a_formula(name, symbol, formula):
    """None of what does not happen: a mask, dropout, a bias, a memory, the gradient of a frozen parameter."""
    _, t, module = traced(name)
    step = steps_of(t[module]).get(symbol)
    assert (step and step.formula) == formula


# ------------------------------------------------------------------ the checks can fail, and what they leave alone


def test_a_wrong_rule_is_caught(monkeypatch):
    """And only what it makes wrong is blamed: what lies above it is right."""
    model = tiny_model()

    def loss():
        return (model.encode(SOURCE) ** 3).sum()

    monkeypatch.setattr(ops.exp, "rules", {"x": lambda g, out: 1.0001 * g * out})  # in the softmax
    monkeypatch.setattr(ops.exp, "plans", {})
    with trace(model) as t:
        loss().backward()
    monkeypatch.undo()
    checks = measure(t, ENCODER, loss)
    found = {symbol for symbol in checks if max(check.error for check in checks[symbol]) > 1e-6}
    assert found == {"S", "Sm", "R", "Q", "K", "WQ", "bQ", "WK", "Xq", "Xk", "X"}  # db_K is 0 all the same
    recorded = t[ENCODER]._recorded["scaled"]
    recorded.grad = recorded.grad * (1 + mg.Tensor(np.arange(5.0)) * 1e-9)  # as if some columns were slightly off
    assert [fact.key for fact in identities(t[ENCODER].head()) if not fact.holds] == ["rows"]


def test_the_model_is_as_it_was():
    model = made()
    t, loss = traced_model(model)

    def state():
        return (mg.random.get_state(), {name: value.numpy().tobytes() for name, value in model.state_dict().items()},
                [layer.feed_forward.activation for layer in model.encoder.layers])

    before = state()
    measure(t, CROSS, loss)
    assert state() == before


def test_a_relu_at_its_kink_raises_no_alarm():
    """Some unit of a large model is always within the step. Here one is put there."""
    model, seen = tiny_model(norm="pre"), []
    inner = model.decoder.layers[0].feed_forward.inner
    inner.register_forward_hook(lambda module, args, out: seen.append(out.numpy().copy()))
    model.loss(SOURCE, LABELS)
    inner.bias.copy_(inner.bias.numpy() - seen[0][0, 1] + 1e-7)  # the units of one token: on, and just so
    with trace(model) as t:
        model.loss(SOURCE, LABELS).backward()
    assert worst(measure(t, "decoder.layers.0.self_attention", lambda: model.loss(SOURCE, LABELS)))[0] < 1e-6


@pytest.mark.parametrize(("analytic", "numeric", "smallest", "error"), [
    (-1.0, 1.0, 0.1, 2), (0.0, 1e-12, 1e-3, 1e-9), (0.0, 0.0, 0.0, 0)])
def test_relative_error(analytic, numeric, smallest, error):
    """A gradient of 0 beside rounding is right; one that is missing is wrong."""
    assert relative_error(analytic, numeric, smallest) == error
