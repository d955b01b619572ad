"""The seam around whatever runs: a watcher is told before and after.

    with watch(watcher):
        loss = model(x)
        loss.backward()

What runs is an operation, the gradient rules of a recorded one, a module, or a stretch of the program that `span` gives
a name. Watchers are one of three things that may stand around operations, and an operation pays one look at a context
variable for all three.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, NamedTuple

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


class Around(NamedTuple):
    """The settings under which the operations of a thread or task run."""

    watchers: tuple[Watcher, ...] = ()
    # Gives the output of an operation that has steps, of it, its arguments and their values: `minigrad.fused`.
    compose: Any = None
    # Casts the values of an operation with a precision: `minigrad.autocast`.
    cast: Any = None


NOTHING = Around()
around: ContextVar[Around] = ContextVar("minigrad.around", default=NOTHING)


def put_around(**changes: Any) -> Setting[Around]:
    """A context manager or decorator that gives these fields of `Around` other values."""
    def change(now: Around) -> Around:
        then = now._replace(**changes)
        return NOTHING if then == NOTHING else then  # by which an operation sees that there is nothing

    return Setting(around, change)


def watchers() -> tuple[Watcher, ...]:
    """The watchers of this thread or task."""
    return around.get().watchers


def watch(watcher: Watcher) -> Setting[Around]:
    """A context manager or decorator that reports to `watcher` what runs inside."""
    return Setting(around, lambda now: now._replace(watchers=(*now.watchers, watcher)))


def unwatched(watcher: Watcher) -> Setting[Around]:
    """A context manager or decorator that stops the reports to `watcher`."""
    return put_around(watchers=tuple(one for one in watchers() if one is not watcher))


def watched(what: Any, given: Any, run: Callable[[], Any], of: tuple[Watcher, ...] | None = None) -> Any:
    """Return ``run()``, and report it to the watchers `of`; None: to all."""
    entries = watchers() if of is None else of
    if not entries:
        return run()
    made = None
    entries[0].before(what, given)
    try:
        made = watched(what, given, run, entries[1:])
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
