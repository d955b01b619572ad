"""A trace: what it records of which attention, what it leaves alone, and what wrong use is told."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import func, nn
from minigrad import functional as F
from minigrad.device import device_of, to_numpy

from tests.transformer.explore.attentions import HEADS, WIDTH, X, one_head
from tests.transformer.explore.attentions import traced as traced_attention
from tests.transformer.tiny import LABELS, SOURCE
from tests.transformer.traces import NAMES, made, traced
from transformer import MultiHeadAttention, trace
from transformer.decode import beam_search
from transformer.explore.checks import measure
from transformer.model import Residual

ENCODER, CROSS = "encoder.layers.0.self_attention", "decoder.layers.0.cross_attention"


def test_a_traced_run_has_the_numbers_of_an_untraced_one():
    """And leaves nothing on the modules; nothing is recorded outside of the block."""
    model = made()
    before = {name: set(vars(module)) for name, module in model.named_modules()}
    t, loss = traced(model)
    gradients = {name: p.grad.numpy().copy() for name, p in model.named_parameters()}
    model.zero_grad()
    mg.manual_seed(4)
    loss().backward()
    for name, parameter in model.named_parameters():
        np.testing.assert_allclose(parameter.grad.numpy(), gradients[name], rtol=1e-9, atol=1e-13, err_msg=name)
    assert {name: set(vars(module)) for name, module in model.named_modules()} == before
    for name in t:
        around = t[name].residual
        assert around.module is dict(model.named_modules())[f"{name}_residual"]
        assert around.stream.grad.shape == around.result.grad.shape == t[name].output.shape
    assert (t.names, len(t.calls(ENCODER))) == (list(NAMES), 1)


# ------------------------------------------------------------------ which attention it is


class Twice(nn.Module):
    """Two calls in one module, around one of another, after one that fails."""

    def __init__(self):
        super().__init__()
        self.inner, self.map = MultiHeadAttention(WIDTH, HEADS), nn.Linear(5, WIDTH)
        self.residual = Residual(d_model=WIDTH, norm="pre")

    def forward(self, x):
        try:
            self.inner(x, x, x[..., :1])
        except ValueError:
            first = self.residual(x, lambda y: F.scaled_dot_product_attention(y, y, y))
        return self.inner(first, first, first) + self.map(one_head(x, x))


@pytest.mark.parametrize("checkpointed", [False, True])
def test_calls_are_named_by_the_module_that_calls(checkpointed):
    """Also inside a gradient checkpoint, which is a plain call in the block."""
    with mg.random.fork(3):
        model = nn.Sequential(Twice(), Twice()).to(dtype=np.float64)

    def once(x):
        return func.checkpoint(model, x) if checkpointed else model(x)

    def loss():
        return ((func.checkpoint(once, X) if checkpointed else once(X)) ** 3).sum()

    with trace(model) as t:
        loss().backward()
    assert t.names == ["0", "0.inner", "1", "1.inner"]
    assert [len(t.calls(name)) for name in t] == [2, 1, 2, 1]
    first, second = t.calls("1")
    assert (first.values.shape, second.values.shape, first.is_self, first.kind) == (
        (2, 1, 3, 8), (2, 1, 3, 5), None, "attention")
    gradient = t["1"].gradient("weights").numpy()  # of the latest call
    direction = np.random.default_rng(3).standard_normal(gradient.shape)
    measured = t.finite_difference(loss, "1", "weights", direction)
    assert measured == pytest.approx((gradient * direction).sum(), rel=1e-6)


def test_decoding_inside_of_a_block_is_traced_step_by_step():
    """Each step is a call, of the new token; a traced model writes what an untraced one does."""
    model = made(dropout=0.0)
    expected = beam_search(model, SOURCE[:1], 1, max_length=4)
    with trace(model) as t:
        assert beam_search(model, SOURCE[:1], 1, max_length=4) == expected
    assert (t.names, len(t.calls(ENCODER))) == (list(NAMES), 1)
    assert [step.weights.shape[-2] for step in t.calls(CROSS)] == [1] * len(expected[0][0].ids)


def test_on_every_device_the_same_numbers_in_its_memory(device, same_masks):
    (host, _), (t, loss) = traced(made()), traced(made().to(device))
    for name in t:
        found, expected = ({**head.values, **{f"d{symbol}": gradient for symbol, gradient in head.gradients.items()}}
                           for head in (t[name].head(1, 1), host[name].head(1, 1)))
        for symbol, array in found.items():
            assert device_of(array) == device
            np.testing.assert_allclose(to_numpy(array), expected[symbol], rtol=1e-9, atol=1e-14, err_msg=symbol)
        assert device_of(t[name].mask) == device_of(t[name].dropped) == device
    assert max(check.error for found in measure(t, ENCODER, loss).values() for check in found) < 1e-6


def test_wrong_use_says_so():
    """The backward may come after the block."""
    with pytest.raises(TypeError, match="a module expected, got NoneType"), trace(None):
        pass
    model = made(dropout=0.0)
    with trace(model) as t:
        loss = model.loss(SOURCE, LABELS)
    attention = t[CROSS]
    loss.backward()
    assert attention.reached
    with pytest.raises(KeyError, match=r"no attention 'decoder.layers.9' .* encoder.layers.0"):
        t["decoder.layers.9"]
    with pytest.raises(ValueError, match=r"\(2,2,5,4\)|\(2, 2, 5, 4\)"):
        t.finite_difference(model.loss, CROSS, "keys", np.ones(3))
    with pytest.raises(ValueError, match="did not come by"):
        t.finite_difference(lambda: mg.Tensor(0.0), CROSS, "keys", np.ones(attention.keys.shape))
    model.zero_grad()
    with pytest.raises(ValueError, match="has no gradient"):
        _ = attention.head().gradients
    scaled = traced_attention("scaled")[1]["Of"]
    assert scaled.concatenated is None
    with pytest.raises(ValueError, match=r"no 'output' in this attention: Of does not .* there are queries, keys"):
        scaled.gradient("output")
