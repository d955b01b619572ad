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


X, QKV = ones(2, 3), ((2, 3, 5), (2, 4, 5), (2, 4, 3))
ATTENTION, HEADS, BCE = "scaled_dot_product_attention", "multi_head_attention", "binary_cross_entropy_with_logits"
PAIRWISE = [F.mse_loss, F.l1_loss, F.huber_loss, F.smooth_l1_loss, F.binary_cross_entropy,
            F.binary_cross_entropy_with_logits, F.kl_div]

MISTAKES = [  # the function, the kind, what is said of it, and the call
    ("softmax", IndexError, "axis 2", lambda: F.softmax(X, axis=2)),
    ("gelu", ValueError, "approximate .*'sigmoid'", lambda: F.gelu(X, approximate="sigmoid")),
    ("softplus", ValueError, "beta", lambda: F.softplus(X, beta=0)),
    ("celu", ValueError, "alpha", lambda: F.celu(X, alpha=0)),
    ("hardtanh", ValueError, "min_val", lambda: F.hardtanh(X, 1.0, -1.0)),
    ("layer_norm", ValueError, r"weight\.shape", lambda: F.layer_norm(X, ones(2))),
    ("layer_norm", ValueError, r"bias\.shape", lambda: F.layer_norm(X, None, ones(2, 3))),
    ("rms_norm", ValueError, r"weight\.shape", lambda: F.rms_norm(X, ones(2))),
    ("normalize", IndexError, r"axis -3 .*\(2, 3\)", lambda: F.normalize(X, axis=-3)),
    ("cosine_similarity", ValueError, r"x1 and x2 .*\(2, 3\) and \(2, 4\)", lambda: F.cosine_similarity(X, ones(2, 4))),
    ("cosine_similarity", IndexError, "axis 2", lambda: F.cosine_similarity(X, X, axis=2)),
    ("cosine_similarity", IndexError, "axis 1", lambda: F.cosine_similarity(X[0], X[0])),
    ("cosine_similarity", TypeError, "dim", lambda: F.cosine_similarity(X, X, axis=1, dim=1)),
    # look-ups and linear maps
    ("embedding", TypeError, "integers, got float", lambda: F.embedding([0.0, 1.0], X)),
    ("embedding", TypeError, "integers, got bool", lambda: F.embedding(Tensor([True]), X)),
    ("embedding", ValueError, "padding_idx 2", lambda: F.embedding([0], X, 2)),
    ("embedding", ValueError, "padding_idx -3", lambda: F.embedding([0], X, -3)),
    ("linear", ValueError, r"input\.shape.*\(2, 3\) and \(5, 4\)", lambda: F.linear(X, ones(5, 4))),
    ("linear", ValueError, r"weight\.shape.*\(3,\)", lambda: F.linear(X, ones(3))),
    ("linear", ValueError, r"bias\.shape.*\(1,\)", lambda: F.linear(X, ones(5, 3), ones(1))),
    ("linear", ValueError, r"\(\) and", lambda: F.linear(ones(), ones(5, 3))),
    # losses
    *[(loss.__name__, ValueError, "target.shape", lambda loss=loss, shape=shape: loss(X, np.ones(shape)))
      for loss in PAIRWISE for shape in ((2, 1), (3,), ())],
    *[(loss.__name__, ValueError, "reduction .*'average'", lambda loss=loss: loss(X, [0, 1], reduction="average"))
      for loss in (*PAIRWISE, F.cross_entropy, F.nll_loss)],
    ("mse_loss", ValueError, "'batchmean'", lambda: F.mse_loss(X, X, "batchmean")),
    ("huber_loss", ValueError, "delta", lambda: F.huber_loss(X, X, delta=0)),
    ("huber_loss", ValueError, "delta", lambda: F.huber_loss(X, X, delta=math.nan)),
    ("smooth_l1_loss", ValueError, "beta", lambda: F.smooth_l1_loss(X, X, beta=-1)),
    ("binary_cross_entropy", ValueError, "probabilities", lambda: F.binary_cross_entropy(X * 2, X)),
    ("binary_cross_entropy", ValueError, "probabilities", lambda: F.binary_cross_entropy(X * -0.1, X)),
    ("binary_cross_entropy", ValueError, "nan to nan", lambda: F.binary_cross_entropy(X * math.nan, X)),
    ("binary_cross_entropy", ValueError, "weight", lambda: F.binary_cross_entropy(X, X, np.ones(2))),
    (BCE, ValueError, "weight", lambda: F.binary_cross_entropy_with_logits(X, X, np.ones((4, 2, 3)))),
    (BCE, ValueError, "pos_weight", lambda: F.binary_cross_entropy_with_logits(X, X, pos_weight=np.ones(4))),
    ("kl_div", ValueError, "batchmean", lambda: F.kl_div(X.sum(), 1.0, "batchmean")),
    ("cross_entropy", TypeError, "integers, got float", lambda: F.cross_entropy(X, [0.0, 1.0])),
    ("cross_entropy", TypeError, "integers, got bool", lambda: F.cross_entropy(X, [True, False])),
    ("cross_entropy", ValueError, r"target\.shape.*\(1,\)", lambda: F.cross_entropy(X, [0])),
    ("cross_entropy", ValueError, r"\(2, 1\)", lambda: F.cross_entropy(X, [[0], [1]])),
    ("cross_entropy", ValueError, "shape", lambda: F.cross_entropy(ones(), 0)),
    ("cross_entropy", ValueError, "label_smoothing", lambda: F.cross_entropy(X, [0, 1], label_smoothing=1.5)),
    ("cross_entropy", ValueError, "label_smoothing", lambda: F.cross_entropy(X, [0, 1], label_smoothing=-0.1)),
    ("cross_entropy", ValueError, "weight", lambda: F.cross_entropy(X, [0, 1], [1.0, 2.0])),
    ("cross_entropy", ValueError, "weight", lambda: F.cross_entropy(X, [0, 1], -100)),
    ("cross_entropy", IndexError, "id 3", lambda: F.cross_entropy(X, [0, 3])),
    ("cross_entropy", IndexError, "id -1", lambda: F.cross_entropy(X, [0, -1])),
    ("nll_loss", TypeError, "weight .*int64", lambda: F.nll_loss(X, [0, 1], Tensor([1, 2, 3]))),
    ("nll_loss", IndexError, "id 3", lambda: F.nll_loss(X, [0, 3])),
    ("nll_loss", TypeError, "integers", lambda: F.nll_loss(X, [0.0, 1.0])),
    ("nll_loss", ValueError, r"target\.shape", lambda: F.nll_loss(X, [0])),
    ("linear_cross_entropy", IndexError, "id 5", lambda: F.linear_cross_entropy(X, ones(4, 3), [0, 5])),
    ("linear_cross_entropy", ValueError, r"target\.shape", lambda: F.linear_cross_entropy(X, ones(4, 3), [0])),
    ("linear_cross_entropy", ValueError, "reduction .*'none'",
     lambda: F.linear_cross_entropy(X, ones(4, 3), [0, 1], reduction="none")),
    ("linear_cross_entropy", ValueError, "label_smoothing",
     lambda: F.linear_cross_entropy(X, ones(4, 3), [0, 1], label_smoothing=1.5)),
    ("linear_cross_entropy", ValueError, "label_smoothing",
     lambda: F.linear_cross_entropy(X, ones(4, 3), [0, 1], label_smoothing=-0.1)),
    ("linear_cross_entropy", ValueError, r"weight\.shape", lambda: F.linear_cross_entropy(X, ones(4, 1), [0, 1])),
    # attention
    *[(ATTENTION, TypeError, "boolean .* True where a query may attend", lambda mask=mask: attend(*QKV, mask=mask))
      for mask in (np.ones((3, 4)), np.ones((3, 4), int), Tensor(np.zeros((3, 4))), [[True] * 4] * 3, True)],
    (f"{ATTENTION} (dropped)", TypeError, "boolean", lambda: attend(*QKV, dropped=np.ones((3, 4)))),
    *[(ATTENTION, ValueError, r"mask .*\(2, 3, 4\)", lambda shape=shape: attend(*QKV, mask=np.ones(shape, bool)))
      for shape in ((4, 3), (3,), (2, 1, 3, 4), (3, 3, 4), (5, 2, 3, 4), (0,))],
    (ATTENTION, ValueError, "query", lambda: attend((3, 5), (4, 6), (4, 2))),
    (ATTENTION, ValueError, "query", lambda: attend((3, 5), (4, 5), (3, 2))),
    (ATTENTION, ValueError, "query", lambda: attend((5,), (4, 5), (4, 2))),
    (ATTENTION, ValueError, "leading axes", lambda: attend((2, 3, 5), (3, 4, 5), (2, 4, 5))),
    (ATTENTION, ValueError, "enable_gqa", lambda: attend((2, 6, 3, 5), (2, 2, 4, 5), (2, 2, 4, 5))),
    *[(ATTENTION, ValueError, said, lambda shapes=shapes: attend(*shapes, enable_gqa=True)) for shapes, said in (
        (((2, 6, 3, 5), (2, 4, 4, 5), (2, 4, 4, 5)), "6 heads .* 4 heads"),
        (((2, 2, 3, 5), (2, 6, 4, 5), (2, 6, 4, 5)), "2 heads .* 6 heads"),
        (((2, 6, 3, 5), (2, 2, 4, 5), (2, 3, 4, 5)), "key has 2 heads and value 3"),
        (((2, 6, 3, 5), (2, 0, 4, 5), (2, 0, 4, 5)), "6 heads .* 0 heads"),
        (((3, 5), (4, 5), (4, 5)), "axis of heads"),
        (((3, 6, 3, 5), (2, 2, 4, 5), (2, 2, 4, 5)), "leading axes"))],
    *[(ATTENTION, ValueError, r"mask .*\(2, 6, 3, 4\)", lambda shape=shape: attend(
        (2, 6, 3, 5), (2, 2, 4, 5), (2, 2, 4, 5), mask=np.ones(shape, bool), enable_gqa=True))
      for shape in ((2, 2, 3, 4), (2, 6, 4, 3))],
    (HEADS, ValueError, "num_heads", lambda: F.multi_head_attention(*[ones(2, 3, 6)] * 3, 0)),
    (HEADS, TypeError, "num_heads", lambda: F.multi_head_attention(*[ones(2, 3, 6)] * 3, 1.5)),
    (HEADS, ValueError, "multiples", lambda: F.multi_head_attention(*[ones(2, 3, 6)] * 3, 4)),
    (HEADS, ValueError, "multiples", lambda: F.multi_head_attention(*[ones(2, 3, 6)] * 2, ones(2, 3, 5), 2)),
    (HEADS, ValueError, "query", lambda: F.multi_head_attention(X, X, X, 1)),
    (HEADS, ValueError, "query", lambda: F.multi_head_attention(ones(2, 3, 6), ones(2, 3, 4), ones(2, 3, 6), 2)),
    (HEADS, ValueError, "query", lambda: F.multi_head_attention(ones(2, 3, 6), ones(2, 4, 6), ones(2, 3, 6), 2)),
    # convolution and pooling
    ("conv1d", ValueError, r"\(5,\) and", lambda: conv1d((5,))),
    ("conv1d", ValueError, r"and \(4, 3\)", lambda: conv1d(weight=(4, 3))),
    ("conv1d", ValueError, r"\(6, 4, 0\)", lambda: conv1d(weight=(6, 4, 0))),
    ("conv1d", ValueError, r"input\.shape\[-2\]", lambda: conv1d(weight=(6, 3, 3))),
    ("conv1d", ValueError, "groups=2", lambda: conv1d(groups=2)),
    ("conv1d", ValueError, "multiple of groups", lambda: conv1d(weight=(3, 2, 3), groups=2)),
    ("conv1d", ValueError, r"bias\.shape", lambda: conv1d(bias=np.ones(5))),
    ("conv1d", ValueError, "spans 7 .* has 5", lambda: conv1d(dilation=3)),
    ("conv1d", ValueError, "'full'", lambda: conv1d(padding="full")),
    ("conv1d", ValueError, "'same' needs stride 1", lambda: conv1d(padding="same", stride=2)),
    *[("conv1d", error, name, lambda name=name, value=value: conv1d(**{name: value})) for name, value, error in (
        ("stride", 0, ValueError), ("stride", 1.5, TypeError), ("dilation", 0, ValueError), ("groups", True, TypeError),
        ("padding", -1, ValueError), ("padding", 0.5, TypeError))],
    *[(pool.__name__, error, said, lambda pool=pool, arguments=arguments: pool(ones(2, 4, 5), *arguments))
      for pool in (F.max_pool1d, F.avg_pool1d) for arguments, error, said in (
          ((0,), ValueError, "kernel_size"), ((2.0,), TypeError, "kernel_size"), ((2, 0), ValueError, "stride"),
          ((2, 1, -1), ValueError, "padding"), ((3, 1, 2), ValueError, "padding"), ((6,), ValueError, "spans 6 .* 5"))],
    ("max_pool1d", ValueError, "0-d", lambda: F.max_pool1d(ones(), 1)),
]


@pytest.mark.parametrize(("function", "error", "said", "call"), MISTAKES)
def test_mistakes_are_named(function, error, said, call, form):
    with pytest.raises(error, match=rf"^{re.escape(function)}: .*{said}"):
        call()


def test_a_mask_on_another_device_is_refused_in_the_name_of_the_function(stand_in):
    q, k, v = (Tensor(np.ones((3, 2)), device="cuda:0") for _ in range(3))
    with pytest.raises(ValueError, match=r"^scaled_dot_product_attention: operands on cpu and cuda:0"):
        F.scaled_dot_product_attention(q, k, v, Tensor(np.ones((3, 3), dtype=bool)))
