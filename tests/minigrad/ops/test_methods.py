"""Every operator and method of Tensor does what the operation of its name does, by NumPy's or PyTorch's arguments."""

import inspect

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, ops
from minigrad.tensor.conversion import ArrayLike
from minigrad.tensor.methods import Methods

from tests.minigrad.ops.row import host, normal, positive

X, Y = positive(2, 3), positive(2, 3, seed=1)
IDS = np.array([[0, 1, 0]])

OPERATORS = {
    "__add__": (lambda x, y: x + y, ops.add),
    "__radd__": (lambda x, y: 2 + x, lambda x, y: ops.add(2, x)),
    "__sub__": (lambda x, y: x - y, ops.sub),
    "__rsub__": (lambda x, y: 2 - x, lambda x, y: ops.sub(2, x)),
    "__mul__": (lambda x, y: x * y, ops.mul),
    "__rmul__": (lambda x, y: 2 * x, lambda x, y: ops.mul(2, x)),
    "__truediv__": (lambda x, y: x / y, ops.div),
    "__rtruediv__": (lambda x, y: 2 / x, lambda x, y: ops.div(2, x)),
    "__pow__": (lambda x, y: x ** y, ops.power),
    "__rpow__": (lambda x, y: 2 ** x, lambda x, y: ops.power(2, x)),
    "__mod__": (lambda x, y: x % y, ops.remainder),
    "__rmod__": (lambda x, y: 2 % x, lambda x, y: ops.remainder(2, x)),
    "__floordiv__": (lambda x, y: x // y, ops.floor_divide),
    "__rfloordiv__": (lambda x, y: 2 // x, lambda x, y: ops.floor_divide(2, x)),
    "__matmul__": (lambda x, y: x @ y.T, lambda x, y: ops.matmul(x, ops.transpose(y))),
    "__rmatmul__": (lambda x, y: [1.0, 2.0] @ x, lambda x, y: ops.matmul(Tensor([1.0, 2.0], device=x.device), x)),
    "__neg__": (lambda x, y: -x, lambda x, y: ops.neg(x)),
    "__abs__": (lambda x, y: abs(x - 1), lambda x, y: ops.absolute(ops.sub(x, 1))),
    "__and__": (lambda x, y: (x > 1) & (y > 1), lambda x, y: ops.logical_and(x > 1, y > 1)),
    "__rand__": (lambda x, y: True & (x > 1), lambda x, y: x > 1),
    "__or__": (lambda x, y: (x > 1) | (y > 1), lambda x, y: ops.logical_or(x > 1, y > 1)),
    "__ror__": (lambda x, y: False | (x > 1), lambda x, y: x > 1),
    "__invert__": (lambda x, y: ~(x > 1), lambda x, y: x <= 1),
    "__eq__": (lambda x, y: x == y, ops.equal),
    "__ne__": (lambda x, y: x != y, ops.not_equal),
    "__lt__": (lambda x, y: x < y, ops.less),
    "__le__": (lambda x, y: x <= y, ops.less_equal),
    "__gt__": (lambda x, y: x > y, ops.greater),
    "__ge__": (lambda x, y: x >= y, ops.greater_equal),
    "__getitem__": (lambda x, y: x[1:, [0, 0]], lambda x, y: ops.getitem(x, (slice(1, None), [0, 0]))),
}
# Methods without arguments, defined wherever X is; then those that X is scaled into the domain of.
PLAIN = """
    exp exp2 expm1 log log2 log10 log1p sqrt rsqrt square reciprocal sin cos tan atan arctan sinh cosh
    tanh asinh arcsinh sigmoid erf floor ceil trunc sign isnan isinf isfinite nan_to_num
"""
SCALED = dict.fromkeys(["asin", "arcsin", "acos", "arccos", "atanh", "arctanh"], 0.4) | {"acosh": 4, "arccosh": 4}
PAIRED = ["maximum", "minimum", "atan2", "arctan2", "hypot", "logaddexp", "remainder", "floor_divide"]


def plain(name):
    return lambda x, y: getattr(x, name)(), getattr(mg, name)


def scaled(name, factor):
    return lambda x, y: getattr(x * factor, name)(), lambda x: getattr(mg, name)(x * factor)


def paired(name):
    return lambda x, y: getattr(x, name)(y), lambda x: getattr(mg, name)(x, Tensor(Y, device=x.device))


METHODS = {
    **{name: plain(name) for name in PLAIN.split()},
    **{name: scaled(name, factor) for name, factor in SCALED.items()},
    **{name: paired(name) for name in PAIRED},
    "relu": (lambda x, y: (x - 1).relu(), lambda x: mg.relu(x - 1)),
    "abs": (lambda x, y: (x - 1).abs(), lambda x: mg.absolute(x - 1)),
    "clip": (lambda x, y: x.clip(0.5, max=1), lambda x: mg.clip(x, min=0.5, max=1)),
    "round": (lambda x, y: x.round(1), lambda x: mg.round(x, decimals=1)),
    "lerp": (lambda x, y: x.lerp(2, 0.3), lambda x: mg.lerp(x, end=2, weight=0.3)),
    "addcmul": (lambda x, y: x.addcmul(x, 2, value=3), lambda x: mg.addcmul(x, x, 2, 3)),
    "addcdiv": (lambda x, y: x.addcdiv(2, x, value=3), lambda x: mg.addcdiv(x, 2, x, 3)),
    "sum": (lambda x, y: x.sum(0, True), lambda x: mg.sum(x, axis=0, keepdims=True)),
    "mean": (lambda x, y: x.mean(axis=1), lambda x: mg.mean(x, 1)),
    "var": (lambda x, y: x.var(1, correction=1), lambda x: mg.var(x, axis=1, correction=1)),
    "max": (lambda x, y: x.max(1), lambda x: mg.max(x, axis=1)),
    "min": (lambda x, y: x.min(axis=(0, 1)), lambda x: mg.min(x)),
    "logsumexp": (lambda x, y: x.logsumexp(1), lambda x: mg.logsumexp(x, axis=1)),
    "cumsum": (lambda x, y: x.cumsum(1), lambda x: mg.cumsum(x, axis=1)),
    "argmax": (lambda x, y: x.argmax(1), lambda x: mg.argmax(x, axis=1)),
    "any": (lambda x, y: (x > 2).any(1), lambda x: ops.any(x > 2, axis=1)),
    "all": (lambda x, y: (x < 2).all(1), lambda x: ops.all(x < 2, axis=1)),
    "reshape": (lambda x, y: x.reshape(3, 2), lambda x: mg.reshape(x, (3, 2))),
    "transpose": (lambda x, y: x.transpose(1, 0), lambda x: mg.transpose(x, (1, 0))),
    "permute": (lambda x, y: x.permute(1, 0), lambda x: mg.transpose(x, (1, 0))),
    "swapaxes": (lambda x, y: x.swapaxes(0, 1), lambda x: mg.swapaxes(x, 0, 1)),
    "T": (lambda x, y: x.T, mg.transpose),
    "mT": (lambda x, y: x.mT, mg.transpose),
    "squeeze": (lambda x, y: x[:1].squeeze(0), lambda x: mg.squeeze(x[:1], 0)),
    "unsqueeze": (lambda x, y: x.unsqueeze(1), lambda x: mg.expand_dims(x, 1)),
    "expand": (lambda x, y: x[:1].expand(4, -1), lambda x: mg.broadcast_to(x[:1], (4, 3))),
    "split": (lambda x, y: x.split([1, 2], axis=1)[1], lambda x: mg.split(x, [1, 2], 1)[1]),
    "flip": (lambda x, y: x.flip(1), lambda x: mg.flip(x, 1)),
    "take": (lambda x, y: x.take([0, 0], axis=1), lambda x: mg.take(x, [0, 0], 1)),
    "gather": (lambda x, y: x.gather(0, IDS), lambda x: mg.gather(x, axis=0, index=IDS)),
    "argmin": (lambda x, y: x.argmin(1), lambda x: mg.argmin(x, axis=1)),
    "std": (lambda x, y: x.std(1, correction=1), lambda x: mg.std(x, axis=1, correction=1)),
    "prod": (lambda x, y: x.prod(1), lambda x: mg.prod(x, axis=1)),
    "norm": (lambda x, y: x.norm(3, axis=0), lambda x: mg.norm(x, ord=3, axis=0)),
    "median": (lambda x, y: x.median(1), lambda x: mg.median(x, axis=1)),
    "cumprod": (lambda x, y: x.cumprod(1), lambda x: mg.cumprod(x, axis=1)),
    "logcumsumexp": (lambda x, y: x.logcumsumexp(1), lambda x: mg.logcumsumexp(x, axis=1)),
    "sort": (lambda x, y: x.sort(0, descending=True), lambda x: mg.sort(x, axis=0, descending=True)),
    "argsort": (lambda x, y: x.argsort(0), lambda x: mg.argsort(x, axis=0)),
    "topk": (lambda x, y: x.topk(2, axis=1, largest=False)[0], lambda x: mg.topk(x, k=2, axis=1, largest=False)[0]),
    "moveaxis": (lambda x, y: x.moveaxis(0, -1), lambda x: mg.moveaxis(x, 0, -1)),
    "ravel": (lambda x, y: x.ravel(), mg.ravel),
    "flatten": (lambda x, y: x[None].flatten(1), lambda x: mg.flatten(x[None], start_axis=1)),
    "chunk": (lambda x, y: x.chunk(2, axis=1)[1], lambda x: mg.chunk(x, 2, 1)[1]),
    "unbind": (lambda x, y: x.unbind(1)[2], lambda x: mg.unbind(x, axis=1)[2]),
    "roll": (lambda x, y: x.roll(1, axis=0), lambda x: mg.roll(x, 1, 0)),
    "repeat": (lambda x, y: x.repeat(2, axis=1), lambda x: mg.repeat(x, 2, 1)),
    "repeat_interleave": (lambda x, y: x.repeat_interleave(2, axis=1), lambda x: mg.repeat_interleave(x, 2, 1)),
    "tile": (lambda x, y: x.tile((2, 1)), lambda x: mg.tile(x, (2, 1))),
    "diag": (lambda x, y: x[0].diag(1), lambda x: mg.diag(x[0], k=1)),
    "diagonal": (lambda x, y: x.diagonal(1), lambda x: mg.diagonal(x, offset=1)),
    "trace": (lambda x, y: x.trace(1), lambda x: mg.trace(x, offset=1)),
    "dot": (lambda x, y: x.dot(x.T), lambda x: mg.dot(x, x.T)),
    "inner": (lambda x, y: x.inner(x), lambda x: mg.inner(x, x)),
    "outer": (lambda x, y: x.outer(x), lambda x: mg.outer(x, x)),
    "scatter": (lambda x, y: x.scatter(0, IDS, x[:1]), lambda x: mg.scatter(x, axis=0, index=IDS, src=x[:1])),
    "scatter_add": (lambda x, y: x.scatter_add(0, IDS, x[:1]),
                    lambda x: mg.scatter_add(x, axis=0, index=IDS, src=x[:1])),
    "index_select": (lambda x, y: x.index_select(1, [2, 0]), lambda x: mg.index_select(x, axis=1, index=[2, 0])),
    "index_add": (lambda x, y: x.index_add(0, [1], x[:1]), lambda x: mg.index_add(x, axis=0, index=[1], source=x[:1])),
    "index_put": (lambda x, y: x.index_put(([0], [1]), 7, accumulate=True),
                  lambda x: mg.index_put(x, ([0], [1]), 7, True)),
    "masked_select": (lambda x, y: x.masked_select(x > 1), lambda x: mg.masked_select(x, mask=x > 1)),
    "nonzero": (lambda x, y: (x - 1).relu().nonzero()[1], lambda x: mg.nonzero(mg.relu(x - 1))[1]),
    "argwhere": (lambda x, y: (x - 1).relu().argwhere(), lambda x: mg.argwhere(mg.relu(x - 1))),
    "bincount": (lambda x, y: x[0].argsort().bincount(x[0], 5), lambda x: mg.bincount(mg.argsort(x[0]), x[0], 5)),
    "masked_fill": (lambda x, y: x.masked_fill(x > 1, -1), lambda x: mg.masked_fill(x, x > 1, -1.0)),
    "astype": (lambda x, y: x.astype(np.float32), lambda x: ops.astype(x, np.dtype(np.float32))),
    "to": (lambda x, y: x.to("cpu"), lambda x: ops.to_device(x, "cpu")),
    "clone": (lambda x, y: x.clone(), lambda x: x * 1),
}
# What is no operation: facts, ways out of the engine, gradients, changes in place.
OTHERS = {
    "T", "mT", "backward", "bump_tick", "copy_", "data", "detach", "device", "dtype", "grad", "is_leaf", "item", "ndim",
    "numpy", "register_hook", "requires_grad", "requires_grad_", "retain_grad", "shape", "size", "tolist",
}


def test_every_method_is_in_the_table():
    defined = {name for cls in (Tensor, ArrayLike, Methods) for name in vars(cls)}
    assert {name for name in defined if not name.startswith("_")} - OTHERS == METHODS.keys() - OTHERS
    dunder = {name for name in OPERATORS if name in defined}
    assert dunder == OPERATORS.keys()
    arithmetic = {f"__{name}__" for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul",
                                             "and", "or")}
    assert arithmetic | {name.replace("__", "__r", 1) for name in arithmetic} <= OPERATORS.keys()


@pytest.mark.parametrize("name", OPERATORS | METHODS)
def test_a_method_is_its_operation(name, device):
    tensors = [Tensor(array, device=device, requires_grad=True) for array in (X, Y)]
    method, function = (OPERATORS | METHODS)[name]
    found = method(*tensors)
    expected = function(*tensors) if name in OPERATORS else function(tensors[0])
    assert found.dtype == expected.dtype
    assert found.requires_grad == expected.requires_grad
    np.testing.assert_array_equal(host(found), host(expected))
    if found.requires_grad:
        gradients = mg.grad(found.sum(), tensors[0]), mg.grad(expected.sum(), tensors[0])
        np.testing.assert_array_equal(host(gradients[0]), host(gradients[1]))


@pytest.mark.parametrize("operate", [lambda a, t: a + t, lambda a, t: a - t, lambda a, t: a * t, lambda a, t: a / t,
                                     lambda a, t: a ** t, lambda a, t: a @ t.T, lambda a, t: t - a, lambda a, t: a < t],
                         ids=["add", "sub", "mul", "div", "pow", "matmul", "swapped", "less"])
def test_a_numpy_array_beside_a_tensor(operate):
    """The tensor's operator decides: the graph is not cut, whichever stands first."""
    t = Tensor(Y, requires_grad=True)
    out = operate(X, t)
    assert isinstance(out, Tensor)
    np.testing.assert_allclose(host(out), operate(X, Y), rtol=1e-15)
    assert out.requires_grad == (out.dtype == np.float64)


def test_shapes_as_tuples_or_in_a_row(device):
    x = Tensor(normal(2, 3, 4), device=device)
    for found in (x.reshape(4, 6), x.reshape((4, 6)), x.reshape([4, -1]), x.reshape(np.int64(4), -1)):
        assert found.shape == (4, 6)
    for found in (x.transpose(2, 0, 1), x.transpose((2, 0, 1)), x.permute(2, 0, 1), x.permute([-1, 0, 1])):
        assert found.shape == (4, 2, 3)
    assert x.transpose().shape == x.T.shape == (4, 3, 2)
    for found in (x[:1].expand(5, 3, 4), x[:1].expand((5, -1, -1))):
        assert found.shape == (5, 3, 4)


def test_dim_is_understood():
    """PyTorch's names of two arguments, in methods and in functions; never both spellings, never one that is unused."""
    x = Tensor(X)
    for found in (x.sum(dim=1, keepdim=True), mg.sum(x, dim=1, keepdim=True), mg.sum(x, 1, keepdim=True)):
        np.testing.assert_array_equal(host(found), X.sum(1, keepdims=True))
    taking_axis = [name for cls in (Tensor, Methods) for name, method in vars(cls).items()
                   if callable(method) and "axis" in inspect.signature(method).parameters]
    assert len(taking_axis) > 15
    for name in taking_axis:
        with pytest.raises(TypeError, match="dim is another name for axis"):
            getattr(x, name)(dim=0, axis=0)
    for name in mg.__all__:
        function = getattr(mg, name)
        if not isinstance(function, type) and callable(function) and "axis" in inspect.signature(function).parameters:
            with pytest.raises(TypeError, match=r"^\w+: dim is another name for axis"):
                function(x, dim=0, axis=0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'dim'"):
        mg.exp(x, dim=1)
