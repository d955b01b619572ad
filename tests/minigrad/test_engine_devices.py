"""The engine on a device: the stand-in for CuPy, with its second device too, or a GPU where there is one."""

import copy
import pickle

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, functional, grad

from tests.strict_cupy import synchronizations


def leaf(values, device):
    return Tensor(np.array(values, np.float64), device=device, requires_grad=True)


def test_results_gradients_and_second_derivatives_equal_the_hosts(device):
    def run(place):
        rng = np.random.default_rng(3)
        x, w, b = (leaf(rng.normal(size=shape), place) for shape in ((2, 3, 4), (4, 4), (4,)))
        h = functional.layer_norm(functional.linear(x, w, b), b, b)
        h = functional.scaled_dot_product_attention(h, h, h, is_causal=True)
        loss = functional.cross_entropy(h, np.array([[0, 1, 2], [3, -100, 1]]), label_smoothing=0.1)
        loss.backward(retain_graph=True)
        first = grad(loss, [x, w, b], create_graph=True)
        second = grad(sum((g * g).sum() for g in first), [x, w, b])
        assert {t.device for t in (loss, *first, *second, x.grad)} == {place}
        return [t.numpy() for t in (loss, *first, *second, x.grad, w.grad, b.grad)]

    for here, there in zip(run("cpu"), run(device), strict=True):
        np.testing.assert_allclose(there, here, rtol=1e-10, atol=1e-13)


def test_everything_stays_on_its_device(gpu):
    x = leaf([[1.0, 2.0], [3.0, 4.0]], gpu)
    h = x * x
    h.retain_grad()
    y = (mg.exp(h * 0.1) + h[0] + x.T + h.sum(axis=0, keepdims=True)).sum()
    y.backward(retain_graph=True)
    y.backward()
    for t in (y, x.grad, h.grad, *x):
        assert t.device == gpu


def test_grad_and_its_copies_stay_on_the_device(gpu):
    x = leaf([1.0, 2.0], gpu)
    h = x + 1  # its gradient is lent, and copied for the caller
    y = (h * 3).sum()
    for t in grad(y, [x, x, h], retain_graph=True):
        assert t.device == gpu
        np.testing.assert_array_equal(t.numpy(), [3, 3])
    for start in ([1.0, 2.0], Tensor([1.0, 2.0], device=gpu), Tensor(np.float64([1, 2]), device=gpu).data):
        (g,) = grad(h, [x], start, retain_graph=True)
        assert g.device == gpu
        np.testing.assert_array_equal(g.numpy(), [1, 2])


def test_accumulating_rules_and_constants_stay_on_the_device(gpu):
    x = leaf(np.ones((3, 2)), gpu)
    loss = x[0].sum() + x[Tensor([0, 2], device=gpu)].sum() + functional.embedding([[1, 1]], x).sum()
    loss.backward()
    assert x.grad.device == gpu
    np.testing.assert_array_equal(x.grad.numpy(), [[2, 2], [2, 2], [1, 1]])


def test_methods_that_make_tensors_stay_on_the_device(gpu):
    x = leaf([[1.0, -2.0], [3.0, 4.0]], gpu)
    made = [x.astype(np.float32), x.astype(np.int64), x.clone(), x.detach(), copy.deepcopy(x), Tensor(x), x > 0,
            Tensor(x, dtype=np.float32), x.argmax(), x[x > 0], x.T, x == 1.0, x + np.float64(2), [1.0, 2.0] * x]
    assert {t.device for t in made} == {gpu}
    functional.dropout(x, 0.5).sum().backward()
    assert x.grad.device == gpu
    assert copy.deepcopy(x).grad.device == gpu
    assert mg.zeros(2, device=gpu).device == mg.arange(3, device=gpu).device == gpu


def test_tensors_made_where_nothing_is_recorded(gpu):
    """They are constants afterwards, but a leaf made there is a leaf; and on the device all of them."""
    with mg.no_grad():
        x, w = leaf([1.0, 2.0], gpu), mg.ones(2, np.float64, gpu) * 2
        copied, moved = x.clone(), x.to("cpu").to(gpu)
        drawn = functional.dropout(mg.ones(2, np.float64, gpu), 0.5)
    assert {t.device for t in (x, w, copied, moved, drawn)} == {gpu}
    assert [t.requires_grad for t in (x, w, copied, moved, drawn)] == [True, False, False, False, False]
    (x * w * copied * moved).sum().backward()
    assert x.grad.device == gpu
    np.testing.assert_array_equal(x.grad.numpy(), [2, 8])
    assert mg.is_grad_enabled()


def test_no_gradient_is_anothers_and_none_is_written_into_a_view(gpu):
    """A GPU's arrays have no flag that forbids writing: what `broadcast_to` gives looks like any other."""
    a, b = leaf([1.0, 2.0], gpu), leaf([3.0, 4.0], gpu)
    c = a + b
    c.retain_grad()
    (a * 5 + c).backward([1.0, 1.0])
    for tensor, expected in ((a, 6), (b, 1), (c, 1)):
        np.testing.assert_array_equal(tensor.grad.numpy(), expected)
    a.grad.copy_([7.0, 7.0])
    np.testing.assert_array_equal(b.grad.numpy(), 1)
    np.testing.assert_array_equal(c.grad.numpy(), 1)

    x = leaf([1.0, 2.0, 3.0], gpu)
    h = x * 1
    h.retain_grad()
    (h.sum() + (h * h).sum() + mg.broadcast_to(h, (2, 3)).mean() * 6).backward()
    for tensor in (x, h):
        np.testing.assert_array_equal(tensor.grad.numpy(), [5, 7, 9])


def test_changes_in_place(gpu):
    x = Tensor(np.zeros((2, 2)), device=gpu)
    x[0] = [1.0, 2.0]
    x[1, 0] = 3.0
    x[1, 1] = Tensor(4.0)  # from the host
    np.testing.assert_array_equal(x.numpy(), [[1, 2], [3, 4]])
    x.copy_(np.full((2, 2), 7.0))
    np.testing.assert_array_equal(x.numpy(), 7)
    w = leaf([1.0, 2.0], gpu)
    y = (x[0] * w).sum()
    x[...] = 0.0
    with pytest.raises(RuntimeError, match="changed in place"):
        y.backward()


def test_a_gradient_travels_between_devices(stand_in):
    x = leaf([1.0, 2.0], "cuda:0")
    there = (x.to("cuda:1") * 3).sum() + (x.to("cuda:1") * 4).sum()
    loss = there.to("cuda:0") + (x * x).sum() + (x.to("cpu") * 100).sum().to("cuda:0")
    assert loss.device == "cuda:0"
    loss.backward()
    assert x.grad.device == "cuda:0"
    np.testing.assert_array_equal(x.grad.numpy(), [109, 111])

    second = grad(grad(((x.to("cuda:1")) ** 3).sum(), x, create_graph=True).sum(), x)
    assert second.device == "cuda:0"
    np.testing.assert_array_equal(second.numpy(), [6, 12])


def test_to_is_the_identity_where_the_tensor_is(stand_in):
    x = leaf([1.0], "cuda:1")
    assert x.to("cuda:1") is x
    assert Tensor([1.0]).to("cpu").device == "cpu"
    with pytest.raises(ValueError, match="unknown device 'gpu'"):
        x.to("gpu")


MIXED = [
    lambda x, y: x + y, lambda x, y: x @ y.T, lambda x, y: mg.where(x > 0, y, y), lambda x, y: mg.concatenate([x, y]),
    lambda x, y: mg.einsum("ij,ij->i", x, y), lambda x, y: x > y, lambda x, y: functional.linear(x, y),
    lambda x, y: functional.scaled_dot_product_attention(x, x, y), lambda x, y: mg.maximum(x, y),
    lambda x, y: functional.layer_norm(x, y[0], y[0]),
    lambda x, y: functional.scaled_dot_product_attention(x, x, x, y > 0),
]


@pytest.mark.parametrize("operation", MIXED, ids=range(len(MIXED)))
@pytest.mark.parametrize(("one", "other"), [("cpu", "cuda:0"), ("cuda:0", "cpu"), ("cuda:0", "cuda:1")])
def test_operands_on_different_devices_are_named_with_the_remedy(stand_in, operation, one, other):
    x, y = leaf([[1.0, 2.0], [3.0, 4.0]], one), leaf([[1.0, 2.0], [3.0, 4.0]], other)
    with pytest.raises(ValueError, match=r"operands on (cpu|cuda:\d) and (cpu|cuda:\d); move one with \.to\(device\)"):
        operation(x, y)


def test_a_host_array_beside_a_device_tensor_is_named_too(stand_in):
    x = leaf([1.0, 2.0], "cuda:0")
    for compute in (lambda: x + np.ones(2), lambda: np.ones(2) * x):
        with pytest.raises(ValueError, match=r"operands on cpu and cuda:0; move one"):
            compute()


def test_a_gradient_to_start_from_on_another_device(stand_in):
    x = leaf([1.0, 2.0], "cuda:0")
    ones = np.ones(2)
    for start, place in ((ones, "cpu"), (Tensor(ones), "cpu"), (Tensor(ones, device="cuda:1"), "cuda:1")):
        with pytest.raises(ValueError, match=rf"the gradient is on {place}, the output on cuda:0; move one"):
            (x * 2).backward(start)


def test_ways_out(gpu):
    x = leaf([1.0, 2.0], gpu)
    copied = x.numpy()
    assert not copied.flags.writeable
    np.testing.assert_array_equal(copied, [1, 2])
    assert repr(x) == f"Tensor([1., 2.], shape=(2,), dtype=float64, device={gpu}, requires_grad=True)"
    assert float(x.sum()) == 3
    with pytest.raises(TypeError, match=rf"on {gpu}; use \.numpy\(\)"):
        np.asarray(x.detach())
    with pytest.raises(TypeError, match=rf"on {gpu} cannot be serialised; move it with \.to\('cpu'\)"):
        pickle.dumps(x.detach())
    with pytest.raises(TypeError, match="from_numpy"):
        mg.from_numpy(x.data)


def test_forward_and_backward_never_wait_for_the_device(stand_in):
    """A training step's tape is driven from the host: no value on the device decides what comes next."""
    x, w = leaf(np.ones((2, 3, 4)), "cuda:0"), leaf(np.ones((4, 4)), "cuda:0")
    ids, targets = Tensor([[0, 1, 2], [3, 0, 1]], device="cuda:0"), Tensor([[1, 2, -100]] * 2, device="cuda:0")
    mask = Tensor(np.ones((3, 3), bool), device="cuda:0")
    synchronizations.clear()
    h = functional.layer_norm(x @ w + functional.embedding(ids, w, padding_idx=0), w[0], w[1])
    h = functional.scaled_dot_product_attention(h, h, functional.dropout(h, 0.5), mask, 0.1, is_causal=True)
    h = functional.gelu(h).max(axis=-1, keepdims=True) + mg.relu(h) ** 2 + functional.softmax(h)
    functional.cross_entropy(h, targets, label_smoothing=0.1).backward()
    assert synchronizations == {}
