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

from minigrad import Tensor, functional, fused, grad, tapping

MASKS = {
    "no mask": None,
    "causal": np.tri(4, 5, dtype=bool),
    "padding": np.array([[[True] * 5], [[True, True, True, False, False]]])[:, None],  # (B, 1, 1, S)
    "one row fully masked": np.array([[True, False, True, False, True], [False] * 5, [True] * 5, [False] * 4 + [True]]),
}


@pytest.fixture(params=MASKS, ids=str)
def mask(request):
    return MASKS[request.param]


def operands():
    rng = np.random.default_rng(6)
    return [Tensor(rng.normal(size=shape), requires_grad=True)
            for shape in ((2, 3, 4, 6), (2, 3, 5, 6), (2, 3, 5, 2))]  # (B, H, T, d), (B, H, S, d), (B, H, S, d_v)


def loss_of(out):
    return (out**3 + 2 * out).sum()


@pytest.fixture
def traced(mask):
    """Every inner step, by name, after a backward pass; each holds its gradient."""
    q, k, v = operands()
    steps = {}

    def keep(name, tensor):
        tensor.retain_grad()
        steps[name] = tensor
        return tensor

    with tapping(keep):
        out = functional.scaled_dot_product_attention(q, k, v, mask)
    loss_of(out).backward()
    return steps


def allowed(mask):
    return np.broadcast_to(True if mask is None else mask, (2, 3, 4, 5))


def test_rows_of_the_gradient_of_the_scores_sum_to_zero(traced):
    for name in ("scaled", "scores"):
        gradient = traced[name].grad.numpy()
        assert np.abs(gradient).max() > 0.01
        np.testing.assert_allclose(gradient.sum(axis=-1), 0, atol=1e-14 * np.abs(gradient).max() * 5)


def test_weights_times_their_gradients_sum_to_output_times_its_gradient(traced):
    weights, out = traced["weights"], traced["context"]
    left = (weights.numpy() * weights.grad.numpy()).sum(axis=-1)
    right = (out.numpy() * out.grad.numpy()).sum(axis=-1)
    assert np.abs(right).max() > 0.01
    np.testing.assert_allclose(left, right, rtol=1e-12, atol=1e-14)


def test_masked_cells_have_a_gradient_of_the_weight_but_none_of_the_score(traced, mask):
    masked = ~allowed(mask)
    if mask is None:
        assert not masked.any()
        return
    np.testing.assert_array_equal(traced["scaled"].grad.numpy()[masked], 0)
    np.testing.assert_array_equal(traced["weights"].numpy()[masked], 0)
    seeing = masked & allowed(mask).any(axis=-1, keepdims=True)  # a blind row has O = 0, but dO is not
    assert (np.abs(traced["weights"].grad.numpy()[seeing]) > 1e-6).all()


@pytest.mark.parametrize("enabled", [True, False], ids=["fused", "by steps"])
def test_the_gradient_of_a_key_bias_is_zero(mask, enabled):
    """A bias adds q·b to a whole row of scores, and softmax does not see what is added to a whole row."""
    q, k, v = operands()
    bias = Tensor(np.random.default_rng(7).normal(size=6), requires_grad=True)
    with fused(enabled):
        out = functional.scaled_dot_product_attention(q, k + bias, v, mask)
    gb, gk = grad(loss_of(out), [bias, k])
    assert np.abs(gk.numpy()).max() > 0.01
    np.testing.assert_allclose(gb.numpy(), 0, atol=1e-13)
    moved = functional.scaled_dot_product_attention(q, k + bias * 3, v, mask)
    np.testing.assert_allclose(moved.numpy(), out.numpy(), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("enabled", [True, False], ids=["fused", "by steps"])
def test_a_query_that_sees_one_key_has_no_gradient(mask, enabled):
    q, k, v = operands()
    with fused(enabled):
        out = functional.scaled_dot_product_attention(q, k, v, mask)
    gradient = grad(loss_of(out), q).numpy()
    seen = allowed(mask).sum(axis=-1)
    np.testing.assert_allclose(gradient[seen <= 1], 0, atol=1e-14)
    assert (np.abs(gradient[seen > 1]).max(axis=-1) > 1e-4).all()


@pytest.mark.parametrize("enabled", [True, False], ids=["fused", "by steps"])
def test_a_single_key_gives_its_value_and_no_gradient_to_query_and_key(enabled):
    q, k, v = (x[:, :, :n] for x, n in zip(operands(), (4, 1, 1), strict=True))
    with fused(enabled):
        out = functional.scaled_dot_product_attention(q, k, v)
    np.testing.assert_array_equal(out.numpy(), np.broadcast_to(v.numpy(), out.shape))
    gq, gk, gv = grad(loss_of(out), [q, k, v])
    np.testing.assert_allclose(gq.numpy(), 0, atol=1e-14)
    np.testing.assert_allclose(gk.numpy(), 0, atol=1e-14)
    np.testing.assert_allclose(gv.numpy(), (3 * out.numpy() ** 2 + 2).sum(axis=-2, keepdims=True), rtol=1e-13)


def test_the_traced_gradients_are_those_of_the_fused_primitive(traced, mask):
    """dQ = dS K · scale, and so on: the by-hand gradient from the traced steps equals what the fused one returns."""
    q, k, v = operands()
    gq, gk, gv = grad(loss_of(functional.scaled_dot_product_attention(q, k, v, mask)), [q, k, v])
    ds = traced["scaled"].grad.numpy() / np.sqrt(6)
    np.testing.assert_allclose(gq.numpy(), ds @ k.numpy(), rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(gk.numpy(), ds.swapaxes(-1, -2) @ q.numpy(), rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(gv.numpy(), traced["weights"].numpy().swapaxes(-1, -2) @ traced["context"].grad.numpy(),
                               rtol=1e-11, atol=1e-13)


def test_a_wrong_gradient_would_be_noticed(traced):
    """The first two identities fail for a softmax backward that forgets the term A (A·dA)."""
    weights, gradient = traced["weights"].numpy(), traced["weights"].grad.numpy()
    forgetful = weights * gradient
    assert np.abs(forgetful.sum(axis=-1)).max() > 0.01
