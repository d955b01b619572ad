"""autocast with the rest of the engine: derivatives of any order, checkpoints, compiled kernels, attention."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, autocast, grad, nn
from minigrad import functional as F
from minigrad.device import to_numpy
from minigrad.func import checkpoint

from tests.minigrad.autocast_cases import HALF, IDS, MASK, PRODUCTS, SINGLE, WIDE, tensors


def network(device="cpu"):
    """A layer of everything, as a function of parameters that are leaves in float32."""
    mg.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 4)).to(device)
    (x,) = tensors((3, 6), device=device)
    return model, x


def check_same(found, expected):
    for g, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(to_numpy(g.data), to_numpy(other.data))


def test_a_parameter_used_twice_receives_one_gradient_in_float32(device):
    table, x = tensors((4, 4), (3, 4), device=device)
    with autocast():
        hidden = F.embedding(IDS, table)
        loss = F.linear_cross_entropy(F.layer_norm(hidden + x), table, IDS)
    loss.backward()
    assert (loss.dtype, table.grad.dtype, x.grad.dtype) == (SINGLE, SINGLE, SINGLE)
    exact = [t.detach().requires_grad_() for t in (table, x)]
    F.linear_cross_entropy(F.layer_norm(F.embedding(IDS, exact[0]) + exact[1]), exact[0], IDS).backward()
    for t, e in zip((table, x), exact, strict=True):
        np.testing.assert_allclose(to_numpy(t.grad.data), to_numpy(e.grad.data), rtol=0, atol=2e-3)


def test_linear_cross_entropy_has_logits_in_float16_and_its_loss_in_float32(form, device):
    x, w, b = inputs = tensors((3, 6), (4, 6), (4,), device=device)
    with autocast():
        loss = F.linear_cross_entropy(x, w, IDS, b, label_smoothing=0.1)
    by_hand = F.linear(*[t.astype(np.float16) for t in inputs])
    expected = F.cross_entropy(by_hand.astype(np.float32), IDS, label_smoothing=0.1)
    assert loss.dtype == SINGLE
    check_same([loss, *grad(loss, inputs)], [expected, *grad(expected, inputs)])


@pytest.mark.parametrize(("function", "shapes"), [(f, s) for f, *s in (PRODUCTS | WIDE).values()],
                         ids=(PRODUCTS | WIDE))
def test_second_derivatives(function, shapes):
    """First ones that can be differentiated are those that cannot; second ones are near those of float32."""
    inputs, (point,) = tensors(*shapes), tensors((1,), seed=3)

    def twice(cast):
        with autocast(enabled=cast):
            out = (function(*inputs) * 1.0).astype(np.float32)
        out = (out * out * point).sum()
        first = grad(out, inputs, retain_graph=True)
        with autocast(enabled=cast):
            again = grad(out, inputs, create_graph=True)
        for g, other in zip(first, again, strict=True):
            assert g.dtype == other.dtype == SINGLE
            np.testing.assert_allclose(other.data, g.data, rtol=0, atol=0.01 * np.abs(g.data).max() + 1e-12)
        return grad(sum((g * g).sum() for g in again), inputs)

    for g, expected in zip(twice(True), twice(False), strict=True):
        assert g.dtype == SINGLE
        np.testing.assert_allclose(g.data, expected.data, rtol=0, atol=0.02 * np.abs(expected.data).max() + 1e-12)


def test_what_is_recorded_by_a_backward_inside_is_not_cast():
    """The gradient of an operation in float32 is an operation in float32, wherever it runs."""
    x, w = tensors((3, 4), (5, 4))
    out = (F.linear(x, w) ** 2).sum()
    expected = grad(out, [x, w], create_graph=True)
    with autocast():
        found = grad(out, [x, w], create_graph=True)
    check_same(found, expected)


def test_a_checkpoint_is_computed_again_as_it_was():
    model, x = network()
    leaves = [x, *model.parameters()]
    with autocast():
        plain = F.cross_entropy(model(x), IDS)
        again = F.cross_entropy(checkpoint(model, x), IDS)
    assert plain.item() == again.item()
    check_same(grad(plain, leaves), grad(again, leaves))  # outside of the block
    outside = F.cross_entropy(checkpoint(model, x), IDS)
    with autocast():
        found = grad(outside, leaves)
    check_same(found, grad(F.cross_entropy(model(x), IDS), leaves))


def test_nothing_waits_for_a_gpu(stand_in):
    model, x = network("cuda")
    with autocast():
        out = model(x)
        heads = F.multi_head_attention(out[None], out[None], out[None], 2)
        loss = F.mse_loss(heads[0], out)
    stand_in.synchronizations.clear()
    loss.backward()
    with autocast():
        F.mse_loss(model(x), out)
    assert not stand_in.synchronizations


def test_compiled_kernels_stand_aside():
    pytest.importorskip("numba")
    inputs = tensors(*[(2, 3, 4)] * 3)

    def step():
        with autocast():
            out = F.multi_head_attention(*inputs, 2, MASK)
        return [out, *grad(out.sum(), inputs)]

    with mg.jit():
        compiled = step()
    assert compiled[0].dtype == HALF
    check_same(compiled, step())


# --- Attention in float16


def test_masked_cells_count_for_nothing(form, device):
    """Whatever they hold: as in float32. A row that may attend to nothing is zero, and so are its gradients."""
    (q, k, v) = inputs = tensors(*[(2, 2, 3, 4)] * 3, device=device)
    with autocast():
        out, weights = F.scaled_dot_product_attention(q, k, v, MASK, return_weights=True)
        fused_out = F.scaled_dot_product_attention(q, k, v, MASK)
    assert (fused_out.dtype, weights.dtype) == (HALF, SINGLE)
    np.testing.assert_array_equal(to_numpy(weights.data)[:, :, ~MASK], 0)
    np.testing.assert_array_equal(to_numpy(fused_out.data)[:, :, 1], 0)
    np.testing.assert_allclose(to_numpy(out.data), to_numpy(fused_out.data), rtol=0, atol=4e-3)
    gradients = [to_numpy(g.data) for g in grad((fused_out * fused_out).sum(), inputs)]
    assert all(np.isfinite(g).all() for g in gradients)
    np.testing.assert_array_equal(gradients[0][:, :, 1], 0)
    huge = to_numpy(k.data).copy()
    huge[:, :, 1] = 60_000  # scores are infinite in float16 where only row 2 may look
    with autocast(), np.errstate(over="ignore", invalid="ignore"):
        other = F.scaled_dot_product_attention(q, Tensor(huge, device=device), v, MASK)
    np.testing.assert_array_equal(to_numpy(other.data)[:, :, :2], to_numpy(fused_out.data)[:, :, :2])


@pytest.mark.parametrize(("length", "factor", "tolerance"), [(4096, 0.1, {"rtol": 2e-3}), (3, 40.0, {"atol": 0.02})])
def test_the_softmax_between_the_products_is_that_of_float32(length, factor, tolerance, form):
    """Weights of 1/4096 sum to 1; scores may be in the thousands, while exp overflows float16 beyond 11."""
    q, k, v = tensors((1, 2, 8), (1, length, 8), (1, length, 8))
    q, k, v = q * factor, k * max(factor, 1.0), v + 1.0
    with autocast():
        out = F.scaled_dot_product_attention(q, k, v)
    exact = F.scaled_dot_product_attention(*[t.astype(np.float16).astype(np.float64) for t in (q, k, v)])
    np.testing.assert_allclose(out.data, exact.data, **tolerance)
