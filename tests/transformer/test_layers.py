"""The layers: pre- and post-norm, feed-forward, what masks hide, and dropout."""

import math

import numpy as np
import pytest

import minigrad
from minigrad import Tensor, nn
from minigrad import functional as F

from tests.transformer.differences import check_gradients
from tests.transformer.tiny import jitter, tiny_config
from transformer import causal_mask, padding_mask
from transformer.model import DecoderLayer, EncoderLayer, FeedForward

SOURCE_IDS = np.array([[5, 5, 5, 5], [5, 5, 0, 0]])
TARGET_IDS = np.array([[5, 5, 0], [5, 5, 5]])
SOURCE_MASK = padding_mask(SOURCE_IDS)
TARGET_MASK = padding_mask(TARGET_IDS) & causal_mask(3)
BOTH_WAYS = pytest.mark.parametrize(("norm", "fused"), [("pre", True), ("post", False)],
                                    ids=["pre-norm, fused", "post-norm, by steps"])


def made(layer, **options):
    with minigrad.random.fork(2):
        module = layer(tiny_config(**options))
    jitter(module)
    return module.to(dtype=np.float64)


def features(*shape, seed=0, requires_grad=False):
    return Tensor(np.random.default_rng(seed).standard_normal((*shape, 8)), requires_grad=requires_grad)


def weighted_sum(out):
    return (out.tanh() * Tensor(np.random.default_rng(3).standard_normal(out.shape))).sum()


ACTIVATIONS = {
    "relu": lambda x: max(x, 0.0),
    "gelu": lambda x: x * 0.5 * math.erfc(-x / math.sqrt(2)),
    "gelu_tanh": lambda x: x / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
}


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_feed_forward_is_two_linear_maps_around_an_activation(activation):
    layer, x = made(FeedForward, activation=activation), features(2, 3)
    inner = x.numpy() @ layer.inner.weight.numpy().T + layer.inner.bias.numpy()
    assert inner.shape == (2, 3, 12)
    active = np.vectorize(ACTIVATIONS[activation])(inner)
    expected = active @ layer.outer.weight.numpy().T + layer.outer.bias.numpy()
    np.testing.assert_allclose(layer(x).numpy(), expected, rtol=0, atol=1e-13)


# ------------------------------------------------------------------ no leaks, exactly


@BOTH_WAYS
def test_the_future_has_no_influence_and_receives_no_gradient_exactly(norm, fused):
    layer, memory = made(DecoderLayer, norm=norm), features(2, 4, seed=1)
    mask = causal_mask(5)
    with minigrad.fused(fused):
        for t in (1, 3):
            x = features(2, 5, requires_grad=True)
            out = layer(x, memory, mask, SOURCE_MASK)
            weighted_sum(out[:, :t]).backward()
            assert (x.grad.numpy()[:, t:] == 0).all()
            assert (x.grad.numpy()[:, :t] != 0).all()
            changed = x.numpy().copy()
            changed[:, t, :3] += 1
            after = layer(Tensor(changed), memory, mask, SOURCE_MASK)
            np.testing.assert_array_equal(after.numpy()[:, :t], out.numpy()[:, :t])
            assert (after.numpy()[:, t:] != out.numpy()[:, t:]).any(axis=-1).all()


@BOTH_WAYS
def test_padding_has_no_influence_on_real_tokens_and_receives_no_gradient_from_them_exactly(norm, fused):
    encoder, decoder = made(EncoderLayer, norm=norm), made(DecoderLayer, norm=norm)
    x, y = features(2, 4, requires_grad=True), features(2, 3, seed=1)
    with minigrad.fused(fused):
        memory = encoder(x, SOURCE_MASK)
        out = decoder(y, memory, TARGET_MASK, SOURCE_MASK)
        weighted_sum(out).backward()
        pad = SOURCE_IDS == 0
        np.testing.assert_array_equal(x.grad.numpy()[pad], 0)
        assert (x.grad.numpy()[~pad] != 0).all()
        x.copy_(np.where(pad[..., None], 1e3, x.numpy()))
        after = encoder(x, SOURCE_MASK)
        np.testing.assert_array_equal(after.numpy()[~pad], memory.numpy()[~pad])
        np.testing.assert_array_equal(decoder(y, after, TARGET_MASK, SOURCE_MASK).numpy(), out.numpy())


# ------------------------------------------------------------------ dropout


def test_one_dropout_object_in_two_places_draws_two_masks():
    dropout, x = nn.Dropout(0.5), Tensor(np.ones((40, 40)))
    with minigrad.random.fork(1):
        first, second = dropout(x).numpy(), dropout(x).numpy()
    both = (first * second > 0).mean()
    assert 0.2 < both < 0.3  # independent: (1/2)²
    assert set(np.unique(first)) == {0.0, 2.0}


def test_one_dropout_object_in_two_places_has_a_right_gradient():
    """Each place must keep the mask that it used: the last one is not good for both."""
    dropout = nn.Dropout(0.5)
    x = features(4, 4, requires_grad=True)
    check_gradients(lambda: weighted_sum(dropout(dropout(x * x).tanh() + x)), {"x": x})

    with minigrad.random.fork(6):
        inner = dropout(x)
        outer = dropout(inner * 3)
    outer.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), 12 * ((inner.numpy() != 0) & (outer.numpy() != 0)))


@pytest.mark.parametrize("layer", [EncoderLayer, DecoderLayer])
def test_in_evaluation_dropout_neither_drops_nor_scales(layer):
    inputs = [features(2, 4)] if layer is EncoderLayer else [features(2, 3), features(2, 4, seed=1)]
    with_dropout, without = made(layer, dropout=0.4), made(layer)
    expected = without(*inputs).numpy()
    assert (with_dropout(*inputs).numpy() != expected).any()
    np.testing.assert_array_equal(with_dropout.eval()(*inputs).numpy(), expected)
    assert (with_dropout.train()(*inputs).numpy() != with_dropout(*inputs).numpy()).any()


def test_dropout_is_where_the_design_has_it():
    """On attention weights, the feed-forward's inner features, and each sublayer's output before it is added."""
    layer, shapes = made(DecoderLayer, dropout=0.25), []

    def visitor(name, tensor):
        if name == "dropped_weights":
            shapes.append(tensor.shape)
        return tensor

    with minigrad.random.fork(1), minigrad.tapping(visitor):
        layer(features(2, 3), features(2, 4, seed=1))
        assert minigrad.random.next_key().call == 2 + 1 + 3  # two attentions, one feed-forward, three residuals
    assert shapes == [(2, 2, 3, 3), (2, 2, 3, 4)]


def test_feed_forward_dropout_is_on_the_inner_features():
    layer, x = made(FeedForward, dropout=0.5), features(2, 3)
    with minigrad.random.fork(1):
        out = layer(x)
    with minigrad.random.fork(1):
        inner = F.dropout(F.relu(layer.inner(x)), 0.5)
    np.testing.assert_array_equal(out.numpy(), layer.outer(inner).numpy())
