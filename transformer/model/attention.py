"""Multi-head attention (Vaswani et al. 2017, section 3.2.2)."""

from __future__ import annotations

from typing import Any

from minigrad import Tensor, nn, tap
from minigrad import functional as F
from minigrad.functional.attention import join_heads, split_heads
from minigrad.nn import init


class MultiHeadAttention(nn.Module):
    """``Concat(head₁, …, head_H) W_O`` with ``headᵢ = Attention(Q W_Q, K W_K, V W_V)ᵢ``.

    Args:
        d_model: features of the inputs and of the output.
        num_heads: H; each head has d_model / H features.
        dropout: probability of dropping an attention weight in training.
        bias: whether the four projections have biases.
        kdim, vdim: features of `key` and of `value`, if they are not d_model.
    """

    def __init__(self, d_model: int, num_heads: int, dropout: float = 0.0, bias: bool = True,
                 kdim: int | None = None, vdim: int | None = None) -> None:
        super().__init__()
        if d_model % num_heads:
            raise ValueError(f"d_model ({d_model}) must be a multiple of num_heads ({num_heads})")
        self.num_heads, self.p = num_heads, dropout
        self.query = nn.Linear(d_model, d_model, bias)
        self.key = nn.Linear(d_model if kdim is None else kdim, d_model, bias)
        self.value = nn.Linear(d_model if vdim is None else vdim, d_model, bias)
        self.output = nn.Linear(d_model, d_model, bias)
        for projection in (self.query, self.key, self.value, self.output):
            init.xavier_uniform_(projection.weight)
            if projection.bias is not None:
                init.zeros_(projection.bias)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Any = None, return_weights: bool = False,
                cache: Any = None) -> Any:
        """Attend from `query` to `key` and `value`.

        Args:
            query: (B, T, D)
            key, value: (B, S, D), or (B, S, kdim) and (B, S, vdim)
            mask: boolean, True = may attend, broadcastable to (B, H, T, S).
            return_weights: also return the attention weights before dropout, (B, H, T, S).
            cache: what holds the keys and values of earlier tokens or of the memory, see `transformer.decode.Cache`.

        Returns:
            (B, T, D), or that and the weights.

        Raises:
            ValueError: a cache, where weights are asked for.
        """
        dropout = self.p if self.training else 0.0
        if cache is not None:
            if return_weights:
                raise ValueError("MultiHeadAttention: with a cache there are no weights to return; trace has them")

            def split(projection: nn.Linear, name: str, x: Tensor) -> Any:  # arrays: there is no gradient
                return split_heads(projection(tap(name, x)).data, self.num_heads)

            context = cache.attend(split(self.query, "query_input", query), lambda: (
                split(self.key, "key_input", key), split(self.value, "value_input", value)), mask, dropout_p=dropout)
            return tap("output", self.output(context))
        # K W_K and V W_V: (B, S, D); Q W_Q: (B, T, D)
        keys = self.key(tap("key_input", key))
        values = self.value(tap("value_input", value))
        queries = self.query(tap("query_input", query))
        if not return_weights:
            context = F.multi_head_attention(queries, keys, values, self.num_heads, mask, dropout)  # (B, T, D)
            return tap("output", self.output(context))
        context, weights = F.multi_head_attention(queries, keys, values, self.num_heads, mask, dropout,
                                                  return_weights=True)
        return tap("output", self.output(context)), weights

    def split_heads(self, x: Tensor) -> Tensor:
        """Give each head its share of the features: (B, T, D) → (B, H, T, D/H)."""
        return split_heads(x, self.num_heads)

    def join_heads(self, x: Tensor) -> Tensor:
        """The inverse of `split_heads`: (B, H, T, D/H) → (B, T, D)."""
        return join_heads(x)

    def extra_repr(self) -> str:
        """Heads and dropout."""
        return f"num_heads={self.num_heads}, dropout={self.p}"
