"""What the losses share: targets and class weights that fit the input, and how losses become one number."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad import ops
from minigrad.device import is_array, is_host, on_device_of, to_device, xp
from minigrad.engine.node import TensorBase
from minigrad.engine.operands import numbers_on
from minigrad.functional.embedding import check_ids
from minigrad.precision.half import as_narrow, widened
from minigrad.tensor import as_tensor

REDUCTIONS = ("mean", "sum", "none")


def reduce_losses(losses: Any, reduction: str) -> Any:
    """The mean of the losses, their sum, or the losses themselves."""
    if reduction == "none":
        return losses
    return losses.mean() if reduction == "mean" else losses.sum()


def check_reduction(reduction: str, operation: str, allowed: tuple[str, ...] = REDUCTIONS) -> None:
    """ValueError unless `reduction` is one of the `allowed`."""
    if reduction not in allowed:
        raise ValueError(f"{operation}: reduction must be {', '.join(map(repr, allowed[:-1]))} or {allowed[-1]!r}, got "
                         f"{reduction!r}")


def matching(input: Any, target: Any, operation: str) -> tuple[Any, Any]:
    """The input and the target as tensors of one shape; an array or a list is sent to where the input is.

    Raises ValueError for shapes that differ: an input (N,) and a target (N, 1) would broadcast to N × N differences.
    """
    input = as_tensor(input)
    target = constant_like(target, input, operation)
    if input.dtype.kind != "f" and target.dtype.kind != "f":
        input = input.astype(np.float32)
    if input.shape != target.shape:
        raise ValueError(f"{operation}: input.shape == target.shape, got {input.shape} and {target.shape}")
    return input, target


def constant_like(values: Any, input: Any, operation: str) -> Any:
    """A tensor as it is; an array or numbers as a tensor where `input` is, in its dtype (float32 if that is none)."""
    if isinstance(values, TensorBase):
        return values
    dtype = input.dtype if input.dtype.kind == "f" else np.float32
    return as_tensor(numbers_on(input.device, values, dtype, operation))


def class_ids(target: Any, shape: tuple[int, ...], device: str, ignore_index: int, operation: str) -> tuple[Any, Any]:
    """Target ids (…) for logits of `shape` (…, C), as flat arrays on `device`: the ids, 0 where ignored; which count.

    Raises TypeError for targets that are not integers, ValueError for a shape that does not fit, IndexError for an id
    out of range (of those on the host).
    """
    ids = target._data if isinstance(target, TensorBase) else target
    ids = ids if is_array(ids) else np.asarray(ids)
    if ids.dtype.kind not in "iu":
        raise TypeError(f"{operation}: targets must be integers, got {ids.dtype}")
    if tuple(shape[:-1]) != tuple(ids.shape) or not shape:
        raise ValueError(f"{operation}: input.shape[:-1] == target.shape, got {tuple(shape)} and {tuple(ids.shape)}")
    ids = ids.reshape(-1)
    if is_host(ids):
        check_ids(ids[ids != ignore_index], shape[-1], operation)
        ids = to_device(ids, device)
    with on_device_of(ids):
        counted = ids != ignore_index
        return xp(ids).where(counted, ids, 0), counted


def class_weights(weight: Any, input: Any, operation: str) -> Any:
    """The weights of the classes, (C,), as a tensor where the input (…, C) is."""
    weight = constant_like(weight, input, operation)
    if weight.dtype.kind != "f":
        raise TypeError(f"{operation}: weight must be floating, one number for each class, got {weight.dtype}")
    if weight.shape != input.shape[-1:]:
        raise ValueError(f"{operation}: weight.shape == (input.shape[-1],), got {weight.shape} and "
                         f"{tuple(input.shape)}")
    return weight


def weighted_mean(losses: Any, weights: Any) -> Any:
    """``Σ losses / Σ weights``, 0 if the weights sum to 0. The losses carry their weights already.

    Both are summed in float32 if they are float16, which ends at 65504: the quotient may be small where they are not.
    """
    total, sum_of_losses = widened(weights).sum(), widened(losses).sum()
    return as_narrow(sum_of_losses / ops.where(ops.equal(total, 0), 1, total), losses)
