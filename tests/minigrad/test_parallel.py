"""Threads that share a piece of work: order, contexts, exceptions, no thread left; sums that do not depend on time."""

import threading
import time
from contextvars import copy_context
from functools import partial

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, parallel
from minigrad.tensor.gradients import backward

from tests.minigrad.ops.row import leaf


@pytest.fixture(autouse=True)
def no_thread_is_left():
    before = threading.enumerate()
    yield
    assert threading.enumerate() == before


def test_results_come_in_the_order_of_the_tasks():
    """Three at the same time, of which the last is ready first."""
    meeting = threading.Barrier(3, timeout=20)

    def task(number):
        meeting.wait()
        time.sleep(0.01 * (3 - number))
        return number, threading.get_ident()

    with parallel.threads(3):
        numbers, threads = zip(*parallel.run([partial(task, number) for number in range(3)]), strict=True)
    assert (numbers, len(set(threads))) == ((0, 1, 2), 3)
    with parallel.threads(2):
        assert parallel.run([lambda k=k: k * k for k in range(7)]) == [k * k for k in range(7)]
        assert parallel.run([]) == []
        with parallel.threads(1):
            assert parallel.run([threading.get_ident] * 2) == [threading.get_ident()] * 2
        assert parallel.thread_count() == 2


def test_who_outlives_the_block_works_alone_and_a_part_is_not_divided_further():
    """The first in a copy of the context, as that of a task or a thread. Parts would wait for each other."""
    with parallel.threads(2):
        inside = copy_context()
        assert inside.run(parallel.thread_count) == 2
        inner = parallel.run([lambda: parallel.run([parallel.thread_count] * 2)] * 2)
    assert inner == [[1, 1], [1, 1]]
    assert inside.run(parallel.thread_count) == 1
    assert inside.run(parallel.run, [threading.get_ident] * 3) == [threading.get_ident()] * 3


def test_switches_of_the_caller_hold_inside_and_changes_inside_do_not_leave():
    def look():
        seen = mg.is_grad_enabled(), mg.random.get_state()["seed"]
        mg.no_grad().__enter__()
        return seen

    with parallel.threads(2), mg.random.fork(7):
        with mg.no_grad():
            assert parallel.run([look] * 3) == [(False, 7)] * 3
        assert parallel.run([look] * 3) == [(True, 7)] * 3
        assert mg.is_grad_enabled()


def test_the_first_exception_in_order_is_raised_when_all_have_ended():
    """After a failure nothing begins."""
    ended = []

    def failing(number):
        time.sleep(0.02 / number)
        ended.append(number)
        raise KeyError(number)

    def run(threads, *tasks):
        with parallel.threads(threads), pytest.raises(KeyError) as caught:
            parallel.run(tasks)
        return caught.value.args[0], sorted(ended)

    one, two, three, four = (partial(failing, number) for number in (1, 2, 3, 4))
    assert run(3, lambda: None, one, two) == (1, [1, 2])
    assert run(1, three, four) == (3, [1, 2, 3])
    number, numbers = run(3, four, *[lambda: ended.append(time.sleep(0.01) or 0)] * 100)
    assert number == 4
    assert len(numbers) < 50


# ----------------------------------------------------------------- gradients that are handed over


def test_a_leaf_is_handed_over_once_when_all_has_arrived():
    """The last layer's weight long before the first's; a tied one when its second use was gone through."""
    first, tied, last = (leaf(np.full((2, 2), value)) for value in (0.5, 2.0, 3.0))
    hidden = np.ones((2, 2)) @ tied @ first
    events = []
    hidden.register_hook(lambda g: events.append(hidden))
    backward((hidden @ tied @ last).sum(), receive=lambda leaf, gradient, owned: events.append(leaf))
    assert [id(event) for event in events] == [id(event) for event in (last, hidden, first, tied)]
    assert tied.grad is None


def test_hooks_see_the_sum_once_and_grad_is_added_to():
    """Of passes of which the second does not reach the leaf."""
    x, y = leaf([1.0, 2.0]), leaf([1.0, 2.0])
    x.grad = Tensor(np.full(2, 10.0))
    seen = []
    x.register_hook(lambda g: seen.append(g.tolist()) or g * 2)
    total = parallel.GradientSum(3)
    for number, reached in enumerate((x, y, x)):
        backward((reached * 3.0).sum(), receive=total.receiver(number))
    assert (seen, x.grad.tolist()) == ([], [10.0, 10.0])
    total.deliver()
    assert (seen, x.grad.tolist()) == ([[6.0, 6.0]], [22.0, 22.0])
