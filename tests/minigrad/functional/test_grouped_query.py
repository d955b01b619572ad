"""Grouped-query attention: as if each head of keys and values were repeated, without a copy."""

import numpy as np
import pytest

from minigrad import Tensor, grad
from minigrad import functional as F

attend = F.scaled_dot_product_attention
RNG = np.random.default_rng(41)
T, S = 3, 4
KEPT = RNG.random((2, 6, T, S)) < 0.7
OPTIONS = {
    "no mask": {},
    "by key": {"attn_mask": RNG.random((S,)) < 0.6},
    "by query and key": {"attn_mask": RNG.random((T, S)) < 0.6},
    "by batch and key": {"attn_mask": RNG.random((2, 1, 1, S)) < 0.6},
    "by batch and query": {"attn_mask": RNG.random((2, 1, T, 1)) < 0.6, "is_causal": True},
    "by head and key": {"attn_mask": RNG.random((6, 1, S)) < 0.6},
    "full, a row of nothing": {"attn_mask": KEPT & np.array([True, False, True])[:, None]},
    "dropped": {"dropped": KEPT, "dropout_p": 0.3},
}


def qkv(shared, device="cpu", batch=(2,)):
    rng = np.random.default_rng(42)
    shapes = ((*batch, 6, T, 5), (*batch, shared, S, 5), (*batch, shared, S, 2))
    return [Tensor(rng.normal(size=shape), device=device, requires_grad=True) for shape in shapes]


def repeated(x):
    """Each head 6/H times in a row, by indexing: the gradient of a head is the sum over its copies."""
    heads = x.shape[-3]
    return x[..., np.repeat(np.arange(heads), 6 // heads), :, :]


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("shared", [1, 2])
def test_as_if_each_head_were_repeated(name, shared, device):
    q, k, v = qkv(shared, device)
    options = {key: Tensor(value, device=device) if isinstance(value, np.ndarray) else value
               for key, value in OPTIONS[name].items()}
    found = []
    for keys, values, shares in ((k, v, True), (repeated(k), repeated(v), False)):
        alone = attend(q, keys, values, enable_gqa=shares, scale=0.4, **options)
        out, weights = attend(q, keys, values, enable_gqa=shares, scale=0.4, return_weights=True, **options)
        loss = (alone**2).sum() + (out**3).sum() + (weights**3).sum()
        found.append([alone, out, weights, *grad(loss, [q, k, v])])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-11, atol=1e-12)


def test_leading_axes_still_broadcast(form):
    q, _, _ = qkv(2)
    _, k, v = qkv(2, batch=(1,))
    mask = OPTIONS["by query and key"]["attn_mask"]
    np.testing.assert_allclose(attend(q, k, v, mask, enable_gqa=True).numpy(),
                               attend(q, repeated(k), repeated(v), mask).numpy(), rtol=1e-12)


def test_no_key_is_copied():
    """The tape keeps the keys as they are: H/G heads, not H."""
    q, k, v = qkv(1)
    node = attend(q, k, v, enable_gqa=True)._node.parents[0]
    sizes = [value.size for value in node.saved if isinstance(value, np.ndarray)]
    assert sorted(sizes) == sorted([q.size, k.size, v.size])
