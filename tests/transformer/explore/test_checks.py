"""Every gradient held to differences of the whole loss: small errors where it is right, large ones where it is not."""

import pytest

import minigrad as mg
from minigrad import ops

from tests.transformer.tiny import LABELS, SOURCE, tiny_model
from tests.transformer.traces import made, traced
from transformer import trace
from transformer.explore.checks import measure, relative_error

CROSS, DECODER = "decoder.layers.1.cross_attention", "decoder.layers.0.self_attention"
ENCODER = "encoder.layers.0.self_attention"
PARAMETERS = {"WQ", "bQ", "WK", "bK", "WV", "bV", "WO", "bO"}
STEPS = {"Q", "K", "V", "R", "S", "Sm", "A", "Ad", "O", "C", "Y", "Xq", "Xk", "Xv", "X"}


def worst(checks):
    return max((check.error, symbol) for symbol, found in checks.items() for check in found)


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_every_tensor_of_every_kind_of_attention(norm):
    """With padding on both sides, the causal mask and dropout, whose masks are those of the trace."""
    t, loss = traced(made(norm=norm))
    for name in (ENCODER, DECODER, CROSS):
        checks = measure(t, name, loss)
        assert checks.keys() == STEPS | PARAMETERS | ({"M"} if t[name].kind == "cross" else set())
        assert all(len(found) == 2 for found in checks.values())
        assert worst(checks)[0] < 1e-6, name
        assert all(check.analytic != 0 for symbol, found in checks.items() if symbol != "bK" for check in found)


def test_the_model_is_as_it_was():
    model = made()
    before = {name: value.numpy().copy() for name, value in model.state_dict().items()}
    activations = [layer.feed_forward.activation for layer in model.encoder.layers]
    t, loss = traced(model)
    mg.manual_seed(9)
    state = mg.random.get_state()
    measure(t, CROSS, loss)
    assert mg.random.get_state() == state
    assert all((before[name] == value.numpy()).all() for name, value in model.state_dict().items())
    assert [layer.feed_forward.activation for layer in model.encoder.layers] == activations


def test_a_relu_at_its_kink_raises_no_alarm():
    """Some unit of a large model is always within the step. Here one is put there."""
    model = tiny_model(norm="pre")
    feed_forward = model.decoder.layers[0].feed_forward
    seen = []
    feed_forward.inner.register_forward_hook(lambda module, args, out: seen.append(out.numpy().copy()))
    model.loss(SOURCE, LABELS)
    bias = feed_forward.inner.bias
    bias.copy_(bias.numpy() - seen[0][0, 1] + 1e-7)  # the units of one token: on, and just so
    with trace(model) as t:
        model.loss(SOURCE, LABELS).backward()
    checks = measure(t, "decoder.layers.0.self_attention", lambda: model.loss(SOURCE, LABELS))
    assert worst(checks)[0] < 1e-6


def test_a_wrong_rule_is_caught(monkeypatch):
    """And only what it makes wrong is blamed: what lies above it is right."""
    model = tiny_model()

    def loss():
        return (model.encode(SOURCE) ** 3).sum()

    monkeypatch.setattr(ops.exp, "rules", {"x": lambda g, out: 1.01 * g * out})  # in the softmax
    monkeypatch.setattr(ops.exp, "plans", {})
    with trace(model) as t:
        loss().backward()
    monkeypatch.undo()
    checks = measure(t, ENCODER, loss)
    found = {symbol for symbol in checks if max(check.error for check in checks[symbol]) > 1e-6}
    assert found == {"S", "Sm", "R", "Q", "K", "WQ", "bQ", "WK", "Xq", "Xk", "X"}  # db_K is 0 all the same


def test_relative_error():
    assert relative_error(1.0, 1.0, 0.1) == 0
    assert relative_error(2.0, 1.0, 0.1) == 0.5
    assert relative_error(-1.0, 1.0, 0.1) == 2
    assert relative_error(0.0, 1e-12, 1e-3) == 1e-9  # a gradient of 0, and rounding
    assert relative_error(0.0, 1e-3, 1e-3) == 1  # a gradient that is missing
    assert relative_error(0.0, 0.0, 0.0) == 0


def test_wrong_use():
    t, loss = traced(made())
    with pytest.raises(KeyError, match="'decoder'"):
        measure(t, "decoder", loss)
    model = tiny_model()
    with trace(model) as t:
        model.loss(SOURCE, LABELS)
    with pytest.raises(ValueError, match=r"no gradient has reached query_input .*backward\(\)"):
        measure(t, ENCODER, lambda: model.loss(SOURCE, LABELS))
