"""Derivatives of functions: each takes a function of tensors and gives another function, or its derivative at a point.

`grad`, `value_and_grad`, `vjp` and `jvp` differentiate once, `jacobian`, `hessian` and `hvp` build on them, and all of
them nest: ``grad(grad(f))`` is f''.

Arguments may be tensors, arrays or numbers, and tuples, lists or dictionaries of them, nested in any way. A tensor
that requires a gradient stays connected: the result can itself be differentiated. Under ``no_grad()`` nothing is
recorded beyond the call.

A function that changes an argument in place, with respect to which it is differentiated, is a RuntimeError, raised
before anything is written; build a new tensor with ``where`` or ``index_put``. Arguments that `argnums` leaves out, and
keyword arguments, are the caller's own objects, as in any call of Python.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minigrad.device.local import enable_grad, is_grad_enabled
from minigrad.engine.node import TensorBase
from minigrad.func.inner_call import InnerCall
from minigrad.func.trees import leaves_like, tree_leaves, tree_like
from minigrad.ops import stack, zeros_like
from minigrad.tensor import Tensor, gradients

# --------------------------------------------------------------------------- arguments


def _check_argnums(argnums: Any, operation: str) -> None:
    """TypeError for what cannot be positions, such as the argument itself."""
    for position in argnums if isinstance(argnums, (tuple, list)) else [argnums]:
        if not isinstance(position, int) or isinstance(position, bool):
            shown = "a Tensor" if isinstance(position, Tensor) else repr(position)
            raise TypeError(f"{operation}: argnums must be an int or a sequence of them, got {shown}; {operation}(f) "
                            f"is a function: call it with the arguments, {operation}(f)(x)")


def _positions(argnums: int | Sequence[int], count: int, operation: str) -> list[int]:
    """`argnums` as non-negative positions of `count` arguments."""
    wanted = [argnums] if isinstance(argnums, int) else list(argnums)
    for position in wanted:
        if not -count <= position < count:
            raise ValueError(f"{operation}: argnums {argnums!r} does not name one of the {count} positional arguments")
    return [position % count for position in wanted]


def _only(argnums: int | Sequence[int], values: Sequence[Any]) -> Any:
    """What is returned for `argnums`: one value for an int, a tuple for a sequence."""
    return values[0] if isinstance(argnums, int) else tuple(values)


def _tensors(value: Any, operation: str) -> list[Any]:
    """The leaves of a function's result, which must be tensors."""
    leaves = tree_leaves(value)
    for leaf in leaves:
        if not isinstance(leaf, TensorBase):
            raise TypeError(f"{operation}: the function must return tensors, got {_no_tensor(leaf)}")
    return leaves


def _no_tensor(value: Any) -> str:
    """For an error: what a function returned that is no tensor, and the remedy."""
    return f"{type(value).__name__}; return the tensor itself, without .item(), float() or .numpy()"


# --------------------------------------------------------------------------- first derivatives


def value_and_grad(function: Callable[..., Any], argnums: int | Sequence[int] = 0,
                   has_aux: bool = False) -> Callable[..., Any]:
    """A function that returns ``(value, gradient)`` of `function`, which must return one number.

    Args:
        function: to a tensor with a single element; with `has_aux`, to a pair of that and anything else.
        argnums: with respect to which positional arguments; an int gives one gradient, a sequence a tuple of them. A
            gradient has the form of its argument.
        has_aux: the result is then ``((value, auxiliary), gradient)``.
    """
    return _differentiated(function, argnums, has_aux, "value_and_grad")


def grad(function: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that returns the gradient of `function` alone; with `has_aux`, ``(gradient, auxiliary)``.

    `function`, `argnums` and `has_aux` are those of `value_and_grad`.
    (`minigrad.grad` differentiates tensors that were computed already.)
    """
    both = _differentiated(function, argnums, has_aux, "grad")

    def call(*args: Any, **kwargs: Any) -> Any:
        value, gradient = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return call


def _differentiated(function: Callable[..., Any], argnums: int | Sequence[int], has_aux: bool,
                    operation: str) -> Callable[..., Any]:
    _check_argnums(argnums, operation)

    def call(*args: Any, **kwargs: Any) -> Any:
        inner = InnerCall(function, args, kwargs, _positions(argnums, len(args), operation), operation)
        value = inner.value
        if has_aux:
            if not isinstance(value, (tuple, list)) or len(value) != 2:
                raise TypeError(f"{operation}: with has_aux the function must return a pair (value, auxiliary), got "
                                f"{len(value) if isinstance(value, (tuple, list)) else 'a ' + type(value).__name__}")
            value = value[0]
        _check_number(value, operation)
        with inner:
            gradient = inner.gradients([value], [None], inner.continues)
        return inner.result(inner.value), _only(argnums, gradient)

    return call


def _check_number(value: Any, operation: str) -> None:
    """ValueError unless a function returned a tensor with one element."""
    if not isinstance(value, Tensor) or value.size != 1:
        got = (f"shape {value.shape}; reduce it (for instance with .sum()), or use vjp or jacobian"
               if isinstance(value, Tensor) else _no_tensor(value))
        raise ValueError(f"{operation}: the function must return one number, got {got}")


def vjp(function: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """The value of ``function(*primals)``, and the function ``v ↦ Jᵀ v`` from gradients of it to those of `primals`.

    The second takes a tensor of the form of the value (nothing, if that is one number) and returns a gradient for each
    primal: a tuple, or the gradient itself if there is one primal. It may be called many times.
    """
    inner = InnerCall(function, primals, {}, range(len(primals)), "vjp")
    outputs = _tensors(inner.value, "vjp")

    def pull_back(*cotangents: Any) -> Any:
        starts: list[Any] = [None] * len(outputs)
        if cotangents:
            several = isinstance(inner.value, (tuple, list))
            nested = not several or (len(cotangents) == 1 and isinstance(cotangents[0], (tuple, list)))
            starts = leaves_like((inner.value,) if nested else inner.value, cotangents, "vjp: gradients of the results")
        outside = inner.continues or any(isinstance(s, Tensor) and s.requires_grad for s in starts)
        with inner:
            found = inner.gradients(outputs, starts, outside and is_grad_enabled(), keep=True)
        return found[0] if len(primals) == 1 else tuple(found)

    return inner.result(inner.value), pull_back


def jvp(function: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """The value of ``function(*primals)``, and its derivative along `tangents`: ``J t``.

    Computed by double backward: ``Jᵀ u`` is linear in u, so its own vector-Jacobian product, for t, is ``J t``.

    Args:
        primals: the arguments, a tuple or list.
        tangents: one for each, of its form.
    """
    primals, tangents = _sequence(primals, "primals"), _sequence(tangents, "tangents")
    directions = [t if isinstance(t, Tensor) else Tensor(t) for t in leaves_like(primals, tangents, "jvp: tangents")]
    inner = InnerCall(function, primals, {}, range(len(primals)), "jvp")
    outputs = _tensors(inner.value, "jvp")
    for out in outputs:
        if out.dtype.kind != "f":
            raise TypeError(f"jvp: the function must return floating tensors, got {out.dtype}")
    with inner, enable_grad():
        probes = [zeros_like(out.detach()).requires_grad_() for out in outputs]
        pulled = tree_leaves(inner.gradients(outputs, probes, create_graph=True))
        linear = [(g, t) for g, t in zip(pulled, directions, strict=True) if g.requires_grad]
        found: Sequence[Any] = [None] * len(probes)
        if linear:
            outside = inner.continues or any(t.requires_grad for t in directions)
            found = gradients.grad([g for g, _ in linear], probes, [t for _, t in linear], allow_unused=True,
                                    create_graph=outside and inner.outside)
    pushed = [zeros_like(out.detach()) if d is None else d for out, d in zip(outputs, found, strict=True)]
    return inner.result(inner.value), tree_like(inner.value, pushed)


def _sequence(values: Any, name: str) -> tuple[Any, ...]:
    if not isinstance(values, (tuple, list)):
        raise TypeError(f"jvp: {name} must be a tuple or list, one for each argument, got {type(values).__name__}")
    return tuple(values)


# --------------------------------------------------------------------------- Jacobians and second derivatives


def jacobian(function: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """A function that returns the derivative of every element of the result by every element of an argument.

    Its shape is ``(*result.shape, *argument.shape)``; for nested arguments the entries have that form. One backward for
    each element of the result. `function` returns a tensor; `argnums` is as for `value_and_grad`.
    """
    _check_argnums(argnums, "jacobian")

    def call(*args: Any, **kwargs: Any) -> Any:
        inner = InnerCall(function, args, kwargs, _positions(argnums, len(args), "jacobian"), "jacobian")
        out = inner.value
        if not isinstance(out, Tensor):
            raise TypeError(f"jacobian: the function must return a tensor, got {_no_tensor(out)}")
        with inner, enable_grad():
            elements = [out.reshape(-1)[i] for i in range(out.size)]
            continues = inner.continues
            rows = [tree_leaves(inner.gradients([element], [None], continues, keep=True)) for element in elements]
            columns = [stack([row[k] for row in rows]).reshape(*out.shape, *x.shape) if rows
                       else Tensor(np.zeros((*out.shape, *x.shape), x.dtype), device=x.device)
                       for k, x in enumerate(inner.inputs)]
        return _only(argnums, tree_like(inner.given, columns))

    return call


def hessian(function: Callable[..., Any], argnums: int = 0) -> Callable[..., Any]:
    """A function that returns the second derivatives of `function`, which must return one number, by one argument.

    The argument, which `argnums` names by its position, is a tensor x; the result has the shape
    ``(*x.shape, *x.shape)``.
    """
    if not isinstance(argnums, int):
        raise TypeError(f"hessian: argnums must be an int, got {argnums!r}; hessian(f) is a function: hessian(f)(x)")

    def gradient(*args: Any, **kwargs: Any) -> Any:
        if isinstance(args[argnums], (dict, tuple, list)):
            raise TypeError(f"hessian: the argument must be a tensor, got a {type(args[argnums]).__name__}; hvp takes "
                            "nested ones")
        return _differentiated(function, argnums, False, "hessian")(*args, **kwargs)[1]

    return jacobian(gradient, argnums)


def hvp(function: Callable[..., Any], primals: Any, tangents: Any) -> Any:
    """The Hessian of `function` at `primals` times `tangents`, ``H t``, without the Hessian: two backward passes.

    Pearlmutter, "Fast exact multiplication by the Hessian", 1994; by double backward: H t is the gradient of ⟨∇f, t⟩.

    Args:
        function: of one argument, or of as many as there are primals; to one number.
        primals: a tensor (or a dictionary of tensors, as parameters are), or a tuple or list of arguments.
        tangents: of the form of `primals`, and so is the result.
    """
    args = tuple(primals) if isinstance(primals, (tuple, list)) else (primals,)
    directions = [t if isinstance(t, Tensor) else Tensor(t) for t in leaves_like(primals, tangents, "hvp: tangents")]
    inner = InnerCall(function, args, {}, range(len(args)), "hvp")
    _check_number(inner.value, "hvp")
    with inner, enable_grad():
        first = tree_leaves(inner.gradients([inner.value], [None], create_graph=True))
        curved = [(g, t) for g, t in zip(first, directions, strict=True) if g.requires_grad]
        outside = inner.continues or any(t.requires_grad for t in directions)
        second = inner.gradients([g for g, _ in curved], [t for _, t in curved], outside and inner.outside)
    return tree_like(primals, tree_leaves(second))
