"""What networks use. Each hot function is a composition of small steps, and one operation with its gradient by hand."""

from minigrad.functional.attention import multi_head_attention, scaled_dot_product_attention
from minigrad.functional.dropout import dropout, dropout_with_mask
from minigrad.functional.embedding import embedding
from minigrad.functional.gelu import gelu
from minigrad.functional.linear import linear
from minigrad.functional.loss import cross_entropy, nll_loss
from minigrad.functional.more.activation import (
    celu,
    elu,
    hardsigmoid,
    hardtanh,
    leaky_relu,
    logsigmoid,
    mish,
    relu6,
    selu,
    silu,
    softplus,
    softsign,
)
from minigrad.functional.more.convolution import avg_pool1d, conv1d, max_pool1d
from minigrad.functional.more.linear_cross_entropy import linear_cross_entropy
from minigrad.functional.more.losses import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    huber_loss,
    kl_div,
    l1_loss,
    mse_loss,
    smooth_l1_loss,
)
from minigrad.functional.more.one_hot import one_hot
from minigrad.functional.more.padding import pad
from minigrad.functional.more.patches import fold, unfold
from minigrad.functional.more.rms_norm import rms_norm
from minigrad.functional.more.similarity import cosine_similarity, normalize
from minigrad.functional.normalization import layer_norm
from minigrad.functional.softmax import log_softmax, softmax
from minigrad.ops import relu, sigmoid, tanh

__all__ = [
    "avg_pool1d", "binary_cross_entropy", "binary_cross_entropy_with_logits", "celu", "conv1d", "cosine_similarity",
    "cross_entropy", "dropout", "dropout_with_mask", "elu", "embedding", "fold", "gelu", "hardsigmoid", "hardtanh",
    "huber_loss", "kl_div", "l1_loss", "layer_norm", "leaky_relu", "linear", "linear_cross_entropy", "log_softmax",
    "logsigmoid", "max_pool1d", "mish", "mse_loss", "multi_head_attention", "nll_loss", "normalize", "one_hot", "pad",
    "relu", "relu6", "rms_norm", "scaled_dot_product_attention", "selu", "sigmoid", "silu", "smooth_l1_loss", "softmax",
    "softplus", "softsign", "tanh", "unfold",
]
