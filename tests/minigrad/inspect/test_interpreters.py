"""Interpreters of one's own: which operations they reach, in which order, and what they leave as it is."""

import numpy as np

import minigrad as mg
from minigrad import Tensor, autocast
from minigrad.engine.interpreters import REWRITE, Interpreter, interpreting
from minigrad.func import checkpoint


class Replace(Interpreter):
    """Puts one operation in the place of another."""

    phase = REWRITE

    def __init__(self, old, new):
        self.old, self.new = old, new

    def operation(self, op, operands, proceed):
        return self.new(*operands.args) if op is self.old else proceed(operands)


class Names(Interpreter):
    """Watches: the names of what runs, and of the operations whose rules run."""

    def __init__(self):
        self.forward, self.backward = [], []

    def operation(self, op, operands, proceed):
        self.forward.append(op.name)
        return proceed(operands)

    def rules(self, node, g, proceed):
        self.backward.append(node.primitive.name)
        return proceed(g)


def leaf():
    return Tensor([0.5], dtype=np.float64, requires_grad=True)


def test_a_watcher_sees_what_takes_the_place_of_an_operation_whichever_block_is_entered_first():
    for first, second in ((Replace(mg.exp, mg.sin), Names()), (Names(), Replace(mg.exp, mg.sin))):
        names = first if isinstance(first, Names) else second
        with interpreting(first), interpreting(second):
            out = mg.exp(leaf())
            out.backward()
        assert (names.forward, names.backward, out.tolist()) == (["sin"], ["sin"], [np.sin(0.5)])
    with interpreting(Replace(mg.exp, lambda x: mg.exp(x) * 2)):  # it may use what it replaces
        assert mg.exp(leaf()).tolist() == [2 * np.exp(0.5)]


def test_a_checkpoint_is_rewritten_both_times_and_a_derivative_is_not():
    x = leaf()
    with interpreting(Replace(mg.exp, mg.sin)):
        out = checkpoint(mg.exp, x)
    assert out.tolist() == [np.sin(0.5)]
    assert mg.grad(out, x, retain_graph=True).tolist() == [np.cos(0.5)]
    plain = checkpoint(mg.exp, x)
    with interpreting(Replace(mg.exp, mg.sin)):  # the rule of exp multiplies by exp
        assert mg.grad(plain, x, retain_graph=True).tolist() == [np.exp(0.5)]
        (first,) = mg.grad(mg.sigmoid(x), [x], create_graph=True)
    (expected,) = mg.grad(mg.sigmoid(x), [x], create_graph=True)
    assert mg.grad(first, x).tolist() == mg.grad(expected, x).tolist()


def test_a_watcher_may_change_gradients():
    class Doubles(Interpreter):
        """Doubles the gradients of exp."""

        def rules(self, node, g, proceed):
            return [2 * gradient for gradient in proceed(g)] if node.primitive is mg.exp else proceed(g)

    x = leaf()
    with interpreting(Doubles()):
        mg.exp(x).backward()
    assert x.grad.tolist() == [2 * np.exp(0.5)]


def test_every_gradient_of_a_parent_is_seen_and_a_buffer_only_as_a_sum():
    class Sums(Interpreter):
        def __init__(self, buffers):
            self.buffers, self.seen = buffers, []

        def rules(self, node, g, proceed):
            gradients = proceed(g)
            if node.primitive.name == "getitem":
                self.seen += [float(gradient.sum()) for gradient in gradients]
            return gradients

    for buffers, expected in ((True, [1.0, 2.0]), (False, [1.0, 1.0])):
        x, sums = Tensor([1.0, 2.0], requires_grad=True), Sums(buffers)
        with interpreting(sums):
            (x[0] + x[1]).backward()
        assert sums.seen == expected
        assert x.grad.tolist() == [1.0, 1.0]


def test_autocast_is_a_cast_inside_a_rewriter(stand_in):
    x = Tensor(np.eye(2, dtype=np.float32), device="cuda", requires_grad=True)
    with autocast(), interpreting(Replace(mg.exp, lambda x: x @ x)):
        assert mg.exp(x).dtype == np.float16
