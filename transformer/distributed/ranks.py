"""The ranks of a run: what they tell each other, and how they end together, with one line on standard error.

`Alone` is one process, for which everything here is trivial; `Ranks` are the processes of an MPI communicator. What
they send is JSON and arrays. Every wait ends: when all have answered, when a rank says that it failed, when a process
on this host is gone (one that was killed cannot tell), or after `timeout` seconds.
"""

import atexit
import contextlib
import ctypes
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import numpy as np

T = TypeVar("T")

TIMEOUT = 900.0  # seconds without an answer; a process that dies is noticed at once, by its host and by the launcher
LOOK_AFTER = 0.05  # seconds of a wait before it looks whether another rank failed
FAILED, WAITING = 1, 2  # tags: why a rank failed; it has waited for too long
ALIKE = 3.0  # seconds in which rank 0 learns that all ranks have its mistake
GRACE = 10.0  # seconds in which rank 0 reports a failure, before another rank does
STAGGER = 0.5  # seconds between the ranks that would report in its place; a report ends all before the next


class RankError(RuntimeError):
    """Another rank failed, or does not answer; the message is one line, which names it.

    Attributes:
        details: the traceback of an exception there that no user caused.
    """

    def __init__(self, message: str, details: str = "") -> None:
        super().__init__(message)
        self.details = details


class Alone:
    """One process. Its methods are those of `Ranks`."""

    rank, size, local_size = 0, 1, 1

    def exchange(self, value: T) -> list[T]:
        """The values of all ranks, in their order: JSON values, which every rank gives."""
        return [value]

    def broadcast_arrays(self, arrays: dict[str, np.ndarray] | None) -> dict[str, np.ndarray]:
        """The host arrays of rank 0, by name; the others may give None."""
        return arrays or {}

    def first(self, work: Callable[[], T]) -> Any:
        """What `work`, called on rank 0 alone, returns there: a JSON value."""
        return self.exchange(work() if self.rank == 0 else None)[0]

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


class Ranks(Alone):
    """The processes of an MPI communicator.

    Args:
        comm: a communicator of mpi4py, such as ``MPI.COMM_WORLD``; every process of it makes a `Ranks`, which has
            duplicates of its own.
        timeout: seconds without an answer of another rank, after which waiting for it ends.

    Attributes:
        for_all: whether this rank failed in work that it does for all.
        watched: the other ranks of this host, the end of whose processes is noticed.
    """

    def __init__(self, comm: Any, timeout: float = TIMEOUT) -> None:
        from mpi4py import MPI

        self._mpi, self.timeout, self.for_all = MPI, timeout, False
        self.rank, self.size = comm.Get_rank(), comm.Get_size()
        self._begun, self._processes, self.watched = list[Any](), [list[Any](["unknown"])] * self.size, list[int]()
        # Each kind of message has a communicator of its own, on which all ranks send in one order.
        self._control, self._comm, self._to_owners, self._to_all = (comm.Dup() for _ in range(4))
        # The name of the host for people, what tells it from others, and the number of the process.
        self._processes = self.exchange([socket.gethostname(), _host(), os.getpid()])
        self.watched = [rank for rank, (_, host, _) in enumerate(self._processes)
                        if rank != self.rank and host == self._processes[self.rank][1]]
        self.local_size = 1 + len(self.watched)
        atexit.register(self._leave)

    # ----------------------------------------------------------------- what they tell each other

    def _begin(self, *requests: Any) -> list[Any]:
        """Keep requests, which hold the buffers that MPI reads and writes, until they are done."""
        self._begun = [*filter(None, self._begun), *requests]
        return [*requests]

    def exchange(self, value: Any) -> list[Any]:  # noqa: D102
        text, sizes = json.dumps(value).encode(), np.empty(self.size, np.int64)
        self.wait(self._comm.Iallgather(np.array([len(text)]), sizes))
        texts = bytearray(sizes.sum())
        self.wait(self._comm.Iallgatherv(text, [texts, sizes.tolist()]))
        return [json.loads(texts[end - size:end]) for size, end in zip(sizes, np.cumsum(sizes), strict=True)]

    def broadcast_arrays(self, arrays: dict[str, np.ndarray] | None) -> dict[str, np.ndarray]:  # noqa: D102
        own = {name: np.array(array, order="C") for name, array in (arrays or {}).items()}
        for name, shape, dtype in self.first(lambda: [[key, a.shape, a.dtype.str] for key, a in own.items()]):
            own.setdefault(name, np.empty(shape, dtype))
        self.wait(*(self._comm.Ibcast([array, self._mpi.BYTE]) for array in own.values()))
        return own

    def all_to_all(self, sent: np.ndarray, sizes: Sequence[int]) -> tuple[list[Any], np.ndarray]:
        """Send each rank its row of `sent`, (size, n). A request, and what it fills with so many values of each."""
        received = np.empty(sum(sizes), sent.dtype)
        request = self._to_owners.Ialltoallv([sent, [sent.shape[1]] * self.size], [received, sizes])
        return self._begin(request), received

    def all_gather(self, values: np.ndarray) -> list[Any]:
        """Send our row of `values`, (size, n), to all ranks. A request, after which all rows are there."""
        return self._begin(self._to_all.Iallgather(self._mpi.IN_PLACE, values))

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

    def first(self, work: Callable[[], Any]) -> Any:  # noqa: D102
        try:
            return super().first(work)
        except Exception as error:
            self.for_all = not isinstance(error, RankError)
            raise

    # ----------------------------------------------------------------- waits

    def wait(self, *requests: Any) -> None:
        """Wait for MPI requests; RankError as `wait_until`."""
        begun = self._begin(*requests)
        self.wait_until(lambda: self.arrived(begun))

    def wait_until(self, done: Callable[[], bool]) -> None:
        """Ask `done`, which lets MPI go on, until it is; RankError if a rank failed, is gone, or does not answer."""
        began = time.monotonic()
        while not done():
            waited = time.monotonic() - began
            if waited > LOOK_AFTER:
                self.check()
            if waited > self.timeout:
                raise RankError(f"no answer for {self.timeout:.0f} s from {self.silent()}")
            time.sleep(min(waited / 10, 1e-3))

    # ----------------------------------------------------------------- failures

    def name(self, rank: int) -> str:
        """A rank and its host, for people."""
        return f"rank {rank} ({self._processes[rank][0]})"

    def check(self) -> None:
        """Raise RankError if a rank told that it failed, or its process on this host has ended."""
        for rank, (text, details) in self._told(FAILED):
            raise RankError(f"{self.name(rank)}: {text}", details)
        if gone := self._gone():
            raise RankError(gone)

    def _gone(self) -> str:
        """A message on a process of this host that has ended; empty if all still run."""
        for rank in self.watched:
            if not _runs(self._processes[rank][2]):
                return f"{self.name(rank)} has ended without a word: it was killed, or its machine is out of memory"
        return ""

    def silent(self) -> str:
        """The ranks that do not wait for others themselves, in words."""
        self._tell("", WAITING)
        answered = {self.rank, *self._hear(WAITING, GRACE, self._from_all)}
        return ", ".join(self.name(rank) for rank in range(self.size) if rank not in answered) or "a rank"

    def _tell(self, value: Any, tag: int) -> None:
        self._begin(*(self._control.isend(value, rank, tag) for rank in range(self.size) if rank != self.rank))

    def _told(self, tag: int) -> Iterator[tuple[int, Any]]:
        """The values with this tag that have arrived, and the ranks that sent them."""
        self.arrived(self._begun)  # lets those of this rank go on
        status = self._mpi.Status()
        while self._control.iprobe(tag=tag, status=status):
            rank = status.Get_source()
            yield rank, self._control.recv(source=rank, tag=tag)

    def _hear(self, tag: int, patience: float, enough: Callable[[dict[int, Any]], bool]) -> dict[int, Any]:
        """The values with this tag, by rank, as soon as they are enough, or after so many seconds."""
        told, deadline = dict[int, Any](), time.monotonic() + patience
        while not enough(told) and time.monotonic() < deadline:
            told.update(self._told(tag))
            time.sleep(0.005)
        return told

    def _from_all(self, told: dict[int, Any]) -> bool:
        return len(told) == self.size - 1

    def fail(self, text: str, details: str = "") -> None:
        """Tell the others that this rank failed, and why: their waits end with a RankError."""
        self._tell([" ".join(text.split()), details], FAILED)

    def _leave(self) -> None:
        """At the end of the program: if an exception ended it, tell the others, who may wait for this rank.

        MPI goes on with what this rank began until MPI's Finalize, which comes after Python has freed its objects: one
        reference that nothing gives back keeps the requests and their buffers.
        """
        error = getattr(sys, "last_value", None)
        if error is not None and not isinstance(error, RankError) and not self._mpi.Is_finalized():
            self.fail(f"{type(error).__name__}: {error}")
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._begun))

    def end(self, line: str, status: int, details: str = "") -> NoReturn:
        """End all ranks with this status, and one line on standard error for all of them.

        Where every rank has the same mistake, or rank 0 in what it does for all, the line is as of one process.
        Otherwise it names a rank, and the launcher ends those that still work. Rank 0 speaks; another one does if rank
        0 has ended, or does not react.
        """
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
            signal.signal(number, signal.SIG_IGN)  # a launcher that ends the ranks sends one first
        error: Any = sys.exc_info()[1]
        own = not isinstance(error, RankError)
        if own and (gone := self._gone()):  # it is the reason for a signal
            line, status, own = f"Error: {gone}", 2, False
        elif not own:
            details = error.details
        with contextlib.suppress(self._mpi.Exception):
            if own:
                self.fail(line.removeprefix("Error: "), details)
            alike = self._all_fail_alike(line, own)
            if self.rank == 0 or not alike:
                if own and not alike and not self.for_all:
                    line = f"Error: {self.name(self.rank)}: {line.removeprefix('Error: ')}"
                write(sys.__stderr__, f"{details}{line}\n")
            if alike:
                sys.exit(status)
            time.sleep(STAGGER / 5)  # in which the launcher passes the line on
        write(sys.stdout, "")
        self._control.Abort(status)
        os._exit(status)  # where MPI cannot

    def _all_fail_alike(self, line: str, own: bool) -> bool:
        """Wait until all ranks have told this line, or until this one shall report: whether they have."""
        if self.rank == 0:
            patience = ALIKE * (own and not self.for_all)
        else:
            patience = GRACE * (0 not in self.watched or _runs(self._processes[0][2])) + STAGGER * self.rank

        def alike(told: dict[int, Any]) -> bool:
            return self._from_all(told) and {_cause(text) for text, _ in told.values()} == {_cause(line)}

        return alike(self._hear(FAILED, patience, alike))


def write(stream: Any, text: str) -> None:
    """Write and flush a text; do nothing where the stream is missing or its reader is gone."""
    with contextlib.suppress(OSError, AttributeError):
        stream.write(text)
        stream.flush()


def _cause(line: str) -> str:
    """What a line says went wrong, without the remedy after it, which may depend on files of rank 0."""
    return line.removeprefix("Error: ").partition("; ")[0]


def _host() -> str:
    """What tells this host from others: processes of one have numbers that mean the same."""
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text() + os.readlink("/proc/self/ns/pid")
    return socket.gethostname()


def _runs(process: int) -> bool:
    """Whether a process of this host has not ended."""
    try:
        os.kill(process, 0)
    except OSError as error:
        return isinstance(error, PermissionError)
    return True
