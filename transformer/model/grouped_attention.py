"""Attention whose heads of queries share heads of keys and values, with rotary positions if one likes."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from minigrad import Tensor, nn, tap
from minigrad import functional as F
from minigrad.functional.attention import join_heads, split_heads

from transformer.model.attention import projections


class GroupedQueryAttention(nn.Module):
    """Grouped-query attention (Ainslie et al. 2023, arXiv:2305.13245); takes the place of a `MultiHeadAttention`.

    Each head of keys and values serves ``num_heads / num_kv_heads`` heads of queries: with one it is multi-query
    attention (Shazeer 2019, arXiv:1911.02150), with as many as there are heads of queries, multi-head attention.

    ```python
    layer = EncoderLayer(d_model=64, num_heads=4, d_ff=256)
    layer.self_attention = GroupedQueryAttention(64, num_heads=4, num_kv_heads=2, rotary=RotaryPositions())
    ```

    Args:
        d_model: features of the inputs and of the output.
        num_heads: H, heads of queries.
        num_kv_heads: G, heads of keys and of values, a divisor of H; None: H.
        head_dim: features of a head; None: d_model / H.
        dropout: probability of dropping an attention weight in training.
        bias: whether the projections have biases; or the names of those that do: Whisper's are "query", "value" and
            "output".
        rotary: called with heads (B, ·, T, head_dim) of queries or keys and the position of the first, it returns them
            turned, as `RotaryPositions` does; None: no positions.

    Raises:
        ValueError: numbers of heads that do not divide, or a bias of something else than a projection.
    """

    def __init__(self, d_model: int, num_heads: int, num_kv_heads: int | None = None, head_dim: int | None = None,
                 dropout: float = 0.0, bias: bool | Collection[str] = True,
                 rotary: Callable[[Tensor, int], Tensor] | None = None) -> None:
        super().__init__()
        num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        if num_heads < 1 or num_kv_heads < 1 or num_heads % num_kv_heads:
            raise ValueError(f"num_heads ({num_heads}) must be a multiple of num_kv_heads ({num_kv_heads})")
        if head_dim is None and d_model % num_heads:
            raise ValueError(f"d_model ({d_model}) must be a multiple of num_heads ({num_heads}), or head_dim be given")
        self.num_heads, self.num_kv_heads = num_heads, num_kv_heads
        self.head_dim = d_model // num_heads if head_dim is None else head_dim
        self.p, self.rotary = dropout, rotary
        inner, shared = num_heads * self.head_dim, num_kv_heads * self.head_dim
        self.query, self.key, self.value, self.output = projections([
            (d_model, inner), (d_model, shared), (d_model, shared), (inner, d_model)], bias)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Any = None, cache: Any = None) -> Tensor:
        """Attend from `query` to `key` and `value`.

        With rotary positions the keys stand at 0 … S - 1, and the queries are the last T of them.

        Args:
            query: (B, T, D)
            key, value: (B, S, D)
            mask: boolean, True = may attend, broadcastable to (B, H, T, S).
            cache: what holds the keys and values of earlier tokens or of the memory, see `transformer.decode.Cache`.

        Returns:
            (B, T, D)

        Raises:
            ValueError: more queries than keys, with rotary positions.
        """
        earlier = key.shape[1] - query.shape[1]
        if self.rotary is not None and earlier < 0:
            raise ValueError(f"GroupedQueryAttention: {query.shape[1]} queries cannot be the last of {key.shape[1]} "
                             "keys, which gives them their rotary positions")
        past = 0 if cache is None else cache.past

        def made() -> tuple[Tensor, Tensor]:  # (B, G, S, head_dim)
            keys = split_heads(self.key(tap("key_input", key)), self.num_kv_heads)
            values = split_heads(self.value(tap("value_input", value)), self.num_kv_heads)
            return keys if self.rotary is None else self.rotary(keys, past), values

        queries = split_heads(self.query(tap("query_input", query)), self.num_heads)  # (B, H, T, head_dim)
        if self.rotary is not None:
            queries = self.rotary(queries, past + earlier)
        options: dict[str, Any] = {"dropout_p": self.p if self.training else 0.0, "enable_gqa": True}
        context = (join_heads(F.scaled_dot_product_attention(queries, *made(), mask, **options)) if cache is None else
                   cache.attend(queries.data, lambda: [x.data for x in made()], mask, **options))
        return tap("output", self.output(tap("concatenated", context)))

    def extra_repr(self) -> str:
        """Heads, dropout and positions."""
        return (f"num_heads={self.num_heads}, num_kv_heads={self.num_kv_heads}, head_dim={self.head_dim}, "
                f"dropout={self.p}, rotary={self.rotary}")
