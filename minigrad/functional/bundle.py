"""Several tensors as one: where one node of the graph must stand for all of them, since an operation has one output.

Gradient checkpointing (a function with several results) and the backward hooks of a module use it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minigrad.engine.primitive import primitive
from minigrad.ops import astype, concatenate, reshape


@primitive
def gate(x):
    """x itself, at a place of its own in the graph."""
    return x


gate.gradient(x=lambda g: g)


def bundle(tensors: Sequence[Any]) -> tuple[Any, Callable[[Any], list[Any]]]:
    """One tensor that holds `tensors`, floating and on one device, and a function that takes such a one apart again.

    A single tensor is not copied. Several are laid end to end, in the widest of their dtypes.
    """
    if len(tensors) == 1:
        return gate(tensors[0]), lambda whole: [whole]
    dtype = np.result_type(*[tensor.dtype for tensor in tensors])
    whole = concatenate([astype(reshape(tensor, (-1,)), dtype) for tensor in tensors])

    kinds = [(tuple(tensor.shape), tensor.dtype) for tensor in tensors]

    def apart(whole: Any) -> list[Any]:
        parts, start = [], 0
        for shape, own in kinds:
            stop = start + math.prod(shape)
            parts.append(astype(reshape(whole[start:stop], shape), own))
            start = stop
        return parts

    return whole, apart
