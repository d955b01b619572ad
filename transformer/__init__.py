"""A sequence-to-sequence Transformer built on minigrad alone."""

from transformer.attention import MultiHeadAttention
from transformer.config import TransformerConfig
from transformer.masks import causal_mask, padding_mask
from transformer.model import Decoder, Encoder, Transformer, shift_right
from transformer.trace import trace

__all__ = ["Decoder", "Encoder", "MultiHeadAttention", "Transformer", "TransformerConfig", "causal_mask",
           "padding_mask", "shift_right", "trace"]
