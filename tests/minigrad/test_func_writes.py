"""A function that changes its argument in place has no derivative here: an error, and the tensor stays as it was."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, func, nn, optim

from tests.minigrad.functions import close, normal
from tests.minigrad.ops.row import host


def set_item(x):
    x[0] = 3.0


def write_in_a_thread(x):
    with ThreadPoolExecutor(1) as pool:
        pool.submit(set_item, x).result()


def assign_data(x):
    x.data = mg.zeros_like(x.detach())


def step(x):
    (x * x).sum().backward()
    optim.SGD([x], lr=0.1).step()


CHANGES = [set_item, write_in_a_thread, assign_data, step, nn.init.zeros_,
           lambda x: x.detach().reshape(-1, 1)[:2].copy_(3.0)]
TRANSFORMS = {
    "grad": lambda f, x: func.grad(f)(x),
    "vjp": func.vjp,
    "jvp": lambda f, x: func.jvp(f, (x,), (x,)),
    "jacobian": lambda f, x: func.jacobian(f)(x),
    "hessian": lambda f, x: func.hessian(f)(x),
    "hvp": lambda f, x: func.hvp(f, x, x),
}


def squares_after(change):
    def function(x):
        change(x)
        return (x * x).sum()
    return function


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_it_is_refused_and_the_callers_tensor_is_as_it_was(change, transform, device):
    x = normal(3, device=device)
    before = host(x).copy()
    with pytest.raises((RuntimeError, ValueError), match=r"in place|result of an? .*operation"):
        TRANSFORMS[transform](squares_after(change), x)
    assert np.array_equal(host(x), before)


def test_what_is_not_differentiated_may_be_changed():
    """Other positional arguments, keyword arguments, dictionaries, and what the function has made itself."""
    x, log, other = Tensor(np.full(3, 2.0)), Tensor(np.zeros(3)), Tensor(np.zeros(3))

    def function(params, seen, also=None):
        x = params.pop("x")
        made = mg.zeros(3, dtype=np.float64)
        made[0] = 4.0
        seen.copy_(x.detach())
        also[1] = 1.0
        return (x * made).sum()

    close(func.grad(function)({"x": x}, log, also=other)["x"], [4.0, 0.0, 0.0])
    close(log, host(x))
    close(other, [0.0, 1.0, 0.0])


def test_a_checkpoint_that_would_change_its_argument_twice():
    """Each of the two runs would double it."""
    x = Tensor(np.ones(3), requires_grad=True)
    with pytest.raises(RuntimeError, match=r"checkpoint: .*in place"):
        func.checkpoint(lambda x: (x.copy_(x.detach() * 2.0) * x).sum(), x).backward()
