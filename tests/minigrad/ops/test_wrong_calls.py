"""Wrong calls: an exception at the call, of the type a Python user expects, naming the operation and the operand."""

import inspect

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, nn, ops
from minigrad import functional as F
from minigrad.arguments import public

X = Tensor(np.arange(6.0).reshape(2, 3), dtype=np.float32, requires_grad=True)
V = Tensor(np.arange(3.0), dtype=np.float32, requires_grad=True)

CALLS = [  # two parts of what is said: the operation, and what is wrong; the kind; the call
    # operands and arguments
    ("add", "(3, 2)", ValueError, lambda: X + X.T),
    ("add", "None", TypeError, lambda: X + None),
    ("mul", "complex", TypeError, lambda: X * 1j),
    ("where", "must be boolean", TypeError, lambda: mg.where(X, X, 0)),
    ("where", "float32", TypeError, lambda: mg.where(X.detach(), X, 0)),
    ("where", "None", TypeError, lambda: mg.where(X > 0, X, None)),
    ("masked_fill", "float32", TypeError, lambda: X.masked_fill(X, 0)),
    ("masked_fill", "(2,)", ValueError, lambda: V[:2].masked_fill(X > 0, 0)),
    ("clip", "max", ValueError, lambda: mg.clip(X)),
    (".any()", "(2, 3)", ValueError, lambda: bool(X > 0)),
    ("item", "(2, 3)", ValueError, lambda: X.item()),
    ("flip(axis=None)", "3 were given", TypeError, lambda: X.flip(0, 1)),
    ("sum", "'dim'", TypeError, lambda: mg.sum(X, dim=1)),
    ("round", "0.5", TypeError, lambda: X.round(0.5)),
    ("astype", "complex128", TypeError, lambda: X.astype(complex)),
    ("astype", "None", TypeError, lambda: X.astype(None)),
    ("'cuda'", "'gpu'", ValueError, lambda: X.to("gpu")),
    ("pad", ".detach()", TypeError, lambda: mg.pad(V, ((1, 0),), value=V.sum())),
    ("zeros", "'a'", TypeError, lambda: mg.zeros("a")),
    ("backward", "<U1", TypeError, lambda: X.sum().backward("a")),
    ("grad", "3", TypeError, lambda: mg.grad(X.sum(), 3)),
    ("grad", "output 1", TypeError, lambda: mg.grad([X.sum(), 3], X)),
    (".to(dtype=dtype)", "float64", TypeError, lambda: nn.Linear(2, 2).to(np.float64)),
    # axes
    ("sum", "2", IndexError, lambda: X.sum(axis=2)),
    ("sum", str(10**30), OverflowError, lambda: X.sum(axis=10**30)),
    ("softmax", "2", IndexError, lambda: F.softmax(X[:0], 2)),
    ("squeeze", "(0, 0)", ValueError, lambda: X[:1].squeeze((0, 0))),
    ("squeeze", "axis 1", ValueError, lambda: X.squeeze(1)),
    ("unsqueeze", "4", IndexError, lambda: X.unsqueeze(4)),
    ("var", "'1'", TypeError, lambda: X.var(correction="1")),
    ("mT", "(3,)", ValueError, lambda: V.mT),
    ("sort", "(0, 1)", TypeError, lambda: mg.sort(X, (0, 1))),
    ("transpose", "(0, 1)", ValueError, lambda: X[None].transpose(0, 1)),
    ("moveaxis", "(0, 0)", ValueError, lambda: mg.moveaxis(X, (0, 0), (0, 1))),
    ("flatten", "end_axis 0", ValueError, lambda: X.flatten(1, 0)),
    ("diagonal", "-1", ValueError, lambda: X.diagonal(0, 1, -1)),
    ("norm", "list", TypeError, lambda: mg.norm([3.0, 4.0])),
    ("norm", "'l2'", ValueError, lambda: mg.norm(X, "l2")),
    ("norm", "nan", ValueError, lambda: mg.norm(V, float("nan"))),
    ("norm", "one axis", ValueError, lambda: mg.norm(X, 1)),
    ("topk", "4", ValueError, lambda: X.topk(4)),
    ("topk", "float", TypeError, lambda: X.topk(1.0)),
    # shapes
    ("expand", "-1", ValueError, lambda: X.expand(-1, 2, 3)),
    ("reshape", "(4, -1)", ValueError, lambda: X.reshape(4, -1)),
    ("reshape", "float", TypeError, lambda: X.reshape(2.0, 3)),
    ("concatenate", "(3, 2)", ValueError, lambda: mg.concatenate([X, X.T])),
    ("concatenate", "[a, b", TypeError, lambda: mg.concatenate(X, X)),
    ("concatenate", "at least one", ValueError, lambda: mg.concatenate([])),
    ("stack", "(3,)", ValueError, lambda: mg.stack([X, V])),
    ("split", "[1, 1]", ValueError, lambda: X.split([1, 1], axis=1)),
    ("split", "0", ValueError, lambda: X.split(0)),
    ("split", "0.5", TypeError, lambda: X.split([0.5, 1.5])),
    ("pad", "2 axes", ValueError, lambda: mg.pad(X, ((1, 1),) * 3)),
    ("pad", "-1", ValueError, lambda: mg.pad(X, ((0, 0), (-1, 0)))),
    ("pad", "1.5", TypeError, lambda: mg.pad(X, 1.5)),
    ("tril", "(3,)", ValueError, lambda: mg.tril(V)),
    ("tril", "0.5", TypeError, lambda: mg.tril(X, 0.5)),
    ("diag", "(1, 2, 3)", ValueError, lambda: mg.diag(X[None])),
    ("diagonal", "(3,)", ValueError, lambda: V.diagonal()),
    ("repeat", "float64", TypeError, lambda: X.repeat([1.0, 2.0], 0)),
    ("repeat", "-1", ValueError, lambda: X.repeat(-1, 0)),
    ("repeat", "(3,)", ValueError, lambda: X.repeat([1, 2, 3], 0)),
    ("tile", "-1", ValueError, lambda: X.tile((2, -1))),
    ("tile", "2.0", TypeError, lambda: X.tile(2.0)),
    ("tile", str(10**30), ValueError, lambda: X.tile(10**30)),
    # products
    ("matmul", "(2, 3) and (2, 3)", ValueError, lambda: X @ X),
    ("matmul", "(2, 3) and ()", ValueError, lambda: X @ 2),
    ("matmul", "(4, 3, 2)", ValueError, lambda: X[None].expand(2, 2, 3) @ X.T[None].expand(4, 3, 2)),
    ("einsum", "'i'", ValueError, lambda: mg.einsum("ij,ij->ij", X, X.T)),
    ("einsum", "(1, 3)", ValueError, lambda: mg.einsum("ii->i", X[:1])),
    ("einsum", "2 operands", ValueError, lambda: mg.einsum("ij,jk->ik", X)),
    ("einsum", "2 dimensions", ValueError, lambda: mg.einsum("ijk->i", X)),
    ("einsum", "'k'", ValueError, lambda: mg.einsum("ij->k", X)),
    ("einsum", "'ij->ii'", ValueError, lambda: mg.einsum("ij->ii", X)),
    ("einsum", "i!->i", ValueError, lambda: mg.einsum("i!->i", X)),
    ("einsum", "subscripts", TypeError, lambda: mg.einsum(X, X)),
    # places
    ("getitem", "2", IndexError, lambda: X[2]),
    ("take", "index 2", IndexError, lambda: X.take([0, 2], axis=0)),
    ("take", "axis 2", IndexError, lambda: X.take([0], axis=2)),
    ("take", "float64", TypeError, lambda: X.take([0.5], axis=0)),
    ("gather", "(1, 4)", ValueError, lambda: X.gather(0, [[0, 0, 0, 0]])),
    ("gather", "ndarray", TypeError, lambda: mg.gather(X, np.array([[0]]), 0)),
    ("index_put", "3", IndexError, lambda: mg.index_put(X, ([0], [3]), 1.0)),
    ("index_put", "(2,)", ValueError, lambda: mg.index_put(X, [0, 1], V[:2])),
]


@pytest.mark.parametrize(("operation", "wrong", "kind", "call"), CALLS)
def test_wrong_calls(operation, wrong, kind, call):
    with pytest.raises(kind) as caught:
        call()
    said = str(caught.value)
    assert type(caught.value) is kind
    assert operation in said, said
    assert wrong in said, said
    assert "\n" not in said


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

    with pytest.raises(IndexError, match=r"^outer: axis 3 is out of range for shape \(2,\)$") as caught:
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
    "sum", "mean", "max", "min", "var", "std", "prod", "norm", "any", "all", "argmax", "argmin", "logsumexp"]}


@pytest.mark.parametrize("name", [*REDUCTIONS, "softmax", "log_softmax"])
def test_a_list_of_axes_is_refused_alike_by_everything_that_reduces(name, device):
    reduction = REDUCTIONS.get(name) or getattr(F, name)
    for axis in ([0, 1], [0], []):
        with pytest.raises(TypeError, match=f"^{name}: .*list"):
            reduction(Tensor(np.ones((2, 3)), device=device), axis=axis)
