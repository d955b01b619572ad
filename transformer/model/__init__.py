"""The Transformer of "Attention Is All You Need" (Vaswani et al. 2017), in the order of the paper.

    config.py       the sizes and choices
    masks.py        who may attend to whom
    positions.py    where a token stands
    attention.py    multi-head attention
    layers.py       feed-forward, residual connection, encoder and decoder layer
    transformer.py  embedding, stacks, the model and its loss
    more/           parts of other models, off the path, and a decoder-only model made of them
"""

from transformer.model.attention import MultiHeadAttention
from transformer.model.config import LayerConfig, TransformerConfig
from transformer.model.layers import DecoderLayer, EncoderLayer, FeedForward, Residual
from transformer.model.masks import causal_mask, padding_mask
from transformer.model.positions import LearnedPositions, SinusoidalPositions, sinusoid
from transformer.model.transformer import Decoder, Encoder, TokenEmbedding, Transformer, shift_right

__all__ = [
    "Decoder", "DecoderLayer", "Encoder", "EncoderLayer", "FeedForward", "LayerConfig", "LearnedPositions",
    "MultiHeadAttention", "Residual", "SinusoidalPositions", "TokenEmbedding", "Transformer", "TransformerConfig",
    "causal_mask", "padding_mask", "shift_right", "sinusoid",
]
