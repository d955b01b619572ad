"""Multi-head attention (Vaswani et al. 2017, section 3.2.2), and who may attend to whom (3.2.3).

A mask is boolean, **True = may attend**, and broadcastable to (batch, heads, queries, keys); join masks with ``&``.
None stands for a mask that is True everywhere. Ids are a raw array, a Tensor or nested lists; their masks are raw
arrays on their device.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from minigrad import Tensor, nn, tap
from minigrad import functional as F
from minigrad.device import device_of, is_array, is_host, module_for, on_device, on_device_of
from minigrad.functional.attention import split_heads
from minigrad.nn import init

PROJECTIONS = ("query", "key", "value", "output")


def xavier(*linears: nn.Linear) -> None:
    """Begin anew: weights Xavier-uniform, biases zero."""
    for linear in linears:
        init.xavier_uniform_(linear.weight)
        if linear.bias is not None:
            init.zeros_(linear.bias)


def projections(sizes: Sequence[tuple[int, int]], bias: bool | Collection[str]) -> list[nn.Linear]:
    """The four of an attention, each from its two sizes; `bias` says whether they have biases, or which by name."""
    with_bias = PROJECTIONS if bias is True else bias or ()
    if not set(with_bias) <= set(PROJECTIONS):
        raise ValueError(f"bias must be True, False or names among {', '.join(PROJECTIONS)}, got {bias!r}")
    linears = [nn.Linear(*size, name in with_bias) for size, name in zip(sizes, PROJECTIONS, strict=True)]
    xavier(*linears)
    return linears


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
        self.query, self.key, self.value, self.output = projections([
            (d_model, d_model), (d_model if kdim is None else kdim, d_model),
            (d_model if vdim is None else vdim, d_model), (d_model, d_model)], bias)

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
            return self._attend_to(cache, query, key, value, mask, return_weights, dropout)
        keys, values = self.key(tap("key_input", key)), self.value(tap("value_input", value))  # (B, S, D)
        queries = self.query(tap("query_input", query))  # (B, T, D)
        found = F.multi_head_attention(queries, keys, values, self.num_heads, mask, dropout,
                                       return_weights=return_weights)
        if return_weights:
            return tap("output", self.output(found[0])), found[1]
        return tap("output", self.output(found))  # (B, T, D)

    def _attend_to(self, cache: Any, query: Tensor, key: Tensor, value: Tensor, mask: Any, return_weights: bool,
                   dropout: float) -> Tensor:
        """`forward` with a cache, which makes keys and values when it needs them; of raw arrays, without a gradient."""
        if return_weights:
            raise ValueError("MultiHeadAttention: with a cache there are no weights to return; trace has them")

        def made() -> list[Any]:  # (B, H, S, D/H)
            return [split_heads(x.data, self.num_heads)
                    for x in (self.key(tap("key_input", key)), self.value(tap("value_input", value)))]

        queries = split_heads(self.query(tap("query_input", query)).data, self.num_heads)
        return tap("output", self.output(cache.attend(queries, made, mask, dropout_p=dropout)))

    def extra_repr(self) -> str:
        """Heads and dropout."""
        return f"num_heads={self.num_heads}, dropout={self.p}"


# --------------------------------------------------------------------------- who may attend to whom


def padding_mask(ids: Any, pad_id: int = 0) -> Any:
    """Every query may attend to the real tokens: ids (B, S) → (B, 1, 1, S), True where not `pad_id`."""
    ids = ids if is_array(ids) else Tensor(ids).data
    if ids.ndim != 2:
        raise ValueError(f"padding_mask: ids of shape (batch, length) expected, got {tuple(ids.shape)}")
    with on_device_of(ids):
        return (ids != pad_id)[:, None, None, :]


def causal_mask(queries: int, keys: int | None = None, device: str = "cpu") -> Any:
    """No token may attend to a later one: (queries, keys), True on and below the diagonal.

    With more keys than queries, the queries are the last ones: they follow ``keys - queries`` earlier tokens. It is
    a raw array on `device`.
    """
    keys = queries if keys is None else keys
    if keys < queries:
        raise ValueError(f"causal_mask: {queries} queries cannot be the last of {keys} keys")
    with on_device(device):
        return module_for(device).tri(queries, keys, keys - queries, dtype=bool)


def source_mask(ids: Any, pad_id: int = 0) -> Any:
    """The `padding_mask` of ids (B, S); None if they are a raw array in host memory and hold no padding.

    Ids on a GPU are not read back to look for padding: there the mask is never None.
    """
    return None if is_host(ids) and (ids != pad_id).all() else padding_mask(ids, pad_id)


def target_mask(ids: Any, pad_id: int = 0, past: int = 0) -> Any:
    """The `causal_mask` of ids (B, T), joined with their `source_mask`: a row for each after the first `past`.

    None for a single such token without padding.
    """
    real, queries = source_mask(ids, pad_id), ids.shape[1] - past
    if queries < 2:
        return real
    causal = causal_mask(queries, ids.shape[1], device_of(ids))
    with on_device_of(ids):
        return causal if real is None else causal & real  # (T, T) & (B, 1, 1, T) -> (B, 1, T, T)
