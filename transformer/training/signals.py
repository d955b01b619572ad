"""The signals that stop a training: Ctrl-C, SIGTERM of a scheduler, SIGHUP of a terminal that is gone.

A signal that is ignored when a block begins stays ignored, as under ``nohup``, and a program's own handler of SIGTERM
or SIGHUP stays in force: it may have other plans for these. Only the main thread can have handlers: in another one, the
blocks change nothing. At the end of a block the earlier handlers are back.

Ranks of a launcher stop at SIGUSR1, too: mpirun passes it on to all of them, and leaves them the time to save. At
Ctrl-C and SIGTERM, Open MPI kills them soon after.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from transformer.distributed.launch import launched

NAMES = ["SIGINT", "SIGTERM", "SIGHUP", *["SIGUSR1"] * (launched() > 1)]
STOPPING = [getattr(signal, name) for name in NAMES if hasattr(signal, name)]
# Seconds in which one SIGTERM or SIGHUP comes twice: programs such as timeout and shells send it to the process and to
# its group. Ctrl-C comes as often as somebody presses it.
TWICE = 0.5


class Stopped(KeyboardInterrupt):
    """A signal, `number`, stops the training."""

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.number = number


class Request:
    """Whether a signal asked the training to stop: its `number`, or None."""

    number: int | None = None

    def heed(self) -> None:
        """Raise `Stopped` if a signal came."""
        if self.number is not None:
            raise Stopped(self.number)


@contextmanager
def stopping_at_once() -> Iterator[None]:
    """Within the block, each of the signals raises `Stopped`."""
    def on_signal(number: int, frame: FrameType | None) -> None:
        raise Stopped(number)

    with _handled_by(on_signal):
        yield


@contextmanager
def stopped_already() -> Iterator[None]:
    """Within the block, the signals have no effect: the training has stopped, and says so."""
    with _handled_by(lambda number, frame: None):
        yield


@contextmanager
def stop_request() -> Iterator[Request]:
    """A request that the first signal makes, so that no update is cut in half; a second signal raises `Stopped`.

    A request that was not heeded by the end of the block raises `Stopped` there.
    """
    request, first = Request(), 0.0

    def on_signal(number: int, frame: FrameType | None) -> None:
        nonlocal first
        if request.number is None:
            request.number, first = number, time.monotonic()
        elif number != request.number or number == signal.SIGINT or time.monotonic() - first > TWICE:
            raise Stopped(number)

    with _handled_by(on_signal):
        yield request
    request.heed()


@contextmanager
def _handled_by(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Within the block, `handler` is called for the signals."""
    before = {}
    try:
        if threading.current_thread() is threading.main_thread():
            for number in STOPPING:
                if _gives_way(number):
                    before[number] = signal.signal(number, handler)
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


def _gives_way(number: int) -> bool:
    """Whether the present handler of a signal may be replaced; that of Ctrl-C always, unless it is ignored."""
    present = signal.getsignal(number)
    if number == signal.SIGINT:
        return present not in (signal.SIG_IGN, None)  # None: a handler that is not Python's
    of_a_block_around = getattr(present, "__module__", None) == __name__
    return of_a_block_around or present in (signal.SIG_DFL, signal.default_int_handler)
