"""Processes that take turns: each builds its model once, then waits until it is told to measure.

A training process needs seconds to import its library and to warm up. So it is started once and kept: the
driver lets each in turn measure for a second, A B C A B C …, while the others wait on their standard input. The turns
of one round lie next to each other in time, and the ratios are taken within it, as `paired` does for fresh processes.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, TextIO

import paired

PAUSE = 0.05  # seconds between turns, for the threads of a BLAS to fall asleep
LEAST = 1  # laps that a turn has, however long they take
END = -1.0  # said in place of a turn's seconds: a program that mpirun has started does not see its input end


class Process:
    """A running program: what it said when it was ready, and its turns.

    Args:
        name: for messages.
        command: the program, which answers with `Answers`.
        changes: of the environment.
    """

    def __init__(self, name: str, command: Sequence[str], changes: Mapping[str, str]) -> None:
        self.name = name
        self._popen = subprocess.Popen(command, env=paired.environment(changes), stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, text=True)
        self.ready = self._answer()

    def turn(self, seconds: float) -> paired.Numbers:
        """Let it measure for about so long; what it measured."""
        time.sleep(PAUSE)
        print(seconds, file=self._popen.stdin, flush=True)
        return self._answer()

    def close(self) -> None:
        """Let it end."""
        self._popen.communicate(f"{END}\n")

    def _answer(self) -> Any:
        line = self._popen.stdout.readline() if self._popen.stdout else ""
        if not line:
            self.close()
            raise RuntimeError(f"{self.name} ended with status {self._popen.returncode}")
        return json.loads(line)


@contextmanager
def started(programs: Mapping[str, Sequence[str]],
            changes: Mapping[str, str] = paired.KEEP_FREED_MEMORY) -> Iterator[dict[str, Process]]:
    """All `programs`, running and ready; they end with the block."""
    with ExitStack() as stack:
        processes = {}
        for name, command in programs.items():
            processes[name] = Process(name, command, changes)
            stack.callback(processes[name].close)
        yield processes


def take(processes: Mapping[str, Process], rounds: int, seconds: float) -> list[paired.Round]:
    """`rounds` rounds, in each of which every process has one turn."""
    return [{name: process.turn(seconds) for name, process in processes.items()} for _ in range(rounds)]


# --------------------------------------------------------------------------- in the measured process


def turns() -> Iterator[float]:
    """The seconds of each turn, from the standard input, until it ends or says `END`."""
    return itertools.takewhile(lambda seconds: seconds != END, map(float, sys.stdin))


class Answers:
    """Standard output for answers alone: what a library prints goes to standard error from now on."""

    def __init__(self) -> None:
        self._stream: TextIO = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)

    def give(self, answer: Mapping[str, Any]) -> None:
        """Write one answer."""
        print(json.dumps(answer), file=self._stream, flush=True)

    def serve(self, once: Callable[[], object], settle: Callable[[], object] = lambda: None,
              steps: int = 1) -> None:
        """Until the input ends: for each line, a number of seconds, call `once` for so long; the answer is ms per step.

        Args:
            once: is called `LEAST` times at least.
            steps: how many of them `once` takes.
            settle: called at the end of each turn, and timed: it waits for what a GPU has not computed yet.
        """
        for seconds in turns():
            count, start = 0, time.perf_counter()
            while count < LEAST or time.perf_counter() - start < seconds:
                once()
                count += 1
            settle()
            self.give({"ms": 1e3 * (time.perf_counter() - start) / count / steps})
