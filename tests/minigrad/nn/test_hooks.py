"""Hooks on modules: what they are told, what they may change, and that they leave every gradient as it is."""

import copy
import re
from typing import NamedTuple

import numpy as np
import pytest

from minigrad import Tensor, nn, no_grad

from tests.minigrad.ops.row import function, leaf


class Pair(NamedTuple):
    total: Tensor
    five: Tensor


class Mix(nn.Module):
    """Two inputs, two outputs; the second input may be left unused."""

    def __init__(self, kind=lambda *outputs: outputs):
        super().__init__()
        self.weight, self.kind = nn.Parameter(np.array([2.0, 3.0])), kind

    def forward(self, x, y, use_y=True):
        return self.kind(x * self.weight + (y * y if use_y else 0), x * 5)


def listening(module):
    """The module, with what a backward hook on it is told."""
    told = []
    module.register_full_backward_hook(lambda module, grad_input, grad_output: told.append((grad_input, grad_output)))
    return module, told


def test_before_and_after():
    linear, x, told = nn.Linear(2, 3), Tensor(np.ones((4, 2), np.float32)), []
    with linear.register_forward_pre_hook(lambda *before: told.append(before)):
        linear.register_forward_hook(lambda *after: told.append(after))
        out = linear(x)
    assert told == [(linear, (x,)), (linear, (x,), out)]
    copy.deepcopy(linear)(x)  # has its own hooks, but no longer the first
    assert len(told) == 3
    assert set(linear.state_dict()) == {"weight", "bias"}


def test_hooks_may_replace_inputs_outputs_and_the_gradients_of_inputs():
    module = Mix()
    module.register_forward_pre_hook(lambda module, args: tuple(x - 1 for x in args))
    module.register_forward_pre_hook(lambda module, args: (args[0], args[1] + 1))
    module.register_forward_hook(lambda module, args, output: output[0] + 0.5)
    module.register_full_backward_hook(lambda module, grad_input, grad_output: tuple(g * 2 for g in grad_input))
    x, y = leaf([2.0, 3.0]), leaf([3.0, 4.0])
    out = module(x, y)
    assert out.tolist() == [11.5, 22.5]
    out.sum().backward()
    assert (x.grad.tolist(), y.grad.tolist()) == ([4.0, 6.0], [12.0, 16.0])
    assert module.weight.grad.tolist() == [1.0, 2.0]  # inside the module nothing changed


@pytest.mark.parametrize("kind", [lambda *outputs: outputs, lambda *outputs: [*outputs], Pair],
                         ids=["tuple", "list", "named tuple"])
def test_backward_hook_is_told_both_sides(kind, device):
    mix, told = listening(Mix(kind).to(device))
    x, y = leaf([1.0, 2.0], device=device), leaf([3.0, 4.0], device=device)
    outputs = mix(x, y)
    assert type(outputs) is type(kind(x, y))
    (outputs[0] * 10 + outputs[1]).sum().backward()
    found = [[gradient.tolist() for gradient in side] for sides in told for side in sides]
    assert found == [[[25.0, 35.0], [60.0, 80.0]], [[10.0, 10.0], [1.0, 1.0]]]
    assert [t.grad.tolist() for t in (x, y, mix.weight)] == [*found[0], [10.0, 20.0]]
    with no_grad():
        assert not mix(x, y)[0].requires_grad
    assert len(told) == 1


@pytest.mark.parametrize(("returned", "said"), [("x[::-1]", "[(2,), (1,)], got [(1,), (2,)]"), ("x[:1]", "got [(2,)]"),
                                                ("(x[0], None)", "got [(2,), None]")])
def test_what_a_backward_hook_may_not_return(returned, said):
    mix = Mix()
    mix.register_full_backward_hook(lambda module, grad_input, grad_output: function(returned)(grad_input))
    with pytest.raises(ValueError, match=f"Mix: .* {re.escape(said)}"):
        mix(leaf([1.0, 2.0]), leaf([3.0]))[0].sum().backward()
