"""Attention: values, masks (True = may attend), weights, and dropout with a frozen mask."""

import contextlib
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as shapes

import minigrad as mg
from minigrad import Tensor, autocast, fused, grad, tapping
from minigrad import functional as F
from minigrad.kernels import only_definitions

attend = F.scaled_dot_product_attention


def qkv(batch, shared, queries=3, keys=4, d=5, d_v=3):
    """Queries in heads, and keys and values in as many, or in fewer that are shared."""
    rng = np.random.default_rng(0)
    sizes = ((*batch, queries, d), (*shared, keys, d), (*shared, keys, d_v))
    return [Tensor(rng.normal(size=size), requires_grad=True) for size in sizes]


def reference(q, k, v, mask, scale, bias, kept):
    """The definition, row by row: a softmax over the keys that a query may attend to, some of which are dropped."""
    lead = q.shape[:-2]
    k, v = (x.repeat(q.shape[-3] // x.shape[-3], -3) if lead else x for x in (k, v))  # a head of keys serves several
    allowed = np.broadcast_to(mask, (*lead, q.shape[-2], k.shape[-2]))
    bias = np.broadcast_to(bias, allowed.shape)
    weights, out = np.zeros(allowed.shape), np.zeros((*lead, q.shape[-2], v.shape[-1]))
    for row in np.ndindex(allowed.shape[:-1]):
        seen = allowed[row]
        if seen.any():
            scores = k[row[:-1]][seen] @ q[row] * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
            scores = scores + bias[row][seen]
            e = np.exp(scores - scores.max())
            weights[(*row, seen)] = e / e.sum()
            out[row] = (weights[row] * kept[row]) @ v[row[:-1]]
    return out, weights


@settings(derandomize=True, deadline=None, max_examples=60)
@given(data=st.data(), batch=shapes.array_shapes(min_dims=0, max_dims=2, max_side=2), queries=st.integers(1, 4),
       keys=st.integers(1, 4), d=st.integers(1, 3), d_v=st.integers(1, 3), causal=st.booleans(),
       scale=st.sampled_from([None, 0.3, 0.0]), biased=st.booleans(), p=st.sampled_from([0.0, 0.25]),
       served=st.integers(1, 3))
def test_any_mask_of_any_shape(data, batch, queries, keys, d, d_v, causal, scale, biased, p, served):
    """Against the definition and between the two forms, to second order; masks and biases broadcast from every side.

    Dropout is applied to the weights; those that are returned are the ones before it.
    """
    shared, batch = batch, (*batch[:-1], batch[-1] * served) if batch else ()
    full = (*batch, queries, keys)

    def broadcasting():
        drop = data.draw(st.integers(0, len(full)))
        return tuple(n if data.draw(st.booleans()) else 1 for n in full[drop:])

    mask = data.draw(shapes.arrays(np.bool_, broadcasting()))
    if mask.ndim == 2 and batch[:1] == (queries,):  # it would be ambiguous, unless causal
        mask = mask[(None,) * len(batch)]
    inputs = qkv(batch, shared, queries, keys, d, d_v)
    allowed = np.broadcast_to(mask, full) & (np.tri(queries, keys, dtype=bool) if causal else True)
    bias = Tensor(np.random.default_rng(1).normal(size=broadcasting()), requires_grad=True) if biased else None
    dropped = np.random.default_rng(5).random(full) < 0.6
    expected, expected_weights = reference(*[x.data for x in inputs], allowed, scale, bias.data if biased else 0.0,
                                           dropped / (1 - p))
    options = {"is_causal": causal, "scale": scale, "attn_bias": bias, "dropped": dropped, "dropout_p": p,
               "enable_gqa": batch != shared}
    inputs += [bias] if biased else []
    found = []
    for enabled in (True, False):
        with fused(enabled):
            out = attend(*inputs[:3], mask, **options)
            by_weights, weights = attend(*inputs[:3], mask, return_weights=True, **options)
        np.testing.assert_allclose(weights.numpy(), expected_weights, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(by_weights.numpy(), expected, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(out.numpy(), expected, rtol=1e-10, atol=1e-12)
        first = grad((out**2).sum(), inputs, create_graph=True)
        second = grad(sum((g**2).sum() for g in first), inputs, allow_unused=True)
        found.append([0 if g is None else g.numpy() for g in (*first, *second)])
        blind = ~allowed.any(axis=-1)
        np.testing.assert_array_equal(out.numpy()[blind], 0)
        np.testing.assert_array_equal(first[0].numpy()[blind], 0)
    for one, other in zip(*found, strict=True):
        assert np.isfinite(one).all()
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-11)


def test_heads_of_one_feature():
    """Their scores are divided by 1."""
    inputs = [Tensor(x.data) for x in qkv((2,), (2,), d=2, d_v=2)]
    apart = [x.data.reshape(2, -1, 2, 1).swapaxes(1, 2) for x in inputs]
    expected = reference(*apart, True, None, 0.0, np.ones((2, 2, 3, 4)))[0]
    np.testing.assert_allclose(attend(*apart), expected, rtol=1e-12)
    joined = F.multi_head_attention(*inputs, 2).numpy()
    np.testing.assert_allclose(joined, expected.swapaxes(1, 2).reshape(joined.shape), rtol=1e-12)


def looking():
    return tapping(lambda name, tensor: None)


FORMS = {"as it is": (), "in steps": (lambda: fused(False),), "defined": (only_definitions,), "looked at": (looking,),
         "in autocast": (autocast,), "looked at in autocast": (autocast, looking)}


@pytest.mark.parametrize("contexts", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("attention", [attend, lambda *x, **options: F.multi_head_attention(*x, 1, **options)],
                         ids=["heads apart", "side by side"])
def test_half_scores_are_scaled_before_they_overflow(contexts, weights, attention, gpu):
    """q·k is 102,400, and 12,800 with the scale."""
    device = gpu if autocast in contexts else "cpu"
    inputs = [Tensor(np.full((1, 2, 64), x, np.float16), device=device, requires_grad=True) for x in (40, 40, 1)]
    with contextlib.ExitStack() as stack:
        for context in contexts:
            stack.enter_context(context())
        out = attention(*inputs, return_weights=weights)
        out = out[0] if weights else out
        np.testing.assert_array_equal(out.numpy(), 1)
        for create_graph in (True, False):
            gradients = grad(out, inputs, mg.ones_like(out), create_graph=create_graph)
            for g, expected in zip(gradients, (0, 0, 1), strict=True):
                np.testing.assert_array_equal(g.numpy(), expected)
