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
        assert parallel.thread_count() == 3
        results = parallel.run([partial(task, number) for number in range(3)])
    assert [number for number, _ in results] == [0, 1, 2]
    assert len({thread for _, thread in results}) == 3
    with parallel.threads(2):
        assert parallel.run([lambda k=k: k * k for k in range(7)]) == [k * k for k in range(7)]
        assert parallel.run([]) == []
        with parallel.threads(1):
            assert set(parallel.run([threading.get_ident] * 3)) == {threading.get_ident()}
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
    ended = []

    def failing(number):
        time.sleep(0.02 / number)
        ended.append(number)
        raise KeyError(number)

    with parallel.threads(3):
        with pytest.raises(KeyError, match="1"):
            parallel.run([lambda: None, partial(failing, 1), partial(failing, 2)])
        assert sorted(ended) == [1, 2]
    with pytest.raises(KeyError, match="3"):
        parallel.run([partial(failing, 3), partial(failing, 4)])
    assert sorted(ended) == [1, 2, 3]  # after a failure nothing begins
    with parallel.threads(3):
        with pytest.raises(KeyError, match="5"):
            parallel.run([partial(failing, 5), *[lambda: ended.append(time.sleep(0.01))] * 100])
        assert len(ended) < 50
        assert parallel.run([lambda: 1] * 3) == [1] * 3


# ----------------------------------------------------------------- gradients that are handed over


def test_a_leaf_is_handed_over_once_when_all_has_arrived():
    """The last layer's weight long before the first's; a tied one when its second use was gone through."""
    x = Tensor(np.arange(1.0, 5.0).reshape(2, 2))
    first, tied, last = (Tensor(np.full((2, 2), value), requires_grad=True) for value in (0.5, 2.0, 3.0))
    hidden = (x @ tied) @ first
    loss = ((hidden @ tied) @ last).sum()
    expected = mg.grad(loss, [last, first, tied], retain_graph=True)

    events, gradients = [], []
    hidden.register_hook(lambda g: events.append(hidden))

    def receive(leaf, gradient, owned):
        events.append(leaf)
        gradients.append(gradient)

    backward(loss, receive=receive)
    assert [id(event) for event in events] == [id(event) for event in (last, hidden, first, tied)]
    for gradient, value in zip(gradients, expected, strict=True):
        np.testing.assert_array_equal(gradient, value.numpy())
    assert tied.grad is None


def test_hooks_see_the_sum_once_and_grad_is_added_to():
    """Of passes of which the second does not reach the leaf."""
    x, y = Tensor([1.0, 2.0], requires_grad=True), Tensor([1.0, 2.0], requires_grad=True)
    x.grad = Tensor([10.0, 10.0])
    seen = []
    x.register_hook(lambda g: (seen.append(g.tolist()), g * 2)[1])
    total = parallel.GradientSum(3)
    for number, leaf in enumerate((x, y, x)):
        backward((leaf * 3.0).sum(), receive=total.receiver(number))
    assert seen == []
    assert x.grad.tolist() == [10.0, 10.0]
    total.deliver()
    assert seen == [[6.0, 6.0]]
    assert x.grad.tolist() == [22.0, 22.0]
