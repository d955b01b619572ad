"""The state of an optimizer: arrays that follow the parameters, and the walk of an update over both."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np

from minigrad import parallel
from minigrad.device import asarray_on, device_of, is_array, on_device_of
from minigrad.engine.errors import shown
from minigrad.engine.node import TensorBase
from minigrad.optim.storage import packing
from minigrad.optim.storage.packing import Block, Pack, Piece, Placement, Scratch, blocks, make_packs, pieces
from minigrad.optim.storage.skipping import Count, Counts, on_devices, undone_where
from minigrad.tensor import Tensor

Array = Any  # numpy.ndarray, or the array of a CuPy-like module
StateNames = Callable[[dict[str, Any]], tuple[str, ...]]  # of a parameter's state arrays, by the options of its group
Rule = Callable[[Block, Count, dict[str, Any]], None]  # changes a block in place


class Storage:
    """The parameters of an optimizer by position, their counts of updates, and their state arrays.

    Args:
        name: of the optimizer, for messages.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.params: list[Tensor] = []
        self.counts = Counts()
        self._placements: list[Placement] = []
        self._packs: list[Pack] = []
        self._scratch: list[Scratch] = []  # one for each thread

    def add(self, params: Sequence[Tensor]) -> None:
        """Take in more parameters; their state is made by the next `follow`."""
        self.params += params
        self.counts.append(len(params))

    # ------------------------------------------------------------------ where the state lies

    def follow(self, groups: Sequence[dict[str, Any]], state_names: StateNames) -> None:
        """Lay the state out where the parameters are now, if it is elsewhere."""
        placements = []
        for number, group in enumerate(groups):
            names = state_names(group)
            for p in group["params"]:
                data = p.data
                placements.append(Placement(number, device_of(data), data.dtype, data.shape, names))
        if placements != self._placements:
            self.counts = Counts(self.counts.read())  # on the host: parameters may have left the GPU that counts
            self._lay_out(placements, self.arrays())

    def arrays(self) -> dict[int, dict[str, Array]]:
        """The state arrays by the position of their parameter, as views of its shape."""
        return {i: pack.state_of(i, self._placements[i].shape) for pack in self._packs for i in pack.members}

    def load(self, groups: Sequence[dict[str, Any]], state_names: StateNames,
             state: Mapping[int, Mapping[str, Any]]) -> None:
        """Go on from a state that `checked_state` returned; parameters that it does not name begin afresh."""
        self.counts = Counts(state[i]["step"] if i in state else 0 for i in range(len(self.params)))
        self._packs, self._placements = [], []
        self.follow(groups, state_names)
        arrays = {i: {name: value for name, value in entry.items() if name != "step"} for i, entry in state.items()}
        self._lay_out(self._placements, arrays)

    def _lay_out(self, placements: list[Placement], state: dict[int, dict[str, Any]]) -> None:
        """Make new packs for `placements`, filled from `state`."""
        for i, arrays in state.items():
            for name, array in arrays.items():
                if array.shape != placements[i].shape:
                    raise ValueError(
                        f"{self.name}: parameter {i} has shape {placements[i].shape} and its {name} has "
                        f"{array.shape}; make a new optimizer after changing the shape of a parameter"
                    )
        packs = make_packs(placements)
        for pack in packs:
            for i in pack.members:
                for name, view in pack.state_of(i, placements[i].shape).items():
                    if name in state.get(i, {}):
                        with on_device_of(view):
                            view[...] = asarray_on(pack.device, state[i][name], pack.dtype)
        self._packs, self._placements, self._scratch = packs, placements, []

    # ------------------------------------------------------------------ the update

    def update(self, rule: Rule, groups: Sequence[dict[str, Any]], skip: Any) -> None:
        """Run `rule` on every block of the parameters that have a gradient, on all threads. `follow` comes first.

        Args:
            rule: changes a block; called with it, the count of updates and the options of its group.
            groups: the parameter groups.
            skip: False, or a 0-d boolean array on a GPU: where it is True, everything stays as it is.
        """
        devices = {i: self._placements[i].device for i, p in enumerate(self.params) if p.grad is not None}
        skips = {} if skip is False else on_devices(skip, dict.fromkeys(devices.values()), f"{self.name}.step")
        counts = self.counts.after(devices, skips)
        work = self._work(counts)
        sizes = [piece.size for piece in work]
        threads = min(parallel.thread_count(), sum(sizes) // packing.WORTH_A_THREAD)
        shares = parallel.shares(work, sizes, max(1, threads))
        self._scratch += [Scratch() for _ in shares[len(self._scratch):]]

        def run(work: Sequence[Piece], scratch: Scratch) -> None:
            for piece in work:
                options, skip = groups[piece.pack.group], skips.get(piece.pack.device)
                with on_device_of(piece.values[0]):
                    for block in blocks(piece, scratch):
                        with nullcontext() if skip is None else undone_where(skip, (block.p, *block.state)):
                            rule(block, piece.step, options)

        for i in counts:
            self.params[i].bump_tick()
        parallel.run([partial(run, *own) for own in zip(shares, self._scratch, strict=False)])
        self.counts.update(counts)

    def _work(self, counts: dict[int, Count]) -> list[Piece]:
        """The parameters to update in pieces; those of a pack together, where their counts are the same."""
        work: list[Piece] = []
        for pack in self._packs:
            ready = [i for i in pack.members if i in counts]
            together = len(ready) == len(pack.members) and all(counts[i] is counts[ready[0]] for i in ready)
            for members in [ready] if together else [[i] for i in ready]:
                work += self._pieces(pack, members, counts[members[0]])
        return work

    def _pieces(self, pack: Pack, members: list[int], count: Count) -> list[Piece]:
        values = [self.params[i].data for i in members]
        gradients = [self.params[i].grad.data for i in members]
        for i, value, gradient in zip(members, values, gradients, strict=True):
            if gradient.shape != value.shape:
                raise ValueError(f"{self.name}: parameter {i} has shape {value.shape}, its gradient {gradient.shape}")
        return pieces(pack, members, values, gradients, count)


def checked_state(saved: Mapping[Any, Any], expected: Sequence[tuple[set[str], tuple[int, ...]]],
                  where: str) -> dict[int, dict[str, Any]]:
    """The saved state by position, its counts of steps as ints; ValueError, beginning with `where`, if it does not fit.

    Args:
        saved: what `Optimizer.state_dict` has under ``"state"``; its keys may be strings.
        expected: the names of each parameter's state, "step" among them, and the parameter's shape.
        where: the function that was called.
    """
    state: dict[int, dict[str, Any]] = {}
    for key, entry in saved.items():
        i = int(key)
        if not 0 <= i < len(expected):
            raise ValueError(f"{where}: state for parameter {i}, but there are {len(expected)} parameters")
        names, shape = expected[i]
        if entry.keys() != names:
            raise ValueError(f"{where}: parameter {i} needs {sorted(names)}, the saved state has {sorted(entry)}")
        arrays = {name: _array(value) for name, value in entry.items()}
        for name in names - {"step"}:
            if arrays[name].dtype.kind != "f" or tuple(arrays[name].shape) != tuple(shape):
                raise ValueError(f"{where}: {name} of parameter {i} must be a floating array of its shape, "
                                 f"{tuple(shape)}, got {shown(entry[name])}")
        step = arrays["step"]
        if step.shape != () or step.dtype.kind not in "iuf" or step < 0 or step.item() % 1:
            raise ValueError(f"{where}: step of parameter {i} must be a number of updates, got {shown(entry['step'])}")
        state[i] = {**arrays, "step": int(step)}
    return state


def _array(value: Any) -> Any:
    """A number, an array, or a tensor, which may be another library's, as an array."""
    data = value._data if isinstance(value, TensorBase) else value
    return data if is_array(data) else np.asarray(data)
