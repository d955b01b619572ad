"""The ranks of a run: what they tell each other.

`Alone` is one process, for which everything here is trivial; `Ranks` are the processes of an MPI communicator. What
they send is JSON and arrays. Every wait ends: when all have answered, when a rank says that it failed, when a process
on this host is gone, or after `timeout` seconds (failures.py).
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

import numpy as np

from transformer.distributed.failures import Failures, RankError, this_process, write

T = TypeVar("T")

TIMEOUT = 900.0  # seconds without an answer; a process that dies is noticed at once, by its host and by the launcher
LOOK_AFTER = 0.05  # seconds of a wait before it looks whether another rank failed


class Alone:
    """One process. Its methods are those of `Ranks`."""

    rank, size, local_size = 0, 1, 1

    def exchange(self, value: T) -> list[T]:
        """The values of all ranks, in their order: JSON values, which every rank gives."""
        return [value]

    def broadcast(self, value: Any) -> Any:
        """The JSON value of rank 0; those of the others are not looked at."""
        return self.exchange(value if self.rank == 0 else None)[0]

    def broadcast_arrays(self, arrays: dict[str, np.ndarray] | None) -> dict[str, np.ndarray]:
        """The host arrays of rank 0, by name; the others may give None."""
        return arrays or {}

    def first(self, work: Callable[[], T]) -> Any:
        """What `work`, called on rank 0 alone, returns there: a JSON value."""
        return self.broadcast(work() if self.rank == 0 else None)

    def share(self, items: Sequence[T]) -> Sequence[T]:
        """The items that this rank works on: every `size`-th."""
        return items[self.rank::self.size]

    def merge(self, results: list[T]) -> list[T]:
        """The results of all ranks, JSON values, in the order of the items that `share` divided."""
        told = self.exchange(results)
        return [told[number % self.size][number // self.size] for number in range(sum(map(len, told)))]

    def own(self, count: int, rank: int | None = None) -> tuple[int, int]:
        """The neighbours among `count` things that a rank (default: this one) has: the first, one after the last."""
        rank = self.rank if rank is None else rank
        return rank * count // self.size, (rank + 1) * count // self.size

    def compare(self, **values: Callable[[], Any]) -> None:
        """RankError where what one of these gives, by its name a JSON value, is not the same on all ranks."""

    def end(self, line: str, status: int, details: str = "") -> NoReturn:
        """Write a line to standard error, after the details of what it says, and end with this status."""
        write(sys.stderr, f"{details}{line}\n")
        sys.exit(status)


ALONE = Alone()


class Ranks(Failures, Alone):
    """The processes of an MPI communicator.

    Args:
        comm: a communicator of mpi4py, such as ``MPI.COMM_WORLD``; every process of it makes a `Ranks`, which has
            duplicates of its own.
        timeout: seconds without an answer of another rank, after which waiting for it ends.
    """

    def __init__(self, comm: Any, timeout: float = TIMEOUT) -> None:
        super().__init__(comm)
        self.timeout = timeout
        # Each kind of message has a communicator of its own, on which all ranks send in one order.
        self._comm, self._to_owners, self._to_all = comm.Dup(), comm.Dup(), comm.Dup()
        self.watch(self.exchange(this_process()))
        self.local_size = 1 + len(self.watched)

    # ----------------------------------------------------------------- what they tell each other

    def exchange(self, value: Any) -> list[Any]:  # noqa: D102
        text, sizes = json.dumps(value).encode(), np.empty(self.size, np.int64)
        self.wait([self._comm.Iallgather(np.array([len(text)]), sizes)])
        texts = bytearray(sizes.sum())
        self.wait([self._comm.Iallgatherv(text, [texts, sizes.tolist()])])
        return [json.loads(texts[end - size:end]) for size, end in zip(sizes, np.cumsum(sizes), strict=True)]

    def broadcast_arrays(self, arrays: dict[str, np.ndarray] | None) -> dict[str, np.ndarray]:  # noqa: D102
        own = arrays if self.rank == 0 and arrays else {}
        result = {}
        for name, shape, dtype in self.broadcast([[name, a.shape, a.dtype.str] for name, a in own.items()]):
            result[name] = np.array(own[name], order="C") if self.rank == 0 else np.empty(shape, dtype)
            self.wait([self._comm.Ibcast([result[name], self._mpi.BYTE])])
        return result

    def all_to_all(self, sent: np.ndarray, sizes: Sequence[int]) -> tuple[list[Any], np.ndarray]:
        """Send each rank its row of `sent`, (size, n). A request, and what it fills with so many values of each."""
        received = np.empty(sum(sizes), sent.dtype)
        return [self._to_owners.Ialltoallv([sent, [sent.shape[1]] * self.size], [received, sizes])], received

    def all_gather(self, values: np.ndarray) -> list[Any]:
        """Send our row of `values`, (size, n), to all ranks. A request, after which all rows are there."""
        return [self._to_all.Iallgather(self._mpi.IN_PLACE, values)]

    def arrived(self, requests: list[Any]) -> bool:
        """Whether requests are done; lets MPI go on."""
        return bool(self._mpi.Request.Testall(requests))

    def compare(self, **values: Callable[[], Any]) -> None:  # noqa: D102
        told = self.exchange({name: value() for name, value in values.items()})
        for rank, others in enumerate(told):
            different = [name.replace("_", " ") for name in values if others[name] != told[0][name]]
            if different:
                raise RankError(f"{self.name(rank)} and {self.name(0)} differ in {' and '.join(different)}; all ranks "
                                "of a run need the same")

    def first(self, work: Callable[[], T]) -> T:  # noqa: D102
        try:
            return super().first(work)
        except RankError:
            raise
        except Exception:
            self.for_all = True
            raise

    # ----------------------------------------------------------------- waits and failures

    def wait(self, requests: list[Any]) -> None:
        """Wait for MPI requests; RankError as `wait_until`."""
        self.wait_until(lambda: self.arrived(requests))

    def wait_until(self, done: Callable[[], bool]) -> None:
        """Ask `done`, which lets MPI go on, until it is; RankError if a rank failed, is gone, or does not answer."""
        began, pause = time.monotonic(), 0.0
        while not done():
            waited = time.monotonic() - began
            if waited > LOOK_AFTER:
                self.check()
            if waited > self.timeout:
                raise RankError(f"no answer for {self.timeout:.0f} s from {self.silent()}")
            time.sleep(pause)
            pause = min(pause + 1e-5, 1e-3)
