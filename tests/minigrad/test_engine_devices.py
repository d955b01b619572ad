"""The engine on a device: the stand-in for CuPy, with its second device too, or a GPU where there is one."""

import pickle

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, grad

from tests.minigrad.ops.row import function, leaf


def test_grad_and_its_copies_stay_on_the_device(gpu):
    x = leaf([1.0, 2.0], gpu)
    h = x + 1  # its gradient is lent, and copied for the caller
    for t in grad((h * 3).sum(), [x, x, h]):
        assert t.device == gpu
        np.testing.assert_array_equal(t.numpy(), [3, 3])


def test_changes_in_place(gpu):
    x = Tensor(np.zeros((2, 2)), device=gpu)
    x[0] = [1.0, 2.0]
    x[1, 0] = 3.0
    x[1, 1] = Tensor(4.0)  # from the host
    assert x.tolist() == [[1, 2], [3, 4]]
    x[x > 3] = 0.5
    assert x.tolist() == [[1, 2], [3, 0.5]]
    assert x.copy_(np.full((2, 2), 7.0)).tolist() == [[7, 7]] * 2


def test_a_gradient_travels_between_devices(stand_in):
    x = leaf([1.0, 2.0], "cuda:0")
    there = (x.to("cuda:1") * 3).sum() + (x.to("cuda:1") * 4).sum()
    loss = there.to("cuda:0") + (x.to("cuda:0") * x).sum() + (x.to("cpu") * 100).sum().to("cuda:0")
    loss.backward()
    second = grad(grad((x.to("cuda:1") ** 3).sum(), x, create_graph=True).sum(), x)
    assert {loss.device, x.grad.device, second.device} == {"cuda:0"}
    assert (x.grad.tolist(), second.tolist()) == ([109, 111], [6, 12])
    assert x.to("cuda:0") is x


@pytest.mark.parametrize("call", ["x + y", "where(x > 0, y, y)", "concatenate([x, y])", "x.data * y"])
@pytest.mark.parametrize(("one", "other"), [("cpu", "cuda:0"), ("cuda:0", "cpu"), ("cuda:0", "cuda:1")])
def test_operands_on_different_devices_are_named_with_the_remedy(stand_in, call, one, other):
    x, y = leaf([1.0, 2.0], one), leaf([1.0, 2.0], other)
    with pytest.raises(ValueError, match=r"operands on (cpu|cuda:\d) and (cpu|cuda:\d); move one with \.to\(device\)"):
        function(call)(x, y)


def test_ways_out(gpu):
    x = leaf([1.0, 2.0], gpu)
    assert not x.numpy().flags.writeable
    assert float(x.sum()) == 3
    for way_out, said in ((np.asarray, gpu), (pickle.dumps, gpu), (lambda t: mg.from_numpy(t.data), "from_numpy")):
        with pytest.raises(TypeError, match=said):
            way_out(x.detach())
