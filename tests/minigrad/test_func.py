"""Derivatives of functions: against finite differences and each other, nested, to third order."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, func, optim
from minigrad.func.trees import tree_leaves, tree_like, tree_map

from tests.minigrad.ops.row import function as expression
from tests.minigrad.ops.row import host, table


def normal(*shape, seed=0, device="cpu"):
    return Tensor(np.random.default_rng([seed, *shape]).normal(size=shape), device=device)


A = np.random.default_rng(3).normal(size=(4, 3))


def curve(x):
    """From (3,) to (4,): A tanh x."""
    return Tensor(A, device=x.device) @ mg.tanh(x)


def close(found, expected, **tolerance):
    np.testing.assert_allclose(host(found), expected, **(tolerance or {"rtol": 1e-12, "atol": 1e-14}))


# --- A table of functions, and what holds for each ---------------------------------------------------

TABLE = table("""
    curve(x)                            [normal(3)]
    x ** 2 * y                          normal(3), normal(3, seed=1)
    mg.tanh(x)                          normal(3), normal(2)
    x.detach() * 0 + 1                  [normal(2)]
    x[:0]                               [normal(3)]
    x ** 4                              [normal()]
    mg.func.checkpoint(lambda x: curve(x) * y.sum(), x)     normal(3), normal(2)
    {"b": x["w"] + x["rest"][0], "a": (mg.exp(x["rest"][1][0] * y),)}   NESTED, normal(2)
""", {"normal": normal, "NESTED": {"w": normal(2, 3), "rest": [normal(3), (normal(),)]}})
EPS = 1e-5
THREAD = ThreadPoolExecutor(1)


def flat(tree):
    return np.concatenate([host(leaf).ravel() for leaf in tree_leaves(tree)])


def like(tree, vector):
    """A tree of this form with the numbers of a vector."""
    parts = np.split(vector, np.cumsum([leaf.size for leaf in tree_leaves(tree)])[:-1])
    return tree_like(tree, [Tensor(part.reshape(leaf.shape), device=leaf.device)
                            for part, leaf in zip(parts, tree_leaves(tree), strict=True)])


def differences(function, args):
    """The Jacobian of the flat results by the flat arguments, by central differences."""
    x = flat(args)
    columns = [(flat(function(*like(args, x + step))) - flat(function(*like(args, x - step)))) / (2 * EPS)
               for step in EPS * np.eye(x.size)]
    return np.array(columns).reshape(x.size, -1).T


def agree(found, expected, tolerance=1e-12):
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def same_form(one, other):
    one, other = (str(tree_map(lambda x: (x.shape, x.device, x.requires_grad), tree)) for tree in (one, other))
    return one == other


@pytest.fixture(params=TABLE, ids=lambda row: row[0])
def case(request, device):
    """A function, its arguments and a direction of their form."""
    call, args = request.param
    args = tree_map(lambda leaf: leaf.to(device), tuple(args))
    function = expression(call, {"mg": mg, "curve": curve})
    return function, args, like(args, np.random.default_rng(1).normal(size=flat(args).size))


def test_products_with_the_jacobian(case):
    function, args, direction = case
    value, pull_back = func.vjp(function, *args)
    again, pushed = func.jvp(function, args, list(direction))
    agree(flat(again), flat(value))
    agree(flat(value), flat(function(*args)))
    assert same_form(pushed, value)
    agree(flat(pushed), differences(function, args) @ flat(direction), 1e-7)
    u = like(value, np.random.default_rng(2).normal(size=flat(value).size))
    for _ in range(2):
        pulled = pull_back(u) if len(args) > 1 else (pull_back(u),)
        assert same_form(pulled, args)
        agree(flat(pulled) @ flat(direction), flat(u) @ flat(pushed))
    if isinstance(value, Tensor):
        full = func.jacobian(function, range(len(args)))(*args)
        assert [by_x.shape for by_x in full] == [(*value.shape, *x.shape) for x in args]
        agree(sum(host(by_x).reshape(value.size, x.size) @ flat(x) for by_x, x in zip(full, direction, strict=True)),
              flat(pushed))


def test_gradients_and_products_with_the_hessian(case):
    function, args, direction = case
    both = range(len(args))

    def energy(*args):
        return sum((leaf ** 3).sum() for leaf in tree_leaves(function(*args)))

    value, gradient = func.value_and_grad(energy, both)(*args)
    agree(host(value), host(energy(*args)))
    assert same_form(gradient, args)
    agree(flat(gradient), differences(energy, args)[0], 1e-7)
    agree(flat(func.grad(energy, -1)(*args)), flat(gradient[-1]))
    curved = func.hvp(energy, args, direction)
    assert same_form(curved, args)
    agree(flat(curved), differences(func.grad(energy, both), args) @ flat(direction), 1e-6)
    agree(flat(func.jvp(func.grad(energy, both), args, direction)[1]), flat(curved))
    if len(args) == 1:
        full = func.hessian(energy)(*args)
        assert full.shape == args[0].shape * 2
        agree(host(full).reshape(args[0].size, -1) @ flat(direction), flat(func.hvp(energy, args[0], direction[0])))


# --- Transforms in transforms ------------------------------------------------------------------------


def test_a_transform_inside_a_checkpoint_inside_a_transform():
    """The inner one runs again in the backward of the outer: f(x) = 4 x⁴, whose gradient is 16 x³."""
    t = Tensor([1.0, 2.0], dtype=np.float64)

    def f(x):
        return func.checkpoint(lambda x: (func.grad(lambda z: (z ** 4).sum())(x) * x).sum(), x)

    expected = [16.0, 128.0]
    for found in (func.grad(f)(t), func.vjp(f, t)[1](), func.jacobian(f)(t)):
        close(found, expected)
    close(func.hvp(f, t, t), 48 * host(t) ** 3)
    inner = func.grad(lambda z: (z ** 4).sum())
    close(func.grad(lambda x: (THREAD.submit(inner, x).result() * x).sum())(t), expected)


# --- A function that changes its argument in place has no derivative here


def set_item(x):
    x[0] = 3.0


def step(x):
    (x * x).sum().backward()
    optim.SGD([x], lr=0.1).step()


CHANGES = [set_item, lambda x: THREAD.submit(set_item, x).result(), lambda x: setattr(x, "data", np.zeros(3)), step,
           lambda x: x.detach().reshape(-1, 1)[:2].copy_(3.0)]
TRANSFORMS = ["grad(f)(x)", "vjp(f, x)", "jvp(f, (x,), (x,))", "jacobian(f)(x)", "hessian(f)(x)", "hvp(f, x, x)"]


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
        eval(transform, {**vars(func), "f": squares_after(change), "x": x})  # noqa: S307 - of our own writing
    assert np.array_equal(host(x), before)


def test_a_checkpoint_that_would_change_its_argument_twice():
    """Each of the two runs would double it."""
    x = Tensor(np.ones(3), requires_grad=True)
    with pytest.raises(RuntimeError, match=r"checkpoint: .*in place"):
        func.checkpoint(lambda x: (x.copy_(x.detach() * 2.0) * x).sum(), x).backward()
