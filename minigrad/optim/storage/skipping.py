"""Updates that may be skipped, as those whose gradients overflowed are: see `minigrad.optim.GradScaler`.

On the host the flag is known, and a skipped update is not made. On a GPU reading the flag would synchronise: there the
update is made, and undone where a 0-d boolean array says so. The counts of updates depend on that array, too, and so
they are 0-d arrays themselves.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from minigrad.device import device_of, is_array, is_host, on_device_of, to_device, to_numpy, xp

Array = Any  # numpy.ndarray, or the array of a CuPy-like module
Count = Any  # an int, or a 0-d float64 array on a GPU


def checked_skip(skip: Any, operation: str) -> Any:
    """`skip` as a bool, or as the 0-d boolean array on a GPU that it is; TypeError for anything else."""
    if skip is None or isinstance(skip, (bool, np.bool_)):
        return bool(skip)
    if is_array(skip) and skip.shape == () and skip.dtype == np.bool_:
        return bool(skip) if is_host(skip) else skip
    raise TypeError(f"{operation}: skip must be a bool or a 0-d boolean array, got {type(skip).__name__}")


def on_devices(skip: Array, devices: Iterable[str], operation: str) -> dict[str, Array]:
    """Copies of `skip`, which is on a GPU, on each of these GPUs; ValueError for parameters on the host."""
    copies = {}
    for device in devices:
        if device == "cpu":
            raise ValueError(f"{operation}: skip is on {device_of(skip)} and there are parameters on cpu, which would "
                             "have to wait for it; make an optimizer for the parameters of each kind of device")
        copies[device] = to_device(skip, device)
    return copies


@contextlib.contextmanager
def undone_where(skip: Array, arrays: Sequence[Array]) -> Iterator[None]:
    """Where `skip` is True, `arrays` have after the block the bits that they had before it."""
    before = [array.copy() for array in arrays]
    yield
    for array, old in zip(arrays, before, strict=True):
        xp(array).copyto(array, old, where=skip)


class Counts:
    """How many updates each parameter has had, by its position.

    Parameters with the same past share one count: where it is an array, there is one addition for all of them.
    """

    def __init__(self, counts: Iterable[int] = ()) -> None:
        shared = dict[int, int]()
        self._counts: list[Count] = [shared.setdefault(count, count) for count in counts]

    def append(self, number: int) -> None:
        """Count for `number` more parameters, from 0."""
        self._counts += [0] * number

    def after(self, devices: Mapping[int, str], skips: Mapping[str, Array]) -> dict[int, Count]:
        """The counts of the parameters that `devices` names, after one more update; what was shared is shared again.

        Args:
            devices: where they are, by position.
            skips: for each GPU on which the update may be skipped, a 0-d boolean array that says whether it is.
        """
        after, made = {}, dict[tuple[int, str], Count]()
        for position, device in devices.items():
            count = self._counts[position]
            key = id(count), device
            advanced = made.get(key)
            if advanced is None:
                advanced = made[key] = _advanced(count, skips.get(device))
            after[position] = advanced
        return after

    def update(self, after: Mapping[int, Count]) -> None:
        """What `after` returned holds from now on."""
        for position, count in after.items():
            self._counts[position] = count

    def read(self) -> list[int]:
        """All of them on the host, which waits for those that are on a GPU."""
        distinct = {id(count): count if isinstance(count, int) else round(float(to_numpy(count)))
                    for count in self._counts}
        return [distinct[id(count)] for count in self._counts]


def _advanced(count: Count, skip: Array | None) -> Count:
    if skip is None and isinstance(count, int):
        return count + 1
    with on_device_of(count if skip is None else skip):
        return count + 1 if skip is None else (float(count) if isinstance(count, int) else count) + ~skip


def at_first(count: Count, first: float, later: float, dtype: Any) -> Any:
    """`first` if the count is 1, else `later`: a number, or a 0-d array of `dtype` where the count is on a GPU."""
    if isinstance(count, int):
        return first if count == 1 else later
    return xp(count).where(count == 1, first, later).astype(dtype)
