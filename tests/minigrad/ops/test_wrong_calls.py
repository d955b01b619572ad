"""Wrong calls: an exception at the call, of the type a Python user expects, naming the operation and the operands."""

import re

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, ops

from tests.minigrad.ops.wrong_call import refused

# name: call on x (2, 3) and v (3,), both float32; the exception; what the message says, in any order
CALLS = {
    # shapes that do not broadcast
    "add": (lambda x, v: x + x.T, ValueError, ["add", "(2, 3)", "(3, 2)"]),
    "mul by a list": (lambda x, v: x * [1, 2], ValueError, ["mul", "(2, 3)", "(2,)"]),
    "power": (lambda x, v: x ** x.T, ValueError, ["power", "(2, 3)", "(3, 2)"]),
    "maximum": (lambda x, v: mg.maximum(x, x.T), ValueError, ["maximum", "(2, 3)", "(3, 2)"]),
    "less": (lambda x, v: x < x.T, ValueError, ["less", "(2, 3)", "(3, 2)"]),
    "where shapes": (lambda x, v: mg.where(x.T > 0, x, 0), ValueError, ["where", "(3, 2)", "(2, 3)"]),
    "broadcast_to": (lambda x, v: mg.broadcast_to(x, (2, 4)), ValueError, ["broadcast_to", "(2, 3)", "(2, 4)"]),
    "expand": (lambda x, v: x.expand(2, 4), ValueError, ["(2, 3)", "(2, 4)"]),
    "expand to fewer": (lambda x, v: x.expand(3), ValueError, ["expand", "(2, 3)", "(3,)"]),
    "expand a new axis by -1": (lambda x, v: x.expand(-1, 2, 3), ValueError, ["expand", "-1", "(2, 3)"]),
    "hypot": (lambda x, v: mg.hypot(x, x.T), ValueError, ["hypot", "(2, 3)", "(3, 2)"]),
    "atan2": (lambda x, v: mg.atan2(x, v[:2]), ValueError, ["atan2", "(2, 3)", "(2,)"]),
    "logaddexp": (lambda x, v: mg.logaddexp(x.T, x), ValueError, ["logaddexp", "(3, 2)", "(2, 3)"]),
    "remainder": (lambda x, v: x % x.T, ValueError, ["remainder", "(2, 3)", "(3, 2)"]),
    "floor_divide": (lambda x, v: x // x.T, ValueError, ["floor_divide", "(2, 3)", "(3, 2)"]),
    "lerp": (lambda x, v: mg.lerp(x, x.T, 0.5), ValueError, ["lerp", "(2, 3)", "(3, 2)"]),
    "addcmul": (lambda x, v: mg.addcmul(x, x, x.T), ValueError, ["addcmul", "(2, 3)", "(3, 2)"]),
    "addcdiv": (lambda x, v: mg.addcdiv(x, v, x.T), ValueError, ["addcdiv", "(3,)", "(3, 2)"]),
    # operands of the wrong kind
    "sin of a list": (lambda x, v: mg.sin([1.0]), TypeError, ["sin", "list"]),
    "floor of a number": (lambda x, v: mg.floor(2.5), TypeError, ["floor", "float"]),
    "isnan of text": (lambda x, v: mg.isnan("nan"), TypeError, ["isnan", "str"]),
    "atan2 of text": (lambda x, v: mg.atan2(x, "1"), TypeError, ["atan2", "str"]),
    "remainder of None": (lambda x, v: x % None, TypeError, ["remainder", "NoneType"]),
    "round by text": (lambda x, v: x.round("2"), TypeError, ["round", "decimals", "'2'"]),
    "round by a fraction": (lambda x, v: mg.round(x, decimals=1.5), TypeError, ["round", "decimals", "1.5"]),
    "nan_to_num by text": (lambda x, v: x.nan_to_num(nan="0"), TypeError, ["nan_to_num", "nan", "'0'"]),
    "lerp by text": (lambda x, v: mg.lerp(x, v, "0.5"), TypeError, ["lerp", "weight", "str"]),
    "add None": (lambda x, v: x + None, TypeError, ["add", "NoneType"]),
    "add text": (lambda x, v: x + "a", TypeError, ["add", "str"]),
    "add a list of text": (lambda x, v: x * ["a", "b", "c"], TypeError, ["mul", "'a'"]),
    "mul by complex": (lambda x, v: x * 1j, TypeError, ["mul", "complex"]),
    "exp of a list": (lambda x, v: mg.exp([1.0]), TypeError, ["list"]),
    "sum of a list": (lambda x, v: mg.sum([1.0]), TypeError, ["sum", "list"]),
    "NumPy's exp": (lambda x, v: np.exp(x), TypeError, ["__array_ufunc__"]),
    "and of floats": (lambda x, v: x & x, TypeError, ["logical_and", "float32"]),
    "not of floats": (lambda x, v: ~x, TypeError, ["logical_not", "float32"]),
    "where condition": (lambda x, v: mg.where(x.detach(), x, 0), TypeError, ["where", "boolean", "float32"]),
    "where condition with a gradient": (lambda x, v: mg.where(x, x, 0), TypeError,
                                        ["where", "condition", "must be boolean, such as x > 0"]),
    "where condition a list": (lambda x, v: mg.where([True], x, 0), TypeError, ["where", "boolean", "list"]),
    "masked_fill mask": (lambda x, v: x.masked_fill(x, 0), TypeError, ["masked_fill", "boolean", "float32"]),
    "masked_fill shape": (lambda x, v: v.masked_fill(x > 0, 0), ValueError, ["masked_fill", "(2, 3)", "(3,)"]),
    "clip without bounds": (lambda x, v: mg.clip(x), ValueError, ["clip", "min", "max"]),
    "clip by text": (lambda x, v: mg.clip(x, "0", v), TypeError, ["clip", "str", "Tensor"]),
    "clip by a tensor": (lambda x, v: mg.clip(x, v[:2]), ValueError, ["clip", "(2, 3)", "(2,)"]),
    "truth": (lambda x, v: bool(x > 0), ValueError, ["(2, 3)", ".any()"]),
    "item": (lambda x, v: x.item(), ValueError, ["item", "(2, 3)"]),
    # arguments that do not exist
    "unknown keyword": (lambda x, v: mg.sum(x, dims=1), TypeError, ["sum", "dims"]),
    "both spellings": (lambda x, v: x.sum(axis=1, dim=1), TypeError, ["sum", "dim is another name for axis"]),
    "dim without an axis": (lambda x, v: mg.exp(x, dim=1), TypeError, ["exp", "dim"]),
    "missing argument": (lambda x, v: mg.swapaxes(x, 0), TypeError, ["swapaxes", "axis2"]),
    # axes
    "sum": (lambda x, v: x.sum(axis=2), IndexError, ["sum", "2"]),
    "sum twice": (lambda x, v: x.sum(axis=(0, 0)), ValueError, ["sum", "duplicate"]),
    "sum over a list": (lambda x, v: x.sum(axis=[0]), TypeError, ["sum", "list"]),
    "mean": (lambda x, v: x.mean(axis=-3), IndexError, ["mean", "-3"]),
    "var": (lambda x, v: x.var(axis=2), IndexError, ["var", "2"]),
    "var of too few": (lambda x, v: x.var(axis=0, correction=2), ValueError, ["var", "correction 2", "(2, 3)"]),
    "max": (lambda x, v: x.max(axis=5), IndexError, ["max", "5"]),
    "max of nothing": (lambda x, v: x[:0].max(axis=0), ValueError, ["max", "(0, 3)"]),
    "logsumexp": (lambda x, v: x.logsumexp(axis=5), IndexError, ["logsumexp", "5"]),
    "cumsum": (lambda x, v: x.cumsum(2), IndexError, ["cumsum", "2"]),
    "cumsum over all": (lambda x, v: x.cumsum(None), ValueError, ["cumsum", "(2, 3)"]),
    "argmax": (lambda x, v: x.argmax(axis=2), IndexError, ["argmax", "2"]),
    "swapaxes": (lambda x, v: x.swapaxes(0, 2), IndexError, ["swapaxes", "2"]),
    "transpose": (lambda x, v: x.transpose(0, 1, 2), ValueError, ["transpose", "(2, 3)", "(0, 1, 2)"]),
    "transpose twice": (lambda x, v: x.transpose(1, 1), ValueError, ["transpose", "(1, 1)"]),
    "mT": (lambda x, v: v.mT, ValueError, ["mT", "(3,)"]),
    "flip": (lambda x, v: x.flip(2), IndexError, ["flip", "2"]),
    "squeeze": (lambda x, v: x.squeeze(1), ValueError, ["squeeze", "axis 1", "(2, 3)"]),
    "squeeze axis": (lambda x, v: x.squeeze(2), IndexError, ["squeeze", "axis 2", "(2, 3)"]),
    "unsqueeze": (lambda x, v: x.unsqueeze(4), IndexError, ["unsqueeze", "4", "3"]),
    # shapes
    "reshape": (lambda x, v: x.reshape(4, -1), ValueError, ["reshape", "(2, 3)", "(4, -1)"]),
    "reshape by a float": (lambda x, v: x.reshape(2.0, 3), TypeError, ["reshape", "float"]),
    "concatenate": (lambda x, v: mg.concatenate([x, x.T]), ValueError, ["concatenate", "(2, 3)", "(3, 2)"]),
    "concatenate in a row": (lambda x, v: mg.concatenate(x, x), TypeError, ["concatenate", "[a, b", "Tensor"]),
    "concatenate nothing": (lambda x, v: mg.concatenate([]), ValueError, ["concatenate", "at least one"]),
    "concatenate a list": (lambda x, v: mg.concatenate([x, [1.0]]), TypeError, ["concatenate", "list"]),
    "concatenate axis": (lambda x, v: mg.concatenate([x, x], axis=2), IndexError, ["concatenate", "2"]),
    "stack": (lambda x, v: mg.stack([x, v]), ValueError, ["stack", "(2, 3)", "(3,)"]),
    "stack nothing": (lambda x, v: mg.stack([]), ValueError, ["stack", "at least one"]),
    "stack a tensor": (lambda x, v: mg.stack(x), TypeError, ["stack", "Tensor"]),
    "stack axis": (lambda x, v: mg.stack([x, x], axis=4), IndexError, ["4"]),
    "split": (lambda x, v: x.split([1, 1], axis=1), ValueError, ["split", "[1, 1]", "3"]),
    "split into nothing": (lambda x, v: x.split(0), ValueError, ["split", "0"]),
    "split axis": (lambda x, v: x.split(1, axis=2), IndexError, ["split", "axis 2", "(2, 3)"]),
    "pad": (lambda x, v: mg.pad(x, ((1, 1),)), ValueError, ["pad", "2 axes", "((1, 1),)"]),
    "pad by less than nothing": (lambda x, v: mg.pad(x, ((0, 0), (-1, 0))), ValueError, ["pad", "-1"]),
    "pad by a number": (lambda x, v: mg.pad(x, 1), TypeError, ["pad", "1"]),
    "tril": (lambda x, v: mg.tril(v), ValueError, ["tril", "(3,)"]),
    "triu": (lambda x, v: mg.triu(v), ValueError, ["triu", "(3,)"]),
    # products
    "matmul": (lambda x, v: x @ x, ValueError, ["matmul: x.shape[-1] == y.shape[-2], got (2, 3) and (2, 3)"]),
    "matmul by a vector": (lambda x, v: x.T @ v, ValueError, ["x.shape[-1] == y.shape[0], got (3, 2) and (3,)"]),
    "matmul of vectors": (lambda x, v: v @ v[:2], ValueError, ["matmul", "(3,)", "(2,)"]),
    "matmul by a number": (lambda x, v: x @ 2, ValueError, ["matmul", "(2, 3) and ()", "*"]),
    "matmul batches": (lambda x, v: x[None].expand(2, 2, 3) @ x.T[None].expand(4, 3, 2), ValueError,
                       ["matmul", "(2, 2, 3)", "(4, 3, 2)"]),
    "matmul of a list": (lambda x, v: mg.matmul(x, [1.0, 2, 3]), TypeError, ["matmul", "list"]),
    "einsum letters": (lambda x, v: mg.einsum("ij,ij->ij", x, x.T), ValueError, ["einsum", "'i'", "2", "3"]),
    "einsum operands": (lambda x, v: mg.einsum("ij,jk->ik", x), ValueError, ["einsum", "2 operands", "1"]),
    "einsum rank": (lambda x, v: mg.einsum("ijk->i", x), ValueError, ["einsum", "'ijk'", "2 dimensions"]),
    "einsum output": (lambda x, v: mg.einsum("ij->k", x), ValueError, ["einsum", "'k'"]),
    "einsum output twice": (lambda x, v: mg.einsum("ij->ii", x), ValueError, ["einsum", "'ij->ii'"]),
    "einsum nothing": (lambda x, v: mg.einsum("->"), ValueError, ["einsum", "at least one"]),
    "einsum of a list": (lambda x, v: mg.einsum("i,i", v, [1.0, 2, 3]), TypeError, ["einsum", "list"]),
    "einsum without subscripts": (lambda x, v: mg.einsum(x, x), TypeError, ["einsum", "subscripts", "Tensor"]),
    "einsum strange letters": (lambda x, v: mg.einsum("i!->i", x), ValueError, ["einsum", "i!->i"]),
    "einsum output without ...": (lambda x, v: mg.einsum("...j->j", x), ValueError, ["einsum", "'...j->j'"]),
    "einsum two ellipses": (lambda x, v: mg.einsum("......->...", x), ValueError, ["einsum", "......"]),
    # places
    "getitem": (lambda x, v: x[2], IndexError, ["getitem", "2"]),
    "getitem too many": (lambda x, v: x[0, 0, 0], IndexError, ["getitem", "too many indices"]),
    "getitem by a float": (lambda x, v: x[1.0], IndexError, ["getitem"]),
    "getitem by a name": (lambda x, v: x["a"], IndexError, ["getitem"]),
    "getitem by floats": (lambda x, v: x[[0.5]], IndexError, ["getitem", "integer"]),
    "getitem by a mask": (lambda x, v: x[[True, False, True]], IndexError, ["getitem", "3"]),
    "take": (lambda x, v: x.take([0, 2], axis=0), IndexError, ["take", "index 2", "axis 0", "(2, 3)"]),
    "take before the start": (lambda x, v: x.take([-4], axis=1), IndexError, ["take", "index -4", "axis 1", "(2, 3)"]),
    "take of the flattened": (lambda x, v: x.take([6]), IndexError, ["take", "index 6", "(6,)"]),
    "take axis": (lambda x, v: x.take([0], axis=2), IndexError, ["take", "axis 2", "(2, 3)"]),
    "take by floats": (lambda x, v: x.take([0.5], axis=0), TypeError, ["take", "integers", "float64"]),
    "take by booleans": (lambda x, v: x.take([True], axis=0), TypeError, ["take", "integers", "bool"]),
    "gather": (lambda x, v: x.gather(0, [[3, 0, 0]]), IndexError, ["gather", "index 3", "axis 0", "(2, 3)"]),
    "gather shape": (lambda x, v: x.gather(0, [0]), ValueError, ["gather", "(1,)", "(2, 3)"]),
    "gather too long": (lambda x, v: x.gather(0, [[0, 0, 0, 0]]), ValueError, ["gather", "(1, 4)", "(2, 3)"]),
    "scatter_add": (lambda x, v: mg.scatter_add(x, 0, [[2, 0, 0]], x[:1]), IndexError, ["scatter_add", "index 2"]),
    "scatter_add shape": (lambda x, v: mg.scatter_add(x, 0, [[1, 0]], x), ValueError, ["scatter_add", "(1, 2)"]),
    "scatter_add a number": (lambda x, v: mg.scatter_add(x, 0, [[1]], 2.0), TypeError, ["scatter_add", "float"]),
    "astype": (lambda x, v: x.astype(complex), TypeError, ["astype", "complex128"]),
    "to": (lambda x, v: x.to("gpu"), ValueError, ["'gpu'", "'cuda'"]),
    # no rule, but a gradient asked for
    "a recorded option": (lambda x, v: mg.pad(v, ((1, 0),), value=v.sum()), TypeError, ["pad", "'value'", ".detach()"]),
}


@pytest.mark.parametrize("name", CALLS)
def test_wrong_calls(name):
    assert not isinstance(refused(*CALLS[name]), AssertionError | AttributeError)


SOME = ["add", "where shapes", "sum", "reshape", "concatenate", "matmul", "take", "gather too long", "masked_fill mask"]


@pytest.mark.parametrize("name", SOME)
def test_wrong_calls_on_a_gpu_say_the_same(name, stand_in):
    call, kind, said = CALLS[name]
    x = Tensor(np.arange(6.0).reshape(2, 3), dtype=np.float32, device="cuda:1", requires_grad=True)
    with pytest.raises(kind, match=re.escape(said[0])):
        call(x, x[0])


@pytest.mark.parametrize("call", [lambda x, y: x + y, lambda x, y: x @ y, lambda x, y: mg.concatenate([x, y]),
                                  lambda x, y: mg.where(x > 0, x, y), lambda x, y: mg.maximum(y, x), ops.less],
                         ids=["add", "matmul", "concatenate", "where", "maximum", "less"])
@pytest.mark.parametrize("places", [("cpu", "cuda:0"), ("cuda:1", "cuda:0")])
def test_operands_on_two_devices(call, places, stand_in):
    x, y = (Tensor(np.ones((2, 2)), device=place) for place in places)
    with pytest.raises(ValueError, match=r"operands on .*cuda.*\.to\(device\)") as caught:
        call(x, y)
    assert all(place in str(caught.value) for place in places)


def test_nothing_is_changed_by_a_wrong_call():
    x = Tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(ValueError, match="mul"):
        x * Tensor([1.0, 2.0, 3.0])
    assert x.tolist() == [1, 2]
    assert x.grad is None
