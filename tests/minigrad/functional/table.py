"""The functions that have a fused twin, one row each: how to call it, and inputs of awkward shapes to call it with."""

from collections.abc import Callable
from typing import Any

import numpy as np

from minigrad import Tensor
from minigrad import functional as F

from tests.minigrad.functional.case import Case, Shapes
from tests.minigrad.functional.cases_activation import ACTIVATIONS
from tests.minigrad.functional.cases_convolution import CONVOLUTION
from tests.minigrad.functional.cases_losses import LOSSES

MASK = np.array([[True, False, True, True], [False, False, False, False], [True, True, True, True]])  # (T, S)
KEPT = np.array([[True, True, False, True], [True, False, True, True], [False, True, True, True]])
DROPPED = np.random.default_rng(5).random((2, 3, 4)) < 0.7


def on_device_of(array: np.ndarray, tensor: Tensor) -> Tensor:
    return Tensor(array, device=tensor.device)


def attention(**options: Any) -> Callable[..., Any]:
    def run(query: Tensor, key: Tensor, value: Tensor) -> Any:
        given = {k: on_device_of(v, query) if isinstance(v, np.ndarray) else v for k, v in options.items()}
        return F.scaled_dot_product_attention(query, key, value, **given)
    return run


def heads(num_heads: int = 2, **options: Any) -> Callable[..., Any]:
    def run(query: Tensor, key: Tensor, value: Tensor) -> Any:
        given = {k: on_device_of(v, query) if isinstance(v, np.ndarray) else v for k, v in options.items()}
        return F.multi_head_attention(query, key, value, num_heads, **given)
    return run


def cross_entropy(targets: Any, **options: Any) -> Callable[..., Any]:
    return lambda logits: F.cross_entropy(logits, np.array(targets), **options)


def linear_loss(targets: Any, **options: Any) -> Callable[..., Any]:
    return lambda x, weight, bias=None: F.linear_cross_entropy(x, weight, np.array(targets), bias, **options)


def dropout(mask: np.ndarray, p: float) -> Callable[..., Any]:
    return lambda x: F.dropout_with_mask(x, on_device_of(mask, x), p)


SIDE_BY_SIDE: Shapes = ((2, 3, 6), (2, 4, 6), (2, 4, 8))  # (B, T, D), (B, S, D), (B, S, V)
QKV: Shapes = ((2, 3, 5), (2, 4, 5), (2, 4, 3))  # (B, T, d), (B, S, d), (B, S, d_v)
HEADS: Shapes = ((2, 2, 3, 5), (2, 2, 4, 5), (2, 2, 4, 3))
GROUPED: Shapes = ((2, 4, 3, 5), (2, 2, 4, 5), (2, 2, 4, 3))  # two heads of queries to one of keys

CASES = [
    Case("softmax", lambda x: F.softmax(x), ((3, 4),)),
    Case("softmax over the first axis", lambda x: F.softmax(x, axis=0), ((3, 4),)),
    Case("softmax in the middle", lambda x: F.softmax(x, axis=-2), ((2, 3, 4),)),
    Case("softmax of one", lambda x: F.softmax(x), ((3, 1),)),
    Case("softmax of an empty batch", lambda x: F.softmax(x), ((0, 4),)),
    Case("softmax of empty rows", lambda x: F.softmax(x), ((3, 0),)),
    Case("log_softmax", lambda x: F.log_softmax(x), ((3, 4),)),
    Case("log_softmax over the first axis", lambda x: F.log_softmax(x, axis=0), ((2, 3, 4),)),
    Case("log_softmax of an empty batch", lambda x: F.log_softmax(x), ((0, 4),)),
    Case("layer_norm", F.layer_norm, ((2, 3, 4), (4,), (4,))),
    Case("layer_norm of a vector", F.layer_norm, ((4,), (4,), (4,))),
    Case("layer_norm without bias", lambda x, w: F.layer_norm(x, w), ((3, 4), (4,))),
    Case("layer_norm without weight", lambda x, b: F.layer_norm(x, bias=b), ((3, 4), (4,))),
    Case("layer_norm bare", lambda x: F.layer_norm(x, eps=0.1), ((3, 4),)),
    Case("layer_norm of a long row", F.layer_norm, ((1, 70), (70,), (70,))),
    Case("layer_norm of one feature", F.layer_norm, ((3, 1), (1,), (1,))),
    Case("layer_norm of an empty batch", F.layer_norm, ((0, 4), (4,), (4,))),
    Case("linear", F.linear, ((2, 3, 4), (5, 4), (5,))),
    Case("linear without bias", lambda x, w: F.linear(x, w), ((3, 4), (5, 4))),
    Case("linear of a vector", F.linear, ((4,), (5, 4), (5,))),
    Case("linear of four axes", F.linear, ((2, 1, 3, 4), (5, 4), (5,))),
    Case("linear of an empty batch", F.linear, ((0, 3, 4), (5, 4), (5,))),
    Case("gelu", F.gelu, ((3, 4),)),
    Case("gelu tanh", lambda x: F.gelu(x, approximate="tanh"), ((3, 4),)),
    Case("gelu of a number", F.gelu, ((),)),
    Case("dropout", dropout(KEPT, 0.25), ((3, 4),)),
    Case("dropout of an empty batch", dropout(KEPT[:0], 0.25), ((0, 4),)),
    Case("embedding", lambda w: F.embedding(np.array([[0, 2, 2], [2, 4, 0]]), w), ((5, 3),)),
    Case("embedding with padding", lambda w: F.embedding(np.array([[0, 2, 2], [1, 4, 0]]), w, padding_idx=2), ((5, 3),),
         differentiable=False),
    Case("embedding of one id", lambda w: F.embedding(np.array(3), w), ((5, 3),)),
    Case("embedding of no ids", lambda w: F.embedding(np.zeros((2, 0), int), w), ((5, 3),)),
    Case("cross_entropy", cross_entropy([1, 0, 4]), ((3, 5),)),
    Case("cross_entropy of sequences", cross_entropy([[1, 0, 4], [2, 2, -100]], label_smoothing=0.2), ((2, 3, 5),)),
    Case("cross_entropy summed", cross_entropy([1, 3, 4], ignore_index=3, reduction="sum"), ((3, 5),)),
    Case("cross_entropy by row", cross_entropy([1, -1, 4], ignore_index=-1, reduction="none", label_smoothing=0.1),
         ((3, 5),)),
    Case("cross_entropy of one row", cross_entropy(2, reduction="none"), ((5,),)),
    Case("cross_entropy of one class", cross_entropy([0, 0]), ((2, 1),)),
    Case("cross_entropy smoothed to the uniform", cross_entropy([1, 0], label_smoothing=1.0), ((2, 3),)),
    Case("cross_entropy all ignored", cross_entropy([-100, -100], label_smoothing=0.1), ((2, 5),)),
    Case("cross_entropy of an empty batch", cross_entropy(np.zeros(0, int), reduction="sum"), ((0, 5),)),
    Case("loss of linear", linear_loss([[0, 2], [3, 2]]), ((2, 2, 3), (5, 3), (5,))),
    Case("loss of linear smoothed, some ignored, summed",
         linear_loss([4, -100, 0, 4], label_smoothing=0.2, reduction="sum"), ((4, 3), (5, 3), (5,))),
    Case("loss of linear without bias", linear_loss([4, 1, 0], label_smoothing=0.1), ((3, 2), (5, 2))),
    Case("loss of linear of one class", linear_loss([0, 0]), ((2, 3), (1, 3), (1,))),
    Case("loss of linear all ignored", linear_loss([-100, -100], label_smoothing=0.1), ((2, 3), (5, 3), (5,))),
    Case("loss of linear of an empty batch", linear_loss(np.zeros(0, int)), ((0, 3), (5, 3), (5,))),
    Case("attention", attention(), QKV),
    Case("attention with heads", attention(), HEADS),
    Case("attention of matrices", attention(), ((3, 5), (4, 5), (4, 3))),
    Case("attention masked, one row fully", attention(attn_mask=MASK), QKV),
    Case("attention masked by batch", attention(attn_mask=DROPPED), QKV),
    Case("attention masked by key", attention(attn_mask=MASK[:1]), HEADS),
    Case("attention causal", attention(is_causal=True), QKV),
    Case("attention causal and masked", attention(is_causal=True, attn_mask=MASK), HEADS),
    Case("attention dropped", attention(dropped=DROPPED, dropout_p=0.3), QKV),
    Case("attention masked, causal, dropped, scaled",
         attention(attn_mask=MASK, is_causal=True, dropped=KEPT, dropout_p=0.25, scale=0.7), HEADS),
    Case("attention broadcasting its leading axes", attention(attn_mask=MASK), ((2, 1, 3, 5), (2, 4, 5), (1, 1, 4, 3))),
    Case("attention to one key", attention(), ((2, 3, 5), (2, 1, 5), (2, 1, 3))),
    Case("attention to many keys", attention(), ((1, 2, 2), (1, 66, 2), (1, 66, 1))),
    Case("attention by one query", attention(), ((2, 1, 5), (2, 4, 5), (2, 4, 3))),
    Case("attention to no keys", attention(), ((2, 3, 5), (2, 0, 5), (2, 0, 3))),
    Case("attention of an empty batch", attention(), ((0, 3, 5), (0, 4, 5), (0, 4, 3))),
    Case("attention with one feature", attention(), ((2, 3, 1), (2, 4, 1), (2, 4, 1))),
    Case("attention, grouped queries", attention(enable_gqa=True), GROUPED),
    Case("attention, grouped queries, one head for all", attention(enable_gqa=True, is_causal=True),
         ((2, 4, 3, 5), (2, 1, 4, 5), (2, 1, 4, 3))),
    Case("attention, grouped queries, masked, causal, dropped, scaled",
         attention(enable_gqa=True, attn_mask=MASK, is_causal=True, dropped=KEPT, dropout_p=0.25, scale=0.7), GROUPED),
    Case("attention, grouped queries, masked by head", attention(enable_gqa=True, attn_mask=DROPPED.repeat(2, 0)),
         GROUPED),
    Case("attention, grouped queries, an empty batch", attention(enable_gqa=True),
         ((0, 4, 3, 5), (0, 2, 4, 5), (0, 2, 4, 3))),
    Case("heads", heads(), SIDE_BY_SIDE),
    Case("heads, one", heads(1), SIDE_BY_SIDE),
    Case("heads, masked, one row fully", heads(attn_mask=MASK), SIDE_BY_SIDE),
    Case("heads, masked by batch and head, dropped",
         heads(attn_mask=DROPPED[:, None] | KEPT, dropped=DROPPED[:, None], dropout_p=0.3), SIDE_BY_SIDE),
    Case("heads of an empty batch", heads(), ((0, 3, 6), (0, 4, 6), (0, 4, 6))),
    Case("heads to no keys", heads(), ((2, 3, 6), (2, 0, 6), (2, 0, 6))),
    *ACTIVATIONS,
    *CONVOLUTION,
    *LOSSES,
]
