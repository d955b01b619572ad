"""A row of the table of operations: the op on tensors, the same in NumPy, and arrays to try both on."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import minigrad as mg
from minigrad import Tensor
from minigrad.device import to_numpy

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Row:
    """`ops` are the names, of minigrad.ops, that the row is there for."""

    name: str
    ops: tuple[str, ...]
    op: Callable[..., Any]
    reference: Callable[..., Any]
    arrays: tuple[Array, ...]
    differentiable: bool = True
    view: bool = False  # the output may share memory with an input, and the op's documentation says so
    out_dtype: Any = None  # None: that of the inputs

    def __str__(self) -> str:
        return self.name

    def tensors(self, device: str = "cpu", dtype: Any = np.float64) -> list[Tensor]:
        return [Tensor(array, dtype=dtype, device=device, requires_grad=self.differentiable) for array in self.arrays]


def row(name: str, op: Callable[..., Any], reference: Callable[..., Any], *arrays: Array, ops: str = "",
        **options: Any) -> Row:
    """A row; it is there for the ops named, by default for the one that its name begins with."""
    return Row(name, tuple(ops.split()) or (name.replace(",", "").split()[0],), op, reference, arrays, **options)


def alike(name: str, array: Array, *arguments: Any, reference: Callable[..., Any] | None = None,
          keywords: dict[str, Any] | None = None, **options: Any) -> Row:
    """A row for a function of minigrad that NumPy has (or `reference` is), called with the same arguments."""
    named = keywords or {}
    shown = [str(a) for a in arguments] + [f"{key}={value}" for key, value in named.items()]
    return row(" ".join([name, ", ".join(shown)]).strip(), lambda x: getattr(mg, name)(x, *arguments, **named),
               lambda x: (reference or getattr(np, name))(x, *arguments, **named), array, ops=name, **options)


def host(tensor: Tensor) -> Array:
    return to_numpy(tensor.data)


def constant(values: Any, like: Tensor) -> Tensor:
    """A tensor on the device of `like`, and of its dtype unless it holds integers; it requires no gradient."""
    tensor = Tensor(values, device=like.device)
    return tensor.astype(like.dtype) if tensor.dtype.kind == "f" else tensor


# --------------------------------------------------------------------------- arrays, each from its own seed


def normal(*shape: int, seed: int = 0) -> Array:
    return np.asarray(np.random.default_rng([seed, *shape]).normal(size=shape))


def positive(*shape: int, seed: int = 0) -> Array:
    """Between 0.3 and 2.3."""
    return np.asarray(np.random.default_rng([seed, *shape]).uniform(0.3, 2.3, size=shape))


def nonzero(*shape: int, seed: int = 0) -> Array:
    """Of both signs, at least 0.3 from 0."""
    x = normal(*shape, seed=seed)
    return np.asarray(x + np.copysign(0.3, x))


def distinct(*shape: int, seed: int = 0) -> Array:
    """No two elements closer than 0.1, nor any closer than 0.02 to a multiple of 0.1: no maximum is near a tie."""
    n = math.prod(shape)
    values = 0.1 * np.random.default_rng([seed, *shape]).permutation(n) - 0.05 * n + 0.027 + (n % 2) * 0.05
    return values.reshape(shape)
