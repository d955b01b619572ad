"""Several threads on one piece of work: NumPy and the BLAS release the interpreter's lock while they compute.

``with threads(n):`` starts threads that end with the block; what can be divided (a batch, the blocks of an optimizer)
hands its parts to `run`. Every part works in a copy of the caller's context, so that ``no_grad``, ``fused``, observers
and forks of the random state hold in it. `GradientSum` adds up what several backward passes give, here or in part
elsewhere.

Nothing here depends on which thread is faster: parts are cut, and results are combined, in an order fixed beforehand.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from minigrad.arguments import whole_number
from minigrad.device import on_device_of
from minigrad.engine.backward import Receive
from minigrad.tensor.gradients import arrive

T = TypeVar("T")


class _Pool:
    """The threads of a block. A copy of its context may outlive it, in a task or a thread: there `size` is 1."""

    def __init__(self, size: int) -> None:
        self.size, self.lock = size, threading.Lock()
        self.executor = ThreadPoolExecutor(size, thread_name_prefix="minigrad")  # a thread starts with its first task


_ALONE = _Pool(1)
_current: ContextVar[_Pool] = ContextVar("minigrad.parallel", default=_ALONE)


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Within the block, let `run` use `count` threads, which end with the block.

    Local to the current thread or task, and to what runs in a copy of its context. TypeError if `count` is no integer,
    ValueError if it is below 1.
    """
    pool = _Pool(whole_number(count, "the count", "threads"))
    token = _current.set(pool)
    try:
        yield
    finally:
        with pool.lock:
            pool.size = 1
        pool.executor.shutdown()
        _current.reset(token)


def thread_count() -> int:
    """How many threads `run` uses here; 1 outside of `threads`, after its end, and in what `run` runs."""
    return _current.get().size


def run(tasks: Sequence[Callable[[], T]]) -> list[T]:
    """Call every task, each in a copy of the current context, and return what they return, in their order.

    A thread that has ended one takes the next. If one raises, those that have begun are waited for; then the exception
    of the first in order that raised is raised.
    """
    pool = _current.get()
    with pool.lock:
        futures = [pool.executor.submit(copy_context().run, _alone, task) for task in tasks if pool.size > 1]
    if not futures:
        return [copy_context().run(_alone, task) for task in tasks]
    try:
        wait(futures, return_when=FIRST_EXCEPTION)
    finally:
        for future in futures:
            future.cancel()
        wait(futures)
    return [future.result() for future in futures]


def _alone(task: Callable[[], T]) -> T:
    """Run a task without further threads: a part that is divided again would wait for a thread that waits for it."""
    _current.set(_ALONE)
    return task()


def shares(items: Sequence[T], weights: Sequence[float], parts: int) -> list[Sequence[T]]:
    """Cut a row of items into neighbours of about the same total weight: at most `parts`, and none without an item."""
    parts = min(parts, len(items))
    if parts < 2:
        return [items][:parts]
    ends, number = np.cumsum(np.asarray(weights, np.float64)), np.arange(1, parts)
    middles = ends - np.diff(ends, prepend=0.0) / 2
    cuts = np.searchsorted(middles, ends[-1] * number / parts)
    cuts = number + np.maximum.accumulate(cuts - number).clip(0, len(items) - parts)
    return [items[start:end] for start, end in pairwise([0, *cuts.tolist(), len(items)])]


Span = tuple[int, int]  # neighbours among several passes: the first, and the one after the last
Sums = dict[Span, tuple[Any, bool]]  # arrays by span, each with whether its memory is ours
Complete = Callable[[Any, Sums], None]  # of a leaf, and the sums of the largest spans of our own passes


def halves(span: Span) -> tuple[Span, Span]:
    """The two spans whose sums make that of `span`; the first has the odd pass."""
    first, end = span
    middle = (first + end + 1) // 2
    return (first, middle), (middle, end)


def largest_spans(own: Span, whole: Span) -> list[Span]:
    """The largest spans of the tree below `whole` that lie in `own`: what can be summed of these passes alone."""
    if own[0] <= whole[0] and whole[1] <= own[1]:
        return [whole] if whole[0] < whole[1] else []
    if own[1] <= whole[0] or whole[1] <= own[0]:
        return []
    return [span for half in halves(whole) for span in largest_spans(own, half)]


class TreeSum:
    """The sum of one array from each of several passes, in the order of a binary tree.

    The sum of a span is that of its first half plus that of its second, so its bits follow from the number of passes
    alone: not from their speed, nor from where each half is added up. A pass without an array is left out.

    Attributes:
        parts: the sums so far.
    """

    def __init__(self, passes: int) -> None:
        self.whole: Span = (0, passes)
        self.parts: Sums = {}

    def add(self, span: Span, value: Any, owned: bool) -> None:
        """Add the sum of a span of the tree, and with it what is complete now. `owned`: its memory may be written."""
        while span != self.whole:
            parent = self.whole
            while span not in (pair := halves(parent)):
                parent = pair[0] if span[0] < pair[0][1] else pair[1]
            other = self.parts.pop(pair[span == pair[0]], None)
            if other is None:
                break
            span, (value, owned) = parent, _added((value, owned), other)
        self.parts[span] = value, owned

    def total(self, span: Span | None = None) -> tuple[Any, bool] | None:
        """Take the sum of a span, by default of all passes, without those that gave nothing; None if none did."""
        span = span or self.whole
        if span in self.parts:
            return self.parts.pop(span)
        if span[1] - span[0] < 2:
            return None
        first, second = (self.total(half) for half in halves(span))
        return _added(first, second) if first and second else first or second


def _added(one: tuple[Any, bool], other: tuple[Any, bool]) -> tuple[Any, bool]:
    """The sum of two arrays, in the memory of one that is ours."""
    (value, owned), (more, _) = (one, other) if one[1] else (other, one)
    with on_device_of(value):
        if not owned:
            return value + more, True
        value += more
        return value, True


class GradientSum:
    """The sum of the gradients of several backward passes, which may run at the same time.

    For each leaf the gradients are added up in the order of a `TreeSum`: the sum has the same bits every time,
    whichever pass is faster. A gradient is added as soon as it is complete and its neighbour is there, and its memory
    is free again: at no time is there a set of all gradients for each pass.

    Args:
        passes: the number of passes.
        own: the passes that run here, if others run elsewhere.
        complete: takes the sums of a leaf when all of our own passes have reached it; `incomplete` has the others.
    """

    def __init__(self, passes: int, own: Span | None = None, complete: Complete | None = None) -> None:
        self._passes, self._complete = passes, complete
        self._spans = largest_spans(own or (0, passes), (0, passes))
        self._leaves: dict[int, tuple[Any, TreeSum, threading.Lock]] = {}
        self._lock = threading.Lock()

    def receiver(self, number: int) -> Receive:
        """What pass `number`, counted from 0, hands its gradients to: the `receive` of `backward_pass`."""

        def receive(leaf: Any, gradient: Any, owned: bool) -> None:
            with self._lock:
                entry = self._leaves.setdefault(id(leaf), (leaf, TreeSum(self._passes), threading.Lock()))
            _, tree, lock = entry
            with lock:
                tree.add((number, number + 1), gradient, owned)
                if self._complete is not None and all(span in tree.parts for span in self._spans):
                    self._complete(leaf, {span: tree.parts.pop(span) for span in self._spans})

        return receive

    def incomplete(self) -> Iterator[tuple[Any, Sums]]:
        """The leaves that some of our own passes did not reach, each with the sums of the others."""
        for leaf, tree, _ in self._leaves.values():
            if tree.parts:
                sums = {span: tree.total(span) for span in self._spans}
                yield leaf, {span: found for span, found in sums.items() if found}

    def deliver(self) -> None:
        """Add the sums to ``.grad``, as one ordinary backward does: hooks of leaves run here, once, on the sum."""
        totals = ((leaf, tree.total()) for leaf, tree, _ in self._leaves.values())
        arrive([[*total, leaf] for leaf, total in totals if total])
