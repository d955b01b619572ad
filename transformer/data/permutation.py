"""A random permutation of a range that is computed, not stored."""

import math

import numpy as np
from numpy.typing import NDArray

_ROUNDS = 6


class Permutation:
    """A pseudo-random permutation of 0 … count - 1, a function of the seed alone, computed at each use.

    It is a Feistel network over a rectangle. The numbers fill the rows of a nearly square rectangle, one after the
    other. A round moves each row of cells around by a random distance of its own, then each column: every such move is
    a bijection of the cells, so the whole is one, and after a few rounds neighbours are far apart. The last row of the
    rectangle may be incomplete: a number that arrives at a cell beyond `count` goes on through the network until it
    arrives at one below, which keeps the map a bijection (cycle walking). The distances are all that is stored, about
    12·√count integers. See Black and Rogaway, "Ciphers with arbitrary finite domains", 2002.

    Args:
        count: the length of the range, at least 1.
        seed: at least 0.
    """

    def __init__(self, count: int, seed: int) -> None:
        self._count = count
        self._columns = math.isqrt(count - 1) + 1
        self._rows = -(-count // self._columns)
        rng = np.random.default_rng(seed)
        self._rounds = [(rng.integers(self._columns, size=self._rows), rng.integers(self._rows, size=self._columns))
                        for _ in range(_ROUNDS)]

    def __call__(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """The numbers at which `numbers`, int64 of any shape, arrive."""
        moved = self._moved(numbers)
        while (outside := moved >= self._count).any():
            moved[outside] = self._moved(moved[outside])
        return moved

    def _moved(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        row, column = np.divmod(numbers, self._columns)
        for along_row, along_column in self._rounds:
            column = (column + along_row[row]) % self._columns
            row = (row + along_column[column]) % self._rows
        moved: NDArray[np.int64] = row * self._columns + column
        return moved
