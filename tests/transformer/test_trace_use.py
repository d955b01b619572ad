"""Using a trace: what it leaves alone, several calls, checkpoints, devices, and what wrong use is told."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import func
from minigrad.device import device_of

from tests.transformer.tiny import LABELS, SOURCE
from tests.transformer.traces import NAMES, made, traced
from transformer import MultiHeadAttention, trace
from transformer.decode import beam_search
from transformer.explore.traced import TAPS


def test_a_traced_run_has_the_numbers_of_an_untraced_one():
    model = made()
    t, loss = traced(model)
    gradients = {name: p.grad.numpy().copy() for name, p in model.named_parameters()}
    model.zero_grad()
    mg.manual_seed(4)
    loss().backward()
    for name, parameter in model.named_parameters():
        np.testing.assert_allclose(parameter.grad.numpy(), gradients[name], rtol=1e-9, atol=1e-13, err_msg=name)
    assert len(t.calls("encoder.layers.0.self_attention")) == 1


def test_nothing_is_left_behind():
    """No state on modules, and nothing recorded outside of the block."""
    model = made(dropout=0.0)
    before = {name: set(vars(module)) for name, module in model.named_modules()}
    t, loss = traced(model)
    first = t["decoder.layers.0.cross_attention"].weights.numpy().copy()
    assert {name: set(vars(module)) for name, module in model.named_modules()} == before
    loss()
    assert len(t.calls("decoder.layers.0.cross_attention")) == 1
    np.testing.assert_array_equal(t["decoder.layers.0.cross_attention"].weights.numpy(), first)


def test_the_backward_may_come_after_the_block():
    model = made(dropout=0.0)
    with trace(model) as t:
        loss = model.loss(SOURCE, LABELS)
    with pytest.raises(ValueError, match=r"^no gradient has reached weights of encoder.layers.0.self_attention yet: "):
        t["encoder.layers.0.self_attention"].gradient("weights")
    loss.backward()
    assert abs(t["encoder.layers.0.self_attention"].gradient("weights").numpy()).max() > 0


@pytest.mark.parametrize("nested", [False, True])
def test_calls_in_checkpoints_are_counted_once_and_in_order(nested):
    """So a loss that is computed again, without a backward, comes by the call that was traced."""
    attention = MultiHeadAttention(8, 2).to(dtype=np.float64)
    x, y = (mg.Tensor(np.random.default_rng(seed).normal(size=(1, 3, 8)), requires_grad=True) for seed in (0, 1))

    def once(z):
        return func.checkpoint(lambda z: attention(z, z, z), z) if nested else attention(z, z, z)

    def loss():
        return (func.checkpoint(lambda z: once(once(z)), x) ** 2).sum() + (func.checkpoint(once, y) ** 2).sum()

    with trace(attention) as t:
        total = loss()
        values = [call.weights.numpy() for call in t.calls("MultiHeadAttention")]
        total.backward(retain_graph=True)
        total.backward()
    calls = t.calls("MultiHeadAttention")
    assert len(values) == len(calls) == 3
    for call, expected in zip(calls, values, strict=True):
        np.testing.assert_array_equal(call.weights.numpy(), expected)
        assert call.reached
    direction = np.random.default_rng(2).normal(size=(1, 2, 3, 3))
    derivative = (calls[-1].gradient("weights").numpy() * direction).sum()
    assert t.finite_difference(loss, "MultiHeadAttention", "weights", direction) == pytest.approx(derivative, rel=1e-7)


def test_decoding_inside_of_a_block_is_traced_step_by_step():
    """Each step is a call, of the new token; a traced model writes what an untraced one does."""
    model = made(dropout=0.0)
    [[expected]] = beam_search(model, SOURCE[:1], 1, max_length=4)
    with trace(model) as t:
        [[found]] = beam_search(model, SOURCE[:1], 1, max_length=4)
    assert found.ids == expected.ids
    assert t.names == list(NAMES)
    assert len(t.calls("encoder.layers.0.self_attention")) == 1
    steps = t.calls("decoder.layers.1.cross_attention")
    assert [step.weights.shape[-2] for step in steps] == [1] * len(found.ids)
    own = t.calls("decoder.layers.1.self_attention")
    assert [step.weights.shape[-1] for step in own] == list(range(1, len(found.ids) + 1))
    with trace(model) as whole:
        model(SOURCE[:1], [[1, *found.ids[:-1]]])
    for name in NAMES:
        last = slice(None) if name.startswith("encoder") else slice(-1, None)
        np.testing.assert_allclose(t[name].weights.numpy(), whole[name].weights.numpy()[..., last, :], rtol=1e-9,
                                   atol=1e-14)
    with pytest.raises(ValueError, match="no gradient has reached weights"):
        t["decoder.layers.1.cross_attention"].gradient("weights")


def test_on_every_device_the_same_numbers_in_its_memory(device, same_masks):
    host, _ = traced(made())
    t, loss = traced(made().to(device))
    for name in t:
        a = t[name]
        for tap in TAPS:
            for mine, theirs in ((a.value(tap), host[name].value(tap)), (a.gradient(tap), host[name].gradient(tap))):
                assert mine.device == device
                np.testing.assert_allclose(mine.to("cpu").numpy(), theirs.numpy(), rtol=1e-9, atol=1e-14, err_msg=tap)
        assert device_of(a.mask) == device_of(a.dropped) == device
    name = "encoder.layers.1.self_attention"
    direction = np.ones(t[name].weights.shape)
    assert t.finite_difference(loss, name, "weights", direction) == pytest.approx(
        t[name].gradient("weights").to("cpu").numpy().sum(), rel=1e-7)


def test_wrong_use_says_so():
    model = made(dropout=0.0)
    t, loss = traced(model)
    name = "decoder.layers.0.cross_attention"
    with pytest.raises(KeyError, match=r"no attention 'decoder.layers.9.cross_attention' .* encoder.layers.0"):
        t["decoder.layers.9.cross_attention"]
    with pytest.raises(IndexError, match="head 2"):
        t[name].head(0, 2)
    with pytest.raises(ValueError, match=r"keys .* has shape \(2, 2, 5, 4\)"):
        t.finite_difference(loss, name, "keys", np.ones(3))
    model.zero_grad()
    with pytest.raises(ValueError, match="has no gradient"):
        _ = t[name].head().gradients
