"""Updates and norms of many arrays in one launch: of a model's parameters, most are too small for a launch each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from minigrad.device import on_device_of, xp
from minigrad.engine.primitive import bodies
from minigrad.kernels.cuda.launching import launch
from minigrad.optim import clip
from minigrad.optim.adam import Adam
from minigrad.optim.optimizer import Work

CHUNK = 4096  # as in many.cu


def together(arrays: Sequence[Any]) -> bool:
    """Whether a kernel takes these arrays, of one device: CuPy's, contiguous, float32 or float64, all the same."""
    first = arrays[0]
    return (type(first).__module__ == "cupy" and first.dtype.char in "fd" and bodies.get()
            and all(array.dtype is first.dtype and array.flags.c_contiguous for array in arrays))


def table(rows: Sequence[Sequence[Any]]) -> tuple[Any, int]:
    """The table of many.cu, on the device, and how many blocks it stands for."""
    found, blocks = [], 0
    for arrays in rows:
        size = arrays[0].size
        found.append([*[array.data.ptr for array in arrays], size, blocks])
        blocks += -(-size // CHUNK)
    return xp(rows[0][0]).asarray(np.array(found, np.int64)), blocks


def adam(optimizer: Adam, work: Sequence[Work]) -> list[Work]:
    """Adam's update of all that kernels take; the rest of the work is returned."""
    left, taken = list[Work](), defaultdict[Any, list[Sequence[Any]]](list)
    for constants, state, arrays in work:
        if together(arrays):
            taken[tuple(constants), arrays[0].dtype, arrays[0].device.id].append(arrays)
            state["step"] += 1
        else:
            left.append((constants, state, arrays))
    for (constants, *_), rows in taken.items():
        like = rows[0][0]
        with on_device_of(like):
            where, blocks = table(rows)
            launch("many.cu", "adam", like, (blocks,), (256,), where, len(rows), *map(float, constants),
                   int(optimizer.decoupled_weight_decay))
    return left


def norm(arrays: Sequence[Any]) -> Any:
    """The Euclidean norm of all elements, an array without dimensions."""
    where, blocks = table([[array] for array in arrays])
    sums = xp(arrays[0]).empty(blocks, arrays[0].dtype)
    launch("many.cu", "squares", arrays[0], (blocks,), (256,), where, len(arrays), sums)
    return xp(sums).sqrt(sums.sum())


def scale(arrays: Sequence[Any], factor: Any) -> None:
    """Multiply all elements by an array without dimensions."""
    where, blocks = table([[array] for array in arrays])
    launch("many.cu", "scale", arrays[0], (blocks,), (256,), where, len(arrays), factor)


Adam.together = adam
clip.MANY["cupy"] = together, norm, scale
