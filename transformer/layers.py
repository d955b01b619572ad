"""The layers of the two stacks: residual connections, feed-forward, encoder and decoder layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minigrad import Tensor, nn, tap
from minigrad import functional as F
from minigrad.nn import init

from transformer.attention import MultiHeadAttention
from transformer.cache import LayerCache
from transformer.config import TransformerConfig
from transformer.real_tokens import Dropout, RealTokens, given, given_by_name

_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
}


class Residual(nn.Module):
    """A sublayer with its norm, dropout and the path around it; pre- and post-norm are written here, once.

    Args:
        config: says whether the norm comes first or last, and the width, the dropout and the options of the norm.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.pre = config.norm == "pre"
        self.norm = nn.LayerNorm(config.d_model, config.layer_norm_eps, bias=config.norm_bias)
        self.dropout = Dropout(config.dropout)

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor], tokens: RealTokens | None = None) -> Tensor:
        """``x + dropout(sublayer(norm(x)))``, post-norm ``norm(x + dropout(sublayer(x)))``: (B, T, D) → (B, T, D).

        With `tokens`, as everywhere below: (N, D) → (N, D), the real tokens alone.
        """
        x = tap("stream", x)
        if self.pre:
            return tap("result", x + self.dropout(sublayer(self.norm(x)), *given(tokens)))
        return tap("result", self.norm(x + self.dropout(sublayer(x), *given(tokens))))


class FeedForward(nn.Module):
    """``activation(x W₁ + b₁) W₂ + b₂``, on each position alone (section 3.3): (B, T, D) → (B, T, D).

    Args:
        config: has the widths `d_model` and `d_ff`, the activation, the dropout after it, and whether there are biases.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.inner = nn.Linear(config.d_model, config.d_ff, config.bias)
        self.outer = nn.Linear(config.d_ff, config.d_model, config.bias)
        self.dropout = Dropout(config.dropout)
        self.activation = _ACTIVATIONS[config.activation]
        for linear in (self.inner, self.outer):
            init.xavier_uniform_(linear.weight)
            if linear.bias is not None:
                init.zeros_(linear.bias)

    def forward(self, x: Tensor, tokens: RealTokens | None = None) -> Tensor:
        """Apply both linear maps: (B, T, D) → (B, T, d_ff) → (B, T, D)."""
        return self.outer(self.dropout(self.activation(self.inner(x)), *given(tokens)))


def _attention(config: TransformerConfig) -> MultiHeadAttention:
    return MultiHeadAttention(config.d_model, config.num_heads, config.dropout, config.bias)


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward, each in a residual connection.

    Args:
        config: of the whole model; the layer takes its widths, heads, dropout, activation and norms from it.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.self_attention = _attention(config)
        self.self_attention_residual = Residual(config)
        self.feed_forward = FeedForward(config)
        self.feed_forward_residual = Residual(config)

    def forward(self, x: Tensor, mask: Any = None, tokens: RealTokens | None = None) -> Tensor:
        """(B, S, D) → (B, S, D); `mask` says which source tokens each source token may attend to."""

        def to_itself(y: Tensor) -> Tensor:
            return self.self_attention(y, y, y, mask, **given_by_name(tokens, tokens))

        x = self.self_attention_residual(x, to_itself, *given(tokens))
        return self.feed_forward_residual(x, lambda y: self.feed_forward(y, *given(tokens)), *given(tokens))


class DecoderLayer(nn.Module):
    """Self-attention, cross-attention to the encoder's output, then feed-forward, each in a residual connection.

    Args:
        config: of the whole model; the layer takes its widths, heads, dropout, activation and norms from it.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.self_attention = _attention(config)
        self.self_attention_residual = Residual(config)
        self.cross_attention = _attention(config)
        self.cross_attention_residual = Residual(config)
        self.feed_forward = FeedForward(config)
        self.feed_forward_residual = Residual(config)

    def forward(self, x: Tensor, memory: Tensor, mask: Any = None, memory_mask: Any = None,
                cache: LayerCache | None = None, tokens: RealTokens | None = None,
                memory_tokens: RealTokens | None = None) -> Tensor:
        """One layer of the decoder.

        Args:
            x: the target so far, (B, T, D); with a cache, only its tokens that are new.
            memory: the encoder's output, (B, S, D).
            mask: which target tokens each of x may attend to, broadcastable to (B, H, T, all target tokens).
            memory_mask: which source tokens it may attend to, broadcastable to (B, H, T, S).
            cache: keys and values of earlier tokens and of the memory; the new ones are added to it.
            tokens, memory_tokens: if given, x and the result, or `memory`, are (N, D), the real tokens alone.

        Returns:
            (B, T, D)
        """

        def to_itself(y: Tensor) -> Tensor:
            if cache is None:
                return self.self_attention(y, y, y, mask, **given_by_name(tokens, tokens))
            keys, values = cache.extend(*self.self_attention.keys_and_values(y, y))
            return self.self_attention.attend(y, keys, values, mask)

        def to_memory(y: Tensor) -> Tensor:
            if cache is None:
                return self.cross_attention(y, memory, memory, memory_mask, **given_by_name(tokens, memory_tokens))
            keys, values = cache.of_memory(lambda: self.cross_attention.keys_and_values(memory, memory))
            return self.cross_attention.attend(y, keys, values, memory_mask)

        x = self.self_attention_residual(x, to_itself, *given(tokens))
        x = self.cross_attention_residual(x, to_memory, *given(tokens))
        return self.feed_forward_residual(x, lambda y: self.feed_forward(y, *given(tokens)), *given(tokens))
