"""The profile of some updates of a training run, which ``train --profile`` prints and writes."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any, Self

import minigrad

from transformer.training.messages import Messages

WARM_UP = 5  # first updates, which are not measured: they start threads, allocate memory and look up module names
MEASURED = 10


class StepProfile:
    """A profile of `MEASURED` updates: ``with StepProfile(model, path) as p:``, with ``p.step()`` before each update.

    After the last measured update, or at the end of the block, it writes tables as messages and the trace to the file.
    Without a path it does nothing.

    Args:
        model: the model, whose modules have dotted names in the profile.
        path: the file for the trace, or None.
        messages: where the tables go.
    """

    def __init__(self, model: Any, path: Path | None, messages: Messages) -> None:
        self._model, self._path, self._messages, self._steps = model, path, messages, 0
        self._block = contextlib.ExitStack()
        self._profile: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._end()

    def paused(self) -> contextlib.AbstractContextManager[None]:
        """A block that is not measured, for work between updates."""
        return contextlib.nullcontext() if self._profile is None else self._profile.pause()

    def step(self) -> None:
        """Note that an update begins."""
        self._steps += 1
        if self._path and self._steps == WARM_UP + 1:
            self._profile = self._block.enter_context(minigrad.profile(self._model))
        elif self._steps == WARM_UP + MEASURED + 1:
            self._end()

    def _end(self) -> None:
        self._block.close()
        profile, self._profile = self._profile, None
        if profile is not None and self._path is not None:
            self._messages.say(f"profile of {min(self._steps - WARM_UP, MEASURED)} updates\n{profile}\n")
            with contextlib.suppress(OSError):  # a full disk must not end the training
                profile.save(self._path)
                self._messages.say(f"wrote {self._path}: open it in https://ui.perfetto.dev")
