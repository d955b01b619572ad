"""Mixed precision: what runs in float16 and what in float32 within ``autocast()``.

Micikevicius, Narang, Alben, Diamos, Elsen, Garcia, Ginsburg, Houston, Kuchaiev, Venkatesh and Wu, "Mixed precision
training", ICLR 2018 (arXiv:1710.03740). Its three parts:

* a float32 master copy of the weights (section 3.1): parameters stay float32 here, and so do their gradients;
* loss scaling (section 3.2): `minigrad.optim.GradScaler`;
* arithmetic (section 3.3): products in float16 that add up in float32, reductions in float32. Each operation declares
  what it wants where it is defined, as ``precision=``; a function of several operations by `public_in_precision`.

There is no operation for the casts: `Autocast` casts the arrays that an operation runs on, and the engine casts each
gradient back to the dtype of the input that it is for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minigrad.arguments import public
from minigrad.device import asarray_on, device_of, is_array
from minigrad.device.local import Setting
from minigrad.engine.interpreters import CAST, Interpreter, Operands, interpreters, interpreting, not_interpreting
from minigrad.engine.node import TensorBase
from minigrad.engine.primitive import Primitive
from minigrad.precision.half import HALF, SINGLE

PRECISIONS: dict[str, np.dtype[Any]] = {"float16": HALF, "float32": SINGLE}


class Autocast(Interpreter):
    """Casts the inputs of each operation to the precision that it declares.

    None of them is cast if one is float64, whose digits were asked for, or integer, which float16 would end at 65504.
    """

    phase = CAST

    def operation(self, op: Primitive, operands: Operands, proceed: Callable[[Operands], Any]) -> Any:
        """Run `op` on inputs of its precision; the graph keeps the tensors that were given."""
        if op.precision is None or not may_be_cast(inputs_of(op, operands.args)):
            return proceed(operands)
        if op.precision == "mixed":  # its steps want different ones
            return op.composition(*operands.args)  # type: ignore[misc]
        values = list(operands.values)
        for i in op.positions:
            values[i] = of_dtype(values[i], PRECISIONS[op.precision])
        return proceed(operands._replace(values=values))

    def function(self, function: Any, args: list[Any]) -> None:
        """Cast the inputs among `args`: a tensor by a recorded operation."""
        if function.precision == "mixed":
            return
        if isinstance(function, Primitive):  # its composition is about to run
            positions, inputs = function.positions, inputs_of(function, args)
        else:
            positions = tuple(i for i, v in enumerate(args) if isinstance(v, TensorBase) and v._data.dtype.kind == "f")
            inputs = [args[i] for i in positions]
        if may_be_cast(inputs):
            for i in positions:
                args[i] = of_dtype(args[i], PRECISIONS[function.precision])


def inputs_of(op: Primitive, args: Sequence[Any]) -> Sequence[Any]:
    """The inputs among the arguments of an operation, those of ``*xs`` one by one."""
    return args[0] if op.variadic else [args[i] for i in op.positions]


def may_be_cast(inputs: Sequence[Any]) -> bool:
    """Whether each of the inputs is a float16 or float32 array or tensor, a list of floats, or a number."""
    for value in inputs:
        data = value._data if isinstance(value, TensorBase) else value
        if is_array(data) and data.dtype not in (HALF, SINGLE):
            return False
        if isinstance(data, (list, tuple)) and np.asarray(data).dtype.kind != "f":
            return False
    return True


def of_dtype(value: Any, dtype: np.dtype[Any]) -> Any:
    """An array, a tensor, or a tuple of them, as one of `dtype`; anything else as it is."""
    if isinstance(value, tuple):
        return tuple([of_dtype(one, dtype) for one in value])
    if isinstance(value, TensorBase):
        return value if value._data.dtype == dtype else value.astype(dtype)  # type: ignore[attr-defined]
    return asarray_on(device_of(value), value, dtype) if is_array(value) else value


_autocast = Autocast()


def autocasting() -> bool:
    """Whether `autocast` is on here."""
    return _autocast in interpreters()


@public
def autocast(dtype: Any = "float16", enabled: bool = True) -> Setting[Any]:
    """``with autocast():`` runs products and attention in float16, and softmax, norms and losses in float32.

    Inside, linear maps, matrix products, einsum and attention take float32 inputs in float16; softmax,
    norms and losses take float16 inputs in float32; everything else runs in what it is given. Parameters stay float32,
    and their gradients arrive in float32. A backward, inside or outside, runs in the precisions of what was recorded.
    An operation with an input that is float64 or integer is left as it is.

    It is a context manager and a decorator, local to the thread or task, as `minigrad.fused` is.

    Gradients below 6e-8 vanish in float16: scale the loss by a `minigrad.optim.GradScaler`.

    On the host this is for studying what float16 does: it is no faster there.

    Args:
        dtype: ``"float16"``, or NumPy's.
        enabled: False switches it off, inside a block that has switched it on.

    Raises:
        ValueError: bfloat16, which NumPy lacks and CuPy cannot multiply in batches, or another dtype.
        TypeError: something that is no dtype.

    Source: Micikevicius et al., "Mixed precision training", 2018 (arXiv:1710.03740), section 3.
    """
    if callable(dtype) and not isinstance(dtype, type):
        raise TypeError("autocast: it is called to decorate a function: @autocast()")
    try:
        name = str(dtype) if dtype is None or isinstance(dtype, str) else np.dtype(dtype).name
    except TypeError:
        raise TypeError(f"autocast: the dtype must be 'float16', got {dtype!r}") from None
    if name == "bfloat16":
        raise ValueError("autocast: NumPy has no bfloat16, and CuPy's batched products do not take it; use 'float16' "
                         "with minigrad.optim.GradScaler")
    if name != "float16":
        raise ValueError(f"autocast: the dtype must be 'float16', got {name!r}; the device is that of the tensors")
    return interpreting(_autocast) if enabled else not_interpreting(_autocast)
