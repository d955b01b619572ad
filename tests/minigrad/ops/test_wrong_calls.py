"""Wrong calls: an exception at the call, of the type a Python user expects, naming the operation and the operands."""

import inspect
import re

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, nn, ops
from minigrad import functional as F
from minigrad.arguments import public

# name: call on x (2, 3) and v (3,), both float32; the exception; what the message says, in any order
CALLS = {
    # shapes that do not broadcast
    "add": (lambda x, v: x + x.T, ValueError, ["add", "(2, 3)", "(3, 2)"]),
    "expand a new axis by -1": (lambda x, v: x.expand(-1, 2, 3), ValueError, ["expand", "-1", "(2, 3)"]),
    # operands of the wrong kind
    "add None": (lambda x, v: x + None, TypeError, ["add", "y: None"]),
    "mul by complex": (lambda x, v: x * 1j, TypeError, ["mul", "complex"]),
    "where condition with a gradient": (lambda x, v: mg.where(x, x, 0), TypeError,
                                        ["where", "condition", "must be boolean, such as x > 0"]),
    "where condition": (lambda x, v: mg.where(x.detach(), x, 0), TypeError, ["where", "boolean", "float32"]),
    "masked_fill mask": (lambda x, v: x.masked_fill(x, 0), TypeError, ["masked_fill", "boolean", "float32"]),
    "masked_fill shape": (lambda x, v: v[:2].masked_fill(x > 0, 0), ValueError, ["masked_fill", "(2, 3)", "(2,)"]),
    "clip without bounds": (lambda x, v: mg.clip(x), ValueError, ["clip", "min", "max"]),
    "truth": (lambda x, v: bool(x > 0), ValueError, ["(2, 3)", ".any()"]),
    "item": (lambda x, v: x.item(), ValueError, ["item", "(2, 3)"]),
    # arguments that do not exist
    "axes in a row": (lambda x, v: x.flip(0, 1), TypeError, ["flip(axis=None)", "3 were given"]),
    "unknown keyword": (lambda x, v: mg.sum(x, dim=1), TypeError, ["sum(x, axis=None, keepdims=False)", "'dim'"]),
    # axes
    "sum": (lambda x, v: x.sum(axis=2), IndexError, ["sum", "2"]),
    "an axis that fits no integer": (lambda x, v: x.sum(axis=10**30), OverflowError, ["sum", "axis", str(10**30)]),
    "softmax of nothing": (lambda x, v: F.softmax(x[:0], 2), IndexError, ["softmax", "2"]),
    "squeeze twice": (lambda x, v: x[:1].squeeze((0, 0)), ValueError, ["squeeze", "(0, 0)"]),
    "var by text": (lambda x, v: x.var(correction="1"), TypeError, ["var", "correction", "'1'"]),
    "round by a fraction": (lambda x, v: x.round(0.5), TypeError, ["round", "decimals", "0.5"]),
    "mT": (lambda x, v: v.mT, ValueError, ["mT", "(3,)"]),
    "squeeze": (lambda x, v: x.squeeze(1), ValueError, ["squeeze", "axis 1", "(2, 3)"]),
    "unsqueeze": (lambda x, v: x.unsqueeze(4), IndexError, ["unsqueeze", "4", "3"]),
    "sort over two axes": (lambda x, v: mg.sort(x, (0, 1)), TypeError, ["sort", "one int", "(0, 1)"]),
    "transpose of two axes": (lambda x, v: x[None].transpose(0, 1), ValueError, ["transpose", "swapaxes(0, 1)"]),
    # shapes
    "reshape": (lambda x, v: x.reshape(4, -1), ValueError, ["reshape", "(2, 3)", "(4, -1)"]),
    "reshape by a float": (lambda x, v: x.reshape(2.0, 3), TypeError, ["reshape", "float"]),
    "concatenate": (lambda x, v: mg.concatenate([x, x.T]), ValueError, ["concatenate", "(2, 3)", "(3, 2)"]),
    "concatenate in a row": (lambda x, v: mg.concatenate(x, x), TypeError, ["concatenate", "[a, b", "Tensor"]),
    "concatenate nothing": (lambda x, v: mg.concatenate([]), ValueError, ["concatenate", "at least one"]),
    "stack": (lambda x, v: mg.stack([x, v]), ValueError, ["stack", "(2, 3)", "(3,)"]),
    "split": (lambda x, v: x.split([1, 1], axis=1), ValueError, ["split", "[1, 1]", "3"]),
    "split into nothing": (lambda x, v: x.split(0), ValueError, ["split", "0"]),
    "pad": (lambda x, v: mg.pad(x, ((1, 1),) * 3), ValueError, ["pad", "2 axes", "((1, 1), (1, 1), (1, 1))"]),
    "pad in a row": (lambda x, v: mg.pad(x, (1, 1, 2, 2)), ValueError, ["pad", "2 axes", "(1, 1, 2, 2)"]),
    "pad by less than nothing": (lambda x, v: mg.pad(x, ((0, 0), (-1, 0))), ValueError, ["pad", "-1"]),
    "tril": (lambda x, v: mg.tril(v), ValueError, ["tril", "(3,)"]),
    "moveaxis twice": (lambda x, v: mg.moveaxis(x, (0, 0), (0, 1)), ValueError, ["moveaxis", "(0, 0)"]),
    "moveaxis unequally": (lambda x, v: mg.moveaxis(x, (0, 1), 0), ValueError, ["moveaxis", "(0, 1)", "(0,)"]),
    "flatten backwards": (lambda x, v: x.flatten(1, 0), ValueError, ["flatten", "start_axis 1", "end_axis 0"]),
    # products
    "matmul": (lambda x, v: x @ x, ValueError, ["matmul: x.shape[-1] == y.shape[-2], got (2, 3) and (2, 3)"]),
    "matmul by a vector": (lambda x, v: x.T @ v, ValueError, ["x.shape[-1] == y.shape[0], got (3, 2) and (3,)"]),
    "matmul by a number": (lambda x, v: x @ 2, ValueError, ["matmul", "(2, 3) and ()", "*"]),
    "matmul batches": (lambda x, v: x[None].expand(2, 2, 3) @ x.T[None].expand(4, 3, 2), ValueError,
                       ["matmul", "(2, 2, 3)", "(4, 3, 2)"]),
    "einsum letters": (lambda x, v: mg.einsum("ij,ij->ij", x, x.T), ValueError, ["einsum", "'i'", "2", "3"]),
    "einsum operands": (lambda x, v: mg.einsum("ij,jk->ik", x), ValueError, ["einsum", "2 operands", "1"]),
    "einsum rank": (lambda x, v: mg.einsum("ijk->i", x), ValueError, ["einsum", "'ijk'", "2 dimensions"]),
    "einsum output": (lambda x, v: mg.einsum("ij->k", x), ValueError, ["einsum", "'k'"]),
    "einsum output twice": (lambda x, v: mg.einsum("ij->ii", x), ValueError, ["einsum", "'ij->ii'"]),
    "einsum without subscripts": (lambda x, v: mg.einsum(x, x), TypeError, ["einsum", "subscripts", "Tensor"]),
    "einsum strange letters": (lambda x, v: mg.einsum("i!->i", x), ValueError, ["einsum", "i!->i"]),
    # places
    "getitem": (lambda x, v: x[2], IndexError, ["getitem", "2"]),
    "take": (lambda x, v: x.take([0, 2], axis=0), IndexError, ["take", "index 2", "axis 0", "(2, 3)"]),
    "take axis": (lambda x, v: x.take([0], axis=2), IndexError, ["take", "axis 2", "(2, 3)"]),
    "take by a negative index": (lambda x, v: x.take([0, -3], axis=0), IndexError, ["take", "index -3", "axis 0"]),
    "take by floats": (lambda x, v: x.take([0.5], axis=0), TypeError, ["take", "integers", "float64"]),
    "gather too long": (lambda x, v: x.gather(0, [[0, 0, 0, 0]]), ValueError, ["gather", "(1, 4)", "(2, 3)"]),
    "astype": (lambda x, v: x.astype(complex), TypeError, ["astype", "complex128"]),
    "to": (lambda x, v: x.to("gpu"), ValueError, ["'gpu'", "'cuda'"]),
    "gather in NumPy's order": (lambda x, v: mg.gather(x, np.array([[0]]), 0), TypeError,
                                ["gather(input, axis, index)", "ndarray"]),
    "index_put": (lambda x, v: mg.index_put(x, ([0], [3]), 1.0), IndexError, ["index_put", "3", "(2, 3)"]),
    "index_put shape": (lambda x, v: mg.index_put(x, [0, 1], v[:2]), ValueError, ["index_put", "(2,)", "(2, 3)"]),
    "one_hot": (lambda x, v: F.one_hot([0, 3], 3), IndexError, ["one_hot", "id 3", "[0, 3)"]),
    "one_hot of floats": (lambda x, v: F.one_hot(v), TypeError, ["one_hot", "integers", "float32"]),
    "one_hot of no classes": (lambda x, v: F.one_hot([0], 0), ValueError, ["one_hot", "num_classes", "0"]),
    "one_hot of nothing": (lambda x, v: F.one_hot(np.zeros(0, int)), ValueError, ["one_hot", "num_classes"]),
    "embedding of a vector": (lambda x, v: F.embedding([0], v), ValueError, ["embedding", "matrix", "(3,)"]),
    # no rule, but a gradient asked for
    "a recorded option": (lambda x, v: mg.pad(v, ((1, 0),), value=v.sum()), TypeError, ["pad", "'value'", ".detach()"]),
    # reductions
    "norm of a list": (lambda x, v: mg.norm([3.0, 4.0]), TypeError, ["norm", "list"]),
    "norm of a name": (lambda x, v: mg.norm(x, "l2"), ValueError, ["norm", "'fro'", "'l2'"]),
    "norm of NaN": (lambda x, v: mg.norm(v, float("nan")), ValueError, ["norm", "nan"]),
    "norm of a matrix": (lambda x, v: mg.norm(x, 1), ValueError, ["norm", "ord 1", "(2, 3)", "one axis"]),
    # sorting
    "topk": (lambda x, v: x.topk(4), ValueError, ["topk", "k must be from 0 to 3", "(2, 3)", "4"]),
    "topk by a float": (lambda x, v: x.topk(1.0), TypeError, ["topk", "float"]),
    # repeating
    "repeat by floats": (lambda x, v: x.repeat([1.0, 2.0], 0), TypeError, ["repeat", "integers", "float64"]),
    "repeat less than never": (lambda x, v: x.repeat(-1, 0), ValueError, ["repeat", "-1"]),
    "repeat by counts": (lambda x, v: x.repeat([1, 2, 3], 0), ValueError, ["repeat", "2 places", "(3,)", "tile"]),
    "tile": (lambda x, v: x.tile((2, -1)), ValueError, ["tile", "-1"]),
    "tile by too much": (lambda x, v: x.tile(10**30), ValueError, ["tile", str(10**30)]),
    "pad by a fraction": (lambda x, v: mg.pad(x, 1.5), TypeError, ["pad", "1.5"]),
    "tril by a float": (lambda x, v: mg.tril(x, 0.5), TypeError, ["tril", "k", "0.5"]),
    "astype None": (lambda x, v: x.astype(None), TypeError, ["astype", "dtype", "None"]),
    "tile by a float": (lambda x, v: x.tile(2.0), TypeError, ["tile", "2.0"]),
    # diagonals
    "diag": (lambda x, v: mg.diag(x[None]), ValueError, ["diag", "(1, 2, 3)", "diagonal"]),
    "diagonal": (lambda x, v: v.diagonal(), ValueError, ["diagonal", "(3,)"]),
    "diagonal of one axis": (lambda x, v: x.diagonal(0, 1, -1), ValueError, ["diagonal", "1", "-1"]),
    "split by fractions": (lambda x, v: x.split([0.5, 1.5]), TypeError, ["split", "0.5"]),
    # operands
    "layer_norm": (lambda x, v: F.layer_norm(x, 5), TypeError, ["layer_norm", "tensors", "weight: 5"]),
    "linear": (lambda x, v: F.linear(3.0, x), TypeError, ["linear", "tensors", "3.0"]),
    "dropout": (lambda x, v: F.dropout(x, "a"), TypeError, ["dropout", "'a'"]),
    "gelu": (lambda x, v: F.gelu("a"), TypeError, ["gelu: ", "str"]),
    "where": (lambda x, v: mg.where(x > 0, x, None), TypeError, ["where", "None"]),
    "backward": (lambda x, v: x.sum().backward("a"), TypeError, ["backward", "<U1"]),
    "grad by a number": (lambda x, v: mg.grad(x.sum(), 3), TypeError, ["grad", "inputs", "3"]),
    "grad of a list": (lambda x, v: mg.grad([x.sum(), 3], x), TypeError, ["grad", "output 1", "int"]),
    "zeros": (lambda x, v: mg.zeros("a"), TypeError, ["zeros", "'a'"]),
    "Module.to a dtype": (lambda x, v: nn.Linear(2, 2).to(np.float64), TypeError, ["float64", ".to(dtype=dtype)"]),
    "diagonal of unequal lengths": (lambda x, v: mg.einsum("ii->i", x[:1]), ValueError,
                                    ["einsum", "'i'", "[1, 3]", "(1, 3)"]),
}


def operands(device="cpu"):
    return [Tensor(np.arange(6.0)[:3 * n].reshape(shape), dtype=np.float32, device=device, requires_grad=True)
            for n, shape in ((2, (2, 3)), (1, (3,)))]


@pytest.mark.parametrize("name", CALLS)
def test_wrong_calls(name):
    call, kind, said = CALLS[name]
    with pytest.raises(kind) as caught:
        call(*operands())
    assert type(caught.value) is kind
    assert all(part in str(caught.value) for part in said), caught.value
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["add", "sum", "reshape", "concatenate", "take"])
def test_wrong_calls_on_a_gpu_say_the_same(name, stand_in):
    call, kind, said = CALLS[name]
    with pytest.raises(kind, match=re.escape(said[0])):
        call(*operands("cuda:1"))


@pytest.mark.parametrize("name", ["layer_norm", "linear", "gelu"])
def test_a_composition_names_the_operation_it_stands_for(name):
    call, kind, said = CALLS[name]
    with mg.fused(False), pytest.raises(kind, match=f"^{said[0]}"):
        call(*operands())


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


def test_an_error_of_another_kind_passes_as_it_is():
    @public
    def forbidden(x):
        raise RuntimeError("not this")

    with pytest.raises(RuntimeError, match=r"^not this$"):
        forbidden(1)


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
        with pytest.raises(TypeError, match=rf"^{name}: .* tuple of ints .* not a list \[operands: .*\[") as info:
            reduction(Tensor(np.ones((2, 3)), device=device), axis=axis)
        assert str(axis) in str(info.value)
