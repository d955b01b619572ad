"""A row for every functional: how to call it, and inputs of awkward shapes to call it with."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from minigrad import Tensor, concatenate
from minigrad import functional as F

Shapes = tuple[tuple[int, ...], ...]


class Case(NamedTuple):
    """``function(*inputs)``; the inputs that are differentiated have these shapes."""

    name: str
    function: Callable[..., Any]
    shapes: Shapes
    differentiable: bool = True  # whether the gradient is to be that of the value

    def host_inputs(self, dtype: Any = np.float64) -> list[np.ndarray]:
        """Values near 1 in absolute value, the same for every call."""
        rng = np.random.default_rng(len(self.name))
        return [rng.normal(size=shape).astype(dtype) for shape in self.shapes]

    def inputs(self, dtype: Any = np.float64, device: str = "cpu") -> list[Tensor]:
        return [Tensor(array, device=device, requires_grad=True) for array in self.host_inputs(dtype)]


def given(function: Callable[..., Any], *arguments: Any, **options: Any) -> Callable[..., Any]:
    """The function of its inputs alone."""
    return lambda *inputs: function(*inputs, *arguments, **options)


def biased(attention: Callable[..., Any], *arguments: Any, **options: Any) -> Callable[..., Any]:
    """An attention whose bias is an input, too; one of integers is refused."""
    return lambda q, k, v, bias: attention(
        q, k, v, *arguments, attn_bias=bias if bias.dtype.kind == "f" else bias.astype(np.float32), **options)


def dropout(mask: np.ndarray, p: float) -> Callable[..., Any]:
    return lambda x: F.dropout_with_mask(x, Tensor(mask, device=x.device), p)


def of_log_probabilities(target: Any, **options: Any) -> Callable[..., Any]:
    return lambda x: F.nll_loss(F.log_softmax(x), np.array(target), **options)


attend, heads = F.scaled_dot_product_attention, F.multi_head_attention
MASK = np.array([[True, False, True, True], [False, False, False, False], [True, True, True, True]])  # (T, S)
KEPT = np.array([[True, True, False, True], [True, False, True, True], [False, True, True, True]])
DROPPED = np.random.default_rng(5).random((2, 3, 4)) < 0.7
SIDE_BY_SIDE: Shapes = ((2, 3, 6), (2, 4, 6), (2, 4, 8))  # (B, T, D), (B, S, D), (B, S, V)
QKV: Shapes = ((2, 3, 5), (2, 4, 5), (2, 4, 3))  # (B, T, d), (B, S, d), (B, S, d_v)
HEADS: Shapes = ((2, 2, 3, 5), (2, 2, 4, 5), (2, 2, 4, 3))
GROUPED: Shapes = ((2, 4, 3, 5), (2, 2, 4, 5), (2, 2, 4, 3))  # two heads of queries to one of keys
GRID: Shapes = ((3, 4),)
PAIR: Shapes = ((3, 4), (3, 4))

TARGET = np.random.default_rng(31).normal(size=(3, 4))

CASES = [
    Case("softmax", lambda x: F.softmax(x), GRID),
    Case("softmax in the middle", lambda x: F.softmax(x, axis=-2), ((2, 3, 4),)),
    Case("softmax of empty rows", lambda x: F.softmax(x), ((3, 0),)),
    Case("log_softmax", lambda x: F.log_softmax(x), GRID),
    Case("log_softmax of an empty batch", lambda x: F.log_softmax(x), ((0, 4),)),
    Case("layer_norm", F.layer_norm, ((2, 3, 4), (4,), (4,))),
    Case("layer_norm without bias", lambda x, w: F.layer_norm(x, w), ((3, 4), (4,))),
    Case("layer_norm without weight", lambda x, b: F.layer_norm(x, bias=b), ((3, 4), (4,))),
    Case("layer_norm bare", lambda x: F.layer_norm(x, eps=0.1), GRID),
    Case("layer_norm of an empty batch", F.layer_norm, ((0, 4), (4,), (4,))),
    Case("linear", F.linear, ((2, 3, 4), (5, 4), (5,))),
    Case("linear without bias", lambda x, w: F.linear(x, w), ((3, 4), (5, 4))),
    Case("linear of a vector", F.linear, ((4,), (5, 4), (5,))),
    Case("linear of an empty batch", F.linear, ((0, 3, 4), (5, 4), (5,))),
    Case("gelu", F.gelu, GRID),
    Case("gelu tanh", lambda x: F.gelu(x, approximate="tanh"), GRID),
    Case("dropout", dropout(KEPT, 0.25), GRID),
    Case("embedding", lambda w: F.embedding(np.array([[0, 2, 2], [2, 4, 0]]), w), ((5, 3),)),
    Case("embedding with padding", lambda w: F.embedding(np.array([[0, 2, 2], [1, 4, 0]]), w, padding_idx=2), ((5, 3),),
         differentiable=False),
    Case("cross_entropy", given(F.cross_entropy, [1, 0, 4]), ((3, 5),)),
    Case("cross_entropy of sequences", given(F.cross_entropy, [[1, 0, 4], [2, 2, -100]], label_smoothing=0.2),
         ((2, 3, 5),)),
    Case("cross_entropy summed", given(F.cross_entropy, [1, 3, 4], ignore_index=3, reduction="sum"), ((3, 5),)),
    Case("cross_entropy by row",
         given(F.cross_entropy, [1, -1, 4], ignore_index=-1, reduction="none", label_smoothing=0.1), ((3, 5),)),
    Case("cross_entropy of one row", given(F.cross_entropy, 2, reduction="none"), ((5,),)),
    Case("cross_entropy of an empty batch", given(F.cross_entropy, np.zeros(0, int), reduction="sum"), ((0, 5),)),
    Case("attention", attend, QKV),
    Case("attention and its weights",
         lambda *qkv: concatenate(attend(*qkv, attn_mask=MASK, return_weights=True), -1), QKV),
    Case("attention of matrices", attend, ((3, 5), (4, 5), (4, 3))),
    Case("attention masked, one row fully", given(attend, attn_mask=MASK), QKV),
    Case("attention causal", given(attend, is_causal=True), QKV),
    Case("attention dropped", given(attend, dropped=DROPPED, dropout_p=0.3), QKV),
    Case("attention masked, causal, dropped, scaled",
         given(attend, attn_mask=MASK, is_causal=True, dropped=KEPT, dropout_p=0.25, scale=0.7), HEADS),
    Case("attention broadcasting its leading axes", given(attend, attn_mask=MASK),
         ((2, 1, 3, 5), (2, 4, 5), (1, 1, 4, 3))),
    Case("attention to no keys", attend, ((2, 3, 5), (2, 0, 5), (2, 0, 3))),
    Case("attention of an empty batch", attend, ((0, 3, 5), (0, 4, 5), (0, 4, 3))),
    Case("attention, grouped queries", given(attend, enable_gqa=True), GROUPED),
    Case("attention, grouped queries, masked, causal, dropped, scaled",
         given(attend, enable_gqa=True, attn_mask=MASK, is_causal=True, dropped=KEPT, dropout_p=0.25, scale=0.7),
         GROUPED),
    Case("attention, grouped queries, masked by head", given(attend, enable_gqa=True, attn_mask=DROPPED.repeat(2, 0)),
         GROUPED),
    Case("attention biased", biased(attend), (*QKV, (3, 4))),
    Case("attention biased by example and key, masked, causal, dropped, scaled",
         biased(attend, attn_mask=MASK, is_causal=True, dropped=KEPT, dropout_p=0.25, scale=0.7),
         (*HEADS, (2, 1, 1, 4))),
    Case("attention biased, grouped queries, masked",
         biased(attend, enable_gqa=True, attn_mask=MASK), (*GROUPED, (4, 3, 1))),
    Case("attention biased by the head, broadcasting its leading axes", biased(attend),
         ((2, 1, 3, 5), (2, 4, 5), (1, 1, 4, 3), (2, 2, 1, 1))),
    Case("heads", given(heads, 2), SIDE_BY_SIDE),
    Case("heads biased, masked, dropped",
         biased(heads, 2, attn_mask=MASK, dropped=KEPT, dropout_p=0.25), (*SIDE_BY_SIDE, (2, 3, 4))),
    Case("heads, masked by batch and head, dropped",
         given(heads, 2, attn_mask=DROPPED[:, None] | KEPT, dropped=DROPPED[:, None], dropout_p=0.3), SIDE_BY_SIDE),
    Case("heads to no keys", given(heads, 2), ((2, 3, 6), (2, 0, 6), (2, 0, 6))),
    # activations
    Case("silu", F.silu, GRID),
    # losses
    Case("mse_loss", F.mse_loss, PAIR),
    Case("mse_loss summed, of an array", given(F.mse_loss, TARGET, "sum"), GRID),
    Case("nll_loss", of_log_probabilities([1, 0, 4]), ((3, 5),)),
    Case("nll_loss of sequences, some ignored", of_log_probabilities([[1, -100, 4], [2, 2, -100]], reduction="sum"),
         ((2, 3, 5),)),
    Case("cross_entropy smoothed, one ignored",
         given(F.cross_entropy, [[1, 0, 4], [2, 2, -100]], label_smoothing=0.2), ((2, 3, 5),)),
    Case("rms_norm", F.rms_norm, ((2, 3, 4), (4,))),
    Case("rms_norm bare", given(F.rms_norm, eps=0.1), GRID),
    Case("rms_norm of an empty batch", F.rms_norm, ((0, 4), (4,))),
]
