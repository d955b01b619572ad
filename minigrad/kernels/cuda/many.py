"""Updates and norms of many arrays in one launch: of a model's parameters, most are too small for a launch each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from minigrad.device import on_device_of, xp
from minigrad.engine.primitive import bodies
from minigrad.kernels.cuda.launching import CHUNK, launch
from minigrad.optim import clip
from minigrad.optim.adam import Adam
from minigrad.optim.optimizer import Work


def together(arrays: Sequence[Any]) -> bool:
    """Whether a kernel takes these arrays, of one device: CuPy's, contiguous, float32 or float64, all the same."""
    first = arrays[0]
    return (type(first).__module__ == "cupy" and first.dtype.char in "fd" and bodies.get()
            and all(array.dtype is first.dtype and array.flags.c_contiguous for array in arrays))


def launch_many(name: str, rows: Sequence[Sequence[Any]], *args: Any) -> None:
    """Run a kernel of many.cu with its table: a row for the arrays, of the same size, that belong together."""
    table, blocks, like = [], 0, rows[0][0]
    for arrays in rows:
        table.append([*[array.data.ptr for array in arrays], arrays[0].size, blocks])
        blocks += -(-arrays[0].size // CHUNK)
    launch("many.cu", name, like, (blocks,), (256,), xp(like).asarray(np.array(table, np.int64)), len(rows), *args)


def adam(optimizer: Adam, work: Sequence[Work]) -> list[Work]:
    """Adam's update of all that the kernel takes; the rest of the work is returned."""
    left, taken = list[Work](), defaultdict[Any, list[Sequence[Any]]](list)
    for constants, state, arrays in work:
        if type(optimizer).update is Adam.update and together(arrays):
            taken[tuple(constants), arrays[0].dtype, arrays[0].device.id].append(arrays)
            state["step"] += 1
        else:
            left.append((constants, state, arrays))
    for (constants, *_), rows in taken.items():
        with on_device_of(rows[0][0]):
            launch_many("adam", rows, *map(float, constants), int(optimizer.decoupled_weight_decay))
    return left


def norm(arrays: Sequence[Any]) -> Any:
    """The Euclidean norm of all elements, an array without dimensions."""
    sums = xp(arrays[0]).zeros(sum(-(-array.size // CHUNK) for array in arrays), arrays[0].dtype)
    launch_many("squares", [[array] for array in arrays], sums)
    return xp(sums).sqrt(sums.sum())


def scale(arrays: Sequence[Any], factor: Any) -> None:
    """Multiply all elements by an array without dimensions."""
    launch_many("scale", [[array] for array in arrays], factor)


Adam.together = adam  # type: ignore[method-assign, assignment]
clip.faster = lambda arrays: (norm, scale) if together(arrays) else None
