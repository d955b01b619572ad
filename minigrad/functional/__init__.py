"""What networks use. A hot function is one operation on arrays, with its gradient by hand, and on tensors its steps."""

from minigrad.functional.activation import gelu, silu
from minigrad.functional.attention import multi_head_attention, scaled_dot_product_attention
from minigrad.functional.dropout import dropout, dropout_with_mask
from minigrad.functional.embedding import embedding, one_hot
from minigrad.functional.linear import linear
from minigrad.functional.loss import cross_entropy, mse_loss, nll_loss
from minigrad.functional.normalization import layer_norm, rms_norm
from minigrad.functional.softmax import log_softmax, softmax
from minigrad.ops import relu, sigmoid, tanh

__all__ = [
    "cross_entropy", "dropout", "dropout_with_mask", "embedding", "gelu", "layer_norm", "linear", "log_softmax",
    "mse_loss", "multi_head_attention", "nll_loss", "one_hot", "relu", "rms_norm", "scaled_dot_product_attention",
    "sigmoid", "silu", "softmax", "tanh",
]
