"""What a command may do, whatever happens to it: end in time, and say in one line why it could not do its work."""

from __future__ import annotations

import signal
from collections.abc import Collection
from pathlib import Path

from tests.faults.children import Child, Ended, Steps

TRAINING = 4.0  # seconds that a training is let go on
LONGEST = 1_020  # characters of an error: 1,000, and what stands before and in the midst of one that was cut
PROGRESS = ("note: ", "step ", "    source ", "    reference ", "    output ")  # how lines of a training begin
HARMLESS = (*PROGRESS, "no history.png", "no BLEU", "stopped; ")  # and other lines of a command
FOREIGN = ("Traceback", "RuntimeWarning", "DeprecationWarning", "UserWarning", "Exception ignored")


def wrong(ended: Ended | None, allowed: Collection[int] = (0, 2), names: Path | None = None) -> str | None:
    """What is wrong with how a command ended, if anything.

    Args:
        ended: None for a command that did not end in time.
        allowed: the exit statuses.
        names: what the line of an error must name.
    """
    if ended is None:
        return "it hangs"
    lines = ended.errors.splitlines()
    for name in FOREIGN:
        if name in ended.errors:
            return f"{name}: {short(lines[-1])}"
    if ended.status not in allowed:
        return f"status {ended.status}: {short(ended.errors)}"
    errors = [line for line in lines if line.startswith("Error: ")]
    if len(errors) != (ended.status == 2):
        return f"status {ended.status} with {len(errors)} errors: {short(ended.errors)}"
    if len(ended.errors) > LONGEST + sum(len(line) + 1 for line in lines if line.startswith(PROGRESS)):
        return f"a message of {len(ended.errors):,} characters: {short(ended.errors)}"
    if ended.status == 2:
        other = [line for line in lines if line not in errors and not line.startswith(HARMLESS)]
        if other:
            return f"other lines beside the error: {short(other[0])}"
        if names is not None and str(names) not in errors[0]:
            return f"the line does not name {names.name}: {short(errors[0])}"
    return None


def within(child: Child, seconds: float, steps: Steps) -> tuple[Ended | None, bool]:
    """How a command ended, None if it hangs; and whether SIGTERM ended it, since it went on training all that time."""
    for moment in (TRAINING, seconds - TRAINING):
        if not child.is_over(moment) and steps.reached:
            child.signal(signal.SIGTERM)
            return child.wait(seconds), True
    return child.wait(0), False


def short(text: str) -> str:
    """A text in one line of a bearable length."""
    text = " ".join(text.split())
    return text if len(text) < 300 else f"{text[:150]} … {text[-150:]}"


def name_of(number: int) -> str:
    """SIGTERM, say."""
    return signal.Signals(number).name
