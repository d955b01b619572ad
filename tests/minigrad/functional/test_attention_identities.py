"""The identities that hold for every attention, used as tests and as teaching.

With S the scaled scores, A = softmax(S) under the mask, O = A V, and dX the gradient of a loss with respect to X:

1. the rows of dS sum to 0;
2. Σⱼ Aᵢⱼ dAᵢⱼ = dOᵢ · Oᵢ;
3. dA may be non-zero at masked cells, while dS is exactly 0 there;
4. the gradient of a bias added to all keys is 0;
5. a query that sees one key has dQ = 0.
"""

import numpy as np
import pytest

from minigrad import Tensor, functional, grad, tapping

MASKS = {
    "no mask": None,
    "causal": np.tri(4, 5, dtype=bool),
    "padding": np.array([[[True] * 5], [[True, True, True, False, False]]])[:, None],  # (B, 1, 1, S)
    "one row fully masked": np.array([[True, False, True, False, True], [False] * 5, [True] * 5, [False] * 4 + [True]]),
}


def operands():
    rng = np.random.default_rng(6)
    return [Tensor(rng.normal(size=shape), requires_grad=True)
            for shape in ((2, 3, 4, 6), (2, 3, 5, 6), (2, 3, 5, 2))]  # (B, H, T, d), (B, H, S, d), (B, H, S, d_v)


def loss_of(out):
    return (out**3 + 2 * out).sum()


@pytest.fixture(params=MASKS.values(), ids=MASKS)
def mask(request):
    return request.param


@pytest.fixture
def traced(mask):
    """Every inner step and its gradient, as arrays, by name."""
    steps = {}

    def keep(name, tensor):
        tensor.retain_grad()
        steps[name] = tensor

    with tapping(keep):
        out = functional.scaled_dot_product_attention(*operands(), mask)
    loss_of(out).backward()
    return {name: (tensor.numpy(), tensor.grad.numpy()) for name, tensor in steps.items()}


def allowed(mask):
    return np.broadcast_to(True if mask is None else mask, (2, 3, 4, 5))


def test_rows_of_the_gradient_of_the_scores_sum_to_zero(traced):
    for name in ("scaled", "scores"):
        ds = traced[name][1]
        assert np.abs(ds).max() > 0.01
        np.testing.assert_allclose(ds.sum(axis=-1), 0, atol=1e-14 * np.abs(ds).max() * 5)


def test_weights_times_their_gradients_sum_to_output_times_its_gradient(traced):
    (weights, dweights), (out, dout) = traced["weights"], traced["context"]
    assert np.abs((out * dout).sum(axis=-1)).max() > 0.01
    np.testing.assert_allclose((weights * dweights).sum(axis=-1), (out * dout).sum(axis=-1), rtol=1e-12, atol=1e-14)


def test_masked_cells_have_a_gradient_of_the_weight_but_none_of_the_score(traced, mask):
    (weights, dweights), masked = traced["weights"], ~allowed(mask)
    np.testing.assert_array_equal(traced["scaled"][1][masked], 0)
    np.testing.assert_array_equal(weights[masked], 0)
    seeing = masked & allowed(mask).any(axis=-1, keepdims=True)  # a blind row has O = 0, but dO is not
    assert (np.abs(dweights[seeing]) > 1e-6).all()


def test_the_gradient_of_a_bias_is_that_of_the_scores(traced, mask, form):
    """Without the scale, 0 in masked cells, and the sum over the axes along which it broadcasts."""
    full, by_head = (Tensor(np.zeros(shape), requires_grad=True) for shape in ((2, 3, 4, 5), (3, 1, 1)))
    out = functional.scaled_dot_product_attention(*operands(), mask, attn_bias=full + by_head)
    of_full, of_heads = (g.numpy() for g in grad(loss_of(out), [full, by_head]))
    np.testing.assert_allclose(of_full, traced["scaled"][1], rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(of_full[~allowed(mask)], 0)
    np.testing.assert_allclose(of_heads, of_full.sum(axis=(0, 2, 3), keepdims=True)[0], atol=1e-13)


def test_the_gradient_of_a_key_bias_is_zero(mask, form):
    """A bias adds q·b to a whole row of scores, and softmax does not see what is added to a whole row."""
    q, k, v = operands()
    bias = Tensor(np.random.default_rng(7).normal(size=6), requires_grad=True)
    gb, gk = grad(loss_of(functional.scaled_dot_product_attention(q, k + bias, v, mask)), [bias, k])
    assert np.abs(gk.numpy()).max() > 0.01
    np.testing.assert_allclose(gb.numpy(), 0, atol=1e-13)


def test_a_query_that_sees_one_key_has_no_gradient(mask, form):
    q, k, v = operands()
    gq = grad(loss_of(functional.scaled_dot_product_attention(q, k, v, mask)), q).numpy()
    seen = allowed(mask).sum(axis=-1)
    np.testing.assert_allclose(gq[seen <= 1], 0, atol=1e-14)
    assert (np.abs(gq[seen > 1]).max(axis=-1) > 1e-4).all()
