"""What autocast casts, a row each: the function and the shapes of its inputs."""

import numpy as np

import minigrad as mg
from minigrad import Tensor, einsum
from minigrad import functional as F

HALF, SINGLE, DOUBLE = (np.dtype(name) for name in ("float16", "float32", "float64"))
IDS, MASK = np.array([1, 0, 3]), np.array([[True, False, True], [False] * 3, [True] * 3])
ONE_HOT = np.eye(3, 4, dtype=np.float32)


def tensors(*shapes, dtype=SINGLE, device="cpu", seed=0):
    draw = np.random.default_rng(seed)
    return [Tensor(draw.standard_normal(shape).astype(dtype), device=device, requires_grad=True) for shape in shapes]


# What runs in float16, with the shapes of its inputs.
PRODUCTS = {
    "linear": (F.linear, (2, 3, 4), (5, 4), (5,)),
    "linear without bias": (F.linear, (3, 4), (5, 4)),
    "matmul": (mg.matmul, (2, 3, 4), (4, 5)),
    "matmul of vectors": (mg.matmul, (4,), (4,)),
    "tensordot": (lambda x, y: mg.tensordot(x, y, 1), (2, 3, 4), (4, 5)),
    "einsum": (lambda x, y: einsum("btd,ed->bte", x, y), (2, 3, 4), (5, 4)),
    "attention": (lambda *x: F.scaled_dot_product_attention(*x, MASK), *[(2, 3, 4)] * 3),
    "attention of heads": (lambda *x: F.multi_head_attention(*x, 2, MASK), *[(2, 3, 4)] * 3),
    "attention that broadcasts": (F.scaled_dot_product_attention, (2, 3, 4), (3, 4), (3, 4)),
    "conv1d": (F.conv1d, (2, 3, 6), (4, 3, 3), (4,)),
}
# What runs in float32.
WIDE = {
    "softmax": (F.softmax, (3, 4)),
    "log_softmax": (F.log_softmax, (3, 4)),
    "layer_norm": (F.layer_norm, (3, 4), (4,), (4,)),
    "rms_norm": (F.rms_norm, (3, 4), (4,)),
    "cross_entropy": (lambda x: F.cross_entropy(x, IDS), (3, 4)),
    "cross_entropy with weights": (lambda x: F.cross_entropy(x, IDS, weight=[0.1, 0.2, 0.3, 0.4]), (3, 4)),
    "cross_entropy by keyword": (lambda x: F.cross_entropy(input=x, target=IDS, reduction="none"), (3, 4)),
    "nll_loss": (lambda x: F.nll_loss(x, IDS), (3, 4)),
    "binary_cross_entropy": (lambda x: F.binary_cross_entropy(mg.sigmoid(x), ONE_HOT), (3, 4)),
    "binary_cross_entropy_with_logits": (lambda x: F.binary_cross_entropy_with_logits(x, ONE_HOT), (3, 4)),
    "kl_div": (lambda x: F.kl_div(x, ONE_HOT), (3, 4)),
    "mse_loss": (lambda x, y: F.mse_loss(x, target=y), (3, 4), (3, 4)),
    "l1_loss": (F.l1_loss, (3, 4), (3, 4)),
    "huber_loss": (F.huber_loss, (3, 4), (3, 4)),
    "smooth_l1_loss": (F.smooth_l1_loss, (3, 4), (3, 4)),
}
GIVEN = {
    "add": (lambda x, y: x + y, (3, 4), (3, 4)),
    "exp": (mg.exp, (3, 4)),
    "sum": (mg.sum, (3, 4)),
    "relu": (F.relu, (3, 4)),
    "gelu": (F.gelu, (3, 4)),
    "embedding": (lambda table: F.embedding(IDS, table), (5, 4)),
}
