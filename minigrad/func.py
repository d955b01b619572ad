"""Derivatives of functions: each takes a function of tensors and gives another function, or its derivative at a point.

`grad`, `value_and_grad`, `vjp` and `jvp` differentiate once, `jacobian`, `hessian` and `hvp` build on them, and all of
them nest: ``grad(grad(f))`` is f''. `checkpoint` trades time for memory; `functional_call` makes a module a function
of its parameters.

Arguments may be tensors, arrays or numbers, and tuples, lists or dictionaries of them, nested in any way. A tensor
that requires a gradient stays connected: the result can itself be differentiated. Under ``no_grad()`` nothing is
recorded beyond the call.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from minigrad import transforms
from minigrad.autograd import leaves_below
from minigrad.modes import enable_grad, is_grad_enabled
from minigrad.nn.functional_call import functional_call
from minigrad.ops import stack, zeros_like
from minigrad.recompute import checkpoint
from minigrad.tape import TensorBase, gradient_target
from minigrad.tensor import Tensor
from minigrad.trees import leaves_like, tree_leaves, tree_like, tree_map

__all__ = ["checkpoint", "functional_call", "grad", "hessian", "hvp", "jacobian", "jvp", "value_and_grad", "vjp"]


# --------------------------------------------------------------------------- one call


def _input(value: Any, operation: str) -> Tensor:
    """A tensor that requires a gradient: connected to `value` if that does, else of its own."""
    tensor = value if isinstance(value, Tensor) else Tensor(value)
    if tensor.dtype.kind != "f":
        raise TypeError(f"{operation}: only floating arguments can be differentiated, got {tensor.dtype}; choose "
                        "others by argnums")
    return tensor.clone() if tensor.requires_grad else tensor.detach().requires_grad_()


# The leaves that calls have made for themselves, by id; and of them those of the calls that we are inside of. Any other
# belongs to a call that has ended: it is in the graph, but nobody can ask for its gradient.
_made: weakref.WeakValueDictionary[int, Tensor] = weakref.WeakValueDictionary()
_enclosing: ContextVar[frozenset[int]] = ContextVar("minigrad.func.enclosing", default=frozenset())


class _Call:
    """One call of a function on inputs of its own, so that its derivative with respect to them can be taken."""

    def __init__(self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any],
                 positions: Sequence[int], operation: str) -> None:
        self.operation, self.outside = operation, is_grad_enabled()
        fresh = list(args)
        for position in positions:
            given = args[position] if self.outside else tree_map(_detached, args[position])
            fresh[position] = tree_map(lambda leaf: _input(leaf, operation), given)
        self.given = [fresh[position] for position in positions]
        self.inputs = tree_leaves(self.given)
        self.own = frozenset(id(tensor) for tensor in self.inputs if tensor.is_leaf)
        self.enclosing = _enclosing.get()
        _made.update((id(tensor), tensor) for tensor in self.inputs if tensor.is_leaf)
        token = _enclosing.set(self.enclosing | self.own)
        try:
            with enable_grad():
                self.value = function(*fresh, **kwargs)
        finally:
            _enclosing.reset(token)

    def gradients(self, outputs: Sequence[Any], starts: Sequence[Any], create_graph: bool, keep: bool = False) -> Any:
        """The gradients for each position, in the form of its argument: zeros where the outputs do not depend."""
        recorded = [(out, start) for out, start in zip(outputs, starts, strict=True) if out.requires_grad]
        found: Sequence[Any] = [None] * len(self.inputs)
        if recorded and self.inputs:
            found = transforms.grad([out for out, _ in recorded], self.inputs, [start for _, start in recorded],
                                    create_graph=create_graph, retain_graph=keep or create_graph, allow_unused=True)
        filled = [zeros_like(x.detach()) if g is None else g for x, g in zip(self.inputs, found, strict=True)]
        return tree_like(self.given, filled)

    @property
    def continues(self) -> bool:
        """Whether somebody outside may differentiate the result: it depends on a leaf that is not ours."""
        if not self.outside:
            return False
        outputs = [gradient_target(out) for out in tree_leaves(self.value) if isinstance(out, TensorBase)]
        return any(leaf._requires_grad and (id(leaf) in self.enclosing or _made.get(id(leaf)) is not leaf)
                   for leaf in leaves_below(outputs))

    def result(self, tree: Any) -> Any:
        """Values as the caller gets them: recorded only if somebody outside may go on from them."""
        return tree if self.continues else tree_map(_detached, tree)


def _detached(value: Any) -> Any:
    return value.detach() if isinstance(value, Tensor) else value


def _positions(argnums: int | Sequence[int], count: int, operation: str) -> list[int]:
    """`argnums` as non-negative positions of `count` arguments."""
    wanted: list[Any] = list(argnums) if isinstance(argnums, (tuple, list)) else [argnums]
    for position in wanted:
        if not isinstance(position, int) or isinstance(position, bool):
            raise TypeError(f"{operation}: argnums must be an int or a sequence of them, got {argnums!r}")
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
            raise TypeError(f"{operation}: the function must return tensors, got {type(leaf).__name__}")
    return leaves


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

    def call(*args: Any, **kwargs: Any) -> Any:
        inner = _Call(function, args, kwargs, _positions(argnums, len(args), "value_and_grad"), "value_and_grad")
        value = inner.value
        if has_aux:
            if not isinstance(value, (tuple, list)) or len(value) != 2:
                raise TypeError("value_and_grad: with has_aux the function must return a pair (value, auxiliary), got "
                                f"{len(value) if isinstance(value, (tuple, list)) else 'a ' + type(value).__name__}")
            value = value[0]
        if not isinstance(value, Tensor) or value.size != 1:
            got = f"shape {value.shape}" if isinstance(value, Tensor) else type(value).__name__
            raise ValueError(f"value_and_grad: the function must return one number, got {got}; reduce it (for instance "
                             "with .sum()), or use vjp or jacobian")
        gradient = inner.gradients([value], [None], inner.continues)
        return inner.result(inner.value), _only(argnums, gradient)

    return call


def grad(function: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that returns the gradient of `function` alone; with `has_aux`, ``(gradient, auxiliary)``.

    `function`, `argnums` and `has_aux` are those of `value_and_grad`.
    (`minigrad.grad` differentiates tensors that were computed already.)
    """
    both = value_and_grad(function, argnums, has_aux)

    def call(*args: Any, **kwargs: Any) -> Any:
        value, gradient = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return call


def vjp(function: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """The value of ``function(*primals)``, and the function ``v ↦ Jᵀ v`` from gradients of it to those of `primals`.

    The second takes a tensor of the form of the value (nothing, if that is one number) and returns a gradient for each
    primal: a tuple, or the gradient itself if there is one primal. It may be called many times.
    """
    inner = _Call(function, primals, {}, range(len(primals)), "vjp")
    outputs = _tensors(inner.value, "vjp")

    def pull_back(*cotangents: Any) -> Any:
        starts: list[Any] = [None] * len(outputs)
        if cotangents:
            several = isinstance(inner.value, (tuple, list))
            nested = not several or (len(cotangents) == 1 and isinstance(cotangents[0], (tuple, list)))
            starts = leaves_like((inner.value,) if nested else inner.value, cotangents, "vjp: gradients of the results")
        outside = inner.continues or any(isinstance(s, Tensor) and s.requires_grad for s in starts)
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
    primals, tangents = _sequence(primals, "primals", "jvp"), _sequence(tangents, "tangents", "jvp")
    directions = [t if isinstance(t, Tensor) else Tensor(t) for t in leaves_like(primals, tangents, "jvp: tangents")]
    inner = _Call(function, primals, {}, range(len(primals)), "jvp")
    outputs = _tensors(inner.value, "jvp")
    for out in outputs:
        if out.dtype.kind != "f":
            raise TypeError(f"jvp: the function must return floating tensors, got {out.dtype}")
    with enable_grad():
        probes = [zeros_like(out.detach()).requires_grad_() for out in outputs]
        pulled = tree_leaves(inner.gradients(outputs, probes, create_graph=True))
        linear = [(g, t) for g, t in zip(pulled, directions, strict=True) if g.requires_grad]
        found: Sequence[Any] = [None] * len(probes)
        if linear:
            outside = inner.continues or any(t.requires_grad for t in directions)
            found = transforms.grad([g for g, _ in linear], probes, [t for _, t in linear], allow_unused=True,
                                    create_graph=outside and inner.outside)
    pushed = [zeros_like(out.detach()) if d is None else d for out, d in zip(outputs, found, strict=True)]
    return inner.result(inner.value), tree_like(inner.value, pushed)


def _sequence(values: Any, name: str, operation: str) -> tuple[Any, ...]:
    if not isinstance(values, (tuple, list)):
        raise TypeError(f"{operation}: {name} must be a tuple or list, one for each argument, got "
                        f"{type(values).__name__}")
    return tuple(values)


# --------------------------------------------------------------------------- Jacobians and second derivatives


def jacobian(function: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """A function that returns the derivative of every element of the result by every element of an argument.

    Its shape is ``(*result.shape, *argument.shape)``; for nested arguments the entries have that form. One backward for
    each element of the result. `function` returns a tensor; `argnums` is as for `value_and_grad`.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        inner = _Call(function, args, kwargs, _positions(argnums, len(args), "jacobian"), "jacobian")
        out = inner.value
        if not isinstance(out, Tensor):
            raise TypeError(f"jacobian: the function must return a tensor, got {type(out).__name__}")
        with enable_grad():
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
        raise TypeError(f"hessian: argnums must be an int, got {argnums!r}")
    return jacobian(grad(function, argnums), argnums)


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
    inner = _Call(function, args, {}, range(len(args)), "hvp")
    if not isinstance(inner.value, Tensor) or inner.value.size != 1:
        raise ValueError("hvp: the function must return one number")
    with enable_grad():
        first = tree_leaves(inner.gradients([inner.value], [None], create_graph=True))
        curved = [(g, t) for g, t in zip(first, directions, strict=True) if g.requires_grad]
        outside = inner.continues or any(t.requires_grad for t in directions)
        second = inner.gradients([g for g, _ in curved], [t for _, t in curved], outside and inner.outside)
    return tree_like(primals, tree_leaves(second))
