"""Sequences whose items are computed when they are used."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from itertools import compress
from typing import Any, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")


class Indexed(Sequence[T]):
    """A sequence of which a subclass gives the length and `at`; negative indices and slices are those of a list."""

    @abstractmethod
    def at(self, place: int) -> T:
        """The item at a place from 0 up to the length, not included."""

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...

    def __getitem__(self, index: int | slice) -> T | list[T]:
        places = range(len(self))[index]
        return self.at(places) if isinstance(places, int) else [self.at(place) for place in places]


class Selected(Indexed[T]):
    """The items of a sequence at some of its places, in their order.

    Args:
        items: the sequence, which stays as it is.
        places: integers (N,), increasing.
    """

    def __init__(self, items: Sequence[T], places: NDArray[Any]) -> None:
        self._items, self._places = items, places.astype(np.min_scalar_type(len(items)))

    def __len__(self) -> int:
        return len(self._places)

    def at(self, place: int) -> T:
        """An item."""
        return self._items[int(self._places[place])]

    def __iter__(self) -> Iterator[T]:
        if len(self) < len(self._items) / 10:
            return map(self.at, range(len(self)))
        chosen = np.zeros(len(self._items), bool)
        chosen[self._places] = True
        return compress(self._items, chosen)  # a loop over all of a file is faster than many single reads
