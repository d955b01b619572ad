"""A training is killed or stopped, once or several times in a row, at any moment of its life; then it goes on."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.faults.children import Child, Ended, Steps, command
from tests.faults.trainings import LIMIT, Base, Training, difference, values
from tests.faults.verdict import name_of, short, wrong
from transformer.training.checkpoints import load_run
from transformer.training.run_folder import RunError, check_new, is_run

GRACEFUL = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
POLL = 0.0002  # seconds between looks at the folder
EARLY = 0.1  # seconds of work within which a forked process begins to heed signals
SHARE_NEW = 1 / 20  # of the processes: those that import everything first


@dataclass(frozen=True)
class Disturbance:
    """A signal, so many seconds after a command was started; sent twice, or not.

    Attributes:
        names: the seconds count from when so many new names were seen in the run's folders, which is while it saves.
        new: whether the process imports everything first.
    """

    number: int
    moment: float
    names: int
    twice: bool
    new: bool

    def __str__(self) -> str:
        return (f"{name_of(self.number)}{' twice' * self.twice} after {f'{self.names} names and ' * (self.names > 0)}"
                f"{self.moment:.4f} s{' of a new process' * self.new}")

    def wait(self, child: Child, out: Path, steps: Steps) -> None:
        """Wait for the moment, or for the end of the process."""
        before, seen = names_in(out), set[str]()
        while not self.new and not steps.begun and not child.is_over(POLL):
            pass
        while len(seen) < self.names and not child.is_over(POLL):
            seen |= names_in(out) - before
        child.is_over(self.moment)


def fault(rng: Random, folder: Path, base: Base) -> tuple[str, str | None]:
    """One to four kills of one run."""
    training, out, told, problem = rng.choice(base.trainings), folder / "run", list[str](), None
    for _ in range(rng.choice([1, 1, 2, 4])):
        number, new = rng.choice([signal.SIGKILL, signal.SIGKILL, *GRACEFUL]), rng.random() < SHARE_NEW
        twice, names = number != signal.SIGKILL and rng.random() < 0.2, 0
        moment = rng.uniform(0, 1.1 * training.seconds + new * base.imports)
        if rng.random() < 0.5:
            names, moment = rng.randrange(1, 20), rng.uniform(0, 0.004)
        kill = Disturbance(number, moment, names, twice, new)
        told.append(str(kill))
        problem = _disturb(training, out, folder, kill)
        if problem is not None:
            break
    return ", ".join(told), problem or goes_on(training, out, folder)


def names_in(out: Path) -> set[str]:
    """The names in a run's folder, and in that of its checkpoints."""
    return {name for folder in (out, out / "checkpoints") if folder.is_dir() for name in os.listdir(folder)}


def _disturb(training: Training, out: Path, folder: Path, kill: Disturbance) -> str | None:
    """Train until the signal comes: what is wrong with how the process ended, or with what it left."""
    was, steps = is_run(out), Steps()
    child = command(line(training, out), folder, new=kill.new, steps=steps)
    kill.wait(child, out, steps)
    work = child.worked()
    child.signal(kill.number)
    if kill.twice:
        time.sleep(kill.moment % 0.01)
        child.signal(kill.number)
    ended = child.wait(LIMIT)
    if ended is None:
        return f"it hangs after {name_of(kill.number)}"
    if _unheard(ended, kill, early=kill.new or work < EARLY):
        return whole(out, was)
    problem = wrong(ended, (0, 128 + kill.number))
    if problem is None and ended.status != 0 and "stopped; " not in ended.errors and is_run(out):
        problem = f"it does not say how to go on: {short(ended.output + ended.errors)!r}, {work:.2f} s of work"
    return problem or whole(out, was, 0 if kill.twice else steps.reached)


def _unheard(ended: Ended, kill: Disturbance, early: bool) -> bool:
    """Whether the command could do nothing about the signal: it was over, or so `early` that it had not begun."""
    if kill.number == signal.SIGKILL:
        return ended.status == -kill.number
    if kill.twice and ended.status == -kill.number:
        return True  # the second came when the first had been heeded
    if kill.new and not ended.output and "KeyboardInterrupt" in ended.errors:
        return True  # Python was loading itself, or the package
    over, not_begun = "now try" in ended.output, early and not ended.output
    return ended.status in (-kill.number, 128 + kill.number) and not ended.errors.strip() and (over or not_begun)


def whole(out: Path, was: bool, reached: int = 0) -> str | None:
    """What is wrong with a folder in which a training ended early: it is no run yet, or its checkpoints are intact.

    Args:
        out: the folder.
        was: whether it was a run before.
        reached: the step that must have been saved.
    """
    saved = 0
    try:
        if is_run(out):
            saved = load_run(out, "latest")[0].progress["step"]
            values(out, "best")
        elif was:
            return "the run is gone"
        else:
            check_new(out)
    except RunError as error:
        return f"the folder is damaged: {short(str(error))}"
    return f"saved at step {saved}, and {reached} were made" if saved < reached else None


def line(training: Training, out: Path) -> list[object]:
    """The command line that goes on with the training in `out`, or begins it where there is no checkpoint."""
    return ["train", "--out", out, *(["--resume", "--quiet"] if is_run(out) else training.options)]


def goes_on(training: Training, out: Path, folder: Path) -> str | None:
    """What is wrong if the training goes on to its end, which must be that of one that nothing disturbed."""
    problem = wrong(command(line(training, out), folder).wait(LIMIT), (0,))
    return f"it does not go on: {problem}" if problem else difference(out, training)
