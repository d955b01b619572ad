"""Wrong calls of the transforms of functions: the exception, and what its message names."""

import pytest

import minigrad as mg
from minigrad import Tensor, func, nn

from tests.minigrad.functions import curve, normal

X = normal(3)
WRONG = {
    "no number": (lambda: func.grad(lambda x: x)(X), ValueError, r"must return one number, got shape \(3,\)"),
    "no tensor": (lambda: func.grad(lambda x: 1.0)(X), ValueError, "must return one number, got float"),
    "integers": (lambda: func.grad(lambda x: x.sum())(Tensor([1, 2])), TypeError, "only floating .* int64"),
    "argnums": (lambda: func.grad(lambda x: x.sum(), 1)(X), ValueError, "argnums 1 does not name one of the 1"),
    "argnums of a wrong type": (lambda: func.grad(mg.sum, 1.0)(X), TypeError, r"argnums must be .* got 1\.0"),
    "no pair": (lambda: func.grad(mg.exp, has_aux=True)(X), TypeError, r"a pair \(value, auxiliary\), got a Tensor"),
    "a triple": (lambda: func.grad(lambda x: (x.sum(), 1, 2), has_aux=True)(X), TypeError, "a pair .* got 3"),
    "other keys": (lambda: func.hvp(lambda d: d["a"].sum(), {"a": X}, {"b": X}), ValueError,
                   r"hvp: tangents: expected a dictionary with the keys \['a'\], got \['b'\]"),
    "another nesting": (lambda: func.jvp(lambda d: d["a"], ({"a": X},), ((X,),)), ValueError,
                        r"jvp: tangents\[0\]: expected a dictionary with the keys \['a'\], got tuple"),
    "a tuple for a tensor": (lambda: func.hvp(lambda x: x.sum(), X, (X, X)), ValueError,
                             "hvp: tangents: expected a tensor, got a tuple"),
    "jvp of integers": (lambda: func.jvp(lambda x: mg.argmax(x), (X,), (X,)), TypeError, "jvp: .* floating .* int64"),
    "vjp of a number": (lambda: func.vjp(lambda x: 1.0, X), TypeError, "vjp: the function must return tensors"),
    "vjp starts": (lambda: func.vjp(lambda x: (x, x), X)[1](X), ValueError,
                   r"vjp: gradients of the results: expected a tuple or list of 2, got 1"),
    "vjp shape": (lambda: func.vjp(curve, X)[1](X), ValueError, r"shape \(3,\), the output has shape \(4,\)"),
    "jvp without a tuple": (lambda: func.jvp(curve, X, (X,)), TypeError, "jvp: primals must be a tuple or list"),
    "jvp tangents": (lambda: func.jvp(curve, (X,), (X, X)), ValueError,
                     "jvp: tangents: expected a tuple or list of 1, got 2"),
    "jvp shape": (lambda: func.jvp(curve, (X,), (X[:2],)), ValueError, r"shape \(2,\)"),
    "jacobian of a tuple": (lambda: func.jacobian(lambda x: (x, x))(X), TypeError, "jacobian: .* tensor, got tuple"),
    "the argument for argnums": (lambda: func.grad(mg.sum, X), TypeError, r"grad: .* got a Tensor; .* grad\(f\)\(x\)"),
    "the argument of jacobian": (lambda: func.jacobian(mg.sin, X), TypeError, r"jacobian\(f\)\(x\)"),
    "hessian of a dictionary": (lambda: func.hessian(lambda d: d["a"].sum())({"a": X}), TypeError, "hessian: .* dict"),
    "hessian of a vector": (lambda: func.hessian(curve)(X), ValueError, "hessian: the function must return one number"),
    "hessian of two": (lambda: func.hessian(curve, (0, 1)), TypeError, "hessian: argnums must be an int"),
    "hvp of a vector": (lambda: func.hvp(curve, X, X), ValueError, "hvp: the function must return one number"),
    "functional_call name": (lambda: func.functional_call(nn.Linear(1, 1), {"w": X}, X), ValueError,
                             "Linear has no parameter 'w'"),
    "functional_call shape": (lambda: func.functional_call(nn.Linear(1, 1), {"bias": X}, X), ValueError,
                              r"'bias' has shape \(1,\), the tensor given for it \(3,\)"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_calls(name):
    call, error, message = WRONG[name]
    with pytest.raises(error, match=message):
        call()
