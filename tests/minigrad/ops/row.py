"""A row of the table of operations: an expression of x, y and z, in minigrad and in NumPy; and arrays for these."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.special

from minigrad import Tensor, ops
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

    def __str__(self) -> str:
        return self.name

    @property
    def out_dtype(self) -> Any:
        """That of the output; None if it is that of the inputs."""
        dtype = np.asarray(self.reference(*self.arrays)).dtype
        return None if dtype.kind == "f" else dtype

    def tensors(self, device: str = "cpu", dtype: Any = np.float64) -> list[Tensor]:
        return [Tensor(array, dtype=dtype, device=device, requires_grad=self.differentiable) for array in self.arrays]


# Constants in expressions; with c, where x is.
NAMES = {
    "np": np, "inf": math.inf, "nan": math.nan, "HALF": [[True, False, True], [False, False, True]],
    "WHOLE": [[0.0, 1, 2], [3, -1, -2]], "IDS": [[2, 0, 2], [1, -1, 0]],
    "MASK": [[True, False, True, True], [False, False, True, False], [True, True, False, True]],
}


def row(expression: str, *arrays: Array, **options: Any) -> Row:
    """The row of an expression, or of an equation where NumPy spells it in another way, on the right.

    In it ``np`` is NumPy, and ``c(values, x)`` an array or a tensor of constants, where x is.
    """
    ours, _, numpys = expression.partition(" = ")
    found = tuple(name for name in re.findall(r"[a-z]\w*", ours) if name in ops.OPERATIONS)
    shapes = " ".join(str(array.shape) for array in arrays)
    return Row(f"{ours} {shapes}", found or ("getitem",), function(ours),
               function(numpys or ours, {**vars(scipy.special), **vars(np)}), arrays, **options)


def function(expression: str, names: dict[str, Any] | None = None) -> Any:
    """The function of x, y, z and w that an expression of these `names` is, by default those of the operations."""
    names = {**NAMES, "c": constant, **(vars(ops) if names is None else names)}
    return eval(f"lambda x, y=None, z=None, w=None: {expression}", names)  # noqa: S307 - of our own writing


def rows(text: str, names: dict[str, Any], **options: Any) -> list[Row]:
    """A row for each line: an expression, and its operand or operands."""
    return [row(expression, *(given if isinstance(given, tuple) else (given,)), **options)
            for expression, given in table(text, names)]


def table(text: str, names: dict[str, Any] | None = None) -> list[tuple[Any, ...]]:
    """The rows of a text: an expression, and the values of the other cells, of numbers or these `names`.

    A cell ends with two spaces.
    """
    names = {**vars(math), **(names or {})}
    found = [re.split(r" {2,}", line) for line in lines(text)]
    return [(first, *(eval(f"({cell})", names) for cell in cells)) for first, *cells in found]  # noqa: S307 - of our own


def lines(text: str) -> list[str]:
    """The lines of a text."""
    return [line.strip() for line in text.strip().splitlines()]


def every_fact(text: str) -> Any:
    """Run a test for each line of a text: an expression, `fact`, that is true."""
    return pytest.mark.parametrize("fact", lines(text))


def leaf(values: Any, device: str = "cpu", dtype: Any = np.float64) -> Tensor:
    """A tensor that requires gradients."""
    return Tensor(np.array(values, dtype), device=device, requires_grad=True)


def host(tensor: Tensor) -> Array:
    return to_numpy(tensor.data)


def constant(values: Any, like: Any) -> Any:
    """A tensor on the device of `like`, or an array if that is one, and of its dtype unless it holds integers."""
    found: Any = Tensor(values, device=like.device) if isinstance(like, Tensor) else np.asarray(values)
    return found.astype(like.dtype) if found.dtype.kind == "f" else found


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
