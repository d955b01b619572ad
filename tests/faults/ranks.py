"""One of several ranks is killed, once or twice in a row, at any moment of a training; then it goes on.

It goes on with any number of ranks, to the end of one process that nothing disturbed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from random import Random

from tests.distributed.mpirun import Started, started
from tests.faults.children import command
from tests.faults.kill import POLL, line, names_in, whole
from tests.faults.trainings import LIMIT, PLAIN, Base, Training, difference, left
from tests.faults.verdict import short
from transformer.training.run_folder import is_run

OPTIONS = [*PLAIN, "--threads", "1", "--shards", "4"]
START = 3.0  # seconds that ranks take before they train, or more
GONE = 10.0  # seconds after a kill within which all processes must have ended


def fault(rng: Random, folder: Path, base: Base) -> tuple[str, str | None]:
    """One or two kills of one run."""
    training, out, told = _alone([*OPTIONS, "--seed", str(rng.randrange(100))], folder), folder / "run", list[str]()
    for _ in range(rng.choice([1, 1, 2])):
        described, problem = _disturb(rng, training, out)
        told.append(described)
        if problem is not None:
            return ", ".join(told), problem
    ranks = rng.choice([1, 2, 3])
    done = _train(ranks, training, out)
    if done.returncode != 0:
        return ", ".join(told), f"it does not go on with {ranks} ranks: {short(done.stderr)}"
    return f"{', '.join(told)}; on with {ranks}", difference(out, training)


def _alone(options: list[str], folder: Path) -> Training:
    """A training that one process makes, and nothing disturbs."""
    finished = folder / "alone"
    ended = command(["train", *options, "--out", finished], folder).wait(LIMIT)
    if ended is None or ended.status != 0:
        raise RuntimeError(f"a training failed undisturbed: {ended}")
    return Training(options, finished, finished, left(finished), {}, ended.seconds)


def _train(ranks: int, training: Training, out: Path) -> subprocess.CompletedProcess[str]:
    with started(ranks, "-m", "transformer", *line(training, out)) as running:
        return running.wait(LIMIT)


def _disturb(rng: Random, training: Training, out: Path) -> tuple[str, str | None]:
    """Kill a rank of some: what was done, and what is wrong with how all ended or with what they left."""
    ranks, was, before = rng.choice([2, 3]), is_run(out), names_in(out)
    names = rng.choice([0, *range(1, 20)])
    moment = rng.uniform(0, 0.05) if names else rng.uniform(0, START)
    with started(ranks, "-m", "transformer", *line(training, out)) as running:
        seen, launcher = set[str](), running.process
        while len(seen) < names and launcher.poll() is None:
            seen |= names_in(out) - before
            time.sleep(POLL)
        time.sleep(moment)
        processes = ranks_of(launcher.pid)
        victim = rng.choice(processes) if processes else launcher.pid  # the launcher has started none, or has ended
        seconds, problem = _kill(running, victim, [*processes, launcher.pid])
    told = f"{'a rank' if processes else 'mpirun'} of {ranks} after {names} names and {moment:.2f} s ({seconds:.1f} s)"
    return told, problem or whole(out, was)


def _kill(running: Started, victim: int, processes: list[int]) -> tuple[float, str | None]:
    """Kill a process: the seconds until all have ended, and what is wrong with that."""
    launcher, begun = running.process, time.monotonic()
    if launcher.poll() is None:
        with suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)
    while launcher.poll() is None or any(map(runs, processes)):
        if time.monotonic() - begun > GONE:
            return GONE, f"processes are left {GONE:.0f} s after the kill"
        time.sleep(0.01)
    seconds = time.monotonic() - begun
    errors = [text for text in running.output()[1].replace("\0", "").splitlines() if text.startswith("Error: ")]
    if launcher.returncode == 0 and "now try" not in running.output()[0]:
        return seconds, "a killed training ended with status 0"
    return seconds, f"{len(errors)} lines: {short(' '.join(errors))}" if len(errors) > 1 else None


def ranks_of(launcher: int) -> list[int]:
    """The processes that a launcher has started."""
    try:
        tasks = list(Path(f"/proc/{launcher}/task").iterdir())
        return [int(number) for task in tasks for number in (task / "children").read_text(encoding="ascii").split()]
    except OSError:  # it has ended
        return []


def runs(process: int) -> bool:
    """Whether a process is there, and is not one that has ended and that nobody has asked about."""
    try:
        return ") Z " not in Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
