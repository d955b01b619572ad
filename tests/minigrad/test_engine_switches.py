"""no_grad, enable_grad and fused: context managers and decorators, local to the thread and the task."""

import asyncio
import contextvars
import threading

import numpy as np
import pytest

from minigrad import Tensor, autocast, enable_grad, fused, no_grad
from minigrad.device.local import is_grad_enabled
from minigrad.functional.compositions import composing
from minigrad.precision.autocast import autocasting


def leaf(*values):
    return Tensor(list(values), requires_grad=True)


SWITCHES = [(no_grad, is_grad_enabled, False), (lambda: fused(False), composing, True),
            (autocast, autocasting, True)]


@pytest.fixture(params=SWITCHES, ids=["no_grad", "fused", "autocast"])
def switch(request):
    """A way to make the switch, a way to read it, and its value inside; outside it has the other."""
    return request.param


def test_as_a_context_manager(switch):
    make, read, inside = switch
    with make():
        assert read() is inside
        with make():
            assert read() is inside
        assert read() is inside
    assert read() is not inside


def test_an_exception_puts_the_old_value_back(switch):
    make, read, inside = switch
    with pytest.raises(KeyError), make():
        raise KeyError
    assert read() is not inside


def test_one_context_object_entered_twice(switch):
    make, read, inside = switch
    context = make()
    with context, context:
        assert read() is inside
    assert read() is not inside


def test_as_a_decorator(switch):
    make, read, inside = switch

    @make()
    def countdown(n):
        """Counts down."""
        return [read(), *(countdown(n - 1) if n else [])]

    assert countdown(2) == [inside] * 3
    assert read() is not inside
    assert countdown.__name__ == "countdown"
    assert countdown.__doc__ == "Counts down."


def test_as_a_decorator_of_a_generator_its_caller_never_runs_inside(switch):
    make, read, inside = switch
    closed = []

    @make()
    def generate():
        try:
            received = yield read()
            while True:
                try:
                    received = yield (received, read())
                except KeyError:
                    received = "thrown"
                if received == "stop":
                    return read()
        finally:
            closed.append(read())

    generator = generate()
    assert read() is not inside
    assert next(generator) is inside
    assert read() is not inside
    assert generator.send("sent") == ("sent", inside)
    assert generator.throw(KeyError) == ("thrown", inside)
    assert read() is not inside
    with pytest.raises(StopIteration) as stop:
        generator.send("stop")
    assert stop.value.value is inside

    generator = generate()
    next(generator)
    generator.close()
    assert closed == [inside, inside]
    assert read() is not inside


def test_a_generators_exception_reaches_the_caller(switch):
    make, read, inside = switch

    @make()
    def generate():
        yield 1
        raise LookupError("from inside")

    generator = generate()
    next(generator)
    with pytest.raises(LookupError, match="from inside"):
        next(generator)
    assert read() is not inside


def test_as_a_decorator_of_a_coroutine(switch):
    make, read, inside = switch

    @make()
    async def work():
        before = read()
        await asyncio.sleep(0)
        return before, read()

    async def main():
        task = asyncio.create_task(work())
        await asyncio.sleep(0)  # the task now waits inside the switch
        outside = read()
        return await task, await work(), outside, read()

    assert asyncio.run(main()) == ((inside, inside), (inside, inside), not inside, not inside)


def test_an_asynchronous_generator_cannot_be_decorated(switch):
    make, _, _ = switch
    with pytest.raises(TypeError, match="asynchronous generator"):
        @make()
        async def generate():
            yield 1


def test_threads_do_not_see_each_others_switch(switch):
    make, read, inside = switch
    seen = {}
    entered, checked = threading.Event(), threading.Event()

    def worker():
        with make():
            entered.set()
            checked.wait(10)
            seen["worker"] = read()

    thread = threading.Thread(target=worker)
    thread.start()
    entered.wait(10)
    seen["main"] = read()
    checked.set()
    thread.join()
    assert seen == {"main": not inside, "worker": inside}
    with make():
        thread = threading.Thread(target=lambda: seen.update(bare=read()))
        copied = threading.Thread(target=contextvars.copy_context().run, args=(lambda: seen.update(copied=read()),))
        for t in (thread, copied):
            t.start()
            t.join()
    assert seen["bare"] is not inside
    assert seen["copied"] is inside


def test_tasks_do_not_see_each_others_switch(switch):
    make, read, inside = switch

    async def inner():
        with make():
            await asyncio.sleep(0)
            seen = read()
            await asyncio.sleep(0)
        return seen

    async def outer():
        seen = []
        for _ in range(4):
            seen.append(read())
            await asyncio.sleep(0)
        return seen

    async def main():
        return await asyncio.gather(inner(), outer())

    assert asyncio.run(main()) == [inside, [not inside] * 4]


def test_one_object_serves_several_tasks(switch):
    """They enter it one after the other, and leave it in that order too."""
    make, read, inside = switch
    shared = make()

    async def task(before, after):
        await asyncio.sleep(before)
        with shared:
            await asyncio.sleep(after)
            seen = read()
        return seen, read()

    async def main():
        return await asyncio.gather(task(0, 0.02), task(0.01, 0.02))

    assert asyncio.run(main()) == [(inside, not inside)] * 2
    assert read() is not inside


def test_no_grad_records_nothing_and_enable_grad_records_again():
    x = leaf(1.0, 2.0)
    with no_grad():
        assert not (x * 2).requires_grad
        with enable_grad():
            y = (x * 2).sum()
        assert not (y * 2).requires_grad
        made = Tensor([1.0], requires_grad=True)  # a leaf is a leaf
    y.backward()
    np.testing.assert_array_equal(x.grad.numpy(), [2, 2])
    assert made.requires_grad


def test_backward_works_under_no_grad():
    x = leaf(1.0, 2.0)
    y = (x * x).sum()
    with no_grad():
        y.backward()
    np.testing.assert_array_equal(x.grad.numpy(), [2, 4])


def test_two_graphs_in_two_threads():
    results = {}

    def work(k):
        x = Tensor(np.full(50, k, np.float64), requires_grad=True)
        for _ in range(20):
            y = x
            for _ in range(50):
                y = y + x * x
            y.sum().backward()
        results[k] = x.grad.numpy()

    threads = [threading.Thread(target=work, args=(k,)) for k in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in (1, 2, 3):
        np.testing.assert_array_equal(results[k], 20 * (1 + 50 * 2 * k))


@pytest.mark.parametrize(("make", "read"), [(lambda: fused(False), composing), (autocast, autocasting)])
def test_a_function_decorated_inside_a_block_has_the_switch_outside_of_it(make, read):
    with make():
        decorated = make()(read)
    assert not read()
    assert decorated()
