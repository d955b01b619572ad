"""no_grad, fused, autocast, evaluating, no_init: context managers and decorators, local to a thread and a task."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, autocast, enable_grad, functional, fused, nn, no_grad, tap, tapping
from minigrad.device.local import is_grad_enabled
from minigrad.engine.watch import around
from minigrad.functional.compositions import composing

from tests.minigrad.ops.row import leaf

# A way to make the switch, a way to read it, and its value inside; outside it has the other.
SWITCHES = {"no_grad": (no_grad, is_grad_enabled, False), "fused": (lambda: fused(False), composing, True),
            "autocast": (autocast, lambda: around.get().cast is not None, True),
            "evaluating": (nn.evaluating, lambda: not nn.Dropout().training, True),
            "no_init": (nn.no_init, lambda: bool(nn.Linear(3, 4).weight.numpy().any()), False)}
every_switch = pytest.mark.parametrize(("make", "read", "inside"), SWITCHES.values(), ids=SWITCHES)


@every_switch
def test_it_holds_in_the_block_or_the_decorated_function_alone(make, read, inside):
    @make()
    def countdown(n):
        """Counts down."""
        return [read(), *(countdown(n - 1) if n else [])]

    context = make()
    with make(), context, context:
        assert read() is inside
    assert read() is not inside
    with pytest.raises(KeyError), make():
        raise KeyError
    assert read() is not inside
    assert countdown(2) == [inside] * 3
    assert read() is not inside
    assert countdown.__doc__ == "Counts down."


@every_switch
def test_threads_and_tasks_do_not_see_each_others_switch(make, read, inside):
    """Also where tasks enter one object, one after the other, and leave it in that order too."""
    with ThreadPoolExecutor(1) as pool:
        with make():
            assert pool.submit(read).result() is not inside
            assert pool.submit(copy_context().run, read).result() is inside
        pool.submit(make().__enter__).result()
        assert read() is not inside
    shared = make()

    async def within(before, after):
        await asyncio.sleep(before)
        with shared:
            await asyncio.sleep(after)
            seen = read()
        return seen, read()

    async def main():
        return await asyncio.gather(within(0, 0.02), within(0.01, 0.02))

    assert asyncio.run(main()) == [(inside, not inside)] * 2


def test_no_grad_records_nothing_and_enable_grad_records_again():
    x = leaf([1.0, 2.0])
    with no_grad():
        assert not (x * 2).requires_grad
        Tensor([0.0, 0.0]).copy_(x)
        with enable_grad():
            y = (x * x).sum()
        assert leaf([1.0]).requires_grad  # a leaf is a leaf
        y.backward()
    assert x.grad.tolist() == [2, 4]


# --- tapping


def test_blocks_nest_and_the_innermost_sees_the_taps():
    outer, inner = [], []
    x = leaf(1.0)
    with tapping(lambda name, t: outer.append(name)):  # it returns nothing, and leaves the tensors
        assert tap("a", x) is x
        with pytest.raises(KeyError), tapping(lambda name, t: inner.append(name) or t):
            raise KeyError(tap("b", x))
        tap("c", x)
    assert tap("d", x) is x
    assert (outer, inner) == (["a", "c"], ["b"])
    assert not composing()


def test_neither_another_thread_nor_a_pass_of_its_own_shows_steps_to_a_visitor():
    """A graph that was recorded outside is expanded without telling the visitor, who might change it."""
    x = Tensor(np.array([[1.0, 2.0, 4.0]]), requires_grad=True)
    y = (functional.layer_norm(x) ** 3).sum()
    seen = []
    with tapping(lambda name, t: seen.append(name) or t):
        mg.grad(y, x, create_graph=True)
        thread = threading.Thread(target=lambda: functional.softmax(x))
        thread.start()
        thread.join()
    assert seen == []
