"""A sequence-to-sequence Transformer built on minigrad alone.

    model/     the architecture, in the order of the paper
    data/      tasks, parallel text, tokenizers, batches
    decode/    greedy decoding, beam search, sampling
    training/  the training loop, threads, checkpoints
    explore/   trace, the explorer of the backward pass, plots
    interop/   weights from PyTorch and to PyTorch
    cli/       the commands
    translator.py  a trained model with its tokenizers, which translates lines of text
"""

from transformer.decode.cache import Cache
from transformer.decode.generate import generate, stream
from transformer.explore.trace import trace
from transformer.model import (
    Decoder,
    DecoderLayer,
    Encoder,
    EncoderLayer,
    FeedForward,
    GroupedQueryAttention,
    LanguageModel,
    LayerConfig,
    LearnedPositions,
    MultiHeadAttention,
    Residual,
    RotaryPositions,
    SinusoidalPositions,
    Transformer,
    TransformerConfig,
    causal_mask,
    padding_mask,
    shift_right,
)
from transformer.translator import Translator

__all__ = [
    "Cache", "Decoder", "DecoderLayer", "Encoder", "EncoderLayer", "FeedForward", "GroupedQueryAttention",
    "LanguageModel", "LayerConfig", "LearnedPositions", "MultiHeadAttention", "Residual", "RotaryPositions",
    "SinusoidalPositions", "Transformer", "TransformerConfig", "Translator", "causal_mask", "generate",
    "padding_mask", "shift_right", "stream", "trace",
]
