"""Grouped-query attention: as if each head of keys and values were repeated, and what it refuses."""

import numpy as np
import pytest

from minigrad import Tensor, fused, grad
from minigrad import functional as F

attend = F.scaled_dot_product_attention
RNG = np.random.default_rng(41)
T, S = 3, 4
MASKS = {
    "none": None,
    "by key": RNG.random((S,)) < 0.6,
    "by query and key": RNG.random((T, S)) < 0.6,
    "by batch and key": RNG.random((2, 1, 1, S)) < 0.6,
    "by batch and query": RNG.random((2, 1, T, 1)) < 0.6,
    "by head and key": RNG.random((6, 1, S)) < 0.6,
    "by head and query": RNG.random((1, 6, T, 1)) < 0.6,
    "full, a row of nothing": (RNG.random((2, 6, T, S)) < 0.6) & np.array([True, False, True])[:, None],
    "nothing": np.zeros((1, S), bool),
}


@pytest.fixture(params=[True, False], ids=["fused", "by steps"])
def form(request):
    with fused(request.param):
        yield


def qkv(shared, device="cpu", batch=(2,)):
    rng = np.random.default_rng(42)
    shapes = ((*batch, 6, T, 5), (*batch, shared, S, 5), (*batch, shared, S, 2))
    return [Tensor(rng.normal(size=shape), device=device, requires_grad=True) for shape in shapes]


def repeated(x):
    """Each head 6/H times in a row, by indexing: the gradient of a head is the sum over its copies."""
    heads = x.shape[-3]
    return x[..., np.repeat(np.arange(heads), 6 // heads), :, :]


def derivatives(out, inputs):
    """The value, the gradient, and the gradient of a function of the gradient."""
    start = Tensor(np.random.default_rng(43).normal(size=out.shape), device=out.device)
    first = grad((out * start).sum(), inputs, create_graph=True)
    second = grad(sum((g * g).sum() for g in first) + (out * out).sum(), inputs)
    return [x.numpy() for x in (out, *first, *second)]


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("shared", [1, 2, 3, 6])
@pytest.mark.parametrize("causal", [False, True])
def test_as_if_each_head_were_repeated(form, mask, shared, causal, device):
    q, k, v = qkv(shared, device)
    allowed = None if MASKS[mask] is None else Tensor(MASKS[mask], device=device)
    options = {"attn_mask": allowed, "is_causal": causal, "scale": 0.4}
    ours = derivatives(attend(q, k, v, enable_gqa=True, **options), [q, k, v])
    expected = derivatives(attend(q, repeated(k), repeated(v), **options), [q, k, v])
    for one, other in zip(ours, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("shared", [1, 2])
def test_weights_and_dropout_have_the_heads_of_the_queries(form, shared):
    q, k, v = qkv(shared)
    kept = np.random.default_rng(44).random((2, 6, T, S)) < 0.7
    options = {"dropped": kept, "dropout_p": 0.3, "return_weights": True}
    out, weights = attend(q, k, v, enable_gqa=True, **options)
    expected, expected_weights = attend(q, repeated(k), repeated(v), **options)
    assert weights.shape == (2, 6, T, S)
    np.testing.assert_allclose(out.numpy(), expected.numpy(), rtol=1e-12)
    np.testing.assert_allclose(weights.numpy(), expected_weights.numpy(), rtol=1e-12)
    loss, expected_loss = ((w * w * np.arange(S)).sum() for w in (weights, expected_weights))
    for one, other in zip(grad(loss, [q, k]), grad(expected_loss, [q, k]), strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-11, atol=1e-14)


def test_head_h_of_the_queries_reads_key_head_h_over_g():
    """A value head says its own number, so the output says which head was read."""
    q, k, v = qkv(3)
    numbers = Tensor(np.broadcast_to(np.arange(3.0)[:, None, None], v.shape))
    out = attend(q, k, numbers, enable_gqa=True)
    np.testing.assert_allclose(out.numpy()[..., 0], np.broadcast_to([[0], [0], [1], [1], [2], [2]], (2, 6, T)),
                               rtol=1e-14)


def test_queries_that_see_nothing_have_zero_output_and_gradient(form):
    q, k, v = qkv(2)
    out = attend(q, k, v, MASKS["full, a row of nothing"], enable_gqa=True)
    np.testing.assert_array_equal(out.numpy()[:, :, 1], 0)
    np.testing.assert_array_equal(grad((out**2).sum(), q).numpy()[:, :, 1], 0)


def test_leading_axes_still_broadcast(form):
    q, _, _ = qkv(2)
    _, k, v = qkv(2, batch=(1,))
    np.testing.assert_allclose(attend(q, k, v, MASKS["by query and key"], enable_gqa=True).numpy(),
                               attend(q, repeated(k), repeated(v), MASKS["by query and key"]).numpy(), rtol=1e-12)


def test_no_key_is_copied():
    """The tape keeps the keys as they are: H/G heads, not H."""
    q, k, v = qkv(1)
    node = attend(q, k, v, enable_gqa=True)._node.parents[0]
    sizes = [value.size for value in node.saved if isinstance(value, np.ndarray)]
    assert sorted(sizes) == sorted([q.size, k.size, v.size])


@pytest.mark.parametrize(("shapes", "said"), [
    (((2, 6, 3, 5), (2, 4, 4, 5), (2, 4, 4, 5)), r"the 6 heads of the query cannot share the 4 heads of key and value"),
    (((2, 2, 3, 5), (2, 6, 4, 5), (2, 6, 4, 5)), r"the 2 heads of the query cannot share the 6 heads"),
    (((2, 6, 3, 5), (2, 2, 4, 5), (2, 3, 4, 5)), r"key has 2 heads and value 3"),
    (((2, 6, 3, 5), (2, 0, 4, 5), (2, 0, 4, 5)), r"the 6 heads of the query cannot share the 0 heads"),
    (((3, 5), (4, 5), (4, 5)), r"enable_gqa needs an axis of heads.*\(3, 5\), \(4, 5\)"),
    (((3, 6, 3, 5), (2, 2, 4, 5), (2, 2, 4, 5)), r"leading axes.*\(3, 6, 3, 5\), \(2, 2, 4, 5\)"),
])
def test_heads_that_do_not_fit(shapes, said):
    with pytest.raises(ValueError, match=f"^scaled_dot_product_attention: .*{said}"):
        attend(*[Tensor(np.ones(shape)) for shape in shapes], enable_gqa=True)


def test_without_the_option_the_error_names_it():
    with pytest.raises(ValueError, match=r"leading axes.*\(2, 6, 3, 5\).*enable_gqa=True"):
        attend(*qkv(2))


@pytest.mark.parametrize("shape", [(2, 2, T, S), (2, 6, S, T), (3, S)])
def test_a_mask_is_for_the_heads_of_the_queries(shape):
    q, k, v = qkv(2)
    if shape == (3, S):
        attend(q, k, v, np.ones(shape, bool), enable_gqa=True)
        return
    with pytest.raises(ValueError, match=r"\(2, 6, 3, 4\)"):
        attend(q, k, v, np.ones(shape, bool), enable_gqa=True)
