"""A decoder-only Transformer, which predicts the next token (Radford et al. 2019, "GPT-2")."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad import Tensor, nn
from minigrad import functional as F
from minigrad.device import device_of

from transformer.model.attention import causal_mask
from transformer.model.config import LayerConfig
from transformer.model.grouped_attention import GroupedQueryAttention
from transformer.model.layers import DecoderLayer, given
from transformer.model.positions import LearnedPositions, SinusoidalPositions
from transformer.model.rotary import RotaryPositions
from transformer.model.transformer import ids_on, token_table

POSITIONS = {"learned": LearnedPositions, "sinusoidal": SinusoidalPositions, "rotary": None}


class LanguageModel(nn.Module):
    """Embeddings and positions, layers of self-attention under a causal mask, and a projection to the vocabulary.

    Args:
        vocab_size: V, the number of token ids.
        d_model, num_heads, num_layers, d_ff: sizes; `d_ff` is 4 · d_model by default.
        num_kv_heads: heads of keys and values of a `GroupedQueryAttention`; None: ordinary attention.
        max_length: the longest text in tokens; no limit with rotary positions.
        dropout, norm, activation, layer_norm_eps: as in `LayerConfig`; GPT-2's activation is "gelu_tanh". With
            norm="pre", as in GPT-2, a last norm precedes the projection.
        positions: "learned" (GPT-2's), "sinusoidal", or "rotary", in every attention (see `RotaryPositions`).
        bias: whether projections, feed-forward layers and norms have biases.
        tie_output: project with the embedding's weights (GPT-2), or with those of a layer of its own, without a bias.
        pad_id: the id of padding, which follows the tokens of a shorter text; None: there is none.
        cross_attention: whether each layer also attends to a memory, the output of an encoder of any kind.
    """

    def __init__(self, vocab_size: int, d_model: int = 256, num_heads: int = 8, num_layers: int = 4,
                 d_ff: int | None = None, num_kv_heads: int | None = None, max_length: int = 256, dropout: float = 0.1,
                 norm: str = "pre", activation: str = "gelu", positions: str = "learned", bias: bool = True,
                 layer_norm_eps: float = 1e-5, tie_output: bool = True, pad_id: int | None = None,
                 cross_attention: bool = False) -> None:
        super().__init__()
        if positions not in POSITIONS:
            raise ValueError(f"LanguageModel: positions must be one of {', '.join(POSITIONS)}, got {positions!r}")
        added, rotary = POSITIONS[positions], RotaryPositions() if positions == "rotary" else None
        self.vocab_size, self.max_length, self.pad_id = vocab_size, None if rotary else max_length, pad_id
        self.cross_attention = cross_attention
        self.table = token_table(vocab_size, d_model)
        self.positions = None if added is None else added(max_length, d_model)
        self.scale = d_model ** 0.5 if positions == "sinusoidal" else 1.0  # as Vaswani et al., section 3.4
        self.dropout = nn.Dropout(dropout)
        config = LayerConfig(d_model=d_model, num_heads=num_heads, d_ff=4 * d_model if d_ff is None else d_ff,
                             dropout=dropout, norm=norm, activation=activation, bias=bias, norm_bias=bias,
                             layer_norm_eps=layer_norm_eps)
        self.layers = nn.ModuleList([DecoderLayer(config, cross_attention=cross_attention) for _ in range(num_layers)])
        if rotary or num_kv_heads is not None:
            for layer in self.layers:
                layer.self_attention = GroupedQueryAttention(d_model, num_heads, num_kv_heads, dropout=dropout,
                                                             bias=bias, rotary=rotary)
        self.norm = nn.LayerNorm(d_model, layer_norm_eps, bias=bias) if norm == "pre" else None
        self.projection = None if tie_output else nn.Linear(d_model, vocab_size, bias=False)

    def forward(self, ids: Any, memory: Tensor | None = None, cache: Any = None) -> Tensor:
        """Ids (B, T) → the logits of the token after each, (B, T, V).

        Args:
            ids: a tensor, an array or nested lists.
            memory: for cross-attention, (B, S, D).
            cache: a `transformer.decode.Cache`: the logits are those of the tokens that it does not have yet.

        Raises:
            TypeError: a memory, and no cross-attention, or the other way round; ids that are not integers.
            ValueError: ids of another shape, or more than `max_length`.
            IndexError: an id outside the vocabulary.
        """
        ids = ids_on(self.table.weight.device, ids, self.vocab_size, "LanguageModel:")
        if (memory is None) is self.cross_attention:
            raise TypeError("LanguageModel: a memory belongs to a model with cross_attention=True, and to no other")
        past = 0 if cache is None else cache.begin(ids)
        length = ids.shape[1] - past
        x = self.table(ids[:, past:]) * self.scale  # (B, T, D)
        x = self.dropout(x if self.positions is None else x + self.positions(length, past))
        mask = causal_mask(length, past + length, device_of(ids)) if length > 1 else None
        for number, layer in enumerate(self.layers):
            x = layer(x, memory, mask, **given(cache and cache[number]))
        x = x if self.norm is None else self.norm(x)
        return F.linear(x, self.table.weight) if self.projection is None else self.projection(x)

    def loss(self, ids: Any, label_smoothing: float = 0.0, reduction: str = "mean", memory: Tensor | None = None
             ) -> Tensor:
        """The cross-entropy of every token of ids (B, T) but the first, given those before it, without padding.

        Args:
            ids: texts, each with padding at its end.
            label_smoothing, reduction: as for `minigrad.functional.cross_entropy`.
            memory: for cross-attention, (B, S, D).

        Raises:
            TypeError: targets beside the ids, which are their own targets.
        """
        if np.ndim(label_smoothing):
            raise TypeError("LanguageModel.loss: the targets are the ids themselves, moved by one: loss(ids)")
        ids = ids_on(self.table.weight.device, ids, self.vocab_size, "LanguageModel:")
        ignored = -1 if self.pad_id is None else self.pad_id
        return F.cross_entropy(self(ids[:, :-1], memory=memory), ids[:, 1:], ignored, reduction, label_smoothing)
