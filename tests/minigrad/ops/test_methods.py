"""Every operator and method of Tensor does what the operation of its name does, by NumPy's or PyTorch's arguments."""

import inspect

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, ops

from tests.minigrad.ops.row import host, normal, positive

X, Y = positive(2, 3), positive(2, 3, seed=1)
IDS = np.array([[0, 1, 0]])

# What methods give to the function of their name: arguments each of which matters, of X or of another array.
OF_NOTHING = """
    exp expm1 log log2 log10 log1p sqrt square sin cos tan sinh cosh tanh sigmoid erf erfc isnan isinf isfinite ravel
    relu floor ceil sign
"""
ARGUMENTS = {
    **dict.fromkeys(OF_NOTHING.split(), ()),
    **dict.fromkeys(["maximum", "minimum", "logaddexp", "remainder", "floor_divide", "outer"], (Y,)),
    "round": (1,), "clip": (0.5, 1),
    **dict.fromkeys(["sum", "mean", "max", "min", "logsumexp", "argmax", "argmin", "prod", "any", "all"],
                    (1, True)),
    "var": (1, True, 1), "std": (1, True, 1), "norm": (3, 0, True), "cumsum": (1,), "cumprod": (1,),
    "sort": (0, True), "argsort": (0, True), "topk": (2, 1, False),
    "swapaxes": (0, 1), "moveaxis": (0, -1), "flatten": (0, 1), "squeeze": (0,), "split": ([1, 2], 1), "chunk": (2, 1),
    "unbind": (1,), "flip": (1,), "roll": (1, 0), "repeat": (2, 1), "tile": ((2, 1),),
    "diag": (1,), "diagonal": (1, 1, 0), "trace": (1, 1, 0), "dot": (Y.T,), "take": ([0, 0], 1), "gather": (0, IDS),
    "index_put": (([0], [1]), 7), "masked_fill": (X > 1, -1),
}
OTHER_ARRAYS = {
    **dict.fromkeys(["relu", "floor", "ceil", "sign"], X - 1), "squeeze": X[:1], "any": X > 2, "all": X < 2,
}
# Methods whose function has another name or takes its arguments in another form.
OWN = {
    "abs": (lambda x: (x - 1).abs(), lambda x: mg.absolute(x - 1)),
    "reshape": (lambda x: x.reshape(3, 2), lambda x: mg.reshape(x, (3, 2))),
    "transpose": (lambda x: x.transpose(1, 0), lambda x: mg.transpose(x, (1, 0))),
    "permute": (lambda x: x.permute(1, 0), lambda x: mg.transpose(x, (1, 0))),
    "T": (lambda x: x.T, mg.transpose),
    "mT": (lambda x: x.mT, mg.transpose),
    "unsqueeze": (lambda x: x.unsqueeze(1), lambda x: mg.expand_dims(x, 1)),
    "expand": (lambda x: x[:1].expand(4, -1), lambda x: mg.broadcast_to(x[:1], (4, 3))),
    "astype": (lambda x: x.astype(np.float32), lambda x: ops.astype(x, np.dtype(np.float32))),
    "to": (lambda x: x.to("cpu"), lambda x: ops.to_device(x, "cpu")),
    "clone": (lambda x: x.clone(), lambda x: x * 1),
}
def same(found, expected, x):
    assert found.dtype == expected.dtype
    assert found.requires_grad == expected.requires_grad
    np.testing.assert_array_equal(host(found), host(expected))
    if found.requires_grad:
        np.testing.assert_array_equal(*(host(mg.grad(out.sum(), x)) for out in (found, expected)))


def test_operators_that_have_no_rows():
    """Those of arithmetic have rows in the table of operations."""
    x = Tensor(X, requires_grad=True)
    same([1.0, 2.0] @ x, Tensor([1.0, 2.0]) @ x, x)
    same(+x, x, x)
    same(True & (x > 1), x > 1, x)
    same(False | (x > 1), x > 1, x)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_a_method_is_the_function_of_its_name(name):
    array, function = OTHER_ARRAYS.get(name, X), getattr(ops, name)
    x = Tensor(array, requires_grad=array.dtype == float)
    arguments = [Tensor(a) if isinstance(a, np.ndarray) else a for a in ARGUMENTS[name]]
    found, expected = getattr(x, name)(*arguments), function(x, *arguments)
    several = isinstance(found, tuple)
    for one, other in zip(found if several else [found], expected if several else [expected], strict=True):
        same(one, other, x)
    of_method, of_function = (inspect.signature(f).parameters.values() for f in (getattr(Tensor, name), function))
    assert [argument.default for argument in of_method] == [argument.default for argument in of_function]


@pytest.mark.parametrize("name", OWN)
def test_a_method_is_a_function_of_another_name(name):
    x = Tensor(X, requires_grad=True)
    method, function = OWN[name]
    same(method(x), function(x), x)


@pytest.mark.parametrize("operate", [lambda a, t: a + t, lambda a, t: a ** t, lambda a, t: a @ t.T, lambda a, t: t - a,
                                     lambda a, t: a < t], ids=["add", "pow", "matmul", "swapped", "less"])
def test_a_numpy_array_beside_a_tensor(operate):
    """The tensor's operator decides: the graph is not cut, whichever stands first."""
    t = Tensor(Y, requires_grad=True)
    out = operate(X, t)
    assert isinstance(out, Tensor)
    np.testing.assert_allclose(host(out), operate(X, Y), rtol=1e-15)
    assert out.requires_grad == (out.dtype == np.float64)


def test_shapes_as_tuples_or_in_a_row():
    x = Tensor(normal(2, 3, 4))
    for found in (x.reshape(4, 6), x.reshape((4, 6)), x.reshape([4, -1]), x.reshape(np.int64(4), -1)):
        assert found.shape == (4, 6)
    for found in (x.transpose(2, 0, 1), x.transpose((2, 0, 1)), x.permute([-1, 0, 1])):
        assert found.shape == (4, 2, 3)
    for found in (x[:1].expand(5, 3, 4), x[:1].expand((5, -1, -1))):
        assert found.shape == (5, 3, 4)
