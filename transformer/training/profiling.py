"""The profile of some updates of a training run, which ``train --profile`` prints and writes."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import suppress
from itertools import repeat
from pathlib import Path
from typing import Any

import minigrad

from transformer.training.messages import Messages

WARM_UP = 5  # first updates, which are not measured: they start threads, allocate memory and look up module names
MEASURED = 10


def step_profiles(model: Any, path: Path | None, messages: Messages) -> Generator[Any, None, None]:
    """For each update the profile that measures it, from ``next`` before it to ``next`` before the following, or None.

    After the last of `MEASURED` updates, or when the generator is closed among them, tables go to the messages and the
    trace to the file.

    Args:
        model: the model, whose modules have dotted names in the profile.
        path: the file for the trace; None: no update is measured.
        messages: where the tables go.
    """
    while path is None:
        yield None
    yield from repeat(None, WARM_UP)
    measured = 0
    try:
        with minigrad.profile(model) as profile:
            for _ in range(MEASURED):
                measured += 1
                yield profile
    finally:
        messages.say(f"profile of {measured} updates\n{profile}\n")
        with suppress(OSError):  # a full disk must not end the training
            profile.save(path)
            messages.say(f"wrote {path}: open it in https://ui.perfetto.dev")
    yield from repeat(None)
