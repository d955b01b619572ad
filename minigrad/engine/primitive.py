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

An op whose gradient needs its inputs together has one *joint* rule (`Body.joint_gradient`). An op may name its
``composition``: the same function written with smaller ops, which is recorded in its place when a joint rule has to be
differentiated again. A faster `Body` can be registered for some operands, from outside (`Primitive.add_body`).
"""

from __future__ import annotations

import functools
import inspect
import operator
import types
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np

from minigrad.device import device_of, is_array, on_device_of
from minigrad.engine.errors import CAUGHT, Spelling, explain, misfit
from minigrad.engine.interpreters import Operands, interpret, interpreters
from minigrad.engine.node import Array, Node, Saved, TensorBase, wrap
from minigrad.engine.operands import as_operand, beside, check_devices, promote
from minigrad.engine.switches import Setting, recording

__all__ = ["Body", "Plan", "Primitive", "Saved", "primitive"]

RESERVED = frozenset({"g", "out", "needs", "saved"})
PLAIN = frozenset({bool, int, float, type(None)})  # exactly these: np.float64 is a float, too
# Which optional kinds of bodies may run here, beside those without a kind; None: definitions alone.
body_kinds: ContextVar[frozenset[str] | None] = ContextVar("minigrad.bodies", default=frozenset())

Source = tuple[str, int]  # what a rule asks for: ("value" | "shape" | "dtype" | "device", of which parameter), or a name of RESERVED
F = TypeVar("F", bound=Callable[..., Any])


def parameter_names(function: Callable[..., Any]) -> list[str]:
    """The names of a function's parameters; read from its code if possible: `inspect.signature` is slow at import."""
    if is_ordinary(function):
        code = function.__code__
        return list(code.co_varnames[:code.co_argcount])
    return list(inspect.signature(function).parameters)


def is_ordinary(function: Callable[..., Any]) -> bool:
    """Whether it is a Python function whose parameters can all be given by position."""
    if not isinstance(function, types.FunctionType) or hasattr(function, "__wrapped__"):
        return False
    code = function.__code__
    return not code.co_kwonlyargcount and not code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)


class Call(NamedTuple):
    """One input's rule, ready to run: ``rule(*pick((g, needs, *saved)))``, or ``rule(g)`` if `pick` is None."""

    rule: Callable[..., Any]
    pick: Callable[[tuple[Any, ...]], tuple[Any, ...]] | None
    adds: bool = False  # whether the rule adds into a buffer, which it is given first

    def __call__(self, values: tuple[Any, ...], *buffer: Array) -> Any:
        """What the rule returns for these values of g, needs and what was saved."""
        return self.rule(*buffer, values[0]) if self.pick is None else self.rule(*buffer, *self.pick(values))


class Plan(NamedTuple):
    """What recording an operation keeps for a given set of inputs that need gradients, and how its rules are called.

    Worked out once for each set. ``again`` are the calls under ``create_graph``: those of the definition.
    """

    needs: Any  # whether each input needs a gradient
    wanted: tuple[int, ...]  # the inputs that do, by position
    names: tuple[str, ...]  # and by name
    keep: tuple[Source, ...] = ()
    calls: tuple[Call, ...] = ()  # one for each of `wanted`, or a single joint one
    again: tuple[Call, ...] = ()
    joint: bool = False
    fresh: bool = False  # what the calls return shares memory with nothing else
    expands: bool = False  # under create_graph the composition is recorded in the node's place
    recompute: Callable[[Node], Any] | None = None  # in any backward this records what made the node, in its place


class Needs:
    """Which inputs require a gradient, by name: ``needs.weight``; in the order of the inputs when iterated."""

    def __init__(self, by_name: dict[str, bool]) -> None:
        self.__dict__.update(by_name)

    def __len__(self) -> int:
        return len(self.__dict__)

    def __iter__(self) -> Iterator[bool]:
        return iter(self.__dict__.values())

    def __getattr__(self, name: str) -> bool:  # a name that is no input: an error that lists them
        raise AttributeError(f"needs has {', '.join(self.__dict__)}, not {name!r}")


class Body:
    """A forward on arrays and its gradient rules: the definition of a primitive, or a faster body for some operands."""

    def __init__(self, primitive: Primitive, forward: Callable[..., Any], fresh: bool) -> None:
        self.primitive, self.forward, self.fresh = primitive, forward, fresh
        self.rules: dict[str, Callable[..., Any]] = {}
        self.adding: dict[str, Callable[..., Any]] = {}
        self.joint: Callable[..., Any] | None = None
        self.has_saved = False
        self.plans: dict[int, Plan] = {}

    def gradient(self, *unnamed: Any, **rules: Callable[..., Any]) -> None:
        """Give the rule of each input, by its name: ``mul.gradient(x=lambda g, y: g * y, …)``."""
        if unnamed or not rules:
            name = self.primitive.name
            form = ", ".join(f"{parameter}=lambda g, …: …" for parameter in self.primitive.parameters[:2])
            raise TypeError(f"{name}: rules are given by the names of the inputs, {name}.gradient({form})")
        self.primitive.declare_inputs(list(rules))
        for name, rule in rules.items():
            self.primitive.sources(rule)
            self.rules[name] = rule

    def accumulating_gradient(self, **rules: Callable[..., Any]) -> None:
        """Rules that *add into* a buffer of the input's shape: ``rule(buffer, g, …)`` returns nothing.

        Used where the gradient touches few entries of a large input (indexing). The plain rule of the same input,
        which must exist too, serves ``create_graph``.
        """
        for name, rule in rules.items():
            if name not in self.rules:
                raise TypeError(f"{self.primitive.name}: give the plain rule for {name!r} before the accumulating one")
            self.primitive.sources(rule, skip=1)
            self.adding[name] = rule
        self.plans.clear()

    def joint_gradient(self, *inputs: str) -> Callable[[F], F]:
        """Decorate the one rule that returns the gradients of all `inputs`, in this order, None where not needed.

        A joint rule works on raw arrays only if the primitive has a composition, which then serves ``create_graph``.
        """
        self.primitive.declare_inputs(inputs)

        def register(rule: F) -> F:
            self.joint, self.has_saved = rule, ("saved", -1) in self.primitive.sources(rule)
            if self.has_saved and self.primitive.composition is None:
                raise TypeError(f"{self.primitive.name}: a rule that uses saved values needs a composition to be "
                                "differentiated again; pass composition=... to @primitive")
            return rule

        return register

    def calls(self, names: Sequence[str], keep: list[Source], adding: bool = True) -> tuple[Call, ...]:
        """The calls of the rules for these inputs; what they ask for is put into `keep`.

        `adding`: prefer the rules that add into a buffer.
        """
        if self.joint is not None:
            return (Call(self.joint, self._pick(self.joint, keep)),)
        found = []
        for name in names:
            if name not in self.rules:
                raise TypeError(f"{self.primitive.name}: the gradient rule for the argument {name!r} is missing")
            adds = adding and name in self.adding
            rule = self.adding[name] if adds else self.rules[name]
            found.append(Call(rule, self._pick(rule, keep, skip=adds), adds))
        return tuple(found)

    def _pick(self, rule: Callable[..., Any], keep: list[Source], skip: int = 0) -> Any:
        """A function from ``(g, needs, *saved)`` to the tuple that the rule asks for; None for g alone."""
        places = []
        for source in self.primitive.sources(rule, skip):
            if source[0] in ("g", "needs"):
                places.append(("g", "needs").index(source[0]))
            else:
                if source not in keep:
                    keep.append(source)
                places.append(2 + keep.index(source))
        if len(places) == 1:
            return None if places == [0] else lambda values: (values[places[0]],)
        return operator.itemgetter(*places) if places else lambda values: ()


class FasterBody(Body):
    """A body for some operands, registered from outside. What it does not bring of the gradient is the definition's.

    Args:
        primitive: the operation; `forward` has its parameters.
        suits: whether the forward takes these arguments: arrays and plain values, in order.
        kind: "" for a body that runs wherever it suits; another one runs where `body_kinds` has its kind.
        fresh: as for `Primitive`.
    """

    def __init__(self, primitive: Primitive, forward: Callable[..., Any], suits: Callable[..., bool], kind: str = "",
                 fresh: bool = False) -> None:
        if parameter_names(forward) != list(primitive.parameters):
            raise TypeError(f"{primitive.name}: a body must have the parameters {', '.join(primitive.parameters)}")
        super().__init__(primitive, forward, fresh)
        self.suits, self.kind = suits, kind
        self.rules, self.adding = dict(primitive.rules), dict(primitive.adding)
        self.joint, self.has_saved = primitive.joint, primitive.has_saved


class Primitive(Body):
    """An operation with gradient rules. Made by `primitive`; called like the function it wraps.

    Args to `primitive`:
        broadcasts: the operands broadcast against each other by NumPy's rules: their dtypes are promoted together,
            and each gradient is summed back to its operand's shape. Any other mismatch of shapes is an error.
        floating: the inputs are brought to one floating dtype first: the widest among them, float32 if there is none
            (``exp`` of integers is float32).
        composition: the same function written with smaller ops (see the module's docstring).
        precision: the dtype that mixed precision gives to the inputs, "float16" or "float32"; None: what they have.
            "mixed": the composition's operations decide.
        fresh: each gradient that a rule returns is memory of its own, which nothing else refers to.
    """

    # What a backward pass that begins at this operation runs in: a function that makes a context, or None.
    around_pass: Callable[[], Any] | None = None
    recomputes = False  # True for an operation that stands for a whole computation, to be made again in the backward

    def __init__(self, forward: Callable[..., Any], broadcasts: bool = False, floating: bool = False,
                 composition: Callable[..., Any] | None = None, precision: str | None = None,
                 fresh: bool = False) -> None:
        # `_take` is the primitive behind a function `take` that checks and converts its arguments first.
        self.name = forward.__name__.lstrip("_")
        functools.update_wrapper(self, forward)
        self.broadcasts, self.floating, self.composition, self.precision = broadcasts, floating, composition, precision
        self.parameters = parameter_names(forward)
        self.variadic = not is_ordinary(forward) and self._check_kinds(forward)
        clash = RESERVED.intersection(self.parameters)
        if clash:
            raise TypeError(f"{self.name}: the parameter name {sorted(clash)[0]!r} is reserved for gradient rules; "
                            "rename it")
        super().__init__(self, forward, fresh)
        self.bodies: list[FasterBody] = []
        self.inputs: tuple[str, ...] = ()  # the parameters with a rule; the others are static
        self._arity = len(self.parameters) if not self.variadic else -1  # -1: no number of arguments is the usual one
        self._positions: tuple[int, ...] = ()
        self._statics = tuple(range(len(self.parameters)))
        self._differentiable = True
        self._advice: dict[str, str] = {}

    def _check_kinds(self, forward: Callable[..., Any]) -> bool:
        """Whether the forward takes ``*xs``; TypeError for a signature that no primitive may have."""
        parameters = list(inspect.signature(forward).parameters.values())
        variadic = bool(parameters) and parameters[0].kind is inspect.Parameter.VAR_POSITIONAL
        for p in parameters[variadic:]:
            allowed = (p.KEYWORD_ONLY,) if variadic else (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
            if p.kind not in allowed:
                raise TypeError(f"{self.name}{inspect.signature(forward)}: a primitive takes either ordinary "
                                f"parameters, or *xs and keyword-only ones after it; {p.name!r} is neither")
        return variadic

    @functools.cached_property
    def signature(self) -> inspect.Signature:
        """The forward's."""
        return inspect.signature(self.forward)

    def __repr__(self) -> str:
        return f"<primitive {self.name}{self.signature}>"

    def __reduce__(self) -> str:
        """Copied and pickled by its name, as a function is."""
        return self.__qualname__

    # ----------------------------------------------------------------- declaring

    def declare_inputs(self, names: Sequence[str]) -> None:
        """Say which parameters have gradient rules; TypeError for a name that is no parameter."""
        for name in names:
            if name not in self.parameters:
                raise TypeError(f"{self.name}: a gradient rule is given for {name!r}, which is not a parameter; "
                                f"the parameters are {', '.join(self.parameters)}")
        self.inputs = tuple(p for p in self.parameters if p in names or p in self.inputs)
        self._positions = tuple(self.parameters.index(p) for p in self.inputs)
        self._statics = tuple(i for i in range(len(self.parameters)) if i not in self._positions)
        self.plans.clear()

    def no_gradient(self) -> Self:
        """Declare that the output never carries a gradient: comparisons, argmax, rounding."""
        self._differentiable = False
        return self

    def advise(self, **advice: str) -> None:
        """What to do when a tensor that requires a gradient is given for an argument without a rule, by its name."""
        self._advice.update(advice)

    def sources(self, rule: Callable[..., Any], skip: int = 0) -> list[Source]:
        """What a rule asks for, by the names of its parameters; TypeError for a name that stands for nothing."""
        return [self.source(name) for name in parameter_names(rule)[skip:]]

    def source(self, name: str) -> Source:
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
        if kwargs or len(args) != self._arity:
            args = self._bind(args, kwargs)
        found, host, values = self._unwrap(args)
        if not found:
            return self._on_arrays(args)
        if interpreters():
            return interpret(self, Operands(args, values), lambda operands: self.run(operands.args, operands.values, host))
        return self.run(args, values, host)

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """All arguments in the order of the parameters, ``*xs`` one by one, defaults filled in."""
        try:
            bound = self.signature.bind(*args, **Spelling.rename(kwargs, self.parameters, self.name))
        except TypeError as error:
            raise misfit(error, self.name, self.signature, kwargs) from None
        bound.apply_defaults()
        first, *others = bound.arguments.values()
        return (*first, *others) if self.variadic else (first, *others)

    def _split(self, args: Sequence[Any]) -> tuple[Sequence[int], Sequence[int]]:
        """The positions of the inputs, and of the static arguments, in a call with these arguments."""
        if not self.variadic:
            return self._positions, self._statics
        count = len(args) - len(self.parameters) + 1
        return range(count), range(count, len(args))

    def _unwrap(self, args: tuple[Any, ...]) -> tuple[bool, bool, list[Any]]:
        """Whether there are tensors; whether all arrays are in host memory; the raw values, of one dtype and device."""
        inputs, statics = (self._positions, self._statics) if not self.variadic else self._split(args)
        values, dtype, found, alike = list(args), None, False, True
        for position in inputs:
            argument = args[position]
            if isinstance(argument, TensorBase):
                values[position] = data = argument._data
                alike = alike and type(data) is np.ndarray and data.dtype is (dtype or data.dtype)
                found, dtype = True, data.dtype
            elif type(argument) not in PLAIN:
                alike = False
        for position in statics:
            if type(args[position]) not in PLAIN:
                found = found or isinstance(args[position], TensorBase)
                values[position] = static = self._static(args[position], position, args)
                alike = alike and (type(static) is np.ndarray or not is_array(static))
        if found and not (alike and dtype is not None and dtype.kind == "f"):
            for position in inputs:
                if not isinstance(args[position], TensorBase) and type(args[position]) not in PLAIN:
                    values[position] = as_operand(args[position], args, self.name)
            promote(values, inputs or statics, self.floating, self.broadcasts)
            alike = check_devices(values, self.name) is None
        return found, alike, values

    def _static(self, value: Any, position: int, args: Sequence[Any]) -> Any:
        """An argument without a gradient rule, as the forward gets it."""
        if isinstance(value, TensorBase):
            return self._unwrap_static(value, position)
        if type(value) is tuple:  # an index may have tensors in it
            return tuple([self._unwrap_static(v, position) if isinstance(v, TensorBase) else v for v in value])
        if isinstance(value, np.generic):  # weak, like a Python number
            return value.item()
        if not self._differentiable:
            return as_operand(value, args, self.name) if isinstance(value, list) else value
        return beside(value, args) if isinstance(value, np.ndarray) else value

    def _unwrap_static(self, tensor: TensorBase, position: int) -> Array:
        if tensor._requires_grad and recording.get() and self._differentiable:
            advice = self._advice.get(self.parameters[position], "use .detach() if none is wanted")
            raise TypeError(f"{self.name}: there is no gradient rule for the argument {self.parameters[position]!r}, "
                            f"but the tensor given for it requires a gradient; {advice}")
        return tensor._data

    def _on_arrays(self, args: tuple[Any, ...]) -> Any:
        """The result of the definition, of arrays."""
        try:
            result = self._forward(self, args)
        except (AttributeError, TypeError) as error:
            if any(is_array(a) for a in args) or str(error).startswith(f"{self.name}: "):
                raise
            kinds = ", ".join(type(a).__name__ for a in args)
            raise TypeError(f"{self.name}: the operands must be tensors or arrays, got {kinds}") from error
        return result[0] if self.has_saved else result

    def _forward(self, body: Body, values: Sequence[Any]) -> Any:
        if not self.variadic:
            return body.forward(*values)
        inputs, statics = self._split(values)
        keywords = dict(zip(self.parameters[1:], [values[i] for i in statics], strict=True))
        return body.forward(*[values[i] for i in inputs], **keywords)

    # ----------------------------------------------------------------- running and recording

    def run(self, args: tuple[Any, ...], values: Sequence[Any], host: bool) -> Any:
        """Run a body on raw arrays, and record it if an input needs a gradient."""
        body = self.body_for(values) if self.bodies else self
        try:
            if host:
                out = body.forward(*values) if not self.variadic else self._forward(body, values)
            else:
                with on_device_of(check_devices(values, self.name)):
                    out = self._forward(body, values)
        except CAUGHT as error:
            raise explain(error, values, self.name) from error
        saved = None
        if body.has_saved:
            out, saved = out
        tensor = wrap(out, None, shared_version(out, args))
        if self._differentiable and recording.get():
            self._record(tensor, args, values, body, saved)
        return tensor

    def body_for(self, values: Sequence[Any]) -> Body:
        """The first body that suits these values; the definition if there is none."""
        kinds = body_kinds.get()
        if kinds is not None:
            for body in self.bodies:
                if (not body.kind or body.kind in kinds) and body.suits(*values):
                    return body
        return self

    def add_body(self, body: FasterBody) -> None:
        """Let `body` run in place of the definition, where it suits; the last one added is asked first."""
        self.bodies.insert(0, body)

    def _record(self, tensor: Any, args: tuple[Any, ...], values: Sequence[Any], body: Body, saved: Any) -> None:
        """Give `tensor` its node, if an input needs a gradient."""
        inputs = self._positions if not self.variadic else self._split(args)[0]
        needs, bit = 0, 1
        for position in inputs:
            argument = args[position]
            if isinstance(argument, TensorBase) and argument._requires_grad:
                needs |= bit
            bit <<= 1
        if not needs:
            return
        plan = body.plans.get(needs | bit) or self._plan(needs | bit, body)
        kept, versions = [], []
        for source in plan.keep:
            value = self._kept(source, tensor, args, values, saved, versions)
            kept.append(value)
        parents = []
        for index in plan.wanted:
            source = args[inputs[index]]
            parents.append(source if source._node is None else source._node)
        data = tensor._data
        tensor._node = Node(self, plan, tuple(parents), tuple(kept), tuple(versions), data.shape, data.dtype)
        tensor._requires_grad = True

    def _kept(self, source: Source, tensor: Any, args: tuple[Any, ...], values: Sequence[Any], saved: Any,
              versions: list[Any]) -> Any:
        """What a node keeps of this source; the version of each tensor that it refers to is added to `versions`."""
        kind, position = source
        if kind == "saved":
            return saved
        if kind == "out":
            versions.append((tensor._version, tensor._version[0], tensor._data))
            return tensor._data
        given, value = self._argument(args, position), self._argument(values, position)
        if kind == "value":
            if isinstance(given, TensorBase):
                versions.append((given._version, given._version[0], value))
            elif type(given) is tuple:  # *xs, or an index
                versions += [(t._version, t._version[0], v) for t, v in zip(given, value, strict=True)
                             if isinstance(t, TensorBase)]
            return value
        if kind == "shape":
            return tuple([v.shape for v in value]) if isinstance(value, tuple) else np.shape(value)
        return getattr(value, "dtype", None) if kind == "dtype" else device_of(value)

    def input_positions(self, args: Sequence[Any]) -> Sequence[int]:
        """Where the inputs stand in these arguments."""
        return self._split(args)[0]

    def arguments(self, args: Sequence[Any]) -> Sequence[Any]:
        """The arguments in the order of the parameters, ``*xs`` as one tuple."""
        return args if not self.variadic else [self._argument(args, i) for i in range(len(self.parameters))]

    def _argument(self, args: Sequence[Any], position: int) -> Any:
        """The argument of a parameter; of ``*xs`` the tuple."""
        if not self.variadic:
            return args[position]
        inputs, statics = self._split(args)
        return args[statics[position - 1]] if position else tuple(args[i] for i in inputs)

    def _plan(self, key: int, body: Body) -> Plan:
        """The plan for these needs, a bit for each input and one more that ends them, with the rules of `body`."""
        needs = [bool(key >> i & 1) for i in range(key.bit_length() - 1)]
        names = self.inputs if not self.variadic else (self.parameters[0],) * len(needs)
        wanted = tuple(i for i, need in enumerate(needs) if need)
        wanted_names = tuple(names[i] for i in wanted)
        expands = self.joint is not None and self.composition is not None
        keep: list[Source] = []
        calls = body.calls(wanted_names, keep)
        joint, again = body.joint is not None, calls
        if expands:  # the composition is called with every argument
            keep += [("value", i) for i in range(len(self.parameters)) if ("value", i) not in keep]
        elif body is not self or any(call.adds for call in calls):
            again = self.calls(wanted_names, keep, adding=False)
        plan = body.plans[key] = Plan(tuple(needs) if self.variadic else Needs(dict(zip(names, needs, strict=True))),
                                      wanted, wanted_names, tuple(keep), calls, again, joint, body.fresh, expands)
        return plan


def only_definitions() -> Setting[Any]:
    """A block, or a decorator, in which every operation runs as it is defined, and no faster body in its place."""
    return Setting(body_kinds, lambda kinds: None)


def shared_version(out: Array, args: Sequence[Any]) -> list[int] | None:
    """The version counter of the argument that `out` is, or is a view of; None if there is none."""
    base = getattr(out, "base", None)
    for argument in args:
        if isinstance(argument, TensorBase):
            data = argument._data
            if out is data or (base is not None and (base is data or base is data.base)):
                return argument._version
    return None


def primitive(forward: Callable[..., Any] | None = None, **declarations: Any) -> Any:
    """Make an operation of a function on arrays: ``@primitive`` or ``@primitive(broadcasts=True)``.

    Args:
        forward: takes arrays and returns an array, or an array and `Saved` values for a joint rule.
        broadcasts, floating, composition, precision, fresh: see `Primitive`.

    Returns:
        A `Primitive`. Its ``gradient``, ``joint_gradient``, ``accumulating_gradient`` or ``no_gradient`` come next.
    """
    if forward is None:
        return lambda function: Primitive(function, **declarations)
    return Primitive(forward, **declarations)
