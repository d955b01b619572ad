"""How ranks learn that one of them failed, and how they end together, with one line on standard error.

A rank that fails tells the others. One that was killed cannot: the ranks of its host see that its process is gone.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

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


class Failures:
    """What `Ranks` know of failures, told and seen.

    Args:
        comm: the communicator of the ranks; messages about failures have a duplicate of it.

    Attributes:
        for_all: whether this rank failed in work that it does for all.
        watched: the other ranks of this host.
    """

    def __init__(self, comm: Any) -> None:
        from mpi4py import MPI

        self._mpi, self._control = MPI, comm.Dup()
        self.rank, self.size = comm.Get_rank(), comm.Get_size()
        self.for_all = False
        self.watched: list[int] = []
        self._processes: Sequence[list[Any]] = []
        self._sent: list[Any] = []

    def watch(self, processes: Sequence[list[Any]]) -> None:
        """From now on, notice the end of the processes of this host. `processes`: of each rank `this_process`."""
        self._processes = processes
        self.watched = [rank for rank, (_, host, _) in enumerate(processes)
                        if rank != self.rank and host == processes[self.rank][1]]
        atexit.register(self._leave)

    def name(self, rank: int) -> str:
        """A rank and its host, for people."""
        return f"rank {rank} ({self._processes[rank][0]})" if self._processes else f"rank {rank}"

    def check(self) -> None:
        """Raise RankError if a rank told that it failed, or its process on this host has ended."""
        for rank, (text, details) in self._told(FAILED):
            raise RankError(f"{self.name(rank)}: {text}", details)
        if gone := self._gone():
            raise RankError(gone)

    def _gone(self) -> str:
        """What to say of a process of this host that has ended; empty if all are there."""
        for rank in self.watched:
            if not _runs(self._processes[rank][2]):
                return f"{self.name(rank)} has ended without a word: it was killed, or its machine is out of memory"
        return ""

    def silent(self) -> str:
        """The ranks that do not wait for others themselves, in words."""
        self._tell("", WAITING)
        answered, deadline = {self.rank}, time.monotonic() + GRACE
        while time.monotonic() < deadline:
            answered.update(rank for rank, _ in self._told(WAITING))
            time.sleep(0.01)
        return ", ".join(self.name(rank) for rank in range(self.size) if rank not in answered) or "a rank"

    def _tell(self, value: Any, tag: int) -> None:
        others = (rank for rank in range(self.size) if rank != self.rank)
        self._sent += [self._control.isend(value, rank, tag) for rank in others]

    def _told(self, tag: int) -> Iterator[tuple[int, Any]]:
        """The values with this tag that have arrived, and the ranks that sent them."""
        self._mpi.Request.Testall(self._sent)  # lets those of this rank go on
        status = self._mpi.Status()
        while self._control.iprobe(tag=tag, status=status):
            rank = status.Get_source()
            yield rank, self._control.recv(source=rank, tag=tag)

    def fail(self, text: str, details: str = "") -> None:
        """Tell the others that this rank failed, and why: their waits end with a RankError."""
        self._tell([" ".join(text.split()), details], FAILED)

    def _leave(self) -> None:
        """At the end of the program: if an exception ended it, tell the others, who may wait for this rank."""
        error = getattr(sys, "last_value", None)
        if error is not None and not isinstance(error, RankError) and not self._mpi.Is_finalized():
            self.fail(f"{type(error).__name__}: {error}")

    def end(self, line: str, status: int, details: str = "") -> NoReturn:
        """End all ranks with this status, and one line on standard error for all of them.

        Where every rank has the same mistake, or rank 0 in what it does for all, the line is as of one process.
        Otherwise it names a rank, and the launcher ends those that still work. Rank 0 speaks; another one does if rank
        0 has ended, or does not react.
        """
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
            signal.signal(number, signal.SIG_IGN)  # a launcher that ends the ranks sends one first
        error = sys.exc_info()[1]
        own = not isinstance(error, RankError)
        if own and (gone := self._gone()):  # it is the reason for a signal
            line, status, own = f"Error: {gone}", 2, False
        elif isinstance(error, RankError):
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
        sys.stdout.flush()
        self._control.Abort(status)
        os._exit(status)  # where MPI cannot

    def _all_fail_alike(self, line: str, own: bool) -> bool:
        """Wait until all ranks have told this line, or until this one shall report: whether they have."""
        told, began = dict[int, str](), time.monotonic()
        if self.rank == 0:
            patience = ALIKE * (own and not self.for_all)
        else:
            patience = GRACE * (0 not in self.watched or _runs(self._processes[0][2])) + STAGGER * self.rank
        while time.monotonic() - began < patience:
            told.update((rank, text) for rank, (text, _) in self._told(FAILED))
            if len(told) == self.size - 1 and all(_cause(text) == _cause(line) for text in told.values()):
                return True
            time.sleep(0.005)
        return False


def write(stream: Any, text: str) -> None:
    """Write a text at once; nothing, if the program was started without the stream, or its reader is gone."""
    with contextlib.suppress(OSError, AttributeError):
        stream.write(text)
        stream.flush()


def _cause(line: str) -> str:
    """What a line says went wrong, without the remedy after it, which may depend on files of rank 0."""
    return line.removeprefix("Error: ").partition("; ")[0]


def this_process() -> list[Any]:
    """The name of this host for people, what tells it from others, and the number of this process: JSON values."""
    return [socket.gethostname(), _host(), os.getpid()]


def _host() -> str:
    """What tells this host from others: processes of one have numbers that mean the same."""
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip() + os.readlink("/proc/self/ns/pid")
    return socket.gethostname()


def _runs(process: int) -> bool:
    """Whether a process of this host has not ended."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
