"""What networks use: each function a readable composition and, where it is hot, a fused twin held to it by tests."""

from minigrad.functional.activation import (
    celu,
    elu,
    hardsigmoid,
    hardtanh,
    leaky_relu,
    logsigmoid,
    mish,
    relu,
    relu6,
    selu,
    sigmoid,
    silu,
    softplus,
    softsign,
    tanh,
)
from minigrad.functional.attention import scaled_dot_product_attention
from minigrad.functional.convolution import conv1d
from minigrad.functional.dropout import dropout, dropout_with_mask
from minigrad.functional.embedding import embedding, one_hot
from minigrad.functional.gelu import gelu
from minigrad.functional.likelihood import binary_cross_entropy, binary_cross_entropy_with_logits, kl_div
from minigrad.functional.linear import linear
from minigrad.functional.linear_cross_entropy import linear_cross_entropy
from minigrad.functional.loss import cross_entropy, nll_loss
from minigrad.functional.multi_head import multi_head_attention
from minigrad.functional.normalization import layer_norm, rms_norm
from minigrad.functional.pooling import avg_pool1d, max_pool1d
from minigrad.functional.regression import huber_loss, l1_loss, mse_loss, smooth_l1_loss
from minigrad.functional.similarity import cosine_similarity, normalize
from minigrad.functional.softmax import log_softmax, softmax

__all__ = [
    "avg_pool1d", "binary_cross_entropy", "binary_cross_entropy_with_logits", "celu", "conv1d", "cosine_similarity",
    "cross_entropy", "dropout", "dropout_with_mask", "elu", "embedding", "gelu", "hardsigmoid", "hardtanh",
    "huber_loss", "kl_div", "l1_loss", "layer_norm", "leaky_relu", "linear", "linear_cross_entropy", "log_softmax",
    "logsigmoid", "max_pool1d", "mish", "mse_loss", "multi_head_attention", "nll_loss", "normalize", "one_hot",
    "relu", "relu6", "rms_norm", "scaled_dot_product_attention", "selu", "sigmoid", "silu", "smooth_l1_loss",
    "softmax", "softplus", "softsign", "tanh",
]
