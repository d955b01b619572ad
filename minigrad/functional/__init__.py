"""What networks use: each function a readable composition and, where it is hot, a fused twin held to it by tests."""

from minigrad.functional.activation import gelu, relu
from minigrad.functional.attention import scaled_dot_product_attention
from minigrad.functional.convolution import conv1d
from minigrad.functional.dropout import dropout, dropout_with_mask
from minigrad.functional.embedding import embedding
from minigrad.functional.likelihood import binary_cross_entropy, binary_cross_entropy_with_logits, kl_div
from minigrad.functional.linear import linear
from minigrad.functional.loss import cross_entropy, nll_loss
from minigrad.functional.normalization import layer_norm, rms_norm
from minigrad.functional.pooling import avg_pool1d, max_pool1d
from minigrad.functional.regression import huber_loss, l1_loss, mse_loss, smooth_l1_loss
from minigrad.functional.similarity import cosine_similarity, normalize
from minigrad.functional.softmax import log_softmax, softmax

__all__ = [
    "avg_pool1d", "binary_cross_entropy", "binary_cross_entropy_with_logits", "conv1d", "cosine_similarity",
    "cross_entropy", "dropout", "dropout_with_mask", "embedding", "gelu", "huber_loss", "kl_div", "l1_loss",
    "layer_norm", "linear", "log_softmax", "max_pool1d", "mse_loss", "nll_loss", "normalize", "relu", "rms_norm",
    "scaled_dot_product_attention", "smooth_l1_loss", "softmax",
]
