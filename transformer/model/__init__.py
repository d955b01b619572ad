"""The Transformer of "Attention Is All You Need" (Vaswani et al. 2017), in the order of the paper.

    config.py       the sizes and choices
    positions.py    where a token stands
    attention.py    multi-head attention, who may attend to whom
    layers.py       feed-forward, residual connection, encoder and decoder layer
    transformer.py  embedding, stacks, the model and its loss

Beside the paper's path, parts of later models:

    rotary.py             positions that turn queries and keys
    grouped_attention.py  heads of queries that share heads of keys and values
    language_model.py     a decoder-only model
"""

from transformer.model.attention import MultiHeadAttention, causal_mask, padding_mask
from transformer.model.config import LayerConfig, TransformerConfig
from transformer.model.grouped_attention import GroupedQueryAttention
from transformer.model.language_model import LanguageModel
from transformer.model.layers import DecoderLayer, EncoderLayer, FeedForward, Residual
from transformer.model.positions import LearnedPositions, SinusoidalPositions, sinusoid
from transformer.model.rotary import RotaryPositions
from transformer.model.transformer import Decoder, Encoder, TokenEmbedding, Transformer, shift_right

__all__ = [
    "Decoder", "DecoderLayer", "Encoder", "EncoderLayer", "FeedForward", "GroupedQueryAttention", "LanguageModel",
    "LayerConfig", "LearnedPositions", "MultiHeadAttention", "Residual", "RotaryPositions", "SinusoidalPositions",
    "TokenEmbedding", "Transformer", "TransformerConfig", "causal_mask", "padding_mask", "shift_right", "sinusoid",
]
