"""Multi-head attention: masks, weights, dropout, and the identities that hold for every attention.

The formula itself is in by_hand.py and, as PyTorch computes it, in test_pytorch.py.
"""

import numpy as np
import pytest

import minigrad
from minigrad import Tensor

from tests.transformer.differences import check_gradients, one_direction
from tests.transformer.tiny import jitter
from transformer import MultiHeadAttention, causal_mask, padding_mask

BATCH, QUERIES, KEYS, FEATURES, HEADS = 2, 4, 5, 8, 2
LENGTHS = np.array([5, 3])  # real keys in each sentence
REAL = padding_mask((np.arange(KEYS) < LENGTHS[:, None]).astype(int))  # (B, 1, 1, S)
CAUSAL = causal_mask(QUERIES)
SELF_MASK = REAL[..., :QUERIES] & CAUSAL


def made(dropout=0.0, device="cpu"):
    with minigrad.random.fork(1):
        module = MultiHeadAttention(FEATURES, HEADS, dropout)
    jitter(module)
    return module.to(device, np.float64)


def sequence(length, seed=0, requires_grad=False, device="cpu"):
    rng = np.random.default_rng(seed)
    return Tensor(rng.standard_normal((BATCH, length, FEATURES)), device=device, requires_grad=requires_grad)


def weighted_sum(out, seed=9):
    """A scalar in which every output counts differently."""
    return (out * Tensor(np.random.default_rng(seed).standard_normal(out.shape), device=out.device)).sum()


def cross_inputs(requires_grad=False, device="cpu"):
    """Query, key and value from three different places."""
    return [sequence(n, seed, requires_grad, device) for n, seed in ((QUERIES, 1), (KEYS, 2), (KEYS, 3))]


def test_asking_for_the_weights_changes_nothing_but_the_last_bits_and_gives_weights_before_dropout():
    module = made(dropout=0.5)
    inputs = cross_inputs()
    with minigrad.random.fork(2):
        plain = module(*inputs, REAL)
    with minigrad.random.fork(2):
        out, weights = module(*inputs, REAL, return_weights=True)
    np.testing.assert_allclose(out.numpy(), plain.numpy(), rtol=0, atol=1e-14)
    assert weights.shape == (BATCH, HEADS, QUERIES, KEYS)
    np.testing.assert_allclose(weights.numpy().sum(axis=-1), 1, rtol=0, atol=1e-14)
    assert (weights.numpy()[1, ..., LENGTHS[1]:] == 0).all()
    np.testing.assert_array_equal(weights.numpy(), module.eval()(*inputs, REAL, return_weights=True)[1].numpy())


def test_heads_that_do_not_divide_the_features_are_refused():
    with pytest.raises(ValueError, match=r"d_model \(8\).*num_heads \(3\)"):
        MultiHeadAttention(8, 3)


def test_gradients_flow_through_weights_that_were_returned(computing_device):
    module = made(dropout=0.3, device=computing_device)
    inputs = cross_inputs(requires_grad=True, device=computing_device)
    names = dict(zip(("query", "key", "value"), inputs, strict=True))

    def loss():
        out, weights = module(*inputs, REAL, return_weights=True)
        return weighted_sum(out) + weighted_sum(weights)

    check_gradients(loss, {**names, **dict(module.named_parameters())}, one_direction)


@pytest.mark.parametrize("fused", [True, False], ids=["fused", "by steps"])
def test_a_query_that_may_attend_to_nothing_gives_zero_and_zero_gradient(fused, device):
    module = made(device=device)
    query, key, value = cross_inputs(requires_grad=True, device=device)
    mask = np.array([True, False])[:, None, None, None] & np.ones((QUERIES, KEYS), bool)
    with minigrad.fused(fused):
        out, weights = module(query, key, value, mask, return_weights=True)
        np.testing.assert_array_equal(weights.numpy()[1], 0)
        np.testing.assert_array_equal(out.numpy()[1], np.broadcast_to(module.output.bias.numpy(), (QUERIES, FEATURES)))
        weighted_sum(module(query, key, value, mask)).backward()
    for tensor in (query, key, value):
        np.testing.assert_array_equal(tensor.grad.numpy()[1], 0)
        assert abs(tensor.grad.numpy()[0]).max() > 0
    assert all(np.isfinite(p.grad.numpy()).all() for p in module.parameters())


@pytest.mark.parametrize(("kind", "dropout"), [("self", 0.0), ("cross", 0.4)])
def test_rows_of_the_score_gradient_sum_to_zero(kind, dropout):
    module, inner = made(dropout), {}

    def keep(name, tensor):
        if tensor.requires_grad:
            tensor.retain_grad()
        inner[name] = tensor
        return tensor

    inputs, mask = (cross_inputs(), REAL) if kind == "cross" else ([sequence(QUERIES)] * 3, SELF_MASK)
    with minigrad.tapping(keep), minigrad.random.fork(3):
        weighted_sum(module(*inputs, mask)).backward()
    gradient = inner["scaled"].grad.numpy()
    assert abs(gradient).max() > 1e-2
    np.testing.assert_allclose(gradient.sum(axis=-1), 0, rtol=0, atol=1e-15 * gradient.shape[-1])
    left, right = ((inner[name].numpy() * inner[name].grad.numpy()).sum(axis=-1) for name in ("weights", "context"))
    np.testing.assert_allclose(left, right, rtol=0, atol=1e-14)  # Σⱼ Aᵢⱼ dAᵢⱼ = dOᵢ · Oᵢ
    masked = ~np.broadcast_to(mask, gradient.shape)
    assert abs(inner["weights"].grad.numpy()[masked]).max() > 1e-2
    for name in ("scaled", "scores", "masked"):
        assert (inner[name].grad.numpy()[masked] == 0).all(), name
    assert abs(module.key.bias.grad.numpy()).max() < 1e-14
