"""The seam around whatever runs: a watcher is told before and after.

    with watch(watcher):
        loss = model(x)
        loss.backward()

What runs is an operation, the gradient rules of a recorded one, a module, or a stretch of the program that `span` gives
a name. Without a watcher, an operation pays one look at a context variable.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

from minigrad.device.local import Setting


class Watcher:
    """Base of what looks on; a subclass overrides what it needs. It changes nothing, and what it raises ends the run.

    It is told of what happens in the thread or task that entered `watch`, and in threads that run in a copy of its
    context, at the same time. Operations that it uses itself are watched, too.

    ==========================  ========================  =====================================================
    `what` runs                 `given`                   `made`: None if it raised
    ==========================  ========================  =====================================================
    a `Primitive`               its arguments, in order   its output, a tensor
    a `Node`: its rules         the gradient of its       a gradient for each of ``node.parents``, None where
                                output                    nobody asks, or if others are recorded in its place
    an ``nn.Module``            ()                        what its forward returned
    a str: a stretch's name     ()                        None
    ==========================  ========================  =====================================================
    """

    buffers = True  # False for one that looks at each gradient alone: rules add into no sum in place then

    def before(self, what: Any, given: Any) -> None:
        """`what` begins."""

    def after(self, what: Any, given: Any, made: Any) -> None:
        """It has ended."""

    def writes(self, tensor: Any, index: Any, value: Any) -> None:
        """``tensor[index] = value`` is about to happen in place; index and value are arrays, slices, numbers."""


_watchers: ContextVar[tuple[Watcher, ...]] = ContextVar("minigrad.watchers", default=())
watchers = _watchers.get


def watch(watcher: Watcher) -> Setting[tuple[Watcher, ...]]:
    """A block, or a decorator, in which `watcher` is told of what runs."""
    return Setting(_watchers, lambda now: (*now, watcher))


def unwatched(watcher: Watcher) -> Setting[tuple[Watcher, ...]]:
    """A block inside in which it is not."""
    return Setting(_watchers, lambda now: tuple(one for one in now if one is not watcher))


def watched_by(entries: tuple[Watcher, ...]) -> Setting[tuple[Watcher, ...]]:
    """A block in which these are told, and nobody else: a recomputation is watched by those who watch the backward."""
    return Setting(_watchers, lambda now: entries)


def watched(what: Any, given: Any, run: Callable[[], Any]) -> Any:
    """``run()``, of which all watchers are told."""
    return _told(watchers(), what, given, run)


def _told(entries: tuple[Watcher, ...], what: Any, given: Any, run: Callable[[], Any]) -> Any:
    if not entries:
        return run()
    made = None
    entries[0].before(what, given)
    try:
        made = _told(entries[1:], what, given, run)
    finally:
        entries[0].after(what, given, made)
    return made


@contextlib.contextmanager
def span(name: str) -> Iterator[None]:
    """Give a stretch of the program a name, under which a profile shows it: ``with span("data"): batch = next(data)``.

    Spans nest. It can be a decorator, too: ``@span("metric")``.
    """
    with contextlib.ExitStack() as stack:
        for watcher in watchers():
            watcher.before(name, ())
            stack.callback(watcher.after, name, (), None)
        yield
