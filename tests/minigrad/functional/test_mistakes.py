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


def conv1d(x=(2, 4, 5), weight=(6, 4, 3), **options):
    return F.conv1d(ones(*x), ones(*weight), **options)


def heads(*shapes, num_heads=2, **options):
    return F.multi_head_attention(*[ones(*shape) for shape in shapes], num_heads, **options)


X, QKV, SIDE_BY_SIDE = ones(2, 3), ((2, 3, 5), (2, 4, 5), (2, 4, 3)), [(2, 3, 6)] * 3
ATTENTION, HEADS, BCE = "scaled_dot_product_attention", "multi_head_attention", "binary_cross_entropy_with_logits"
PAIRWISE = [F.mse_loss, F.l1_loss, F.huber_loss, F.smooth_l1_loss, F.binary_cross_entropy,
            F.binary_cross_entropy_with_logits, F.kl_div]

MISTAKES = [  # the function, the kind, what is said of it, and the call
    ("softmax", IndexError, "axis 2", lambda: F.softmax(X, axis=2)),
    ("gelu", ValueError, "'sigmoid'", lambda: F.gelu(X, approximate="sigmoid")),
    ("softplus", ValueError, "beta", lambda: F.softplus(X, beta=0)),
    ("celu", ValueError, "alpha", lambda: F.celu(X, alpha=0)),
    ("hardtanh", ValueError, "min_val", lambda: F.hardtanh(X, 1.0, -1.0)),
    ("layer_norm", ValueError, r"weight\.shape", lambda: F.layer_norm(X, ones(2))),
    ("layer_norm", ValueError, r"bias\.shape", lambda: F.layer_norm(X, None, ones(2, 3))),
    ("rms_norm", ValueError, r"weight\.shape", lambda: F.rms_norm(X, ones(2))),
    ("normalize", IndexError, "axis -3", lambda: F.normalize(X, axis=-3)),
    ("cosine_similarity", ValueError, r"\(2, 3\) and \(2, 4\)", lambda: F.cosine_similarity(X, ones(2, 4))),
    ("cosine_similarity", IndexError, "axis 2", lambda: F.cosine_similarity(X, X, axis=2)),
    *[("dropout", ValueError, "probability", lambda p=p: F.dropout(X, p, training=False)) for p in (-0.1, 1, math.nan)],
    ("dropout_with_mask", TypeError, "boolean.*float64", lambda: F.dropout_with_mask(X.detach(), X.detach(), 0.5)),
    ("dropout_with_mask", ValueError, r"\[0, 1\)", lambda: F.dropout_with_mask(X.detach(), X.detach() > 0, 1)),
    ("dropout_with_mask", TypeError, r"tensors or arrays .*\[True\]", lambda: F.dropout_with_mask(X, [True], 0.5)),
    ("layer_norm", TypeError, "'x'|str", lambda: F.layer_norm(X, None, None, "x")),
    *[(name, kind, f"{option} must", lambda call=call, bad=bad: call(bad))
      for name, option, call in (
          ("softplus", "beta", lambda bad: F.softplus(X, beta=bad)), ("elu", "alpha", lambda bad: F.elu(X, bad)),
          ("softplus", "threshold", lambda bad: F.softplus(X, threshold=bad)),
          ("leaky_relu", "negative_slope", lambda bad: F.leaky_relu(X, bad)),
          ("hardtanh", "max_val", lambda bad: F.hardtanh(X, 0, bad)),
          ("rms_norm", "eps", lambda bad: F.rms_norm(X, None, bad)),
          ("huber_loss", "delta", lambda bad: F.huber_loss(X, X, delta=bad)),
          ("smooth_l1_loss", "beta", lambda bad: F.smooth_l1_loss(X, X, beta=bad)))
      for bad, kind in (("1", TypeError), (math.nan, ValueError))],
    ("cross_entropy", TypeError, "ignore_index", lambda: F.cross_entropy(X, [0, 1], ignore_index=0.5)),
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
    *[(loss.__name__, ValueError, "target.shape", lambda loss=loss: loss(X, np.ones((2, 1)))) for loss in PAIRWISE],
    *[(loss.__name__, ValueError, "reduction .*'average'", lambda loss=loss: loss(X, [0, 1], reduction="average"))
      for loss in (*PAIRWISE, F.cross_entropy, F.nll_loss)],
    ("huber_loss", ValueError, "delta", lambda: F.huber_loss(X, X, delta=0)),
    ("smooth_l1_loss", ValueError, "beta", lambda: F.smooth_l1_loss(X, X, beta=-1)),
    ("binary_cross_entropy", ValueError, "probabilities", lambda: F.binary_cross_entropy(X * 2, X)),
    ("binary_cross_entropy", ValueError, "probabilities", lambda: F.binary_cross_entropy(X * -0.1, X)),
    ("binary_cross_entropy", ValueError, "weight", lambda: F.binary_cross_entropy(X, X, np.ones(2))),
    (BCE, ValueError, "weight", lambda: F.binary_cross_entropy_with_logits(X, X, np.ones((4, 2, 3)))),
    (BCE, ValueError, "pos_weight", lambda: F.binary_cross_entropy_with_logits(X, X, pos_weight=np.ones(4))),
    ("kl_div", ValueError, "batchmean", lambda: F.kl_div(X.sum(), 1.0, "batchmean")),
    ("cross_entropy", TypeError, "bool", lambda: F.cross_entropy(X, [True, False])),
    ("cross_entropy", ValueError, r"target\.shape.*\(2, 1\)", lambda: F.cross_entropy(X, [[0], [1]])),
    ("cross_entropy", ValueError, "shape", lambda: F.cross_entropy(ones(), 0)),
    ("cross_entropy", ValueError, "label_smoothing", lambda: F.cross_entropy(X, [0, 1], label_smoothing=math.nan)),
    ("cross_entropy", ValueError, "label_smoothing", lambda: F.cross_entropy(X, [0, 1], label_smoothing=1.5)),
    ("cross_entropy", ValueError, "label_smoothing", lambda: F.cross_entropy(X, [0, 1], label_smoothing=-0.1)),
    ("cross_entropy", ValueError, "weight", lambda: F.cross_entropy(X, [0, 1], [1.0, 2.0])),
    ("cross_entropy", ValueError, r"target\.shape.*\(2, 3\)", lambda: F.cross_entropy(X, np.ones((2, 3), int))),
    ("cross_entropy", IndexError, "id -1", lambda: F.cross_entropy(X, [0, -1])),
    ("nll_loss", TypeError, "weight .*int64", lambda: F.nll_loss(X, [0, 1], Tensor([1, 2, 3]))),
    ("nll_loss", IndexError, "id 3", lambda: F.nll_loss(X, [0, 3])),
    *[("linear_cross_entropy", error, said,
       lambda target=target, options=options: F.linear_cross_entropy(X, ones(4, 3), target, **options))
      for target, options, error, said in (
          ([0, 5], {}, IndexError, "id 5"), ([0, 1], {"reduction": "none"}, ValueError, "'none'"),
          ([0, 1], {"label_smoothing": 1.5}, ValueError, "label_smoothing"))],
    ("linear_cross_entropy", ValueError, r"weight\.shape", lambda: F.linear_cross_entropy(X, ones(4, 1), [0, 1])),
    # patches and padding
    ("unfold", ValueError, r"x\.unfold\(axis", lambda: F.unfold(X, 2)),
    ("unfold", ValueError, r"\(6, 6\).*\(4, 5\)", lambda: F.unfold(ones(1, 4, 5), 6)),
    ("unfold", ValueError, "pair", lambda: F.unfold(ones(1, 4, 5), (1, 2, 3))),
    ("fold", ValueError, r"C·2·2, 12.*\(2, 3\)", lambda: F.fold(X, (4, 5), 2)),
    ("pad", ValueError, "pair", lambda: F.pad(X, (1, 1, 1))),
    *[("pad", TypeError, r"minigrad\.pad", lambda widths=widths: F.pad(X, widths)) for widths in (((1, 1), (2, 2)), 1)],
    ("pad", ValueError, r"cuts off.*\(2, 3\)", lambda: F.pad(X, (-2, -2))),
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
        (((2, 6, 3, 5), (2, 0, 4, 5), (2, 0, 4, 5)), "6 heads .* 0 heads"),
        (((3, 5), (4, 5), (4, 5)), "axis of heads"),
        (((3, 6, 3, 5), (2, 2, 4, 5), (2, 2, 4, 5)), "leading axes"))],
    (ATTENTION, ValueError, "probability", lambda: attend(*QKV, dropout_p=1.0)),
    (HEADS, ValueError, "probability", lambda: heads(*SIDE_BY_SIDE, dropout_p=1.0)),
    (HEADS, ValueError, "probability", lambda: heads(*SIDE_BY_SIDE, dropout_p=1.0, return_weights=True)),
    (HEADS, ValueError, "num_heads", lambda: heads(*SIDE_BY_SIDE, num_heads=0)),
    (HEADS, ValueError, "multiples", lambda: heads(*SIDE_BY_SIDE, num_heads=4)),
    *[(HEADS, ValueError, "query", lambda shapes=shapes: heads(*shapes)) for shapes in (
        ((3, 6), (3, 6), (3, 6)), ((2, 3, 6), (2, 3, 6), (2, 3, 5)), ((2, 3, 6), (2, 3, 4), (2, 3, 6)),
        ((2, 3, 6), (2, 4, 6), (2, 3, 6)))],
    # convolution and pooling
    *[("conv1d", ValueError, said, lambda options=options: conv1d(**options)) for options, said in (
        ({"x": (5,)}, r"\(5,\) and"), ({"weight": (4, 3)}, r"and \(4, 3\)"), ({"weight": (6, 4, 0)}, r"\(6, 4, 0\)"),
        ({"groups": 2}, "groups=2"), ({"weight": (3, 2, 3), "groups": 2}, "multiple of groups"),
        ({"bias": np.ones(5)}, r"bias\.shape"), ({"dilation": 3}, "spans 7 .* has 5"), ({"padding": "full"}, "'full'"),
        ({"padding": "same", "stride": 2}, "stride 2"), ({"padding": -1}, "padding"), ({"stride": 0}, "stride"))],
    *[(pool.__name__, ValueError, said, lambda pool=pool, arguments=arguments: pool(ones(2, 4, 5), *arguments))
      for pool in (F.max_pool1d, F.avg_pool1d) for arguments, said in (
          ((0,), "kernel_size"), ((2, 0), "stride"), ((3, 1, 2), "padding"), ((6,), "spans 6 .* 5"))],
    ("max_pool1d", ValueError, "0-d", lambda: F.max_pool1d(ones(), 1)),
]


@pytest.mark.parametrize(("function", "error", "said", "call"), MISTAKES)
def test_mistakes_are_named(function, error, said, call, form):
    with pytest.raises(error, match=rf"^{re.escape(function)}: .*{said}"):
        call()
