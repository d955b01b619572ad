"""The signals that stop a training: Ctrl-C, SIGTERM of a scheduler, SIGHUP of a terminal that is gone.

A signal that is ignored when a block begins stays ignored, as under ``nohup``, and a program's own handler stays in
force: it may have other plans. Only the main thread can have handlers: in another one, the blocks change nothing. At
the end of a block the earlier handlers are back.

Ranks of a launcher stop at SIGUSR1, too: mpirun passes it on to all of them, and leaves them the time to save. At
Ctrl-C and SIGTERM, Open MPI kills them soon after.
"""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FrameType

from transformer.distributed.launch import launched

STOPPING = [getattr(signal, name) for name in ["SIGINT", "SIGTERM", "SIGHUP", *["SIGUSR1"] * (launched() > 1)]
            if hasattr(signal, name)]
# Seconds in which one SIGTERM or SIGHUP comes twice: programs such as timeout and shells send it to the process and to
# its group. Ctrl-C comes as often as somebody presses it.
TWICE = 0.5
_raised: list[int] = []  # by `stopping_at_once`, which has not ended


class Stopped(KeyboardInterrupt):
    """A signal, `number`, stops the training."""

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.number = number


@contextmanager
def stop_request() -> Iterator[list[int]]:
    """Yield a list that receives the number of the first signal, so that no update is cut in half.

    A second signal raises `Stopped`; so does, at the end of the block, a first one that the block did not heed.
    """
    came, first = _raised[:1], 0.0

    def on_signal(number: int, frame: FrameType | None) -> None:
        nonlocal first
        if not came:
            came.append(number)
            first = time.monotonic()
        elif number != came[0] or number == signal.SIGINT or time.monotonic() - first > TWICE:
            raise Stopped(number)

    with _handled_by(on_signal):
        yield came
    if came:
        raise Stopped(came[0])


@contextmanager
def _handled_by(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Within the block, `handler` is called for the signals."""
    before = {}
    try:
        if threading.current_thread() is threading.main_thread():
            for number in STOPPING:
                present = signal.getsignal(number)
                # Python's own gives way, and that of a block around; a program's own does not.
                if present in (signal.SIG_DFL, signal.default_int_handler) or (
                        getattr(present, "__module__", "") == __name__):
                    before[number] = signal.signal(number, handler)
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


def _stop(number: int, frame: FrameType | None) -> None:
    _raised.append(number)
    raise Stopped(number)


@contextmanager
def stopping_at_once() -> Iterator[None]:
    """A block in which each of the signals raises `Stopped`.

    In the callback of a weak reference and in ``__del__``, Python drops what is raised. Then `stop_request`, within the
    block, begins with the signal.
    """
    with _handled_by(_stop):
        try:
            yield
        finally:
            _raised.clear()


def stopped_already() -> AbstractContextManager[None]:
    """A block in which the signals have no effect: the training has stopped, and says so."""
    return _handled_by(lambda number, frame: None)
