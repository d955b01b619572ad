"""Processes to be disturbed: forks of this one, which have everything imported, or new ones."""

from __future__ import annotations

import itertools
import mmap
import os
import resource
import runpy
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from transformer.training.trainer import Trainer

ROOT = Path(__file__).parents[2]
numbers = itertools.count()


@dataclass(frozen=True)
class Ended:
    """How a process ended.

    Attributes:
        status: the exit status, or minus the signal that ended it.
        output, errors: what it wrote.
        seconds: from its start to its end.
        work: seconds of a core.
        memory: bytes that it took beyond those that it shared with its parent at first.
    """

    status: int
    output: str
    errors: str
    seconds: float
    work: float
    memory: int


class Child:
    """A process that does `action`, and whose exit status is what that returns.

    Args:
        action: called in the child.
        scratch: a folder for what the child writes to its standard output and standard error.
        given: its standard input.
        group: whether it leads a process group of its own, which `end` kills whole.
    """

    def __init__(self, action: Callable[[], int], scratch: Path, given: bytes = b"", group: bool = False) -> None:
        number, self.group = next(numbers), group
        self.ended: Ended | None = None
        self.files = [scratch / f"{number}.{name}" for name in ("input", "output", "errors")]
        for file, content in zip(self.files, (given, b"", b""), strict=True):
            file.write_bytes(content)
        self.before = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
        self.begun = time.monotonic()
        self.pid = os.fork()
        if self.pid == 0:
            _be(action, self.files, group)
        self.descriptor = os.pidfd_open(self.pid)

    def signal(self, number: int) -> None:
        """Send a signal; no effect on a process that has ended."""
        if self.ended is None:
            os.kill(self.pid, number)  # a process that has ended is there until `wait`

    def worked(self) -> float:
        """Seconds of a core that its main thread has had."""
        return int(Path(f"/proc/{self.pid}/schedstat").read_text().split()[0]) / 1e9

    def is_over(self, seconds: float) -> bool:
        """Whether the process ends within so many seconds."""
        return self.ended is not None or bool(select.select([self.descriptor], [], [], max(0.0, seconds))[0])

    def wait(self, seconds: float) -> Ended | None:
        """How the process ended; None if it did not in so many seconds, and it is killed."""
        over = self.is_over(seconds)
        ended = self.end()
        return ended if over else None

    def end(self) -> Ended:
        """Kill the process if it is still there."""
        if self.ended is None:
            if self.group:
                os.killpg(self.pid, signal.SIGKILL)
            else:
                os.kill(self.pid, signal.SIGKILL)
            _, status, used = os.wait4(self.pid, 0)
            os.close(self.descriptor)
            output, errors = (file.read_bytes().decode(errors="replace") for file in self.files[1:])
            for file in self.files:
                file.unlink()
            self.ended = Ended(os.waitstatus_to_exitcode(status), output, errors, time.monotonic() - self.begun,
                               used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 - self.before)
        return self.ended


def _be(action: Callable[[], int], files: Sequence[Path], group: bool) -> None:
    """What the child does, to its end: nothing of the parent's may run in it."""
    status = 1
    try:
        if group:
            os.setpgid(0, 0)
        signal.signal(signal.SIGINT, signal.default_int_handler)  # even where the parent ignores it
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        for number, file in enumerate(files):
            os.dup2(os.open(file, os.O_WRONLY if number else os.O_RDONLY), number)
        sys.stdin, sys.stdout, sys.stderr = (
            os.fdopen(number, mode, encoding="utf-8", errors=errors, closefd=False)
            for number, (mode, errors) in enumerate([("r", "strict"), ("w", "strict"), ("w", "backslashreplace")]))
        try:
            status = action()
        except SystemExit as error:
            status = error.code if isinstance(error.code, int) else int(error.code is not None)
        except BaseException:
            traceback.print_exc()
            raise
        finally:
            for stream in filter(None, (sys.stdout, sys.stderr)):
                stream.flush()
    finally:
        os._exit(status)


class Steps:
    """The step that a training in a forked child has reached, and whether the child runs, seen from its parent.

    Args:
        interrupted: the step after which Ctrl-C is pressed.
    """

    def __init__(self, interrupted: int | None = None) -> None:
        self.shared, self.interrupted = mmap.mmap(-1, 9), interrupted

    @property
    def begun(self) -> bool:
        """Whether the command begins."""
        return self.shared[8] == 1

    @property
    def reached(self) -> int:
        """0 before the first update."""
        return int.from_bytes(self.shared[:8], "little")

    def watch(self) -> None:
        """In the child: write down every step from now on."""
        update = Trainer.update

        def noted(trainer: Trainer, group: object) -> None:
            update(trainer, group)
            self.shared[:8] = trainer.progress.step.to_bytes(8, "little")
            if trainer.progress.step == self.interrupted:
                signal.raise_signal(signal.SIGINT)

        Trainer.update = noted
        self.shared[8] = 1


def command(arguments: Sequence[object], scratch: Path, *, new: bool = False, given: bytes = b"",
            limits: dict[int, int] | None = None, steps: Steps | None = None, within: Path | None = None) -> Child:
    """Start ``python -m transformer`` with these arguments.

    Args:
        arguments: of the command.
        scratch: a folder for its output.
        new: in a new process, with its imports, rather than in a fork of this one.
        given: its standard input.
        limits: resource limits by their number in `resource`.
        steps: told the steps of a training, unless the process is new.
        within: the working directory.
    """
    line = list(map(str, arguments))

    def action() -> int:
        for which, limit in (limits or {}).items():
            resource.setrlimit(which, (limit, limit))
        if within is not None:
            os.chdir(within)
        if new:
            environment = {**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}
            os.execve(sys.executable, [sys.executable, "-m", "transformer", *line], environment)
        if steps is not None:
            steps.watch()
        sys.argv = ["transformer", *line]
        runpy.run_module("transformer", run_name="__main__")
        return 0

    return Child(action, scratch, given)
