"""A sequence whose items are computed when they are asked for."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import TypeVar, overload

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
