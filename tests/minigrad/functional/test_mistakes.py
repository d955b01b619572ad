"""What the functionals refuse: the kind of the error, and that it names the function and what is wrong with what."""

import math
import re

import numpy as np
import pytest

from minigrad import Tensor
from minigrad import functional as F


def ones(*shape):
    return Tensor(np.ones(shape), requires_grad=True)


def attend(*shapes, mask=None, **options):
    return F.scaled_dot_product_attention(*[ones(*shape) for shape in shapes], mask, **options)


def heads(*shapes, num_heads=2, **options):
    return F.multi_head_attention(*[ones(*shape) for shape in shapes], num_heads, **options)


X, QKV, SIDE_BY_SIDE = ones(2, 3), ((2, 3, 5), (2, 4, 5), (2, 4, 3)), [(2, 3, 6)] * 3
ATTENTION, HEADS = "scaled_dot_product_attention", "multi_head_attention"

MISTAKES = [  # the function, the kind, what is said of it, and the call
    ("softmax", IndexError, "axis 2", lambda: F.softmax(X, axis=2)),
    ("gelu", ValueError, "'sigmoid'", lambda: F.gelu(X, approximate="sigmoid")),
    ("layer_norm", ValueError, r"weight\.shape", lambda: F.layer_norm(X, ones(2))),
    ("layer_norm", ValueError, r"bias\.shape", lambda: F.layer_norm(X, None, ones(2, 3))),
    ("rms_norm", ValueError, r"weight\.shape", lambda: F.rms_norm(X, ones(2))),
    *[("dropout", ValueError, "probability", lambda p=p: F.dropout(X, p, training=False)) for p in (-0.1, 1, math.nan)],
    ("dropout_with_mask", TypeError, "boolean.*float64", lambda: F.dropout_with_mask(X.detach(), X.detach(), 0.5)),
    ("dropout_with_mask", ValueError, r"\[0, 1\)", lambda: F.dropout_with_mask(X.detach(), X.detach() > 0, 1)),
    ("dropout_with_mask", TypeError, r"tensors or arrays .*\[True\]", lambda: F.dropout_with_mask(X, [True], 0.5)),
    ("layer_norm", TypeError, "'x'|str", lambda: F.layer_norm(X, None, None, "x")),
    *[("rms_norm", kind, "eps must", lambda bad=bad: F.rms_norm(X, None, bad))
      for bad, kind in (("1", TypeError), (math.nan, ValueError))],
    ("cross_entropy", TypeError, "integer", lambda: F.cross_entropy(X, [0, 1], ignore_index=0.5)),
    # look-ups and linear maps
    ("embedding", TypeError, "float", lambda: F.embedding([0.0, 1.0], X)),
    ("embedding", ValueError, "matrix", lambda: F.embedding([0, 1], X[0])),
    ("embedding", ValueError, "padding_idx 2", lambda: F.embedding([0], X, 2)),
    ("embedding", ValueError, "padding_idx -3", lambda: F.embedding([0], X, -3)),
    ("one_hot", TypeError, "float", lambda: F.one_hot([0.0])),
    ("one_hot", IndexError, "id 3", lambda: F.one_hot([0, 3], 3)),
    ("one_hot", ValueError, "0", lambda: F.one_hot([0], 0)),
    ("one_hot", ValueError, "no ids", lambda: F.one_hot(np.zeros(0, int))),
    ("linear", ValueError, r"input\.shape.*\(2, 3\) and \(5, 4\)", lambda: F.linear(X, ones(5, 4))),
    ("linear", ValueError, r"weight\.shape.*\(3,\)", lambda: F.linear(X, ones(3))),
    ("linear", ValueError, r"bias\.shape.*\(1,\)", lambda: F.linear(X, ones(5, 3), ones(1))),
    # losses
    ("mse_loss", ValueError, "target.shape", lambda: F.mse_loss(X, np.ones((2, 1)))),
    *[(loss.__name__, ValueError, "reduction .*'average'", lambda loss=loss: loss(X, [0, 1], reduction="average"))
      for loss in (F.mse_loss, F.cross_entropy, F.nll_loss)],
    ("cross_entropy", TypeError, "bool", lambda: F.cross_entropy(X, [True, False])),
    ("cross_entropy", ValueError, r"target\.shape.*\(2, 1\)", lambda: F.cross_entropy(X, [[0], [1]])),
    *[("cross_entropy", ValueError, "label_smoothing", lambda bad=bad: F.cross_entropy(X, [0, 1], label_smoothing=bad))
      for bad in (math.nan, 1.5, -0.1)],
    ("cross_entropy", IndexError, "id -1", lambda: F.cross_entropy(X, [0, -1])),
    ("nll_loss", IndexError, "id 3", lambda: F.nll_loss(X, [0, 3])),
    # attention
    *[(ATTENTION, TypeError, "boolean .* True where a query may attend", lambda mask=mask: attend(*QKV, mask=mask))
      for mask in (np.ones((3, 4)), Tensor(np.zeros((3, 4), int)), [[True] * 4] * 3)],
    (f"{ATTENTION} (dropped)", TypeError, "boolean", lambda: attend(*QKV, dropped=np.ones((3, 4)))),
    *[(ATTENTION, ValueError, r"mask .*\(2, 3, 4\)", lambda shape=shape: attend(*QKV, mask=np.ones(shape, bool)))
      for shape in ((4, 3), (2, 1, 3, 4))],
    *[(ATTENTION, ValueError, said, lambda shapes=shapes: attend(*shapes)) for shapes, said in (
        (((3, 5), (4, 6), (4, 2)), "query"), (((3, 5), (4, 5), (3, 2)), "query"), (((5,), (4, 5), (4, 2)), "query"),
        (((2, 3, 5), (3, 4, 5), (2, 4, 5)), "leading axes"))],
    *[(ATTENTION, ValueError, said, lambda shapes=shapes: attend(*shapes, enable_gqa=True)) for shapes, said in (
        (((2, 6, 3, 5), (2, 4, 4, 5), (2, 4, 4, 5)), "6 heads .* 4 heads"),
        (((2, 6, 3, 5), (2, 2, 4, 5), (2, 3, 4, 5)), "key has 2 heads and value 3"),
        (((3, 5), (4, 5), (4, 5)), "axis of heads"))],
    *[(ATTENTION, TypeError, "attn_bias must be .*attn_mask", lambda bias=bias: attend(*QKV, attn_bias=bias))
      for bias in (np.ones((3, 4), bool), Tensor(np.zeros((3, 4), int)), [[0.5] * 4] * 3)],
    *[(ATTENTION, ValueError, r"attn_bias .*\(2, 3, 4\)", lambda shape=shape: attend(*QKV, attn_bias=ones(*shape)))
      for shape in ((4, 3), (2, 1, 3, 4))],
    (HEADS, ValueError, r"attn_bias .*\(2, 2, 3, 3\)", lambda: heads(*SIDE_BY_SIDE, attn_bias=ones(2, 3, 3, 1))),
    (HEADS, TypeError, "attn_bias", lambda: heads(*SIDE_BY_SIDE, attn_bias=np.ones((3, 3), bool))),
    (ATTENTION, ValueError, "probability", lambda: attend(*QKV, dropout_p=1.0)),
    (HEADS, ValueError, "probability", lambda: heads(*SIDE_BY_SIDE, dropout_p=1.0)),
    (HEADS, ValueError, "num_heads", lambda: heads(*SIDE_BY_SIDE, num_heads=0)),
    (HEADS, ValueError, "multiples", lambda: heads(*SIDE_BY_SIDE, num_heads=4)),
    *[(HEADS, ValueError, "query", lambda shapes=shapes: heads(*shapes)) for shapes in (
        ((3, 6), (3, 6), (3, 6)), ((2, 3, 6), (2, 3, 6), (2, 3, 5)), ((2, 3, 6), (2, 3, 4), (2, 3, 6)),
        ((2, 3, 6), (2, 4, 6), (2, 3, 6)))],
]


@pytest.mark.parametrize(("function", "error", "said", "call"), MISTAKES)
def test_mistakes_are_named(function, error, said, call, form):
    with pytest.raises(error, match=rf"^{re.escape(function)}: .*{said}"):
        call()
