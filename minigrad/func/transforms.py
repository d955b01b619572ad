"""Derivatives of functions: each takes a function of tensors and gives another function, or its derivative at a point.

`grad`, `value_and_grad` and `vjp` differentiate once, `jvp`, `jacobian`, `hessian` and `hvp` are made of them, and all
of them nest: ``grad(grad(f))`` is f''.

Arguments may be tensors, arrays or numbers, and tuples, lists or dictionaries of them, nested in any way. A tensor
that requires a gradient stays connected: the result can itself be differentiated. Under ``no_grad()`` nothing is
recorded beyond the call.

The function gets copies of what it is differentiated by, and may not change them in place: this is a RuntimeError.
Arguments that `argnums` leaves out, and keyword arguments, are the caller's own objects, as in any call of Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minigrad.engine.errors import shown
from minigrad.engine.rules import Function
from minigrad.func.call import Call, tensors_in
from minigrad.func.trees import leaves_like, tree_leaves, tree_like, tree_map
from minigrad.ops import concatenate, zeros_like
from minigrad.tensor import Tensor


def value_and_grad(function: Function, argnums: int | Sequence[int] = 0) -> Function:
    """A function that returns ``(value, gradient)`` of `function`, which must return one number.

    Args:
        function: to a tensor with a single element.
        argnums: with respect to which positional arguments; an int gives one gradient, a sequence a tuple of them. A
            gradient has the form of its argument.
    """
    def both(*args: Any, **kwargs: Any) -> Any:
        call = Call(function, args, kwargs, argnums, "grad")
        value = call.value
        if not isinstance(value, Tensor) or value.size != 1:
            raise ValueError(f"grad: the function must return a tensor of one number, got {shown(value)}; a larger one "
                             "has a .sum(), a vjp and a jacobian")
        return call.result(), call.gradients([value], [None])

    return both


def grad(function: Function, argnums: int | Sequence[int] = 0) -> Function:
    """A function that returns the gradient of `function` alone; `function` and `argnums` as for `value_and_grad`.

    (`minigrad.grad` differentiates tensors that were computed already.)
    """
    return lambda *args, **kwargs: value_and_grad(function, argnums)(*args, **kwargs)[1]


def vjp(function: Function, *primals: Any) -> tuple[Any, Function]:
    """The value of ``function(*primals)``, and the function ``v ↦ Jᵀ v`` from gradients of it to those of `primals`.

    The second takes v in the form of the value (nothing, if that is one number) and returns a gradient for each primal:
    a tuple, or the gradient itself if there is one primal. It may be called many times.
    """
    call = Call(function, primals, {}, 0 if len(primals) == 1 else range(len(primals)), "vjp")
    outputs = tensors_in(call.value, "vjp")

    def pull_back(cotangents: Any = None) -> Any:
        starts = ([None] * len(outputs) if cotangents is None else
                  leaves_like(call.value, cotangents, "vjp: gradients of the results"))
        return call.gradients(outputs, starts, keep=True)

    return call.result(), pull_back


def jvp(function: Function, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """The value of ``function(*primals)``, and its derivative along `tangents`: ``J t``.

    Computed by double backward: ``Jᵀ u`` is linear in u, so its own vector-Jacobian product, for t, is ``J t``.

    Args:
        primals: the arguments, a tuple or list.
        tangents: one for each, of its form.
    """
    if not isinstance(primals, (tuple, list)):
        raise TypeError(f"jvp: primals must be a tuple or list of arguments, got {shown(primals)}")
    directions = leaves_like(primals, tangents, "jvp: tangents")
    call = Call(function, primals, {}, range(len(primals)), "jvp")
    pulled = Call(lambda u: call.gradients(tensors_in(call.value, "jvp"), tree_leaves(u)),
                  [tree_map(zeros_like, call.value)], {}, 0, "jvp")
    return call.result(), pulled.gradients(tree_leaves(pulled.value), directions)


def jacobian(function: Function, argnums: int | Sequence[int] = 0) -> Function:
    """A function that returns the derivative of every element of the result by every element of an argument.

    Its shape is ``(*result.shape, *argument.shape)``; for nested arguments the entries have that form. One backward for
    each element of the result. `function` returns a tensor; `argnums` is as for `value_and_grad`.
    """
    def derivative(*args: Any, **kwargs: Any) -> Any:
        call = Call(function, args, kwargs, argnums, "jacobian")
        out, rows = call.value, []
        if not isinstance(out, Tensor):
            raise TypeError(f"jacobian: the function must return one tensor, got {shown(out)}")
        for k in range(out.size):
            one = np.eye(1, out.size, k, out.dtype).reshape(out.shape)
            rows.append(tree_leaves(call.gradients([out], [Tensor(one, device=out.device)], keep=True)))
        columns = [concatenate([x.detach()[None][:0], *[row[k][None] for row in rows]]).reshape(*out.shape, *x.shape)
                   for k, x in enumerate(call.inputs)]
        return tree_like(call.copies, columns)

    return derivative


def hessian(function: Function, argnums: int = 0) -> Function:
    """A function that returns the second derivatives of `function`, which must return one number, by one argument.

    The argument, which `argnums` names by its position, is a tensor x; the result has the shape
    ``(*x.shape, *x.shape)``.
    """
    return jacobian(grad(function, argnums), argnums)


def hvp(function: Function, primals: Any, tangents: Any) -> Any:
    """The Hessian of `function` at `primals` times `tangents`, ``H t``, without the Hessian: two backward passes.

    Pearlmutter, "Fast exact multiplication by the Hessian", 1994. H is symmetric, so H t is the vector-Jacobian product
    of the gradient.

    Args:
        function: of one argument, or of as many as there are primals; to one number.
        primals: a tensor (or a dictionary of tensors, as parameters are), or a tuple or list of arguments.
        tangents: of the form of `primals`, and so is the result.
    """
    directions = leaves_like(primals, tangents, "hvp: tangents")
    args = primals if isinstance(primals, (tuple, list)) else [primals]
    call = Call(grad(function, range(len(args))), args, {}, range(len(args)), "hvp")
    return tree_like(primals, tree_leaves(call.gradients(tree_leaves(call.value), directions)))
