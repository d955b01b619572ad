"""Wrong calls: an exception at the call, of the type a Python user expects, naming the operation and the operand."""

import inspect

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, ops
from minigrad import functional as F
from minigrad.arguments import public

X = Tensor(np.arange(6.0).reshape(2, 3), dtype=np.float32, requires_grad=True)
V = Tensor(np.arange(3.0), dtype=np.float32, requires_grad=True)

CALLS = {  # the kind of the error; the operation that it names, and the call
    ValueError: """
        add: X + X.T
        masked_fill: V[:2].masked_fill(X > 0, 0)
        clip: mg.clip(X)
        .any(): bool(X > 0)
        item: X.item()
        'cuda': X.to("gpu")
        squeeze: X[:1].squeeze((0, 0))
        squeeze: X.squeeze(1)
        mT: V.mT
        transpose: X[None].transpose(0, 1)
        flatten: X.flatten(1, 0)
        reshape: X.reshape(4, -1)
        concatenate: mg.concatenate([X, X.T])
        concatenate: mg.concatenate([])
        stack: mg.stack([X, V])
        split: X.split([1, 1], axis=1)
        split: X.split(0)
        pad: mg.pad(X, ((1, 1),) * 3)
        pad: mg.pad(X, ((0, 0), (-1, 0)))
        repeat: X.repeat(-1, 0)
        repeat: X.repeat([1, 2, 3], 0)
        tile: X.tile((2, -1))
        matmul: X @ X
        matmul: mg.broadcast_to(X, (2, 2, 3)) @ mg.broadcast_to(X.T, (4, 3, 2))
        gather: X.gather(0, [[0, 0, 0, 0]])
    """,
    TypeError: """
        add: X + None
        mul: X * 1j
        where: mg.where(X, X, 0)
        where: mg.where(X.detach(), X, 0)
        where: mg.where(X > 0, X, None)
        masked_fill: X.masked_fill(X, 0)
        flip: X.flip(0, 1)
        sum: mg.sum(X, dim=1)
        round: X.round(0.5)
        astype: X.astype(complex)
        astype: X.astype(None)
        pad: mg.pad(V, ((1, 0),), value=V.sum())
        zeros: mg.zeros("a")
        backward: X.sum().backward("a")
        grad: mg.grad(X.sum(), 3)
        grad: mg.grad([X.sum(), 3], X)
        .to(dtype=dtype): mg.nn.Linear(2, 2).to(np.float64)
        var: X.var(correction="1")
        sort: mg.sort(X, (0, 1))
        norm: mg.norm([3.0, 4.0])
        reshape: X.reshape(2.0, 3)
        concatenate: mg.concatenate(X, X)
        split: X.split([0.5, 1.5])
        pad: mg.pad(X, 1.5)
        repeat: X.repeat([1.0, 2.0], 0)
        tile: X.tile(2.0)
        matmul: X @ 2
        take: X.take([0.5], axis=0)
        gather: mg.gather(X, np.array([[0]]), 0)
    """,
    IndexError: """
        sum: X.sum(axis=2)
        softmax: F.softmax(X[:0], 2)
        expand_dims: X.expand_dims(4)
        getitem: X[2]
        take: X.take([0, 2], axis=0)
        take: X.take([0], axis=2)
    """,
    OverflowError: """
        sum: X.sum(axis=10**30)
    """,
}


@pytest.mark.parametrize(("kind", "line"), [(k, line.strip()) for k in CALLS for line in CALLS[k].strip().splitlines()])
def test_wrong_calls(kind, line):
    operation, _, call = line.partition(": ")
    with pytest.raises(kind) as caught:
        eval(call, globals())  # noqa: S307 - of our own writing
    assert type(caught.value) is kind
    assert operation in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("kind", "call"), [
    (ValueError, lambda x: x + x.T), (IndexError, lambda x: mg.take(x, [0, 2], axis=0)),
    (ValueError, lambda x: mg.concatenate([x, x.T]))])
def test_wrong_calls_on_a_gpu_say_the_same(kind, call, stand_in):
    with pytest.raises(kind, match=r"add|take|concatenate"):
        call(X.to("cuda:1"))


def test_nothing_is_changed_by_a_wrong_call():
    x = Tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(ValueError, match="mul"):
        x * Tensor([1.0, 2.0, 3.0])
    assert x.tolist() == [1, 2]
    assert x.grad is None


def test_the_name_is_that_of_the_function_called_by_the_user():
    @public
    def outer(x, axis=0):
        return inner(x, axis)

    @public
    def inner(x, axis):
        return mg.cumsum(x, axis)

    with pytest.raises(IndexError, match=r"^outer: axis 3 is out of bounds") as caught:
        outer(Tensor([1.0, 2.0]), axis=3)
    assert str(caught.value.__cause__).startswith("inner: ")  # the way there stays in the traceback
    assert outer(Tensor([1.0, 2.0]), axis=0).tolist() == [1, 3]
    assert str(inspect.signature(outer)) == "(x, axis=0)"


def test_an_attribute_error_inside_a_forward_stays_one():
    """It is not taken for an operand that is no array."""
    @mg.primitive
    def broken(x):
        return x.nothing_of_the_kind

    broken.gradient(x=lambda g: g)
    with pytest.raises(AttributeError, match=r"broken: .*nothing_of_the_kind"):
        broken(Tensor([1.0]))


REDUCTIONS = {name: getattr(ops, name) for name in [
    "sum", "mean", "max", "min", "var", "std", "norm", "any", "all", "argmax", "argmin", "logsumexp"]}


@pytest.mark.parametrize("name", [*REDUCTIONS, "softmax", "log_softmax"])
def test_a_list_of_axes_is_refused_alike_by_everything_that_reduces(name):
    """In host memory: CuPy takes a list for a tuple."""
    reduction = REDUCTIONS.get(name) or getattr(F, name)
    for axis in ([0, 1], [0], []):
        with pytest.raises(TypeError, match=f"^{name}: .*list"):
            reduction(Tensor(np.ones((2, 3))), axis=axis)
