"""Wrong calls of products, norms, scans, sorting, repeating, diagonals, contractions and writing at places."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, ops
from minigrad import functional as F

from tests.minigrad.ops.wrong_call import refused

# name: call on x (2, 3) and v (3,), both float32; the exception; what the message says, in any order
CALLS = {
    # reductions
    "prod": (lambda x, v: x.prod(axis=2), IndexError, ["prod", "2"]),
    "prod of a list": (lambda x, v: mg.prod([1.0]), TypeError, ["prod", "list"]),
    "std": (lambda x, v: x.std(axis=-3), IndexError, ["std", "-3"]),
    "std of too few": (lambda x, v: x.std(axis=0, correction=2), ValueError, ["std", "correction 2", "(2, 3)"]),
    "norm": (lambda x, v: mg.norm(x, axis=2), IndexError, ["norm", "axis 2", "2 dimensions"]),
    "norm of a list": (lambda x, v: mg.norm([3.0, 4.0]), TypeError, ["norm", "list"]),
    "norm of a name": (lambda x, v: mg.norm(x, "l2"), ValueError, ["norm", "'fro'", "'l2'"]),
    "norm of NaN": (lambda x, v: mg.norm(v, float("nan")), ValueError, ["norm", "nan"]),
    "norm of a matrix": (lambda x, v: mg.norm(x, 1), ValueError, ["norm", "ord 1", "(2, 3)", "one axis"]),
    "norm over two axes": (lambda x, v: x.norm(2, axis=(0, 1)), ValueError, ["norm", "2 axes", "Frobenius"]),
    "norm, largest of nothing": (lambda x, v: mg.norm(x[:0], np.inf, axis=0), ValueError, ["norm", "(0, 3)"]),
    "median": (lambda x, v: x.median(axis=2), IndexError, ["median", "axis 2"]),
    "median of nothing": (lambda x, v: x[:0].median(axis=0), ValueError, ["median", "axis 0", "(0, 3)"]),
    # scans
    "cumprod": (lambda x, v: x.cumprod(2), IndexError, ["cumprod", "axis 2", "(2, 3)"]),
    "cumprod over all": (lambda x, v: x.cumprod(None), ValueError, ["cumprod", "(2, 3)"]),
    "logcumsumexp": (lambda x, v: x.logcumsumexp(-3), IndexError, ["logcumsumexp", "axis -3", "(2, 3)"]),
    "logcumsumexp of one number": (lambda x, v: v[0].logcumsumexp(0), ValueError, ["logcumsumexp", "()"]),
    "linear_recurrence": (lambda x, v: ops.linear_recurrence(v, x, 0), ValueError,
                          ["linear_recurrence", "(3,)", "(2, 3)"]),
    # sorting
    "sort": (lambda x, v: x.sort(2), IndexError, ["sort", "axis 2", "(2, 3)"]),
    "sort of one number": (lambda x, v: v[0].sort(), IndexError, ["sort", "()"]),
    "sort of a list": (lambda x, v: mg.sort([2.0, 1.0]), TypeError, ["sort", "list"]),
    "argsort": (lambda x, v: x.argsort(-3), IndexError, ["argsort", "axis -3", "(2, 3)"]),
    "topk": (lambda x, v: x.topk(4), ValueError, ["topk", "k must be from 0 to 3", "(2, 3)", "4"]),
    "topk, less than none": (lambda x, v: x.topk(-1), ValueError, ["topk", "-1"]),
    "topk by a float": (lambda x, v: x.topk(1.0), TypeError, ["topk", "float"]),
    "topk axis": (lambda x, v: x.topk(1, axis=2), IndexError, ["topk", "axis 2", "(2, 3)"]),
    # shapes
    "moveaxis": (lambda x, v: mg.moveaxis(x, 0, 2), IndexError, ["moveaxis", "axis 2", "(2, 3)"]),
    "moveaxis twice": (lambda x, v: mg.moveaxis(x, (0, 0), (0, 1)), ValueError, ["moveaxis", "(0, 0)"]),
    "moveaxis unequally": (lambda x, v: mg.moveaxis(x, (0, 1), 0), ValueError, ["moveaxis", "(0, 1)", "(0,)"]),
    "flatten": (lambda x, v: x.flatten(2), IndexError, ["flatten", "axis 2", "(2, 3)"]),
    "flatten backwards": (lambda x, v: x.flatten(1, 0), ValueError, ["flatten", "start_axis 1", "end_axis 0"]),
    "roll": (lambda x, v: x.roll(1, 2), IndexError, ["roll", "2"]),
    "roll by too many": (lambda x, v: x.roll((1, 2, 3), (0, 1)), ValueError, ["roll", "(1, 2, 3)", "(0, 1)"]),
    "roll by a float": (lambda x, v: x.roll(0.5), TypeError, ["roll", "float"]),
    "chunk": (lambda x, v: x.chunk(0), ValueError, ["chunk", "0"]),
    "chunk axis": (lambda x, v: x.chunk(2, axis=2), IndexError, ["chunk", "axis 2", "(2, 3)"]),
    "unbind": (lambda x, v: x.unbind(2), IndexError, ["unbind", "axis 2", "(2, 3)"]),
    "hstack": (lambda x, v: mg.hstack([x, v]), ValueError, ["hstack", "(2, 3)", "(3,)"]),
    "vstack": (lambda x, v: mg.vstack([x, v[:2]]), ValueError, ["vstack", "(2, 3)", "(1, 2)"]),
    "vstack in a row": (lambda x, v: mg.vstack(x), TypeError, ["vstack", "[a, b", "Tensor"]),
    # repeating
    "repeat by floats": (lambda x, v: x.repeat([1.0, 2.0], 0), TypeError, ["repeat", "integers", "float64"]),
    "repeat less than never": (lambda x, v: x.repeat(-1, 0), ValueError, ["repeat", "-1"]),
    "repeat by counts": (lambda x, v: x.repeat([1, 2, 3], 0), ValueError, ["repeat", "2 places", "(3,)", "tile"]),
    "repeat as in PyTorch": (lambda x, v: x.repeat((2, 1)), ValueError, ["repeat", "6 places", "(2,)", "tile"]),
    "repeat along no axis": (lambda x, v: x.repeat(2, 3), IndexError, ["repeat", "axis 3", "(2, 3)", "tile"]),
    "repeat_interleave": (lambda x, v: mg.repeat_interleave(x, 2, 2), IndexError, ["repeat_interleave", "axis 2"]),
    "tile": (lambda x, v: x.tile((2, -1)), ValueError, ["tile", "(2, -1)"]),
    "tile by a float": (lambda x, v: x.tile(2.0), TypeError, ["tile", "2.0"]),
    "meshgrid": (lambda x, v: mg.meshgrid(v, x), ValueError, ["meshgrid", "(3,)", "(2, 3)"]),
    "meshgrid indexing": (lambda x, v: mg.meshgrid(v, v, indexing="yx"), ValueError, ["meshgrid", "'xy'", "'yx'"]),
    "meshgrid of lists": (lambda x, v: mg.meshgrid([1, 2], v), TypeError, ["meshgrid", "list"]),
    # diagonals
    "diag": (lambda x, v: mg.diag(x[None]), ValueError, ["diag", "(1, 2, 3)", "diagonal"]),
    "diagonal": (lambda x, v: v.diagonal(), ValueError, ["diagonal", "(3,)"]),
    "diagonal axis": (lambda x, v: x.diagonal(0, 0, 2), IndexError, ["diagonal", "axis 2", "(2, 3)"]),
    "diagonal of one axis": (lambda x, v: x.diagonal(0, 1, -1), ValueError, ["diagonal", "1", "-1"]),
    "trace": (lambda x, v: v.trace(), ValueError, ["trace", "(3,)"]),
    # contractions
    "outer": (lambda x, v: mg.outer(v, [1.0]), TypeError, ["outer", "list"]),
    "dot": (lambda x, v: mg.dot(x, x), ValueError, ["(2, 3) and (2, 3)"]),
    "dot of more dimensions": (lambda x, v: mg.dot(x[None], x), ValueError, ["dot", "(1, 2, 3)", "(2, 3)"]),
    "inner": (lambda x, v: mg.inner(x, v[:2]), ValueError, ["inner", "(2, 3)", "(2,)"]),
    "tensordot": (lambda x, v: mg.tensordot(x, x.T), ValueError, ["tensordot", "(2, 3)", "(3, 2)"]),
    "tensordot lengths": (lambda x, v: mg.tensordot(x, x, 1), ValueError, ["tensordot", "(-1,)", "(0,)", "(2, 3)"]),
    "tensordot axis": (lambda x, v: mg.tensordot(x, x, (2, 0)), IndexError, ["tensordot", "axis 2", "(2, 3)"]),
    "tensordot too many": (lambda x, v: mg.tensordot(x, v, 2), IndexError, ["tensordot", "axis 1", "(3,)"]),
    "tensordot unequally": (lambda x, v: mg.tensordot(x, v, ((0, 1), (0,))), ValueError, ["tensordot", "(0, 1)"]),
    "tensordot twice": (lambda x, v: mg.tensordot(x, x, ((0, 0), (0, 1))), ValueError, ["tensordot", "(0, 0)"]),
    "kron": (lambda x, v: mg.kron(x, 2.0), TypeError, ["kron", "float"]),
    # places
    "gather in NumPy's order": (lambda x, v: mg.gather(x, np.array([[0]]), 0), TypeError,
                                ["gather(input, axis, index)", "ndarray"]),
    "gather by a list": (lambda x, v: x.gather([[0]], 0), TypeError, ["gather(input, axis, index)", "list"]),
    "scatter_add in another order": (lambda x, v: mg.scatter_add(x, Tensor([[0]]), x, 0), TypeError,
                                     ["scatter_add(input, axis, index, src)", "Tensor"]),
    "scatter": (lambda x, v: mg.scatter(x, 0, [[2, 0, 0]], x[:1]), IndexError, ["scatter", "index 2", "axis 0"]),
    "scatter order": (lambda x, v: x.scatter([[0]], 0, 1.0), TypeError, ["scatter(input, axis, index, src)", "list"]),
    "scatter shape": (lambda x, v: x.scatter(0, [[0, 1]], x), ValueError, ["scatter", "(1, 2)", "(2, 3)"]),
    "scatter too long": (lambda x, v: x.scatter(1, [[0], [0], [0]], 1.0), ValueError, ["scatter", "(3, 1)", "(2, 3)"]),
    "scatter of a list": (lambda x, v: x.scatter(1, [[0]], [[1.0]]), TypeError, ["scatter", "list"]),
    "scatter by floats": (lambda x, v: x.scatter(1, [[0.0]], 1.0), TypeError, ["scatter", "integers", "float64"]),
    "index_select": (lambda x, v: x.index_select(1, [3]), IndexError, ["index_select", "index 3", "axis 1", "(2, 3)"]),
    "index_select order": (lambda x, v: mg.index_select(x, [0], 1), TypeError, ["index_select(input, axis, index)"]),
    "index_select by a matrix": (lambda x, v: x.index_select(0, [[0]]), ValueError, ["index_select", "(1, 1)", "take"]),
    "index_add": (lambda x, v: x.index_add(0, [0, 2], x), IndexError, ["index_add", "index 2", "axis 0", "(2, 3)"]),
    "index_add shape": (lambda x, v: x.index_add(0, [0], x), ValueError, ["index_add", "(1, 3)", "(2, 3)"]),
    "index_add order": (lambda x, v: mg.index_add(x, [0], 0, x), TypeError, ["index_add(input, axis, index, source)"]),
    "index_put": (lambda x, v: mg.index_put(x, ([0], [3]), 1.0), IndexError, ["index_put", "3", "(2, 3)"]),
    "index_put shape": (lambda x, v: mg.index_put(x, [0, 1], v[:2]), ValueError, ["index_put", "(2,)", "(2, 3)"]),
    "index_put too many": (lambda x, v: mg.index_put(x, (0, 0, 0), 1.0), IndexError, ["index_put", "too many"]),
    "index_put by floats": (lambda x, v: mg.index_put(x, [0.5], 1.0), IndexError, ["index_put", "integer"]),
    "masked_select": (lambda x, v: x.masked_select(x), TypeError, ["masked_select", "boolean", "float32"]),
    "masked_select shape": (lambda x, v: x.masked_select(v[:2] > 0), ValueError, ["masked_select", "(2,)", "(2, 3)"]),
    "masked_select by a list": (lambda x, v: v.masked_select([True] * 3), TypeError, ["masked_select", "list"]),
    "nonzero": (lambda x, v: mg.nonzero(v[0]), ValueError, ["nonzero", "0-d"]),
    "bincount": (lambda x, v: mg.bincount([0, -1]), ValueError, ["bincount", "-1"]),
    "bincount of floats": (lambda x, v: mg.bincount(v), TypeError, ["bincount", "integers", "float32"]),
    "bincount of a matrix": (lambda x, v: mg.bincount([[0, 1]]), ValueError, ["bincount", "(1, 2)"]),
    "bincount weights": (lambda x, v: mg.bincount([0, 1], v), ValueError, ["bincount", "(2,)", "(3,)"]),
    "bincount minlength": (lambda x, v: mg.bincount([0, 1], minlength=-1), ValueError, ["bincount", "-1"]),
    "one_hot": (lambda x, v: F.one_hot([0, 3], 3), IndexError, ["one_hot", "id 3", "[0, 3)"]),
    "one_hot of less than 0": (lambda x, v: F.one_hot([-1, 0]), IndexError, ["one_hot", "id -1", "[0, 1)"]),
    "one_hot of floats": (lambda x, v: F.one_hot(v), TypeError, ["one_hot", "integers", "float32"]),
    "one_hot of no classes": (lambda x, v: F.one_hot([0], 0), ValueError, ["one_hot", "num_classes", "0"]),
    "one_hot of nothing": (lambda x, v: F.one_hot(np.zeros(0, int)), ValueError, ["one_hot", "num_classes"]),
    "embedding of a vector": (lambda x, v: F.embedding([0], v), ValueError, ["embedding", "matrix", "(3,)"]),
    "embedding of more dimensions": (lambda x, v: F.embedding([0], x[None]), ValueError, ["embedding", "(1, 2, 3)"]),
    "einsum lengths": (lambda x, v: mg.einsum("ij,ij->", x[:, :0], x), ValueError, ["einsum", "'j'", "0", "3"]),
}


@pytest.mark.parametrize("name", CALLS)
def test_wrong_calls(name):
    assert not isinstance(refused(*CALLS[name]), AssertionError | AttributeError)
