"""The gradient rules of an operation: how they are declared, what each asks for, and how the backward pass runs them.

What a rule is, and how one is written, is told in `minigrad.engine.primitive`, which adds the forward.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, Self

from minigrad.device import is_array
from minigrad.engine.node import Node, TensorBase, wrap
from minigrad.engine.plan import Call, Needs, Plan, picker
from minigrad.engine.signatures import is_ordinary, parameter_names
from minigrad.engine.switches import compiled_kernels, fused
from minigrad.precision.autocast import PRECISION
from minigrad.precision.half import total

RESERVED = frozenset({"g", "out", "needs", "saved"})


class Rules:
    """An operation as the backward pass sees it: its inputs, and the rule of each."""

    recomputes = False  # True for a checkpoint, which has no rules: it is computed again
    scales = False  # True for the factor of a loss: overflows are looked for afterwards, so NumPy need not warn

    def __init__(self, forward: Callable[..., Any], broadcasts: bool = False, floating: bool = False,
                 composition: Callable[..., Any] | None = None) -> None:
        # `_take` is the primitive behind a function `take` that checks and converts its arguments first.
        self.forward, self.name = forward, forward.__name__.lstrip("_")
        self.__name__, self.__qualname__, self.__module__ = forward.__name__, forward.__qualname__, forward.__module__
        self.__doc__ = forward.__doc__
        self.__wrapped__ = forward
        self.broadcasts, self.floating, self.composition = broadcasts, floating, composition
        self.precision = PRECISION.get(f"{forward.__module__}.{forward.__qualname__}")  # under `autocast`
        self.parameters = parameter_names(forward)
        self.variadic = not is_ordinary(forward) and self._check_kinds()
        clash = RESERVED.intersection(self.parameters)
        if clash:
            raise TypeError(f"{self.name}: the parameter name {sorted(clash)[0]!r} is reserved for gradient rules; "
                            "rename it")
        self._arity = len(self.parameters) if not self.variadic else -1  # -1: no number of arguments is the usual one
        self.inputs: tuple[str, ...] = ()
        self._positions: tuple[int, ...] = ()
        self._statics = tuple(range(len(self.parameters)))
        self._rules: dict[str, Callable[..., Any]] = {}
        self._accumulating: dict[str, Callable[..., Any]] = {}
        self._joint: Callable[..., Any] | None = None
        self._has_saved = False
        self._never_differentiable = False
        self._advice: dict[str, str] = {}
        self._plans: dict[int | tuple[bool, ...], Plan] = {}
        # Set by `minigrad.kernels`: what runs in its place, for the operands that this function says it suits.
        self.twin: Any = None
        self.suits: Callable[..., bool] = lambda *operands: False

    def _check_kinds(self) -> bool:
        """Whether the forward takes ``*xs``; TypeError for a signature that no primitive may have."""
        parameters = list(self.signature.parameters.values())
        variadic = bool(parameters) and parameters[0].kind is inspect.Parameter.VAR_POSITIONAL
        for p in parameters[variadic:]:
            allowed = (p.KEYWORD_ONLY,) if variadic else (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
            if p.kind not in allowed:
                raise TypeError(f"{self.name}{self.signature}: a primitive takes either ordinary parameters, or *xs "
                                f"and keyword-only ones after it; {p.name!r} is neither")
        return variadic

    @functools.cached_property
    def signature(self) -> inspect.Signature:
        """The forward's."""
        return inspect.signature(self.forward)

    def __repr__(self) -> str:
        return f"<primitive {self.name}{self.signature}>"

    # ----------------------------------------------------------------- declaring rules

    def _declare_inputs(self, names: Sequence[str]) -> None:
        for name in names:
            if name not in self.parameters:
                raise TypeError(f"{self.name}: a gradient rule is given for {name!r}, which is not a parameter; "
                                f"the parameters are {', '.join(self.parameters)}")
        self.inputs = tuple(p for p in self.parameters if p in names or p in self.inputs)
        self._positions = tuple(self.parameters.index(p) for p in self.inputs)
        self._statics = tuple(i for i in range(len(self.parameters)) if i not in self._positions)
        self._plans.clear()

    def gradient(self, *unnamed: Any, **rules: Callable[..., Any]) -> None:
        """Give the rule of each input, by its name: ``mul.gradient(x=lambda g, y: g * y, …)``."""
        if unnamed or not rules:
            form = ", ".join(f"{name}=lambda g, …: …" for name in self.parameters[:2])
            raise TypeError(f"{self.name}: rules are given by the names of the inputs, {self.name}.gradient({form})")
        self._declare_inputs(list(rules))
        for name, rule in rules.items():
            self._check_names(rule)
            self._rules[name] = rule

    def accumulating_gradient(self, **rules: Callable[..., Any]) -> None:
        """Rules that *add into* a buffer of the input's shape: ``rule(buffer, g, …)`` returns nothing.

        Used where the gradient touches few entries of a large input (indexing). The plain rule of the same input,
        which must exist too, serves ``create_graph``.
        """
        for name, rule in rules.items():
            if name not in self._rules:
                raise TypeError(f"{self.name}: give the plain rule for {name!r} before the accumulating one")
            self._check_names(rule, skip=1)
            self._accumulating[name] = rule
        self._plans.clear()

    def joint_gradient(self, *inputs: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Decorate the one rule that returns the gradients of all `inputs`, in this order, None where not needed.

        A joint rule works on raw arrays only if the primitive has a composition, which then serves ``create_graph``.
        """
        self._declare_inputs(inputs)

        def register(rule: Callable[..., Any]) -> Callable[..., Any]:
            names = self._check_names(rule)
            self._joint, self._has_saved = rule, "saved" in names
            if self._has_saved and self.composition is None:
                raise TypeError(f"{self.name}: a rule that uses saved values needs a composition to be differentiated "
                                "again; pass composition=... to @primitive")
            return rule

        return register

    def no_gradient(self) -> Self:
        """Declare that the output never carries a gradient: comparisons, argmax, rounding."""
        self._never_differentiable = True
        return self

    def advise(self, **advice: str) -> None:
        """What to do when a tensor that requires a gradient is given for an argument without a rule, by its name."""
        self._advice.update(advice)

    def _check_names(self, rule: Callable[..., Any], skip: int = 0) -> list[str]:
        names = parameter_names(rule)[skip:]
        for name in names:
            self._source(name)
        return names

    def _source(self, name: str) -> tuple[str, int]:
        """Where a rule's argument comes from: the value, shape, dtype or device of a parameter, or a reserved name."""
        if name in RESERVED:
            return name, -1
        if name in self.parameters:
            return "value", self.parameters.index(name)
        for suffix, kind in (("_shape", "shape"), ("_shapes", "shape"), ("_dtype", "dtype"), ("_device", "device")):
            stem = name.removesuffix(suffix)
            if stem != name and stem in self.parameters:
                return kind, self.parameters.index(stem)
        raise TypeError(f"{self.name}: a gradient rule asks for {name!r}; it may ask for g, out, needs, saved, "
                        f"{', '.join(self.parameters)}, and …_shape, …_dtype or …_device of those")

    # ----------------------------------------------------------------- for the backward pass

    def _plan(self, key: int | tuple[bool, ...]) -> Plan:
        """The plan for these needs: whether each of `*xs` needs a gradient, else a bit for each input that does."""
        needs = key if isinstance(key, tuple) else tuple(bool(key >> i & 1) for i in range(len(self.inputs)))
        names = self.inputs if not self.variadic else (self.parameters[0],) * len(needs)
        wanted = tuple(i for i, need in enumerate(needs) if need)
        expands = self._joint is not None and self.composition is not None
        keep: list[tuple[str, int]] = []

        def picks(rule: Callable[..., Any], skip: int = 0) -> tuple[int, ...]:
            positions = []
            for name in parameter_names(rule)[skip:]:
                source = self._source(name)
                if source[0] in ("g", "needs"):
                    positions.append(("g", "needs").index(source[0]))
                else:
                    if source not in keep:
                        keep.append(source)
                    positions.append(2 + keep.index(source))
            return tuple(positions)

        calls, joint = [], None
        if self._joint is not None:
            joint = (self._joint, picker(picks(self._joint)))
            if expands:  # the composition is called with every argument
                keep += [("value", i) for i in range(len(self.parameters)) if ("value", i) not in keep]
        else:
            for i in wanted:
                name = names[i]
                if name not in self._rules:
                    raise TypeError(f"{self.name}: the gradient rule for the argument {name!r} is missing")
                adding = self._accumulating.get(name)
                calls.append(Call(name, self._rules[name], picker(picks(self._rules[name])), adding,
                                  picker(picks(adding, skip=1)) if adding else None))
        by_name: Any = needs if self.variadic else dict(zip(names, needs, strict=True))
        plan = Plan(Needs(by_name) if isinstance(by_name, dict) else by_name, wanted, tuple(names[i] for i in wanted),
                    tuple(keep), tuple(calls), joint, expands)
        self._plans[key] = plan
        return plan

    def rejoin(self, node: Node) -> tuple[Any, ...]:
        """The saved values of `node` as tensors, in their place in the graph, so that rules on them are recorded."""
        parents = dict(zip(node.plan.wanted, node.parents, strict=True))
        ticks = {id(value): tick for tick, _, value in node.ticks}  # a change after this pass is an error too

        def join(value: Any, index: int) -> Any:
            if not is_array(value):
                return value
            target = parents.get(index)
            if not isinstance(target, TensorBase):
                return wrap(value, target, ticks.get(id(value)))
            cast = target._data.dtype != value.dtype  # on the way into the forward, and so into its rules
            return target.astype(value.dtype) if cast else target  # type: ignore[attr-defined]

        values = []
        for (kind, position), value in zip(node.plan.keep, node.saved, strict=True):
            if kind == "value" and self.variadic and position == 0:
                values.append(tuple(join(v, i) for i, v in enumerate(value)))
            elif kind == "value" and position in self._positions:
                values.append(join(value, self._positions.index(position)))
            elif kind == "out":
                values.append(wrap(value, node, ticks[id(value)]))
            else:
                values.append(value)
        return tuple(values)

    def expand(self, node: Node) -> Any:
        """Record the composition on the inputs of `node`, which keeps all of them."""
        if self.composition is None:
            raise TypeError(f"{self.name}: there is no composition to expand")
        kept = zip(node.plan.keep, self.rejoin(node), strict=True)
        by_position = {position: value for (kind, position), value in kept if kind == "value"}
        # It stands for the fused primitive: a visitor of taps does not see its steps. And for a compiled one, too: what
        # is recorded now is what it was made to replace.
        with fused(True), compiled_kernels.set_to(False):
            return self.composition(*[by_position[i] for i in range(len(self.parameters))])

    def conform(self, gradient: Any, target: Any, name: str) -> Any:
        """What the rule for `name` returned, in its target's shape and dtype: summed over broadcast axes, cast."""
        leaf = target._data if isinstance(target, TensorBase) else target
        shape = getattr(gradient, "shape", None)
        if shape is None:
            raise TypeError(f"{self.name}: its gradient rule for {name!r} must return an array of the input's shape "
                            f"{tuple(leaf.shape)}, not {gradient!r}")
        if shape != leaf.shape:
            if not self.broadcasts or not broadcasts_to(leaf.shape, shape):
                raise ValueError(f"{self.name}: its gradient rule for {name!r} returned shape {tuple(shape)} for an "
                                 f"input of shape {tuple(leaf.shape)}")
            gradient = sum_to(gradient, leaf.shape)
        return gradient if gradient.dtype == leaf.dtype else gradient.astype(leaf.dtype)


def broadcasts_to(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Whether an array of `shape` can be broadcast to the shape `target`."""
    aligned = zip(reversed(shape), reversed(target), strict=False)
    return len(shape) <= len(target) and all(n in (1, m) for n, m in aligned)


def sum_to(gradient: Any, shape: tuple[int, ...]) -> Any:
    """Sum `gradient` over the axes along which `shape` was broadcast to its own: the transpose of broadcasting."""
    extra = gradient.ndim - len(shape)
    axes = (*range(extra), *(extra + i for i, n in enumerate(shape) if n == 1 and gradient.shape[extra + i] != 1))
    if axes:
        gradient = total(gradient, axes)
    return gradient if gradient.shape == shape else gradient.reshape(shape)
