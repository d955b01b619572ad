"""Epochs: the order in which a training sees its examples, for data of any size."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from transformer.data.batches import divide
from transformer.data.indexed import Indexed
from transformer.data.permutation import Permutation

Indices = NDArray[np.int64]
WINDOW = 2**18  # examples; a data set of at most so many is one window


class Epochs:
    """The batches of every epoch, each a function of (seed, epoch) and of the lengths alone.

    Up to `window` examples, an epoch has the batches of `batches_by_length`. More are divided into windows of nearly
    equal size by a permutation that depends on the seed alone. An epoch goes through all windows in an order of its
    own, and divides each into batches as it comes to it. So nobody holds an order of all examples. Since a window has
    the same examples in every epoch, it has the same number of batches: the length of an epoch is known, and a
    training that was interrupted goes on at any batch without computing those before it.

    Args:
        source_lengths, steps: integers (N,): the tokens of each source with ``EOS``, the steps of each target.
        batch_tokens: the size of a batch, see `batches_by_length`.
        seed: at least 0.
        window: the most examples whose order is held.
    """

    def __init__(self, source_lengths: NDArray[np.integer], steps: NDArray[np.integer], batch_tokens: int, seed: int,
                 window: int = WINDOW) -> None:
        self._source_lengths, self._steps = source_lengths, steps
        self._batch_tokens, self._seed = batch_tokens, seed
        self._windows = max(1, -(-len(steps) // window))
        self._permutation = Permutation(max(1, len(steps)), seed)

    def batches(self, epoch: int) -> Sequence[Indices]:
        """The batches of an epoch, counted from 0: int64 arrays of indices of examples."""
        if self._windows == 1:
            return self._divided(np.arange(len(self._steps)), [self._seed, epoch])
        return _Windows(self, epoch)

    def order(self, epoch: int) -> Indices:
        """The windows in the order of an epoch, if there are several."""
        return np.random.default_rng([self._seed, epoch]).permutation(self._windows)

    def window(self, epoch: int, number: int) -> list[Indices]:
        """The batches of one of several windows in an epoch."""
        return self._divided(self._members(number), [self._seed, epoch, 1 + number])

    @cached_property
    def sizes(self) -> Indices:
        """The number of batches of each of several windows, the same in every epoch: int64."""
        return np.array([len(self.window(0, number)) for number in range(self._windows)])

    def _members(self, number: int) -> Indices:
        first, last = (len(self._steps) * i // self._windows for i in (number, number + 1))
        return self._permutation(np.arange(first, last))

    def _divided(self, members: Indices, seed: list[int]) -> list[Indices]:
        source_lengths, steps = (side[members].astype(np.int64) for side in (self._source_lengths, self._steps))
        batches = divide(source_lengths, steps, self._batch_tokens, np.random.default_rng(seed))
        return [members[batch] for batch in batches]


class _Windows(Indexed[Indices]):
    """The batches of an epoch of several windows; those of the window that was used last are held."""

    def __init__(self, epochs: Epochs, epoch: int) -> None:
        self._epochs, self._epoch = epochs, epoch
        self._order = epochs.order(epoch)
        self._ends = np.cumsum(epochs.sizes[self._order])  # in batches from the beginning of the epoch
        self._held: tuple[int, list[Indices]] = -1, []

    def __len__(self) -> int:
        return int(self._ends[-1])

    def at(self, place: int) -> Indices:
        """A batch."""
        window = int(np.searchsorted(self._ends, place, side="right"))
        if self._held[0] != window:
            self._held = window, self._epochs.window(self._epoch, int(self._order[window]))
        return self._held[1][place - int(self._ends[window])]  # from the end of the window: a negative index
