"""A row for every functional: how to call it, and inputs of awkward shapes to call it with."""

from typing import Any, NamedTuple

import numpy as np

from minigrad import Tensor, concatenate
from minigrad import functional as F

from tests.minigrad.ops.row import function, table

RNG = np.random.default_rng(5)
DROPPED = RNG.random((2, 3, 4)) < 0.7
NAMES = {
    **{name: getattr(F, name) for name in F.__all__}, "concatenate": concatenate,
    "attend": F.scaled_dot_product_attention, "heads": F.multi_head_attention,
    "MASK": np.array([[True, False, True, True], [False] * 4, [True] * 4]),  # (T, S)
    "KEPT": np.array([[True, True, False, True], [True, False, True, True], [False, True, True, True]]),
    "BY_EXAMPLE": DROPPED, "BY_HEAD": DROPPED.repeat(2, 0), "TARGET": RNG.normal(size=(3, 4)),
    "IDS": np.array([[0, 2, 2], [2, 4, 0]]), "NONE": np.zeros(0, int),
    "floats": lambda bias: bias if bias.dtype.kind == "f" else bias.astype(np.float32),  # a bias of integers is refused
}
SHAPES = {  # (…, T, d), (…, S, d), (…, S, v): queries, keys and values; two heads of queries to one of keys in GROUPED
    "QKV": ((2, 3, 5), (2, 4, 5), (2, 4, 3)), "HEADS": ((2, 2, 3, 5), (2, 2, 4, 5), (2, 2, 4, 3)),
    "GROUPED": ((2, 4, 3, 5), (2, 2, 4, 5), (2, 2, 4, 3)), "WIDE": ((2, 3, 6), (2, 4, 6), (2, 4, 8)),
    "BROADCAST": ((2, 1, 3, 5), (2, 4, 5), (1, 1, 4, 3)),
}

# A call for inputs x, y, z and w, and the shapes of these.
CALLS = """
    softmax(x)                                      [(3, 4)]
    softmax(x, axis=-2)                             [(2, 3, 4)]
    softmax(x)                                      [(3, 0)]
    log_softmax(x)                                  [(3, 4)]
    layer_norm(x, y, z)                             (2, 3, 4), (4,), (4,)
    layer_norm(x, bias=y)                           (3, 4), (4,)
    layer_norm(x, eps=0.1)                          [(3, 4)]
    layer_norm(x, y, z)                             (0, 4), (4,), (4,)
    rms_norm(x, y)                                  (2, 3, 4), (4,)
    rms_norm(x, eps=0.1)                            [(3, 4)]
    linear(x, y, z)                                 (2, 3, 4), (5, 4), (5,)
    linear(x, y)                                    (3, 4), (5, 4)
    linear(x, y, z)                                 (4,), (5, 4), (5,)
    gelu(x)                                         [(3, 4)]
    gelu(x, approximate="tanh")                     [(3, 4)]
    silu(x)                                         [(3, 4)]
    dropout_with_mask(x, KEPT, 0.25)                [(3, 4)]
    embedding(IDS, x, padding_idx=2)                [(5, 3)]
    mse_loss(x, y)                                  (3, 4), (3, 4)
    mse_loss(x, TARGET, "sum")                      [(3, 4)]
    nll_loss(log_softmax(x), [[1, -100, 4], [2, 2, -100]], reduction="sum")     [(2, 3, 5)]
    cross_entropy(x, [[1, 0, 4], [2, 2, -100]], label_smoothing=0.2)            [(2, 3, 5)]
    cross_entropy(x, [1, 3, 4], ignore_index=3, reduction="sum")                [(3, 5)]
    cross_entropy(x, [1, -1, 4], -1, "none", 1.0)                               [(3, 5)]
    cross_entropy(x, 2, reduction="none")                                       [(5,)]
    cross_entropy(x, NONE, reduction="sum")                                     [(0, 5)]
    attend(x, y, z)                                                             QKV
    attend(x, y, z)                                                             (2, 3, 5), (2, 0, 5), (2, 0, 3)
    attend(x, y, z, MASK)                                                       BROADCAST
    attend(x, y, z, MASK, 0.25, True, 0.7, dropped=KEPT)                        HEADS
    attend(x, y, z, BY_HEAD, enable_gqa=True)                                   GROUPED
    attend(x, y, z, MASK, 0.25, True, 0.7, True, dropped=KEPT)                  GROUPED
    attend(x, y, z, MASK, 0.25, True, 0.7, dropped=KEPT, attn_bias=floats(w))   *HEADS, (2, 1, 1, 4)
    attend(x, y, z, MASK, enable_gqa=True, attn_bias=floats(w))                 *GROUPED, (4, 3, 1)
    concatenate(attend(x, y, z, MASK, return_weights=True), -1)                 QKV
    heads(x, y, z, 2)                                                           (2, 3, 6), (2, 0, 6), (2, 0, 6)
    heads(x, y, z, 2, MASK, 0.25, dropped=KEPT, attn_bias=floats(w))            *WIDE, (2, 3, 4)
    heads(x, y, z, 2, BY_EXAMPLE[:, None] | KEPT, 0.3, dropped=BY_EXAMPLE[:, None])    WIDE
"""


class Case(NamedTuple):
    """``function(*inputs)``; the inputs that are differentiated have these shapes."""

    name: str
    function: Any
    shapes: tuple[tuple[int, ...], ...]

    def host_inputs(self, dtype: Any = np.float64) -> list[np.ndarray]:
        """Values near 1 in absolute value, the same for every call."""
        rng = np.random.default_rng(len(self.name))
        return [rng.normal(size=shape).astype(dtype) for shape in self.shapes]

    def inputs(self, dtype: Any = np.float64, device: str = "cpu") -> list[Tensor]:
        return [Tensor(array, device=device, requires_grad=True) for array in self.host_inputs(dtype)]


CASES = [Case(f"{call} of {shapes}", function(call, NAMES), tuple(shapes)) for call, shapes in table(CALLS, SHAPES)]
