"""Mixed precision: what runs in float16 and what in float32 within ``autocast()``.

Micikevicius, Narang, Alben, Diamos, Elsen, Garcia, Ginsburg, Houston, Kuchaiev, Venkatesh and Wu, "Mixed precision
training", ICLR 2018 (arXiv:1710.03740). Its three parts:

* a float32 master copy of the weights (section 3.1): parameters stay float32 here, and so do their gradients;
* loss scaling (section 3.2): `minigrad.optim.GradScaler`;
* arithmetic (section 3.3): products in float16 that add up in float32, reductions in float32: `PRECISION` below.

There is no operation for the casts. A primitive that `PRECISION` names casts its inputs, as it does anyway where dtypes
differ, and the engine casts each gradient back to the dtype of the input that it is for.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np

from minigrad.device import asarray_on, device_of, is_array
from minigrad.engine.calls import public
from minigrad.engine.node import TensorBase
from minigrad.engine.switches import Switch, SwitchContext
from minigrad.precision.half import HALF, SINGLE

F = TypeVar("F", bound=Callable[..., Any])

# What takes its floating inputs in which precision; everything else runs in what it is given.
PRECISION: dict[str, np.dtype[Any]] = {
    # Products: nearly all of a network's arithmetic. Tensor cores multiply float16 and add up in float32; operands and
    # results take half the memory.
    "minigrad.functional.linear.linear": HALF,
    "minigrad.ops.linalg.batched_matmul": HALF,  # matmul, dot, inner, tensordot
    "minigrad.ops.linalg._einsum": HALF,
    "minigrad.functional.attention.attention": HALF,  # between its two products is a softmax in float32
    "minigrad.functional.multi_head.attention_of_heads": HALF,
    "minigrad.functional.convolution._conv1d": HALF,
    # Exponentials, squares and sums over a row: float16 ends at 65504 and has 11 bits, so they overflow or lose what is
    # small beside the sum.
    "minigrad.functional.softmax.softmax": SINGLE,
    "minigrad.functional.softmax.log_softmax": SINGLE,
    "minigrad.functional.normalization.layer_norm": SINGLE,
    "minigrad.functional.normalization.rms_norm": SINGLE,
    # Losses: what is summed over a batch, and what is multiplied by the factor of a GradScaler.
    "minigrad.functional.loss.cross_entropy": SINGLE,
    "minigrad.functional.loss.nll_loss": SINGLE,
    "minigrad.functional.likelihood.binary_cross_entropy": SINGLE,
    "minigrad.functional.likelihood.binary_cross_entropy_with_logits": SINGLE,
    "minigrad.functional.likelihood.kl_div": SINGLE,
    "minigrad.functional.regression.mse_loss": SINGLE,
    "minigrad.functional.regression.l1_loss": SINGLE,
    "minigrad.functional.regression.huber_loss": SINGLE,
    "minigrad.functional.regression.smooth_l1_loss": SINGLE,
}

autocasting = Switch("minigrad.precision.autocast", default=False)


@public
def autocast(dtype: Any = "float16", enabled: bool = True) -> SwitchContext:
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
    return autocasting.set_to(bool(enabled))


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


def autocasts(function: F) -> F:
    """Decorate a function of several operations that `PRECISION` names: it gets its tensors in that dtype."""
    target = PRECISION[f"{function.__module__}.{function.__qualname__}"]

    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        if not autocasting.get():
            return function(*args, **keywords)
        values = [*args, *keywords.values()]
        floating = [i for i, v in enumerate(values) if isinstance(v, TensorBase) and v._data.dtype.kind == "f"]
        cast(values, floating, target)
        return function(*values[:len(args)], **dict(zip(keywords, values[len(args):], strict=True)))

    return call  # type: ignore[return-value]
