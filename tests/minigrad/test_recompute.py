"""Gradient checkpointing: the same gradients of every order, from far less memory."""

import contextlib

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, nn
from minigrad import functional as F
from minigrad.func.checkpointing import checkpoint

from tests.minigrad.ops.row import host, leaf


def draw(*shape, seed=0, device="cpu"):
    return leaf(np.random.default_rng([seed, *shape]).normal(size=shape), device)


def block(x, weight):
    return mg.tanh(x @ weight) * x


def equal_gradients(found, expected):
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(host(a), host(b))


def test_gradients_are_those_without(device):
    """In a row, and one in another; to third order."""
    inputs = draw(3, 3, device=device), draw(3, 3, seed=1, device=device)

    def twice(x, w):
        return checkpoint(block, checkpoint(block, x, w), w)

    def derivatives(f):
        found = total = [f(*inputs)]
        for _ in range(3):
            total = mg.grad(sum(part.sum() for part in total), inputs, create_graph=True)
            found, total = [*found, *total], [total[0] * total[1]]
        f(*inputs).sum().backward()
        found += [x.grad for x in inputs]
        for x in inputs:
            x.grad = None
        return found

    expected = derivatives(lambda x, w: block(block(x, w), w))
    for f in (twice, lambda x, w: checkpoint(twice, x, w)):
        for a, b in zip(derivatives(f), expected, strict=True):
            np.testing.assert_allclose(host(a), host(b), rtol=1e-10)


def test_dropout_is_the_same_both_times_and_goes_on_after():
    def drop(x):
        return F.dropout(F.dropout(x, 0.5, True) * 3, 0.5, True)

    x = draw(50)
    with mg.random.fork(3):
        plain = [drop(x), drop(x)]
    with mg.random.fork(3):
        first, second = checkpoint(drop, x), drop(x)
        equal_gradients([first, second], plain)
        state = mg.random.get_state()
        gradient = mg.grad(first.sum(), x)
        assert mg.random.get_state() == state
    equal_gradients([gradient], [mg.grad(plain[0].sum(), x)])
    assert 0 < np.count_nonzero(host(gradient)) < 50


@pytest.mark.parametrize("inside", [True, False])
def test_the_second_forward_is_in_the_mode_of_the_first(inside):
    x, drop = draw(50), nn.Dropout(0.5)
    with nn.evaluating() if inside else contextlib.nullcontext():
        y = checkpoint(drop, x)
    with contextlib.nullcontext() if inside else nn.evaluating():
        gradient = mg.grad(y.sum(), x)
    equal_gradients([gradient], [y / x])


def test_the_tape_keeps_the_arguments_alone_and_the_function_runs_again():
    calls = []

    def long(x):
        calls.append(1)
        for _ in range(20):
            x = mg.tanh(x)
        return x

    x = draw(10)
    out = checkpoint(long, x)
    assert out._node.primitive.name == "checkpoint"
    assert [parent is x for parent in out._node.parents] == [True]
    assert len(calls) == 1
    out.sum().backward(retain_graph=True)
    assert len(calls) == 2
    out.sum().backward()
    assert len(calls) == 3
    with pytest.raises(RuntimeError, match="checkpoint: this part of the graph was already used"):
        out.sum().backward()
    with mg.no_grad():
        assert not checkpoint(long, x).requires_grad
    assert not checkpoint(long, x.detach()).requires_grad
    assert checkpoint(lambda x, *, factor: x * factor, x, factor=2.0).tolist() == (x * 2).tolist()


C = Tensor(np.ones((3, 3)))


@pytest.mark.parametrize(("function", "args", "changed"), [
    (lambda x, w: block(x, w), (), 1), (lambda x, w: mg.tanh(x + C), (), C),
    (lambda x, w, constants: mg.concatenate([x, constants[0]]), ([C],), C),
], ids=["an argument", "a constant it refers to", "a constant in a list"])
def test_a_change_in_between_is_an_error(function, args, changed):
    given = draw(3, 3), draw(3, 3, seed=1)
    out = checkpoint(function, *given, *args)
    (changed if changed is C else given[changed])[...] = 0.5
    with pytest.raises(RuntimeError, match=r"checkpoint: .*changed in place"):
        out.sum().backward()


def test_the_variable_of_a_loop_is_found_out():
    weights, h = [draw(3, seed=k) for k in range(3)], draw(3)
    for w in weights:
        h = checkpoint(lambda h: mg.tanh(h * w), h)  # noqa: B023 - all three will be called with the last w
    with pytest.raises(RuntimeError, match=r"checkpoint: .*\(3,\) .* argument"):
        h.sum().backward()


def test_a_function_that_does_not_repeat_itself():
    shapes = iter([(2,), (3,)])
    out = checkpoint(lambda x: mg.broadcast_to(x, next(shapes)), draw(1))
    with pytest.raises(RuntimeError, match=r"checkpoint: .*\(2,\) float64 .* \(3,\) float64"):
        out.sum().backward()
    with pytest.raises(TypeError, match=r"checkpoint: .* tensors, got float"):
        checkpoint(lambda x: 1.0, draw(1))
