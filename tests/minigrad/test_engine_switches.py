"""no_grad, enable_grad, fused, autocast, evaluating: context managers and decorators, local to a thread and a task."""

import asyncio
import contextvars
import threading

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, autocast, enable_grad, functional, fused, nn, no_grad, tap, tapping
from minigrad.device.local import is_grad_enabled
from minigrad.engine.watch import around
from minigrad.functional.compositions import composing

# A way to make the switch, a way to read it, and its value inside; outside it has the other.
SWITCHES = [(no_grad, is_grad_enabled, False), (lambda: fused(False), composing, True),
            (autocast, lambda: around.get().cast is not None, True),
            (nn.evaluating, lambda: not nn.Dropout().training, True)]


@pytest.fixture(params=SWITCHES, ids=["no_grad", "fused", "autocast", "evaluating"])
def switch(request):
    return request.param


def leaf(*values):
    return Tensor(list(values), requires_grad=True)


def test_as_a_context_manager(switch):
    make, read, inside = switch
    context = make()
    with make(), context, context:
        assert read() is inside
    assert read() is not inside
    with pytest.raises(KeyError), make():
        raise KeyError
    assert read() is not inside


def test_as_a_decorator(switch):
    make, read, inside = switch

    @make()
    def countdown(n):
        """Counts down."""
        return [read(), *(countdown(n - 1) if n else [])]

    assert countdown(2) == [inside] * 3
    assert read() is not inside
    assert countdown.__doc__ == "Counts down."


def test_what_is_suspended_inside_is_refused_as_a_decorated_function(switch):
    def generator():
        yield

    async def coroutine():
        pass

    async def both():
        yield

    for function in (generator, coroutine, both):
        with pytest.raises(TypeError, match=function.__name__):
            switch[0]()(function)


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
    with make():
        bare = threading.Thread(target=lambda: seen.update(bare=read()))
        copied = threading.Thread(target=contextvars.copy_context().run, args=(lambda: seen.update(copied=read()),))
        for t in (bare, copied):
            t.start()
            t.join()
    assert seen == {"main": not inside, "worker": inside, "bare": not inside, "copied": inside}


def test_tasks_do_not_see_each_others_switch(switch):
    """Also where they enter one object, one after the other, and leave it in that order too."""
    make, read, inside = switch
    shared = make()

    async def within(before, after):
        await asyncio.sleep(before)
        with shared:
            await asyncio.sleep(after)
            seen = read()
        return seen, read()

    async def outside():
        await asyncio.sleep(0.015)
        return read()

    async def main():
        return await asyncio.gather(within(0, 0.02), within(0.01, 0.02), outside())

    assert asyncio.run(main()) == [(inside, not inside)] * 2 + [not inside]
    assert read() is not inside


def test_no_grad_records_nothing_and_enable_grad_records_again():
    x = leaf(1.0, 2.0)
    with no_grad():
        assert not (x * 2).requires_grad
        with enable_grad():
            y = (x * x).sum()
        made = Tensor([1.0], requires_grad=True)  # a leaf is a leaf
        y.backward()
    assert made.requires_grad
    assert x.grad.tolist() == [2, 4]


# --- fused(False) and tapping


def test_a_visitor_sees_the_steps_of_compositions_in_order():
    q, k, v = (Tensor(np.random.default_rng(i).normal(size=(2, 3)), requires_grad=True) for i in range(3))
    seen = {}

    def visitor(name, tensor):
        if tensor.requires_grad:
            tensor.retain_grad()
        seen[name] = tensor
        return tensor

    with tapping(visitor):
        out = functional.scaled_dot_product_attention(q, k, v.numpy(), np.tril(np.ones((2, 2), bool)))
    functional.scaled_dot_product_attention(k, k, v)  # outside of the block
    assert list(seen) == ["queries", "keys", "values", "scores", "scaled", "masked", "shifted", "exponentials", "total",
                          "weights", "context"]
    np.testing.assert_array_equal(seen["context"].numpy(), out.numpy())
    out.sum().backward()
    np.testing.assert_allclose(seen["scores"].grad.numpy(), seen["scaled"].grad.numpy() / np.sqrt(3), rtol=1e-14)
    np.testing.assert_array_equal(seen["context"].grad.numpy(), np.ones((2, 3)))


def test_blocks_nest_and_the_innermost_sees_the_taps():
    outer, inner = [], []
    x = leaf(1.0)

    def fails():
        tap("b", x)
        raise KeyError

    with tapping(lambda name, t: outer.append(name)):  # it returns nothing, and leaves the tensors
        assert tap("a", x) is x
        with pytest.raises(KeyError), tapping(lambda name, t: inner.append(name) or t):
            fails()
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
