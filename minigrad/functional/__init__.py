"""What networks use: each function a readable composition and, where it is hot, a fused twin held to it by tests."""

from minigrad.functional.activation import gelu, relu
from minigrad.functional.attention import scaled_dot_product_attention
from minigrad.functional.dropout import dropout, dropout_with_mask
from minigrad.functional.embedding import embedding
from minigrad.functional.linear import linear
from minigrad.functional.loss import cross_entropy, nll_loss
from minigrad.functional.normalization import layer_norm
from minigrad.functional.softmax import log_softmax, softmax

__all__ = [
    "cross_entropy", "dropout", "dropout_with_mask", "embedding", "gelu", "layer_norm", "linear", "log_softmax",
    "nll_loss", "relu", "scaled_dot_product_attention", "softmax",
]
