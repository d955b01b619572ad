"""Several threads on one piece of work: NumPy and the BLAS release the interpreter's lock while they compute.

``with threads(n):`` starts threads that end with the block; what can be divided (a batch, the blocks of an optimizer)
hands its parts to `run`. Every part works in a copy of the caller's context, so that ``no_grad``, ``fused``, observers
and forks of the random state hold in it. `GradientSum` adds up what several backward passes give.

Nothing here depends on which thread is faster: parts are cut, and results are combined, in an order fixed beforehand.
"""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import Any, TypeVar

import numpy as np

from minigrad.arguments import whole_number
from minigrad.engine.backward import Receive
from minigrad.tensor.gradients import arrive

T = TypeVar("T")


class _ThreadPool:
    """The calling thread and ``size - 1`` others, until `end`.

    A copy of the context that was made inside the block may outlive it, in a task or a thread. After the end, `run`
    uses the calling thread alone there.
    """

    def __init__(self, size: int) -> None:
        self._executor = ThreadPoolExecutor(size - 1, thread_name_prefix="minigrad")
        self._size, self._ended = size, False
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        return 1 if self._ended else self._size

    def begin(self, work: Callable[[], None], tasks: int) -> list[Future[None]]:
        """Let the others `work`, too, as many as there are `tasks` for besides the caller's."""
        with self._lock:
            return [self._executor.submit(work) for _ in range(min(self.size, tasks) - 1)]

    def end(self) -> None:
        """Wait for what has begun, and let nothing begin any more."""
        with self._lock:
            self._ended = True
        self._executor.shutdown()


_current: ContextVar[_ThreadPool | None] = ContextVar("minigrad.parallel", default=None)


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Within the block, let `run` use `count` threads, the calling one and others, which end with the block.

    Local to the current thread or task, and to what runs in a copy of its context. TypeError if `count` is no integer,
    ValueError if it is below 1.
    """
    count = whole_number(count, "the count", "threads")
    pool = _ThreadPool(count) if count > 1 else None
    token = _current.set(pool)
    try:
        yield
    finally:
        if pool is not None:
            pool.end()
        _current.reset(token)


def thread_count() -> int:
    """How many threads `run` uses here; 1 outside of `threads`, after its end, and in what `run` runs."""
    pool = _current.get()
    return 1 if pool is None else pool.size


def run(tasks: Sequence[Callable[[], T]]) -> list[T]:
    """Call every task, each in a copy of the current context, and return what they return, in their order.

    A thread that has ended one takes the next. If one raises, those that have begun are waited for; then the exception
    of the first in order that raised is raised.
    """
    pool, done = _current.get(), dict[int, T]()
    errors, waiting = dict[int, BaseException](), deque((copy_context(), *numbered) for numbered in enumerate(tasks))

    def take() -> None:
        while waiting:
            try:
                context, number, task = waiting.popleft()
            except IndexError:  # another thread was faster
                return
            try:
                done[number] = context.run(_alone, task)
            except BaseException as error:  # noqa: BLE001 - raised below, in the calling thread
                errors[number] = error
                waiting.clear()

    futures = [] if pool is None else pool.begin(take, len(tasks))
    try:
        take()
    finally:
        wait(futures)
    if errors:
        raise errors[min(errors)]
    return [done[number] for number in range(len(tasks))]


def shares(items: Sequence[T], weights: Sequence[float], parts: int) -> list[Sequence[T]]:
    """Cut a row of items into neighbours of about the same total weight: at most `parts`, and none without an item."""
    parts = min(parts, len(items))
    if parts < 2:
        return [items] if parts else []
    ends = np.cumsum(np.asarray(weights, np.float64))
    middles = ends - np.diff(ends, prepend=0.0) / 2
    cuts = [0]
    for number, cut in enumerate(np.searchsorted(middles, ends[-1] * np.arange(1, parts) / parts).tolist(), start=1):
        cuts.append(min(max(cut, cuts[-1] + 1), len(items) - parts + number))
    return [items[start:end] for start, end in itertools.pairwise([*cuts, len(items)])]


def _alone(task: Callable[[], T]) -> T:
    """Run a task without further threads: a part that is divided again would wait for a thread that waits for it."""
    _current.set(None)
    return task()


class GradientSum:
    """The sum of the gradients of several backward passes, which may run at the same time.

    For each leaf the gradient of pass 0 comes first, that of pass 1 is added to it, and so on, whichever pass is
    faster: the sum has the same bits every time. A gradient is added as soon as it is complete and it is its turn, and
    its memory is free again: at no time is there a set of all gradients for each pass.
    """

    def __init__(self) -> None:
        self._leaves: dict[int, _LeafSum] = {}
        self._lock = threading.Lock()

    def receiver(self, number: int) -> Receive:
        """What pass `number`, counted from 0, hands its gradients to: the `receive` of `minigrad.autograd.backward`."""

        def receive(leaf: Any, gradient: Any, owned: bool) -> None:
            with self._lock:
                entry = self._leaves.setdefault(id(leaf), _LeafSum(leaf))
            entry.add(number, gradient, owned)

        return receive

    def deliver(self) -> None:
        """Add the sums to ``.grad``, as one ordinary backward does: hooks of leaves run here, once, on the sum."""
        arrive([entry.total() for entry in self._leaves.values()])


class _LeafSum:
    """The sum for one leaf, and what arrived before its turn."""

    def __init__(self, leaf: Any) -> None:
        self.leaf, self.sum, self.owned = leaf, None, False
        self.next, self.early = 0, dict[int, tuple[Any, bool]]()
        self.lock = threading.Lock()

    def add(self, number: int, gradient: Any, owned: bool) -> None:
        with self.lock:
            self.early[number] = gradient, owned
            while self.next in self.early:
                self._add(*self.early.pop(self.next))
                self.next += 1

    def total(self) -> list[Any]:
        """The entry ``[sum, owned, leaf]``, with what arrived behind passes that did not reach the leaf."""
        for number in sorted(self.early):
            self._add(*self.early.pop(number))
        return [self.sum, self.owned, self.leaf]

    def _add(self, gradient: Any, owned: bool) -> None:
        if self.sum is None:
            self.sum, self.owned = gradient, owned
        elif self.owned:
            self.sum += gradient
        else:
            self.sum, self.owned = self.sum + gradient, True
