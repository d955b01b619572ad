"""Mixed precision: what runs in float16 and what in float32 within ``autocast()``.

Micikevicius, Narang, Alben, Diamos, Elsen, Garcia, Ginsburg, Houston, Kuchaiev, Venkatesh and Wu, "Mixed precision
training", ICLR 2018 (arXiv:1710.03740). Its three parts:

* a float32 master copy of the weights (section 3.1): parameters stay float32 here, and so do their gradients;
* loss scaling (section 3.2): `minigrad.optim.GradScaler`;
* arithmetic (section 3.3): products in float16 that add up in float32, reductions in float32: what an operation wants is declared where
  it is defined, as ``precision=``.

There is no operation for the casts. `Autocast` casts the arrays that an operation runs on, and the engine casts each gradient back to the dtype of the input that it is for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from minigrad.arguments import public
from minigrad.device import asarray_on, device_of, is_array
from minigrad.device.local import Setting
from minigrad.engine.interpreters import CAST, Interpreter, Operands, interpreters, interpreting, not_interpreting
from minigrad.engine.node import TensorBase
from minigrad.engine.primitive import Primitive
from minigrad.precision.half import HALF, SINGLE

PRECISIONS = {"float16": HALF, "float32": SINGLE}


class Autocast(Interpreter):
    """Casts the floating inputs of each operation to the precision that it declares."""

    phase = CAST

    def operation(self, op: Primitive, operands: Operands, proceed: Callable[[Operands], Any]) -> Any:
        """Run `op` on inputs of its precision; the graph keeps the tensors that were given."""
        if op.precision == "mixed":  # its parts want different ones
            return op.composition(*operands.args)  # type: ignore[misc]
        if op.precision is None:
            return proceed(operands)
        values, target = list(operands.values), PRECISIONS[op.precision]
        if op.variadic:
            xs = list(values[0])
            cast(xs, range(len(xs)), target)
            values[0] = tuple(xs)
        else:
            cast(values, op.positions, target)
        return proceed(operands._replace(values=values))

    def function(self, function: Callable[..., Any], args: list[Any]) -> None:
        """Cast the tensors among `args` by a recorded operation."""
        floating = [i for i, v in enumerate(args) if isinstance(v, TensorBase) and v._data.dtype.kind == "f"]
        cast(args, floating, PRECISIONS[function.precision])  # type: ignore[attr-defined]


_autocast = Autocast()


def autocasting() -> bool:
    """Whether `autocast` is on here."""
    return _autocast in interpreters()


@public
def autocast(dtype: Any = "float16", enabled: bool = True) -> Setting[Any]:
    """``with autocast():`` runs products and attention in float16, and softmax, norms and losses in float32.

    Inside, linear maps, matrix products, einsum, attention and convolution take float32 inputs in float16; softmax,
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
    if enabled and not autocasting():
        return interpreting(_autocast)
    return not_interpreting() if enabled else not_interpreting(_autocast)


def cast(values: list[Any], positions: Iterable[int], target: np.dtype[Any]) -> None:
    """Put arrays, or recorded tensors, of `target` in the place of those at `positions` that are float16 or float32.

    None of them is cast if one is float64, whose digits were asked for, or integer, which float16 would end at 65504.
    """
    found = [i for i in positions if isinstance(values[i], TensorBase) or is_array(values[i])]
    if all(values[i].dtype in (HALF, SINGLE) for i in found):
        for i in found:
            x = values[i]
            if isinstance(x, TensorBase):
                values[i] = x if x.dtype == target else x.astype(target)  # type: ignore[attr-defined]
            else:
                values[i] = asarray_on(device_of(x), x, target)
