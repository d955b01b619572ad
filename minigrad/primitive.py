"""How an operation is defined: a plain function on arrays, and beside it the rules for its gradient.

    @primitive(broadcasts=True)
    def mul(x, y):
        return x * y

    mul.gradient(x=lambda g, y: g * y,
                 y=lambda g, x: g * x)

A rule is the vector-Jacobian product for one input: given ``g``, the gradient of the output, it returns the gradient
of that input. **The names of its parameters say what it needs**, and the tape keeps nothing else alive:

======================  =====================================================================================
``g``                   the gradient of the output
``x`` (a parameter)     the array given for that parameter, or the static value
``x_shape`` and so on   its shape, dtype (``x_dtype``), device alone (for ``*xs``: ``xs_shapes``, a tuple)
``out``                 the output
``needs``               in joint rules: which inputs require a gradient, by name (for ``*xs``: by position)
``saved``               in joint rules: the `Saved` values that the forward returned beside its output
======================  =====================================================================================

A primitive given arrays returns an array, given tensors a tensor. Rules therefore call other primitives, operators
and the methods that arrays and tensors share; the ordinary backward runs them on raw arrays, ``create_graph`` runs
the same ones on tensors. Rules never write to ``g`` or to saved values; broadcasting and dtypes are the engine's
business, not theirs.

An op whose gradient needs its inputs together has one *joint* rule (`Primitive.joint_gradient`). A *fused* op
names its ``composition``: the same function written with smaller ops. The composition is what runs under
``fused(False)``, and what is recorded in its place when a joint rule has to be differentiated again.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minigrad.device import device_of, is_array, on_device_of
from minigrad.modes import fused, fused_kernels, recording
from minigrad.operands import as_operand, check_devices, explain, in_our_names, promote, promote_all
from minigrad.plan import Call, Needs, Plan
from minigrad.tape import Array, Node, Saved, TensorBase, gradient_target, wrap

__all__ = ["Primitive", "Saved", "primitive", "sum_to"]

RESERVED = frozenset({"g", "out", "needs", "saved"})
_PLAIN = frozenset({bool, int, float})  # exactly these: np.float64 is a float, too


class Primitive:
    """An operation with gradient rules. Made by `primitive`; called like the function it wraps.

    Args to `primitive`:
        broadcasts: the operands broadcast against each other by NumPy's rules: their dtypes are promoted together,
            and each gradient is summed back to its operand's shape. Any other mismatch of shapes is an error.
        floating: the inputs are brought to one floating dtype first: the widest among them, float32 if there is none
            (``exp`` of integers is float32).
        composition: the same function written with smaller ops (see the module's docstring).
    """

    def __init__(self, forward: Callable[..., Any], broadcasts: bool = False, floating: bool = False,
                 composition: Callable[..., Any] | None = None) -> None:
        # `_take` is the primitive behind a function `take` that checks and converts its arguments first.
        self.forward, self.name = forward, forward.__name__.lstrip("_")
        self.__name__, self.__qualname__, self.__module__ = forward.__name__, forward.__qualname__, forward.__module__
        self.__doc__ = forward.__doc__
        self.__wrapped__ = forward
        self.broadcasts, self.floating, self.composition = broadcasts, floating, composition
        self.signature = inspect.signature(forward)
        parameters = list(self.signature.parameters.values())
        self.parameters = [p.name for p in parameters]
        self.variadic = bool(parameters) and parameters[0].kind is inspect.Parameter.VAR_POSITIONAL
        for p in parameters[self.variadic:]:
            allowed = (p.KEYWORD_ONLY,) if self.variadic else (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
            if p.kind not in allowed:
                raise TypeError(f"{self.name}{self.signature}: a primitive takes either ordinary parameters, or *xs "
                                f"and keyword-only ones after it; {p.name!r} is neither")
        clash = RESERVED.intersection(self.parameters)
        if clash:
            raise TypeError(f"{self.name}: the parameter name {sorted(clash)[0]!r} is reserved for gradient rules; "
                            "rename it")
        self._arity = len(parameters)
        self.inputs: tuple[str, ...] = ()
        self._positions: tuple[int, ...] = ()
        self._rules: dict[str, Callable[..., Any]] = {}
        self._accumulating: dict[str, Callable[..., Any]] = {}
        self._joint: Callable[..., Any] | None = None
        self._has_saved = False
        self._never_differentiable = False
        self._plans: dict[tuple[bool, ...], Plan] = {}

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
        self._plans.clear()

    def gradient(self, **rules: Callable[..., Any]) -> None:
        """Give the rule of each input, by its name: ``mul.gradient(x=lambda g, y: g * y, …)``."""
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

    def no_gradient(self) -> Primitive:
        """Declare that the output never carries a gradient: comparisons, argmax, rounding."""
        self._never_differentiable = True
        return self

    def _check_names(self, rule: Callable[..., Any], skip: int = 0) -> list[str]:
        names = list(inspect.signature(rule).parameters)[skip:]
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

    # ----------------------------------------------------------------- calling

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the operation: arrays give an array, tensors a tensor (recorded if one of them requires a gradient)."""
        if self.variadic:
            return self._call_variadic(args, kwargs)
        if kwargs or len(args) != self._arity:
            args = self._bind(args, kwargs)
        for argument in args:
            if isinstance(argument, TensorBase):
                break
        else:
            return self._on_arrays(args)
        if self.composition is not None and not fused_kernels.get():
            return self.composition(*args)

        raw: list[Any] = list(args)
        needs = []
        for position in self._positions:
            argument = args[position]
            if isinstance(argument, TensorBase):
                raw[position] = argument._data
                needs.append(argument._requires_grad)
            else:
                needs.append(False)
                if argument is not None and type(argument) not in _PLAIN:
                    raw[position] = as_operand(argument, args, self.name)
        if len(needs) != len(args):
            self._unwrap_statics(raw, args)
        if self.broadcasts or self.floating or len(needs) > 1:
            promote(raw, self._positions or range(len(raw)), self.floating, self.broadcasts)
        return self._run(args, raw, needs, [args[p] for p in self._positions])

    def _call_variadic(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        statics = self._bind((), kwargs)[1:]
        if not any(isinstance(a, TensorBase) for a in args):
            return self._on_arrays(args, kwargs)
        raw = [a._data if isinstance(a, TensorBase) else as_operand(a, args, self.name) for a in args]
        promote_all(raw)
        needs = [isinstance(a, TensorBase) and a._requires_grad for a in args]
        return self._run((args, *statics), [tuple(raw), *statics], needs, args)

    def _on_arrays(self, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> Any:
        try:
            result = self.forward(*args, **(kwargs or {}))
        except AttributeError as error:
            if any(is_array(a) for a in args):
                raise
            kinds = ", ".join(type(a).__name__ for a in args)
            raise TypeError(f"{self.name}: the operands must be tensors or arrays, got {kinds}") from error
        return result[0] if self._has_saved else result

    def _run(self, args: tuple[Any, ...], raw: list[Any], needs: list[bool], inputs: Sequence[Any]) -> Any:
        """Run the forward on raw arrays, and record it if an input needs a gradient."""
        arguments = raw if not self.variadic else raw[0]
        keywords = {} if not self.variadic else dict(zip(self.parameters[1:], raw[1:], strict=True))
        anchor = check_devices(arguments, self.name)
        try:
            if anchor is None:
                out = self.forward(*arguments, **keywords)
            else:
                with on_device_of(anchor):
                    out = self.forward(*arguments, **keywords)
        except (ValueError, TypeError, IndexError) as error:
            raise explain(error, arguments, self.name) from error
        saved_values = None
        if self._has_saved:
            out, saved_values = out

        tick = None
        owner = out if getattr(out, "base", None) is None else out.base
        for tensor in inputs:  # an output that is a view of an input, or the input itself, shares its change tick
            if isinstance(tensor, TensorBase):
                data = tensor._data
                if owner is data or owner is data.base:
                    tick = tensor._tick
                    break
        if True not in needs or self._never_differentiable or not recording.get():
            return wrap(out, None, tick)

        plan = self._plans.get(tuple(needs)) or self._plan(tuple(needs))
        tensor = wrap(out, None, tick)
        saved, ticks = [], []
        for kind, position in plan.keep:
            if kind == "value":
                value, source = raw[position], args[position]
                saved.append(value)
                if isinstance(source, TensorBase):
                    ticks.append((source._tick, source._tick[0], value))
                elif type(source) is tuple:  # *xs, or an index
                    ticks += [(s._tick, s._tick[0], v) for s, v in zip(source, value, strict=True)
                              if isinstance(s, TensorBase)]
            elif kind == "shape":
                value = raw[position]
                saved.append(np.shape(value) if not isinstance(value, tuple) else tuple([v.shape for v in value]))
            elif kind == "dtype":
                saved.append(getattr(raw[position], "dtype", None))
            elif kind == "device":
                saved.append(device_of(raw[position]))
            elif kind == "out":
                saved.append(tensor._data)
                ticks.append((tensor._tick, tensor._tick[0], tensor._data))
            else:
                saved.append(saved_values)
        parents = tuple([gradient_target(inputs[i]) for i in plan.wanted])
        tensor._node = Node(self, plan, parents, tuple(saved), tuple(ticks), tensor._data.shape, tensor._data.dtype)
        tensor._requires_grad = True
        return tensor

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """All arguments in the order of the parameters, defaults filled in; ``dim`` is another name for ``axis``."""
        if "dim" in kwargs or "keepdim" in kwargs:
            kwargs = in_our_names(kwargs, self.parameters, self.name)
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self.name}{self.signature}: {error}") from None
        bound.apply_defaults()
        return tuple(bound.arguments.values())

    def _unwrap_statics(self, raw: list[Any], args: Sequence[Any]) -> None:
        for position, value in enumerate(raw):
            if isinstance(value, TensorBase):
                raw[position] = self._unwrap_static(value, position)
            elif type(value) is tuple:  # an index may have tensors in it
                raw[position] = tuple([self._unwrap_static(v, position) if isinstance(v, TensorBase) else v
                                       for v in value])
            elif isinstance(value, np.generic):  # weak, like a Python number
                raw[position] = value.item()
            elif self._never_differentiable and isinstance(value, list):
                raw[position] = as_operand(value, args, self.name)

    def _unwrap_static(self, tensor: TensorBase, position: int) -> Array:
        if tensor._requires_grad and recording.get() and not self._never_differentiable:
            raise TypeError(f"{self.name}: there is no gradient rule for the argument {self.parameters[position]!r}, "
                            "but the tensor given for it requires a gradient; use .detach() if none is wanted")
        return tensor._data

    # ----------------------------------------------------------------- for the backward pass

    def _plan(self, needs: tuple[bool, ...]) -> Plan:
        names = self.inputs if not self.variadic else (self.parameters[0],) * len(needs)
        wanted = tuple(i for i, need in enumerate(needs) if need)
        expands = self._joint is not None and self.composition is not None
        keep: list[tuple[str, int]] = []

        def picks(rule: Callable[..., Any], skip: int = 0) -> tuple[int, ...]:
            positions = []
            for name in list(inspect.signature(rule).parameters)[skip:]:
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
            joint = (self._joint, picks(self._joint))
            if expands:  # the composition is called with every argument
                keep += [("value", i) for i in range(self._arity) if ("value", i) not in keep]
        else:
            for i in wanted:
                name = names[i]
                if name not in self._rules:
                    raise TypeError(f"{self.name}: the gradient rule for the argument {name!r} is missing")
                adding = self._accumulating.get(name)
                calls.append(Call(name, self._rules[name], picks(self._rules[name]), adding,
                                  picks(adding, skip=1) if adding else ()))
        by_name: Any = needs if self.variadic else dict(zip(names, needs, strict=True))
        plan = Plan(Needs(by_name) if isinstance(by_name, dict) else by_name, wanted, tuple(names[i] for i in wanted),
                    tuple(keep), tuple(calls), joint, expands)
        self._plans[needs] = plan
        return plan

    def rejoin(self, node: Node) -> tuple[Any, ...]:
        """The saved values of `node` as tensors, in their place in the graph, so that rules on them are recorded."""
        parents = dict(zip(node.plan.wanted, node.parents, strict=True))
        ticks = {id(value): tick for tick, _, value in node.ticks}  # a change after this pass is an error too

        def join(value: Any, index: int) -> Any:
            if not is_array(value):
                return value
            target = parents.get(index)
            return target if isinstance(target, TensorBase) else wrap(value, target, ticks.get(id(value)))

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
        with fused(True):  # it stands for the fused primitive: a visitor of taps does not see its steps
            return self.composition(*[by_position[i] for i in range(self._arity)])

    def conform(self, gradient: Any, target: Any, name: str) -> Any:
        """What the rule for `name` returned, in its target's shape and dtype: summed over broadcast axes, cast."""
        leaf = target._data if isinstance(target, TensorBase) else target
        shape = getattr(gradient, "shape", None)
        if shape is None:
            raise TypeError(f"{self.name}: its gradient rule for {name!r} must return an array of the input's shape "
                            f"{tuple(leaf.shape)}, not {gradient!r}")
        if shape != leaf.shape:
            if not self.broadcasts:
                raise ValueError(f"{self.name}: its gradient rule for {name!r} returned shape {tuple(shape)} for an "
                                 f"input of shape {tuple(leaf.shape)}")
            gradient = sum_to(gradient, leaf.shape)
        return gradient if gradient.dtype == leaf.dtype else gradient.astype(leaf.dtype)


def sum_to(gradient: Any, shape: tuple[int, ...]) -> Any:
    """Sum `gradient` over the axes along which `shape` was broadcast: the transpose of broadcasting."""
    extra = gradient.ndim - len(shape)
    axes = (*range(extra), *(extra + i for i, n in enumerate(shape) if n == 1 and gradient.shape[extra + i] != 1))
    if axes:
        gradient = gradient.sum(axis=axes)
    return gradient if gradient.shape == shape else gradient.reshape(shape)


def primitive(forward: Callable[..., Any] | None = None, *, broadcasts: bool = False, floating: bool = False,
              composition: Callable[..., Any] | None = None) -> Any:
    """Make a `Primitive` of a function on arrays: ``@primitive`` or ``@primitive(broadcasts=True)``."""
    if forward is None:
        return lambda function: Primitive(function, broadcasts, floating, composition)
    return Primitive(forward, broadcasts, floating, composition)
