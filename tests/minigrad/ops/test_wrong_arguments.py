"""Wrong arguments: numbers, text and None where a tensor, an axis or a size belongs, and PyTorch's spellings."""

import inspect

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, nn, ops
from minigrad import functional as F
from minigrad.arguments import public

from tests.minigrad.ops.wrong_call import refused

# name: call on x (2, 3) and v (3,), both float32; the exception; what the message says, in any order
CALLS = {
    # axes
    "sort over two axes": (lambda x, v: mg.sort(x, (0, 1)), TypeError, ["sort", "one int", "(0, 1)"]),
    "argsort by a fraction": (lambda x, v: x.argsort(1.0), TypeError, ["argsort", "float 1.0"]),
    "normalize over two axes": (lambda x, v: F.normalize(x, 2, (0, 1)), TypeError, ["normalize", "(0, 1)"]),
    "cosine_similarity": (lambda x, v: F.cosine_similarity(x, x, 1.5), TypeError, ["cosine_similarity", "1.5"]),
    "norm": (lambda x, v: mg.norm(x, 2, axis=4), IndexError, ["norm", "axis 4", "(2, 3)"]),
    "norm axis as text": (lambda x, v: x.norm(2, axis="a"), TypeError, ["norm", "'a'", "(2, 3)"]),
    "median": (lambda x, v: mg.median(x, 5), IndexError, ["median", "axis 5", "(2, 3)"]),
    "std": (lambda x, v: mg.std(x, axis=5), IndexError, ["std", "axis 5", "(2, 3)"]),
    "trace": (lambda x, v: mg.trace(x, axis1=5), IndexError, ["trace", "axis 5", "(2, 3)"]),
    "stack": (lambda x, v: mg.stack([x, x], axis=5), IndexError, ["stack", "axis 5"]),
    "stack along None": (lambda x, v: mg.stack([x, x], axis=None), TypeError, ["stack", "None"]),
    "concatenate": (lambda x, v: mg.concatenate([x, x], axis=(0, 1)), TypeError, ["concatenate", "(0, 1)"]),
    "unbind": (lambda x, v: x.unbind("a"), TypeError, ["unbind", "'a'"]),
    "permute": (lambda x, v: x.permute(0, 5), IndexError, ["permute", "axis 5"]),
    "squeeze": (lambda x, v: x.squeeze("a"), TypeError, ["squeeze", "'a'"]),
    "moveaxis": (lambda x, v: mg.moveaxis(x, "a", 0), TypeError, ["moveaxis", "'a'"]),
    "repeat": (lambda x, v: x.repeat(2, "a"), TypeError, ["repeat", "'a'"]),
    "cumsum": (lambda x, v: x.cumsum("a"), TypeError, ["cumsum", "'a'"]),
    "take": (lambda x, v: x.take([0], "a"), TypeError, ["take", "'a'"]),
    # sizes and counts
    "tensordot by a fraction": (lambda x, v: mg.tensordot(x, x, 2.0), TypeError, ["tensordot", "axes", "2.0"]),
    "tensordot, three axes": (lambda x, v: mg.tensordot(x, x, (0, 1, 2)), ValueError, ["tensordot", "(0, 1, 2)"]),
    "tensordot, less than none": (lambda x, v: mg.tensordot(x, x, -1), ValueError, ["tensordot", "axes", "-1"]),
    "tensordot axis": (lambda x, v: mg.tensordot(x, x, (0, "a")), TypeError, ["tensordot", "'a'"]),
    "split": (lambda x, v: mg.split(x, 1.5), TypeError, ["split", "1.5"]),
    "split by fractions": (lambda x, v: x.split([0.5, 1.5]), TypeError, ["split", "0.5"]),
    "split a list": (lambda x, v: mg.split([1, 2], 1), TypeError, ["split", "tensors", "[1, 2]"]),
    "chunk": (lambda x, v: x.chunk(1.5), TypeError, ["chunk", "1.5"]),
    "bincount": (lambda x, v: mg.bincount([1], minlength=1.5), TypeError, ["bincount", "minlength", "1.5"]),
    "bincount by text": (lambda x, v: mg.bincount([1], minlength="a"), TypeError, ["bincount", "minlength", "'a'"]),
    "one_hot": (lambda x, v: F.one_hot([1], num_classes=2.5), TypeError, ["one_hot", "num_classes", "2.5"]),
    "diag": (lambda x, v: mg.diag(v, "a"), TypeError, ["diag", "k", "'a'"]),
    "embedding padding": (lambda x, v: F.embedding([0], x, 1.5), TypeError, ["embedding", "padding_idx", "1.5"]),
    # operands
    "layer_norm": (lambda x, v: F.layer_norm(x, 5), TypeError, ["layer_norm", "tensors", "(2, 3) float32; 5"]),
    "rms_norm": (lambda x, v: F.rms_norm(3.0), TypeError, ["rms_norm", "tensors", "3.0"]),
    "conv1d": (lambda x, v: F.conv1d(x, x[None], 1.0), TypeError, ["conv1d", "tensors", "1.0"]),
    "linear": (lambda x, v: F.linear(3.0, x), TypeError, ["linear", "tensors", "3.0"]),
    "embedding": (lambda x, v: F.embedding([0], [0]), TypeError, ["embedding", "tensors", "[0]"]),
    "dropout": (lambda x, v: F.dropout(x, "a"), TypeError, ["dropout", "'a'"]),
    "dropout of a number": (lambda x, v: F.dropout(3.0, 0.5), TypeError, ["dropout", "tensors", "3.0"]),
    "attention": (lambda x, v: F.scaled_dot_product_attention(x, x, 3), TypeError,
                  ["scaled_dot_product_attention", "tensors", "3"]),
    "mse_loss": (lambda x, v: F.mse_loss(x, "a"), TypeError, ["mse_loss", "'a'"]),
    "mse_loss of None": (lambda x, v: F.mse_loss(x, None), TypeError, ["mse_loss", "None"]),
    "kl_div": (lambda x, v: F.kl_div(x, "a"), TypeError, ["kl_div", "'a'"]),
    "cross_entropy": (lambda x, v: F.cross_entropy(3, [1]), TypeError, ["cross_entropy", "tensors", "3"]),
    "cross_entropy weight": (lambda x, v: F.cross_entropy(x, [1, 1], "a"), TypeError, ["cross_entropy", "'a'"]),
    "elu": (lambda x, v: F.elu(x, "a"), TypeError, ["elu", "str"]),
    "silu": (lambda x, v: F.silu(3), TypeError, ["silu", "int"]),
    "gelu": (lambda x, v: F.gelu("a"), TypeError, ["gelu: ", "str"]),
    "lerp": (lambda x, v: mg.lerp(x, "a", 0.5), TypeError, ["lerp", "str"]),
    "addcmul": (lambda x, v: mg.addcmul(x, None, x), TypeError, ["addcmul", "None"]),
    "atan2": (lambda x, v: mg.atan2(x, None), TypeError, ["atan2", "tensors", "None"]),
    "where": (lambda x, v: mg.where(x > 0, x, None), TypeError, ["where", "None"]),
    "masked_fill": (lambda x, v: x.masked_fill(x > 0, None), TypeError, ["masked_fill", "NoneType"]),
    "gather": (lambda x, v: mg.gather(3, 0, [0]), TypeError, ["gather", "tensors", "3"]),
    "linear_recurrence": (lambda x, v: ops.linear_recurrence(x, 3, 0), TypeError, ["linear_recurrence", "tensors"]),
    "index_put": (lambda x, v: mg.index_put(x, 0, "a"), TypeError, ["index_put", "'a'"]),
    "index_put None": (lambda x, v: mg.index_put(x, (0,), None), TypeError, ["index_put", "None"]),
    "copy_": (lambda x, v: x.detach().copy_(None), TypeError, ["copy_", "None"]),
    "backward": (lambda x, v: x.sum().backward("a"), TypeError, ["backward", "'a'"]),
    "grad of a number": (lambda x, v: mg.grad(3, x), TypeError, ["grad", "outputs", "3"]),
    "grad by a number": (lambda x, v: mg.grad(x.sum(), 3), TypeError, ["grad", "inputs", "3"]),
    "grad of a list": (lambda x, v: mg.grad([x.sum(), 3], x), TypeError, ["grad", "output 1", "int"]),
    "grad from text": (lambda x, v: mg.grad(x.sum(), x, "a"), TypeError, ["grad", "'a'"]),
    "to a tensor": (lambda x, v: x.to(x), TypeError, ["to: ", "device", "Tensor"]),
    "to a dtype as text": (lambda x, v: x.to("float64"), ValueError, ["to: ", "device", "'float64'"]),
    "zeros": (lambda x, v: mg.zeros("a"), TypeError, ["zeros", "'a'"]),
    "eye": (lambda x, v: mg.eye(2.5), TypeError, ["eye", "2.5"]),
    "arange": (lambda x, v: mg.arange("a"), TypeError, ["arange", "'a'"]),
    "Module.to a dtype": (lambda x, v: nn.Linear(2, 2).to(np.float64), TypeError, ["float64", ".to(dtype=dtype)"]),
    "diagonal of unequal lengths": (lambda x, v: mg.einsum("ii->i", x[:1]), ValueError,
                                    ["einsum", "'i'", "[1, 3]", "(1, 3)"]),
    # PyTorch's spellings, and NumPy's
    "norm(p)": (lambda x, v: mg.norm(x, p=2), TypeError, ["norm(x, ord=None", "'p'", "p is called ord"]),
    "x.norm(p)": (lambda x, v: x.norm(p=2), TypeError, ["norm(x, ord=None", "p is called ord"]),
    "std(unbiased)": (lambda x, v: x.std(unbiased=True), TypeError, ["std(x, axis=None", "correction=1"]),
    "var(unbiased)": (lambda x, v: mg.var(x, unbiased=False), TypeError, ["var(x, axis=None", "correction=1"]),
    "std(ddof)": (lambda x, v: mg.std(x, ddof=1), TypeError, ["std(x", "ddof is called correction"]),
    "tensordot(dims)": (lambda x, v: mg.tensordot(x, x, dims=1), TypeError, ["tensordot(x, y", "called axes"]),
    "tile(dims)": (lambda x, v: x.tile(dims=2), TypeError, ["tile(reps)", "called reps"]),
    "flip(dims)": (lambda x, v: mg.flip(x, dims=0), TypeError, ["flip(x, axis=None)", "called axis"]),
    "roll(shifts)": (lambda x, v: x.roll(shifts=1), TypeError, ["roll(shift", "called shift"]),
    "diagonal(dim1, dim2)": (lambda x, v: x.diagonal(dim1=0, dim2=1), TypeError, ["called axis1", "called axis2"]),
    "tril(diagonal)": (lambda x, v: mg.tril(x, diagonal=1), TypeError, ["tril(x, k=0)", "called k"]),
    "sum(dtype)": (lambda x, v: x.sum(dtype=np.float64), TypeError, ["sum(x, axis=None", "'dtype'", ".astype(dtype)"]),
    "sum(out)": (lambda x, v: mg.sum(x, out=x), TypeError, ["sum(x", "'out'", "new tensor"]),
    "silu(inplace)": (lambda x, v: F.silu(x, inplace=True), TypeError, ["silu(input)", "'inplace'", "new tensor"]),
    "PyTorch's repeat": (lambda x, v: x.repeat(2, 1, 3), TypeError, ["repeat", "tile((2, 1))"]),
    "tile in a row": (lambda x, v: x.tile(2, 1), TypeError, ["tile(reps)", "one argument", "tile((2, 1))"]),
    "flip in a row": (lambda x, v: x.flip(0, 1), TypeError, ["flip", "one argument", "flip((0, 1))"]),
    "both spellings": (lambda x, v: mg.std(x, axis=1, dim=1), TypeError, ["std", "dim is another name for axis"]),
}


@pytest.mark.parametrize("name", CALLS)
def test_wrong_arguments(name):
    assert type(refused(*CALLS[name])) is CALLS[name][1]


@pytest.mark.parametrize("name", ["layer_norm", "linear", "gelu"])
def test_a_composition_names_the_operation_it_stands_for(name):
    call, kind, said = CALLS[name]
    x = Tensor(np.arange(6.0).reshape(2, 3), dtype=np.float32)
    with mg.fused(False), pytest.raises(kind, match=f"^{said[0]}"):
        call(x, x[0])


def test_the_name_is_that_of_the_function_called_by_the_user():
    @public
    def outer(x, axis=0):
        return inner(x, axis)

    @public
    def inner(x, axis):
        return mg.cumsum(x, axis)

    with pytest.raises(IndexError, match=r"^outer: axis 3 is out of range for shape \(2,\)$") as caught:
        outer(Tensor([1.0, 2.0]), dim=3)
    assert str(caught.value.__cause__).startswith("inner: ")  # the way there stays in the traceback
    assert outer(Tensor([1.0, 2.0]), dim=0).tolist() == [1, 3]
    assert str(inspect.signature(outer)) == "(x, axis=0)"


def test_other_errors_pass_as_they_are():
    @public
    def broken(x):
        return x.nothing_of_the_kind

    @public
    def forbidden(x):
        raise RuntimeError("not this")

    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        broken(Tensor([1.0]))
    with pytest.raises(RuntimeError, match=r"^not this$"):
        forbidden(1)


def test_an_error_inside_a_forward_of_arrays_alone_stays_an_attribute_error():
    @mg.primitive
    def broken(x):
        return x.nothing_of_the_kind

    broken.gradient(x=lambda g: g)
    with pytest.raises(AttributeError, match=r"broken: .*nothing_of_the_kind"):
        broken(Tensor([1.0]))
