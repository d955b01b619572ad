"""The layers of the two stacks: residual connection, feed-forward, encoder layer and decoder layer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minigrad import Tensor, nn, tap
from minigrad import functional as F

from transformer.model.attention import MultiHeadAttention, xavier
from transformer.model.config import Activation, Config, config_of

ACTIVATIONS: dict[str, Activation] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
}


class Residual(nn.Module):
    """A sublayer with its norm, dropout and the path around it; pre- and post-norm are written here, once.

    Args:
        config: says whether the norm comes first or last, and the width, the dropout and the options of the norm.
        options: in place of `config`, by name: d_model, and norm, dropout, norm_bias, layer_norm_eps of `LayerConfig`.
    """

    def __init__(self, config: Config | None = None, **options: Any) -> None:
        super().__init__()
        config = config_of(self, config, options, "d_model", "norm", "dropout", "norm_bias", "layer_norm_eps")
        self.pre = config.norm == "pre"
        self.norm = nn.LayerNorm(config.d_model, config.layer_norm_eps, bias=config.norm_bias)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """``x + dropout(sublayer(norm(x)))``, post-norm ``norm(x + dropout(sublayer(x)))``: (B, T, D) → (B, T, D)."""
        x = tap("stream", x)
        if self.pre:
            return tap("result", x + self.dropout(sublayer(self.norm(x))))
        return tap("result", self.norm(x + self.dropout(sublayer(x))))


class FeedForward(nn.Module):
    """``activation(x W₁ + b₁) W₂ + b₂``, on each position alone (section 3.3).

    Args:
        config: has the widths `d_model` and `d_ff`, the activation, the dropout after it, and whether there are biases.
        options: in place of `config`, by name: d_model, d_ff, and activation, dropout, bias of `LayerConfig`.
    """

    def __init__(self, config: Config | None = None, **options: Any) -> None:
        super().__init__()
        config = config_of(self, config, options, "d_model", "d_ff", "activation", "dropout", "bias")
        self.inner = nn.Linear(config.d_model, config.d_ff, config.bias)
        self.outer = nn.Linear(config.d_ff, config.d_model, config.bias)
        self.dropout = nn.Dropout(config.dropout)
        self.activation = ACTIVATIONS[config.activation] if isinstance(config.activation, str) else config.activation
        xavier(self.inner, self.outer)

    def forward(self, x: Tensor) -> Tensor:
        """Apply both linear maps: (B, T, D) → (B, T, d_ff) → (B, T, D)."""
        return self.outer(self.dropout(self.activation(self.inner(x))))


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward, each in a residual connection (section 3.1).

    Args:
        config: of the whole model; the layer takes its widths, heads, dropout, activation and norms from it.
        options: in place of `config`, the fields of a `LayerConfig` by name: d_model, num_heads, d_ff, and any others.

    Any module takes the place of a part by assignment: ``layer.self_attention = GroupedQueryAttention(64, 4, 2)``.
    """

    self_attention: Any  # a MultiHeadAttention, or what is called like one

    def __init__(self, config: Config | None = None, **options: Any) -> None:
        super().__init__()
        config = config_of(self, config, options)
        self.self_attention = _attention(config)
        self.self_attention_residual = Residual(config)
        self.feed_forward = FeedForward(config)
        self.feed_forward_residual = Residual(config)

    def forward(self, x: Tensor, mask: Any = None) -> Tensor:
        """(B, S, D) → (B, S, D); `mask`, broadcastable to (B, H, S, S), says which source tokens each may attend to."""
        x = self.self_attention_residual(x, lambda y: self.self_attention(y, y, y, mask))
        return self.feed_forward_residual(x, self.feed_forward)


class DecoderLayer(nn.Module):
    """Self-attention, cross-attention to the encoder's output, then feed-forward, each in a residual connection.

    Args:
        config: of the whole model; the layer takes its widths, heads, dropout, activation and norms from it.
        options: in place of `config`, the fields of a `LayerConfig` by name: d_model, num_heads, d_ff, and any others.
        cross_attention: False for the layer of a decoder without encoder: ``layer(x, mask=mask)``. The attributes
            `cross_attention` and `cross_attention_residual` are then None, and it ignores a memory.
    """

    self_attention: Any  # a MultiHeadAttention, or what is called like one
    cross_attention: Any
    cross_attention_residual: Any

    def __init__(self, config: Config | None = None, *, cross_attention: bool = True, **options: Any) -> None:
        super().__init__()
        config = config_of(self, config, options)
        self.self_attention = _attention(config)
        self.self_attention_residual = Residual(config)
        self.cross_attention = _attention(config) if cross_attention else None
        self.cross_attention_residual = Residual(config) if cross_attention else None
        self.feed_forward = FeedForward(config)
        self.feed_forward_residual = Residual(config)

    def forward(self, x: Tensor, memory: Tensor | None = None, mask: Any = None, memory_mask: Any = None,
                cache: Any = None) -> Tensor:
        """One layer of the decoder.

        Args:
            x: the target so far, (B, T, D).
            memory: the encoder's output, (B, S, D); None without cross-attention.
            mask: which target tokens each of x may attend to, broadcastable to (B, H, T, T).
            memory_mask: which source tokens it may attend to, broadcastable to (B, H, T, S).
            cache: ``cache[i]`` of a `transformer.decode.Cache`, for the i-th layer.

        Returns:
            (B, T, D)

        Raises:
            TypeError: no memory for the cross-attention, or a mask in its place.
        """
        x = self.self_attention_residual(x, lambda y: self.self_attention(
            y, y, y, mask, **given(cache and cache.tokens)))
        crosses, is_mask = self.cross_attention_residual is not None, getattr(memory, "dtype", None) == "bool"
        if (crosses and memory is None) or (not crosses and is_mask):
            raise TypeError("DecoderLayer: cross-attention needs the memory; a layer without is called layer(x, "
                            "mask=mask)")
        if crosses:
            x = self.cross_attention_residual(x, lambda y: self.cross_attention(
                y, memory, memory, memory_mask, **given(cache and cache.memory)))
        return self.feed_forward_residual(x, self.feed_forward)


def given(cache: Any) -> dict[str, Any]:
    """The option ``cache=…`` if there is one: a part of another class need not know it."""
    return {} if cache is None else {"cache": cache}


def _attention(config: Config) -> MultiHeadAttention:
    return MultiHeadAttention(config.d_model, config.num_heads, config.dropout, config.bias)
