"""Updates and norms of many arrays in one launch: of a model's parameters, most are too small for a launch each."""

from collections import defaultdict

import numpy as np

from minigrad.device import on_device_of, xp
from minigrad.engine.primitive import bodies
from minigrad.kernels.cuda.launching import CHUNK, empty, launch
from minigrad.optim import clip
from minigrad.optim.adam import Adam


def together(arrays):
    """Whether a kernel takes these arrays, of one device: CuPy's, contiguous, float32 or float64, all the same."""
    first = arrays[0]
    return (type(first).__module__ == "cupy" and first.dtype.char in "fd" and bodies.get()
            and all(array.dtype is first.dtype and array.flags.c_contiguous for array in arrays))


def launch_many(name, rows, *args):
    """Run a kernel of many.cu with its table: a row for the arrays, of the same size, that belong together."""
    table, blocks, like = [], 0, rows[0][0]
    for arrays in rows:
        table.append([*[array.data.ptr for array in arrays], arrays[0].size, blocks])
        blocks += blocks_of(arrays[0])
    launch("many.cu", name, like, (blocks,), (256,), xp(like).array(table, np.int64), len(rows), *args)


def blocks_of(array):
    return -(-array.size // CHUNK)


def adam(optimizer, work):
    """Adam's update of all that the kernel takes; the rest of the work is returned."""
    left, taken = [], defaultdict(list)
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


def norm(arrays):
    """The Euclidean norm of all elements, an array without dimensions."""
    sums = empty(arrays[0], sum(map(blocks_of, arrays)))
    launch_many("squares", [[array] for array in arrays], sums)
    return xp(sums).sqrt(sums.sum())


def scale(arrays, factor):
    """Multiply all elements by an array without dimensions."""
    launch_many("scale", [[array] for array in arrays], factor)


Adam.together = adam  # type: ignore[method-assign]
clip.faster = lambda arrays: (norm, scale) if together(arrays) else None
