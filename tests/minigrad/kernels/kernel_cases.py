"""The functions that have a compiled twin, each with its operands."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from minigrad import Tensor
from minigrad import functional as F
from minigrad.functional.attention import attention, attention_of_heads
from minigrad.functional.gelu import gelu_tanh
from minigrad.functional.loss import row_losses
from minigrad.functional.more.linear_cross_entropy import linear_losses
from minigrad.ops import relu


class Case(NamedTuple):
    """A call of `function` on leaves of `shapes`, which records one node of `primitive`, then of others."""

    name: str
    primitive: Any
    function: Callable[..., Tensor]
    shapes: tuple[tuple[int, ...], ...]


def booleans(*shape, kept=0.7):
    return np.random.default_rng([len(shape), *shape]).random(shape) < kept


def attend(heads, mask=None, dropped=None):
    return lambda q, k, v: F.multi_head_attention(q, k, v, heads, mask, 0.0 if dropped is None else 0.3,
                                                  dropped=dropped)


def attend_split(mask=None, dropped=None):
    return lambda q, k, v: F.scaled_dot_product_attention(q, k, v, mask, 0.0 if dropped is None else 0.3,
                                                          dropped=dropped)


TALL = np.array((3, 0, -100, 2, 1, 1))
ATTENTION = ((2, 5, 6), (2, 7, 6), (2, 7, 8))  # 2 heads; 5 queries, 7 keys
SPLIT = ((2, 3, 5, 4), (2, 3, 7, 4), (2, 3, 7, 6))
MASKS = {
    "no mask": None,
    "padding": booleans(2, 1, 1, 7),
    "one mask for all": booleans(5, 7),
    "a mask for each head": booleans(1, 2, 5, 7),
    "queries that may attend to nothing": booleans(2, 1, 5, 1),
    "nothing allowed": np.zeros((1, 7), bool),
    "keys alone": booleans(7),
}
CASES = [
    *[Case(f"{function.__name__} {shape}", function, function, (shape,))
      for function in (F.softmax, F.log_softmax) for shape in ((5, 33), (9,))],
    Case("softmax, last axis by number", F.softmax, lambda x: F.softmax(x, axis=2), ((2, 3, 19),)),
    *[Case(f"layer_norm {shape}", F.layer_norm, F.layer_norm, (shape, shape[-1:], shape[-1:]))
      for shape in ((5, 33), (9,))],
    Case("relu", relu, F.relu, ((5, 33),)),
    Case("gelu", gelu_tanh, lambda x: F.gelu(x, "tanh"), ((5, 33),)),
    Case("dropout", F.dropout_with_mask, lambda x: F.dropout_with_mask(x, booleans(5, 33), 0.3), ((5, 33),)),
    Case("losses", row_losses, lambda x: F.cross_entropy(x, TALL, reduction="none"), ((6, 37),)),
    Case("losses, smooth", row_losses, lambda x: F.cross_entropy(x, TALL, reduction="none", label_smoothing=0.2),
         ((6, 37),)),
    Case("linear losses", linear_losses, lambda x, w: F.linear_cross_entropy(x, w, TALL), ((6, 5), (37, 5))),
    Case("linear losses, smooth, with a bias", linear_losses,
         lambda x, w, b: F.linear_cross_entropy(x, w, TALL, b, reduction="sum", label_smoothing=0.2),
         ((6, 5), (37, 5), (37,))),
    *[Case(f"attention, {name}", attention_of_heads, attend(2, mask), ATTENTION) for name, mask in MASKS.items()],
    Case("attention with dropout", attention_of_heads, attend(2, MASKS["padding"], booleans(2, 2, 5, 7)), ATTENTION),
    Case("attention of split heads", attention, attend_split(), SPLIT),
    Case("attention of split heads with dropout", attention, attend_split(booleans(5, 7), booleans(2, 3, 5, 7)), SPLIT),
    Case("attention of heads that lie the other way round", attention,
         lambda *xs: F.scaled_dot_product_attention(*(x.swapaxes(0, 1) for x in xs)), ((3, 2, 5, 4),) * 3),
    Case("attention to one key", attention_of_heads, attend(1), ((1, 3, 2), (1, 1, 2), (1, 1, 2))),
    Case("attention over more than a block", attention_of_heads, attend(1, np.tri(70, dtype=bool)),
         ((1, 70, 3),) * 3),
]
NAMES = [case.name for case in CASES]


def operands(case, dtype):
    """Leaves for a case, always the same ones."""
    numbers = np.random.default_rng(0)
    return [Tensor(numbers.standard_normal(shape).astype(dtype), requires_grad=True) for shape in case.shapes]
