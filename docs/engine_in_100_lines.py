"""An automatic differentiation engine in 100 lines of code: minigrad's core, rebuilt in one sitting.

Read it from top to bottom, as a page. It needs NumPy alone, and runs: python docs/engine_in_100_lines.py

At the end a network that has never seen a cosine learns it from the equation u'' = -u, which takes derivatives of
derivatives, of derivatives. (The lines that are counted are those of the engine, sections 1 to 5, without comments.)
"""

import heapq
import inspect
import itertools
from dataclasses import dataclass, field

import numpy as np

# ------------------------------------------------------------------------------------------------------------------
# 1. What there is to remember
#
# Backpropagation needs two things of every operation that was carried out: what went into it, and how to get the
# gradient of what went in from the gradient of what came out. A Node holds them, and the nodes together are the *tape*.
#
# `parents` leads to the nodes of the operands, and `saved` has the few values that the rules will ask for. A node
# without parents is a *leaf*: a tensor that somebody made, and wants the gradient of.
#
# The number is the clever part. Nodes are numbered as they are made, and an operand exists before anything that is
# computed from it; so a parent always has a smaller number than its children. That is all the order that the backward
# pass will need.


@dataclass(eq=False)
class Node:
    shape: tuple
    rules: dict = field(default_factory=dict)
    parents: dict = field(default_factory=dict)
    saved: dict = field(default_factory=dict)
    number: int = field(default_factory=itertools.count().__next__)


# A Tensor is an array, and the node it came from: None for a constant, which nobody differentiates by. The node does
# not know its tensor. So nothing points in a circle, and a graph that nobody holds is freed at once.
#
# The line with __array_ufunc__ tells NumPy to leave `array * tensor` to the tensor.


class Tensor:
    __array_ufunc__ = None

    def __init__(self, data, requires_grad=False, node=None):
        self.data = np.asarray(data, dtype=np.float64)
        self.node = Node(self.data.shape) if requires_grad else node

    @property
    def shape(self):
        return self.data.shape


# ------------------------------------------------------------------------------------------------------------------
# 2. What an operation is
#
# A function on arrays, with a rule for each operand. If out = f(x) and J is the Jacobian of f, the rule takes g, the
# gradient of some scalar by `out`, to the gradient of that scalar by x. That is Jᵀ g, and nobody ever makes J.
#
# A rule says by the *names of its parameters* what it needs: `g`, an operand, its shape (`x_shape`), the output
# (`out`). `lambda g, out: g * (1 - out * out)` is the rule of tanh, and since it does not name x, x is not kept.
#
#     tanh.gradient(x=lambda g, out: g * (1 - out * out))
#
# An operation that is given arrays returns an array. Given tensors it returns a tensor, and leaves a node if one of
# them has a node. Remember this: it looks like a convenience, and it is where the second derivatives come from.


def primitive(forward):
    parameters = list(inspect.signature(forward).parameters)
    rules = {}

    def operation(*operands):
        raw = [x.data if isinstance(x, Tensor) else x for x in operands]
        out = forward(*raw)
        tensors = {name: x for name, x in zip(parameters, operands, strict=True) if isinstance(x, Tensor)}
        if not tensors:
            return out
        parents = {name: x.node for name, x in tensors.items() if x.node is not None}
        if not parents:
            return Tensor(out)
        known = dict(zip(parameters, raw, strict=True), out=out)
        known |= {f"{name}_shape": np.shape(value) for name, value in known.items()}
        needed = {name for parent in parents for name in rules[parent][1]} - {"g"}
        saved = {name: known[name] for name in needed}
        return Tensor(out, node=Node(out.shape, rules, parents, saved))

    def gradient(**given):
        for name, rule in given.items():
            rules[name] = rule, list(inspect.signature(rule).parameters)

    operation.gradient = gradient
    return operation


# ------------------------------------------------------------------------------------------------------------------
# 3. Operations
#
# With the machine in place each of them is a line for the value and a line for the gradient. The rules are textbook
# derivatives: (x y)' = y, tanh' = 1 - tanh², and for the product of two matrices, Z = X Y, dX = G Yᵀ and dY = Xᵀ G.


@primitive
def add(x, y):
    return x + y


@primitive
def mul(x, y):
    return x * y


@primitive
def tanh(x):
    return np.tanh(x)


@primitive
def matmul(x, y):
    return x @ y


@primitive
def transpose(x):
    return x.T


add.gradient(x=lambda g: g, y=lambda g: g)
mul.gradient(x=lambda g, y: g * y, y=lambda g, x: g * x)
tanh.gradient(x=lambda g, out: g * (1 - out * out))
matmul.gradient(x=lambda g, y: g @ y.T, y=lambda g, x: x.T @ g)
transpose.gradient(x=lambda g: g.T)


# Broadcasting copies: a row added to every row of a matrix, a number to every element. If one value went to many
# places, its gradient is the sum of what comes back from all of them. So the transpose of copying is summing, the
# transpose of summing is copying, and the two operations are each other's rule.


@primitive
def broadcast_to(x, shape):
    return np.broadcast_to(x, shape)


@primitive
def sum_to(x, shape):
    x = x.sum(axis=tuple(range(x.ndim - len(shape))))  # the axes that copying put in front
    return x.sum(axis=tuple(i for i, n in enumerate(shape) if n == 1), keepdims=True)  # and those that it stretched


broadcast_to.gradient(x=lambda g, x_shape: sum_to(g, x_shape))
sum_to.gradient(x=lambda g, x_shape: broadcast_to(g, x_shape))


# The rules above are written with operators, so that one rule runs on arrays (where the operators are NumPy's) and on
# tensors (where they are these).

Tensor.__add__ = Tensor.__radd__ = add
Tensor.__mul__ = Tensor.__rmul__ = mul
Tensor.__sub__ = lambda x, y: x + y * -1
Tensor.__rsub__ = lambda x, y: x * -1 + y
Tensor.__matmul__ = matmul
Tensor.__rmatmul__ = lambda x, y: matmul(y, x)
Tensor.T = property(transpose)


# ------------------------------------------------------------------------------------------------------------------
# 4. Backwards
#
# Start at the output, where the gradient is 1. At each node, run the rules, and add what they return to the gradients
# of the parents. Just one thing can go wrong: a node must not be left before every child has sent its share. A heap
# that always hands out the largest number settles it, since every child of a node has a larger number than the node.
# There is no recursion, so a graph may be as deep as it likes.
#
# The rules know nothing of broadcasting: `mul` multiplies a (3, 4) by a (4,), and its rule for the second returns a
# (3, 4). Summing it back happens here, in one line, for every operation there will ever be.
#
# If `output` has many elements, this is the gradient of their sum.


def grad(output, inputs, create_graph=False):
    one = np.ones(output.shape)
    gradients = {output.node: Tensor(one) if create_graph else one}
    heap = [(-output.node.number, output.node)]
    while heap:
        node = heapq.heappop(heap)[1]
        values = rejoined(node) if create_graph else node.saved
        for name, parent in node.parents.items():
            rule, needs = node.rules[name]
            g = rule(*[gradients[node] if need == "g" else values[need] for need in needs])
            if g.shape != parent.shape:
                g = sum_to(g, parent.shape)
            if parent in gradients:
                gradients[parent] = gradients[parent] + g
            else:
                gradients[parent] = g
                heapq.heappush(heap, (-parent.number, parent))
    return [gradients[x.node] for x in inputs]


# ------------------------------------------------------------------------------------------------------------------
# 5. Derivatives of derivatives
#
# The gradient is computed by rules, and rules are made of operations. Run them on arrays, and out come arrays: that
# is the ordinary backward, as fast as NumPy. Run *the same rules* on tensors, and they leave nodes behind, as any
# computation on tensors does. The gradient that comes out can be differentiated again, and no rule was written twice.
#
# One thing is left to do for it. The saved values are arrays, and must take their place in the graph again: an
# operand is joined to its parent, `out` to the node itself. This is why tanh'' comes out right although its rule
# never mentions x: the rule multiplies by 1 - out², `out` leads to the node of tanh, and that leads to x.


def rejoined(node):
    place = {**node.parents, "out": node}
    return {name: Tensor(value, node=place[name]) if name in place else value for name, value in node.saved.items()}


# ------------------------------------------------------------------------------------------------------------------
# 6. Is it right?
#
# A derivative can be measured: nudge the input a little both ways, and see how far the output moves.


def differences(f, x, eps=1e-6):
    slopes = np.zeros_like(x)
    for index in np.ndindex(x.shape):
        nudge = np.zeros_like(x)
        nudge[index] = eps
        slopes[index] = (f(x + nudge) - f(x - nudge)) / (2 * eps)
    return slopes


# An expression in which everything occurs: x three times, a product of matrices, a row that is broadcast, a sum.

rng = np.random.default_rng(0)
x0, w, row, v = rng.normal(size=(4, 3)), rng.normal(size=(3, 5)), rng.normal(size=5), rng.normal(size=(4, 3))


def expression(x):
    return sum_to(tanh(x @ w + row) @ w.T * x - x * x, ())


def slope_along_v(x):
    (dx,) = grad(expression(x), [x], create_graph=True)
    return sum_to(dx * v, ())  # a number that depends on x by way of the gradient


x = Tensor(x0, requires_grad=True)
(first,) = grad(expression(x), [x])
(second,) = grad(slope_along_v(x), [x])  # the Hessian times v, without the Hessian

first_error = np.abs(first - differences(expression, x0)).max()
second_error = np.abs(second - differences(lambda x: slope_along_v(Tensor(x, requires_grad=True)).data, x0)).max()
print(f"largest difference from finite differences: first {first_error:.0e}, second {second_error:.0e}")


# ------------------------------------------------------------------------------------------------------------------
# 7. Is it good for anything?
#
# Here is a network of 16 tanh units, and a function made of it that starts as a cosine does, u(0) = 1 and u'(0) = 0,
# whatever the weights are.

weight = Tensor(rng.normal(size=(1, 16)), requires_grad=True)
bias = Tensor(rng.normal(size=16), requires_grad=True)
mixture = Tensor(rng.normal(size=(16, 1)) / 16, requires_grad=True)
parameters = [weight, bias, mixture]


def u(t):
    return 1 + t * t * (tanh(t @ weight + bias) @ mixture)


# It is never shown a cosine. It is told that u'' = -u should hold at 24 moments, and the loss is how far it does not.
# u'' is two calls of `grad`, each of which leaves a graph behind, and the third call goes through all of it.
# (A moment's u depends on that moment alone, so the gradient of the sum holds u' of each.)

t = Tensor(np.linspace(0, np.pi, 24)[:, None], requires_grad=True)
velocities = [np.zeros(p.shape) for p in parameters]
for step in range(501):
    position = u(t)
    (speed,) = grad(position, [t], create_graph=True)
    (acceleration,) = grad(speed, [t], create_graph=True)
    residual = acceleration + position
    loss = sum_to(residual * residual, ()) * (1 / 24)
    for p, velocity, dp in zip(parameters, velocities, grad(loss, parameters), strict=True):
        velocity *= 0.9  # gradient descent with momentum
        velocity -= 0.003 * dp
        p.data = p.data + velocity
    if step % 100 == 0:
        error = np.abs(u(t).data - np.cos(t.data)).max()
        print(f"step {step:3}: loss {loss.data:.5f}, farthest from the cosine {error:.4f}")


# ------------------------------------------------------------------------------------------------------------------
# Where each part stands in minigrad
#
#     1. Node, Tensor        minigrad/engine/node.py; the Tensor's operators and methods: minigrad/tensor/
#     2. primitive           minigrad/engine/primitive.py: call, run, _record; rules.py: how a rule gets what it names
#     3. the operations      minigrad/ops/: elementwise.py, linalg.py, reduction.py, shape.py
#     4. the backward pass   minigrad/engine/backward.py: backward_pass and gradients_of_parents
#     5. create_graph        minigrad/tensor/gradients.py: grad; engine/backward.py: saved_as_tensors
#
# There they also have what makes an engine good to work with: every dtype, and CuPy arrays beside NumPy's; buffers that
# gradients are added into, and memory that is let go as the backward pass moves on; rules for several operands at once;
# operations that unfold into their composition when a second derivative is asked for; a count of changes in place, so
# that a saved value that changed is an error and not a wrong gradient; and errors that say what to do.
# docs/design.md goes on from here.
