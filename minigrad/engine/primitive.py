"""How an operation is defined: a plain function on arrays, and beside it the rules for its gradient.

    @primitive(broadcasts=True)
    def mul(x, y):
        return x * y

    mul.gradient(x=lambda g, y: g * y,
                 y=lambda g, x: g * x)

A rule is the vector-Jacobian product for one input: given ``g``, the gradient of the output, it returns the gradient
of that input. **The names of its parameters say what it needs**, and the tape keeps nothing else alive (of a composite
with a joint rule, which may have to be recorded again, it keeps all arguments):

======================  =====================================================================================
``g``                   the gradient of the output
``x`` (a parameter)     the array given for that parameter, or the static value
``x_shape`` and so on   its shape, dtype (``x_dtype``), device alone
``out``                 the output
``needs``               in joint rules: which inputs require a gradient, by name
``saved``               in joint rules: the `Saved` values that the forward returned beside its output
======================  =====================================================================================

A primitive given arrays returns an array, given tensors a tensor. Rules therefore call other primitives, operators
and the methods that arrays and tensors share; the ordinary backward runs them on raw arrays, ``create_graph`` runs
the same ones on tensors. Rules never write to ``g`` or to saved values; broadcasting and dtypes are the engine's
business, not theirs. A raw array given beside a tensor is saved as it is, not copied: whoever writes to it before the
backward pass gets a wrong gradient, where a tensor would give an error (`minigrad.inspect.detect_anomaly` finds it).

An op whose gradient needs its inputs together has one *joint* rule (`Primitive.joint_gradient`). A ``composite`` op
is written with other ops and with what arrays and tensors share, so that its forward takes either: on tensors it
records its own small steps, which stand in its place where a joint rule has to be differentiated again, and within
``fused(False)``. A faster `Body` may run in place of the definition (`Primitive.faster`).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, Self

from numpy import ndarray

from minigrad.device import is_array, on_device_of
from minigrad.device.local import Setting, Switch, recording
from minigrad.engine.errors import CAUGHT, explain, refuse_arguments
from minigrad.engine.node import Array, Node, Saved, TensorBase, in_dtype, wrap
from minigrad.engine.operands import NUMERIC, as_operand, as_static, check_devices, promote
from minigrad.engine.rules import FACTS, RESERVED, Body, F, Function, Plan, parameter_names
from minigrad.engine.watch import NOTHING, around, watched

__all__ = ["Primitive", "Saved", "primitive", "public", "public_in_precision"]

PLAIN = frozenset({bool, int, float, type(None)})  # exactly these: np.float64 is a float, too
STATIC = PLAIN | {str, slice, type(Ellipsis)}
HOST = STATIC | {ndarray}

bodies = Switch("minigrad.bodies", default=True)


def only_definitions() -> Setting[bool]:
    """A block, or a decorator, in which every operation runs as it is defined, and no faster body in its place."""
    return bodies.set_to(False)


class Primitive(Body, functools.partial[Any]):
    """An operation with gradient rules, and itself the `Body` of its definition. Made by `primitive`; called like the
    function it wraps.

    Args to `primitive`:
        broadcasts: the operands broadcast against each other by NumPy's rules: their dtypes are promoted together,
            and each gradient is summed back to its operand's shape. Any other mismatch of shapes is an error.
        floating: the inputs are brought to one floating dtype first: the widest among them, float32 if there is none
            (``exp`` of integers is float32).
        composite: the forward takes tensors, too (see the module's docstring); or a function that does in its place.
        precision: the dtype that mixed precision gives to the inputs, "float16" or "float32"; None: what they have.
        fresh: each gradient that a rule returns is memory of its own, which nothing else refers to.
    """

    # Of an operation that stands for a whole computation: records it again for its node, since there are no rules.
    recomputes: Callable[[Node], Any] | None = None

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """A partial of `call`: CPython 3.11 calls one at once, and takes 0.5 µs more (of 4) for a ``__call__``."""
        self = super().__new__(cls, cls.call)
        self.__setstate__((cls.call, (self,), {}, {}))  # type: ignore[attr-defined]
        return self

    def __init__(self, forward: Function, broadcasts: bool = False, floating: bool = False,
                 composite: bool | Function = False, precision: str | None = None, fresh: bool = False) -> None:
        # `_take` is the primitive behind a function `take` that checks and converts its arguments first.
        self.name = forward.__name__.lstrip("_")
        functools.update_wrapper(self, forward)
        self.broadcasts, self.floating, self.precision = broadcasts, floating, precision
        self.composition = forward if composite is True else composite or None
        self.parameters = parameter_names(forward)
        clash = RESERVED.intersection(self.parameters)
        if clash:
            raise TypeError(f"{self.name}: the parameter name {sorted(clash)[0]!r} is reserved for gradient rules; "
                            "rename it")
        super().__init__(self, forward, fresh)
        self.bodies: dict[str, Body] = {}  # by the module of the arrays that they are for
        self.inputs: tuple[str, ...] = ()  # the parameters with a rule; the others are static
        self._arity = len(self.parameters)
        self.positions: tuple[int, ...] = ()  # theirs
        defaults = forward.__defaults__ or ()
        self._defaults = dict(zip(self.parameters[::-1], defaults[::-1], strict=False))
        self._differentiable = True

    def __get__(self, tensor: Any, owner: Any = None) -> Any:
        """In a class it is a method, as a function is."""
        return self if tensor is None else functools.partial(self, tensor)

    def __repr__(self) -> str:
        return f"<primitive {self.name}{inspect.signature(self)}>"

    def __reduce__(self) -> str:
        """Copied and pickled by its name, as a function is."""
        return self.forward.__qualname__

    # ----------------------------------------------------------------- declaring; see also `Body`

    def declare_inputs(self, names: Sequence[str]) -> None:
        """Say which parameters have gradient rules; TypeError for a name that is no parameter."""
        for name in names:
            if name not in self.parameters:
                raise TypeError(f"{self.name}: a gradient rule is given for {name!r}, which is not a parameter; "
                                f"the parameters are {', '.join(self.parameters)}")
        self.inputs = tuple(p for p in self.parameters if p in names or p in self.inputs)
        self.positions = tuple(self.parameters.index(p) for p in self.inputs)

    def no_gradient(self) -> Self:
        """Declare that the output never carries a gradient: comparisons, argmax, rounding."""
        self._differentiable = False
        # All but its options are operands, too, whose dtypes are promoted.
        self.positions = tuple(range(self._arity - len(self._defaults) if self.broadcasts else 1))
        return self

    def faster(self, module: str) -> Callable[[Function], Body]:
        """Decorate a forward that runs in place of the definition on float32 and float64 arrays of "numpy" or "cupy".

        The name becomes a `Body`, whose `gradient` and `joint_gradient` take rules in place of the definition's.
        """
        def register(forward: Function) -> Body:
            self.bodies[module] = Body(self, forward, True)
            return self.bodies[module]

        return register

    # ----------------------------------------------------------------- calling

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Run the operation: arrays give an array, tensors a tensor (recorded if one of them requires a gradient)."""
        if kwargs or len(args) != self._arity:
            args = self._bind(args, kwargs)
        for argument in args:
            if isinstance(argument, TensorBase):
                break
        else:  # arrays alone: the definition, and nothing else
            try:
                out = self.forward(*args)
            except CAUGHT as error:
                explain(error, args, self.name, self.parameters)
            return out[0] if self.has_saved else out
        values = self.values_of(args, argument._data)
        if type(argument._data) is ndarray and around.get() is NOTHING:
            return self.run(args, values)
        return self.run_within(args, values)

    def values_of(self, args: tuple[Any, ...], like: Array) -> list[Any]:
        """The raw values of the arguments, of one dtype.

        In the usual case all tensors are floating, of the dtype and kind of `like`, and what is not a tensor is plain.
        """
        values: list[Any] = []
        dtype, kind = like.dtype, type(like)
        for argument in args:
            if isinstance(argument, TensorBase):
                argument = argument._data
                if argument.dtype is not dtype or type(argument) is not kind:
                    return self._convert(args)
            elif type(argument) not in PLAIN and (
                    len(values) in self.positions or not is_plain(argument, kind)):
                return self._convert(args)
            values.append(argument)
        return values if dtype.kind == "f" else self._convert(args)

    def run(self, args: tuple[Any, ...], values: Sequence[Any]) -> Any:
        """Run the definition, or a faster body for the first input, on raw arrays; record it if need be."""
        body: Body = self
        if self.bodies and bodies.get():
            x = values[self.positions[0]]
            faster = self.bodies.get(type(x).__module__)
            body = faster if faster and x.dtype.char in "fd" else self
        needing, parents, plan = [], [], None
        if self._differentiable and recording.get():
            for position, argument in enumerate(args):
                if isinstance(argument, TensorBase) and argument._requires_grad:
                    needing.append(position)
                    parents.append(argument._node or argument)
        if parents:  # a TypeError if one of them has no rule
            plan = body.plans.get(tuple(needing)) or body.plan(tuple(needing))
        try:
            out = body.forward(*values)
        except CAUGHT as error:
            explain(error, values, self.name, self.parameters)
        out, saved = out if body.has_saved else (out, None)
        shares = getattr(out, "base", None) is not None
        for value in values:
            if value is out:
                shares = True
        tensor = wrap(out, None, shared_version(out, args) if shares else None)
        if plan:
            self._record(tensor, plan, parents, args, values, saved)
        return tensor

    def run_within(self, args: tuple[Any, ...], values: Sequence[Any]) -> Any:
        """Run under the settings of `Around`, on the device of the arrays."""
        here, anchor = around.get(), check_devices(values, self.name)
        if self.precision is not None and here.cast is not None:
            values = here.cast.values(self, args, values)
        with on_device_of(0 if anchor is None else anchor):
            if self.composition is not None and here.compose is not None:
                return here.compose(self, args, values)
            run = functools.partial(self.run, args, values)
            return watched(self, args, run) if here.watchers else run()

    def steps(self, args: Sequence[Any], values: Sequence[Any]) -> Any:
        """The output of the composition, recorded: `args` are what the caller gave, `values` the same as arrays.

        It gets tensors, in the dtype of the values: those of the caller, and others for the arrays among the inputs.
        """
        given = list(values)
        for i, (argument, value) in enumerate(zip(args, values, strict=True)):
            if isinstance(argument, TensorBase):
                given[i] = in_dtype(argument, value.dtype)
            elif i in self.positions and is_array(value):
                given[i] = wrap(value)
        return self.composed(given)

    def composed(self, given: Sequence[Any]) -> Any:
        """The output of the composition, without what it would save."""
        out = self.composition(*given)  # type: ignore[misc]
        return out[0] if isinstance(out, tuple) else out

    def _record(self, tensor: Any, plan: Plan, parents: Sequence[Any], args: tuple[Any, ...], values: Sequence[Any],
                saved: Any) -> None:
        """Give `tensor` a node, which keeps what `plan` says."""
        kept, versions = [], []
        for kind, position in plan.keep:
            if kind == "value":
                value, source = values[position], args[position]
            elif kind == "out":
                value, source = tensor._data, tensor
            else:
                value, source = saved if kind == "saved" else FACTS[kind](values[position]), None
            if isinstance(source, TensorBase):
                versions.append((source._version, source._version[0], value))
            elif type(source) is tuple:  # an index
                versions += [(s._version, s._version[0], v) for s, v in zip(source, value, strict=True)
                             if isinstance(s, TensorBase)]
            kept.append(value)
        tensor._node = Node(self, plan, parents, kept, versions, tensor._data.shape, tensor._data.dtype)
        tensor._requires_grad = True

    # ----------------------------------------------------------------- arguments of any other kind

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """All arguments in the order of the parameters, defaults filled in."""
        rest, given = self.parameters[len(args):], {**self._defaults, **kwargs}
        if len(rest) + len(args) != self._arity or not given.keys() >= set(rest) >= kwargs.keys():
            refuse_arguments(self, args, kwargs)
        return (*args, *[given[name] for name in rest])

    def _convert(self, args: tuple[Any, ...]) -> list[Any]:
        """The raw values of arguments of any kind: converted, promoted, and checked to be on one device."""
        values = [(as_operand if position in self.positions else as_static)(argument, args, self.name)
                  for position, argument in enumerate(args)]
        promote(values, self.positions, self.floating, self.broadcasts)
        check_devices(values, self.name)
        return values


def is_plain(static: Any, kind: Any) -> bool:
    """Whether an argument without a gradient rule needs no conversion beside arrays of this `kind`."""
    kinds = HOST if kind is ndarray else {*STATIC, kind}
    if type(static) is tuple:
        return kinds.issuperset(map(type, static))
    return type(static) in kinds and (type(static) is not kind or static.dtype.kind in NUMERIC)


def shared_version(out: Array, args: Sequence[Any]) -> list[int] | None:
    """The version counter of the argument that `out` is, or is a view of; None if there is none."""
    base = getattr(out, "base", None)
    for argument in args:
        if isinstance(argument, TensorBase):
            data = argument._data
            if out is data or (base is not None and (base is data or base is data.base)):
                return argument._version
    return None


def primitive(forward: Function | None = None, **declarations: Any) -> Any:
    """Make an operation of a function on arrays: ``@primitive`` or ``@primitive(broadcasts=True)``.

    Args:
        forward: takes arrays and returns an array, or an array and `Saved` values for a joint rule.
        declarations: broadcasts, floating, composite, precision and fresh: see `Primitive`.

    Returns:
        A `Primitive`. Its ``gradient``, ``joint_gradient``, ``accumulating_gradient`` or ``no_gradient`` come next.
    """
    made: Any = functools.partial(Primitive, **declarations)
    return made if forward is None else made(forward)


def public(function: F, precision: str | None = None) -> F:
    """Let the errors of a function name it, and make it an operation of its module.

    What was raised by an operation inside, or by Python or NumPy, is raised again with this function's name for the
    operation's, and with what it was given. What names it already stays as it is.

    Args:
        precision: the dtype that mixed precision gives to the inputs, as for a `Primitive`.
    """
    name = function.__qualname__.rpartition(".")[2]

    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        try:
            if precision is not None and (cast := around.get().cast) is not None:
                args, keywords = cast.arguments(precision, args, keywords)
            return function(*args, **keywords)
        except CAUGHT as error:
            explain(error, (*args, *keywords.values()), name)

    call.precision = precision  # type: ignore[attr-defined]  # by which `minigrad.ops` knows an operation
    return call  # type: ignore[return-value]


def public_in_precision(precision: str) -> Callable[[F], F]:
    """Make the decorator ``public(…, precision=precision)``."""
    return functools.partial(public, precision=precision)
