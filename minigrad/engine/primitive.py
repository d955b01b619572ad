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

import functools
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np

from minigrad.device import device_of, is_array, on_device_of
from minigrad.engine.calls import CAUGHT, explain, in_name_of, in_our_names, unfit
from minigrad.engine.node import Array, Node, Saved, TensorBase, wrap
from minigrad.engine.observe import observers
from minigrad.engine.operands import as_operand, beside, check_devices, promote, promote_all
from minigrad.engine.rules import Rules
from minigrad.engine.switches import compiled_kernels, fused_kernels, recording
from minigrad.precision.autocast import autocasting, cast

__all__ = ["Primitive", "Saved", "primitive"]

_PLAIN = frozenset({bool, int, float, type(None)})  # exactly these: np.float64 is a float, too


class Primitive(Rules, functools.partial[Any]):
    """An operation with gradient rules. Made by `primitive`; called like the function it wraps.

    Args to `primitive`:
        broadcasts: the operands broadcast against each other by NumPy's rules: their dtypes are promoted together,
            and each gradient is summed back to its operand's shape. Any other mismatch of shapes is an error.
        floating: the inputs are brought to one floating dtype first: the widest among them, float32 if there is none
            (``exp`` of integers is float32).
        composition: the same function written with smaller ops (see the module's docstring).
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """A partial of `call`: Python calls one at once, and an object with a ``__call__`` through several layers."""
        self = super().__new__(cls, cls.call)
        self.__setstate__((cls.call, (self,), {}, {}))  # type: ignore[attr-defined]
        return self

    def __reduce__(self) -> str:
        """Copied and pickled by its name, as a function is."""
        return self.__qualname__

    # ----------------------------------------------------------------- calling

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Run the operation: arrays give an array, tensors a tensor (recorded if one of them requires a gradient)."""
        if kwargs or len(args) != self._arity:
            if self.variadic:
                return self._call_variadic(args, kwargs)
            args = self._bind(args, kwargs)
        # One look at each input. The usual case is `plain`: tensors in host memory, of one dtype, and Python numbers.
        raw: list[Any] = list(args)
        needs, bit, found, plain, dtype = 0, 1, False, True, None  # needs: a bit for each input that needs a gradient
        for position in self._positions:
            argument = args[position]
            if isinstance(argument, TensorBase):
                found = True
                raw[position] = data = argument._data
                if argument._requires_grad:
                    needs |= bit
                if type(data) is not np.ndarray:
                    plain = False
                elif dtype is None:
                    dtype = data.dtype
                elif data.dtype is not dtype:
                    plain = False
            elif type(argument) not in _PLAIN:
                plain = False
            bit <<= 1
        if not found and not (self._statics and self._has_tensors(args)):
            return self._on_arrays(args)
        precision = self.precision if self.precision is not None and autocasting.get() else None
        if self.composition is not None and not fused_kernels.get():
            return self._composed(args, precision)

        for position in self._statics:
            if type(raw[position]) not in _PLAIN:
                raw[position] = static = self._static(raw[position], position, args)
                plain = plain and (type(static) is np.ndarray or not is_array(static))
        inputs: Sequence[Any] = args
        if self._statics and self._positions:
            inputs = [args[position] for position in self._positions]
        if not plain or dtype is None or dtype.kind != "f" or (precision is not None and dtype is not precision):
            plain = False
            for position in self._positions:
                if not isinstance(args[position], TensorBase) and type(args[position]) not in _PLAIN:
                    raw[position] = as_operand(args[position], args, self.name)
            if precision is not None:
                cast(raw, self._positions, precision)
            if self.broadcasts or self.floating or len(self._positions) > 1:
                promote(raw, self._positions or range(len(raw)), self.floating, self.broadcasts)
        body = self
        if plain and self.twin is not None and compiled_kernels.get() and self.suits(*raw):
            body = self.twin
        run = body._run if not observers() else body._run_observed
        return run(args, raw, needs, inputs, plain)

    def _has_tensors(self, args: tuple[Any, ...]) -> bool:
        """Whether there are tensors among the arguments without a rule."""
        return any(isinstance(args[position], TensorBase) for position in self._statics)

    def _call_variadic(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        statics = self._bind((), kwargs)[1:]
        if not any(isinstance(a, TensorBase) for a in args):
            return self._on_arrays(args, kwargs)
        raw = [a._data if isinstance(a, TensorBase) else as_operand(a, args, self.name) for a in args]
        if self.precision is not None and autocasting.get():
            cast(raw, range(len(raw)), self.precision)
        promote_all(raw)
        needs = tuple([isinstance(a, TensorBase) and a._requires_grad for a in args])
        run = self._run if not observers() else self._run_observed
        return run((args, *statics), [tuple(raw), *statics], needs if True in needs else 0, args, False)

    def _on_arrays(self, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> Any:
        try:
            result = self.forward(*args, **(kwargs or {}))
        except (AttributeError, TypeError) as error:
            if any(is_array(a) for a in args) or str(error).startswith(f"{self.name}: "):
                raise
            kinds = ", ".join(type(a).__name__ for a in args)
            raise TypeError(f"{self.name}: the operands must be tensors or arrays, got {kinds}") from error
        return result[0] if self._has_saved else result

    def _composed(self, args: tuple[Any, ...], precision: Any) -> Any:
        """The composition in place of the forward; its errors name this operation, not the steps."""
        if precision is not None:
            cast(values := list(args), self._positions, precision)
            args = tuple(values)
        try:
            return self.composition(*args)  # type: ignore[misc]
        except CAUGHT as error:
            told = in_name_of(self.name, error, args)
            raise told from (error if told is not error else None)

    def _run_observed(self, args: tuple[Any, ...], raw: list[Any], needs: int | tuple[bool, ...],
                      inputs: Sequence[Any], plain: bool) -> Any:
        """As `_run`, with the observers told before and after."""
        watching, output = observers(), None
        for observer in watching:
            observer.operation_begins(self, args)
        try:
            output = self._run(args, raw, needs, inputs, plain)
        finally:
            for observer in reversed(watching):
                observer.operation_ends(self, args, output)
        return output

    def _run(self, args: tuple[Any, ...], raw: list[Any], needs: int | tuple[bool, ...], inputs: Sequence[Any],
             plain: bool) -> Any:
        """Run the forward on raw arrays, and record it if an input needs a gradient."""
        arguments = raw
        try:
            if plain:
                out = self.forward(*raw)
            else:
                arguments = raw if not self.variadic else raw[0]
                keywords = {} if not self.variadic else dict(zip(self.parameters[1:], raw[1:], strict=True))
                anchor = check_devices(arguments, self.name)
                if anchor is None:
                    out = self.forward(*arguments, **keywords)
                else:
                    with on_device_of(anchor):
                        out = self.forward(*arguments, **keywords)
        except CAUGHT as error:
            raise explain(error, arguments, self.name) from error
        saved_values = None
        if self._has_saved:
            out, saved_values = out

        shares = getattr(out, "base", None) is not None
        if not shares:
            for value in raw:
                if value is out:
                    shares = True
        tensor = wrap(out, None, shared_tick(out, inputs) if shares else None)
        if not needs or self._never_differentiable or not recording.get():
            return tensor

        plan = self._plans.get(needs) or self._plan(needs)
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
            elif kind == "out":
                saved.append(tensor._data)
                ticks.append((tensor._tick, tensor._tick[0], tensor._data))
            elif kind == "shape":
                value = raw[position]
                saved.append(np.shape(value) if not isinstance(value, tuple) else tuple([v.shape for v in value]))
            elif kind == "dtype":
                saved.append(getattr(raw[position], "dtype", None))
            elif kind == "device":
                saved.append(device_of(raw[position]))
            else:
                saved.append(saved_values)
        parents = []
        for index in plan.wanted:
            source = inputs[index]
            parents.append(source if source._node is None else source._node)
        data = tensor._data
        tensor._node = Node(self, plan, tuple(parents), tuple(saved), tuple(ticks), data.shape, data.dtype)
        tensor._requires_grad = True
        return tensor

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """All arguments in the order of the parameters, defaults filled in; ``dim`` is another name for ``axis``."""
        if "dim" in kwargs or "keepdim" in kwargs:
            kwargs = in_our_names(kwargs, self.parameters, self.name)
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise unfit(error, self.name, self.signature, kwargs) from None
        bound.apply_defaults()
        return tuple(bound.arguments.values())

    def _static(self, value: Any, position: int, args: Sequence[Any]) -> Any:
        """An argument without a gradient rule, as the forward gets it."""
        if isinstance(value, TensorBase):
            return self._unwrap_static(value, position)
        if type(value) is tuple:  # an index may have tensors in it
            return tuple([self._unwrap_static(v, position) if isinstance(v, TensorBase) else v for v in value])
        if isinstance(value, np.generic):  # weak, like a Python number
            return value.item()
        if self._never_differentiable:
            return as_operand(value, args, self.name) if isinstance(value, list) else value
        return beside(value, args) if isinstance(value, np.ndarray) else value

    def _unwrap_static(self, tensor: TensorBase, position: int) -> Array:
        if tensor._requires_grad and recording.get() and not self._never_differentiable:
            advice = self._advice.get(self.parameters[position], "use .detach() if none is wanted")
            raise TypeError(f"{self.name}: there is no gradient rule for the argument {self.parameters[position]!r}, "
                            f"but the tensor given for it requires a gradient; {advice}")
        return tensor._data


def shared_tick(out: Array, inputs: Sequence[Any]) -> list[int] | None:
    """The change tick of the input that `out` is, or is a view of; None if there is none."""
    base = getattr(out, "base", None)
    for tensor in inputs:
        if isinstance(tensor, TensorBase):
            data = tensor._data
            if out is data or (base is not None and (base is data or base is data.base)):
                return tensor._tick
    return None


def primitive(forward: Callable[..., Any] | None = None, *, broadcasts: bool = False, floating: bool = False,
              composition: Callable[..., Any] | None = None) -> Any:
    """Make an operation of a function on arrays: ``@primitive`` or ``@primitive(broadcasts=True)``.

    Args:
        forward: takes arrays and returns an array, or an array and `Saved` values for a joint rule.
        broadcasts: the operands broadcast by NumPy's rules; their gradients are summed back to their shapes.
        floating: integer operands become float32 first.
        composition: the same function written with smaller operations, for a forward that returns `Saved` values.

    Returns:
        A `Primitive`. Its ``gradient``, ``joint_gradient``, ``accumulating_gradient`` or ``no_gradient`` come next.
    """
    if forward is None:
        return lambda function: Primitive(function, broadcasts, floating, composition)
    return Primitive(forward, broadcasts, floating, composition)
