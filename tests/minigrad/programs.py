"""Random programs of smooth operations: how one is drawn, run, and written as code that can be pasted and read.

A program is a list of lines such as ``v5 = softmax(v2, axis=-1)``. It grows by one line at a time, and each line is run
as it is drawn: so the shapes are known that decide what may come next, and a value that has grown large is squashed
by ``tanh``, which keeps everything in the range where finite differences are accurate.
"""

import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from minigrad import Tensor, functional, ops

LARGE = 3.0  # a value beyond it is squashed
LEAVES = [(2, 3), (3,), (3, 2), (), (2, 1, 3), (3, 3), (1, 3), (2, 2, 2), (1,)]  # their shapes
MOST = 64  # the elements that a value may have


def cosines(x):
    """Constants of the shape, dtype and device of x, all different."""
    return Tensor(np.cos(1.0 + np.arange(x.size)).reshape(x.shape), dtype=x.dtype, device=x.device)


def weigh(x):
    """A number that every element of x has its own weight in."""
    return (x * cosines(x)).sum()


def names():
    """What a program may call: all functionals and operations, which win over them, and the two functions above."""
    public = [(functional, name) for name in functional.__all__] + [(ops, name) for name in ops.__all__]
    return {name: getattr(module, name) for module, name in public} | {"cosines": cosines, "weigh": weigh}


def make_leaves(seed, *shapes):
    """Normal arrays, each from its own seed."""
    return [np.asarray(np.random.default_rng([seed, i]).normal(size=shape)) for i, shape in enumerate(shapes)]


@dataclass(frozen=True)
class Program:
    """Leaves, and lines of code; the value is the sum of what `weigh` makes of every value that no line uses."""

    seed: int
    shapes: tuple[tuple[int, ...], ...]  # of the leaves
    lines: tuple[str, ...]
    results: tuple[str, ...]
    templates: tuple[str, ...]  # what the lines were made from

    @property
    def leaves(self) -> list[np.ndarray[Any, Any]]:
        return make_leaves(self.seed, *self.shapes)

    @property
    def source(self) -> str:
        parameters = ", ".join(f"x{i}" for i in range(len(self.shapes)))
        total = " + ".join(f"weigh({name})" for name in self.results)
        made = ", ".join(map(str, (self.seed, *self.shapes)))
        return "\n    ".join([f"def program({parameters}):  # make_leaves({made})", *self.lines, f"return {total}"])

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:  # how Hypothesis shows it
        printer.text(f"the following\n\n{self.source}\n")

    def compile(self, **replaced: Any) -> Any:
        """The function, in which other functions may be called by the names of some operations."""
        namespace = names() | replaced
        exec(compile(self.source, "<program>", "exec"), namespace)
        return namespace["program"]


# --------------------------------------------------------------------------- what a line may be
# A template names its operands a and b, axes i and j, and constants that depend on the operands' shapes.

def lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().splitlines()]


UNARY = lines("""
    tanh(a)
    sigmoid(a)
    exp(-a * a)
    (2 + cos(a)) ** 1.5
    a ** 2
    a ** 3 / 4
    a / (1 + a * a)
    a * 1.5 + 0.5
    gelu(a)
    a * sigmoid(a)
""")
# b broadcasts against a
BINARY = lines("""
    a + b
    a * b
    a * tanh(b)
    a / (1 + b * b)
    (1 + sigmoid(a)) ** b
    where(cosines(a) > 0, a, b)
    (a - b) * (a + b)
""")
# a has axes i and j, which may be the same
REDUCING = lines("""
    a.sum(i)
    a.sum(i, keepdims=True)
    a.mean(i)
    a.mean(keepdims=True)
    a.var(i)
    a.logsumexp(i)
    a.cumsum(i)
    a - a.mean(i, keepdims=True)
    softmax(a, axis=i)
    a.swapaxes(i, j)
    a.transpose()
    a.reshape(-1)
    stack([a, a * a], axis=i)
    concatenate([a, sin(a)], axis=i)
    take(a, [0, -1, 0], axis=i)
    gather(a, i, (0 * cosines(a)).astype(int))
    a[..., -1]
    a[..., ::-1]
    a[[0, -1, 0]]
    a[None, :1]
    pad(a, [(1, 0)] * a.ndim)
    broadcast_to(a, (2, *a.shape))
    masked_fill(a, cosines(a) > 0.5, 0.25)
    layer_norm(a, eps=0.3)
    std(a + 9 * cosines(a), i)
    norm(1 + a * a, axis=i)
    repeat(a, 2, i)
    sort(a, axis=i)
""")
# b has the shape of a
PAIRS = lines("""
    concatenate([a, b], axis=i)
    stack([a, b, a], axis=i)
    a @ b.reshape(-1, a.shape[-1]).T
    layer_norm(a, b[(0,) * (a.ndim - 1)], a[(0,) * (a.ndim - 1)], 0.3)
    rms_norm(a, b[(-1,) * (a.ndim - 1)], 0.3)
    linear(a, b.reshape(-1, b.shape[-1]), b.reshape(-1, b.shape[-1])[:, 0])
    cross_entropy((a + b).reshape(-1, a.shape[-1]), [0] * (a.size // a.shape[-1]), label_smoothing=0.1)
    nll_loss(a.reshape(-1, a.shape[-1]), [-1 % a.shape[-1]] * (a.size // a.shape[-1]))
    mse_loss(a, b)
""")
# both have at least two axes, the last two of b as long as those of a
MATRICES = lines("""
    a @ b.mT
    a.mT @ b
    a @ b[(0,) * (b.ndim - 1)]
    triu(a) * 0.5 + b
    scaled_dot_product_attention(a, b, b)
    scaled_dot_product_attention(a, a, b, is_causal=True)
    scaled_dot_product_attention(a, b, sin(b), cosines(a @ b.mT) > -0.4)
    embedding([[0, a.shape[-2] - 1], [0, 0]], (a * b).reshape(-1, a.shape[-1]))
""")


def broadcast(a, b):
    """Whether two shapes broadcast, and not beyond the size of a value."""
    try:
        return math.prod(np.broadcast_shapes(a, b)) <= MOST
    except ValueError:
        return False


FAMILIES = [  # (templates, the axes that a needs, whether the shapes of a and b suit)
    (UNARY, 0, None),
    (BINARY, 0, broadcast),
    (REDUCING, 1, None),
    (REDUCING, 1, None),  # twice, being many
    (PAIRS, 1, lambda a, b: a == b),
    (MATRICES, 2, lambda a, b: a[-2:] == b[-2:] and broadcast(a, b)),
]


# --------------------------------------------------------------------------- drawing one


@st.composite
def programs(draw: Any) -> Program:
    """A program of 5 to 30 lines, on one to three leaves."""
    seed = draw(st.integers(0, 2**32 - 1))
    shapes = draw(st.lists(st.sampled_from(LEAVES), min_size=1, max_size=3))
    values = {f"x{i}": Tensor(leaf) for i, leaf in enumerate(make_leaves(seed, *shapes))}
    lines: list[str] = []
    templates: list[str] = []
    unused = list(values)

    def append(expression: str, template: str) -> None:
        name = f"v{len(lines)}"
        values[name] = eval(expression, names() | values)  # noqa: S307 - the source of a test, put together above
        lines.append(f"{name} = {expression}")
        templates.append(template)
        unused[:] = [other for other in unused if not re.search(rf"\b{other}\b", expression)] + [name]

    wanted = draw(st.integers(5, 30))
    while len(lines) < wanted:
        append(*draw_line(draw, {name: value.shape for name, value in values.items()}))
        newest = f"v{len(lines) - 1}"
        if values[newest].size > MOST:
            append(f"{newest}.mean()", "mean()")
        elif np.abs(values[newest].numpy()).max() > LARGE:
            append(f"tanh({newest})", "tanh(a)")
    return Program(seed, tuple(shapes), tuple(lines), tuple(unused), tuple(templates))


def draw_line(draw: Any, shapes: dict[str, tuple[int, ...]]) -> tuple[str, str]:
    """An expression, and the template that it was made from; Hypothesis shrinks towards the newest operands."""
    newest_first = [name for name in reversed(shapes) if math.prod(shapes[name]) <= MOST]
    deepest = max(len(shapes[name]) for name in newest_first)
    templates, axes, suits = draw(st.sampled_from([family for family in FAMILIES if family[1] <= deepest]))
    a = draw(st.sampled_from([name for name in newest_first if len(shapes[name]) >= axes]))
    b = a if suits is None else draw(st.sampled_from([name for name in newest_first if suits(shapes[a], shapes[name])]))
    ndim = len(shapes[a])
    i, j = (draw(st.integers(-ndim, ndim - 1)) if axes else 0 for _ in range(2))
    template, operands = draw(st.sampled_from(templates)), {"a": a, "b": b, "i": str(i), "j": str(j)}
    return re.sub(r"\b[abij]\b", lambda match: operands[match[0]], template), template
