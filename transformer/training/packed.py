"""The loss of a padded batch without its padding: what `Transformer.loss` computes, in less time and memory.

A batch of sentences of unequal length is padded to (B, T). Attention needs this layout. Projections, norms,
feed-forward, dropout and the loss work on each token alone. So between the attentions the real tokens of all sentences
are packed end to end, as (N, D), and are unpacked to (B, T, D) where heads attend. The last layer and the loss are one
operation, which needs no gradient of the logits' shape.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from minigrad import Tensor, nn
from minigrad import functional as F
from minigrad.device import is_host
from minigrad.functional.compositions import composing
from minigrad.functional.dropout import dropout_mask
from minigrad.functional.more.rows import gather_rows, scatter_rows
from minigrad.nn.module import in_place_of

from transformer.known import is_known
from transformer.model import FeedForward, MultiHeadAttention, Residual, Transformer, shift_right
from transformer.model.masks import target_mask

MOST = 0.9  # the largest share of real tokens: above it, packing and unpacking cost more than the padding


def packed_loss(model: Transformer, source: Any, labels: Any, label_smoothing: float = 0.0,
                reduction: str = "mean") -> Tensor:
    """``model.loss(source, labels, label_smoothing, reduction)``, up to rounding; dropout draws the same masks.

    A model with parts that are not those of `transformer.model` (see `transformer.known`) runs `Transformer.loss`, and
    within ``minigrad.fused(False)`` every model does. On a GPU the padding stays, since counting the tokens would
    synchronise.

    Arguments are those of `Transformer.loss`.
    """
    if composing() or not is_known(model):
        return model.loss(source, labels, label_smoothing, reduction)
    return in_place_of(model, _loss, source, labels, label_smoothing, reduction)


def _loss(model: Transformer, source: Any, labels: Any, label_smoothing: float, reduction: str) -> Tensor:
    labels, source = model.target_ids(labels), model.source_ids(source)
    if source.shape[0] != labels.shape[0]:
        raise ValueError(f"source and labels must be of the same batch, got ids of shapes {tuple(source.shape)} and "
                         f"{tuple(labels.shape)}")
    pad_id = model.config.pad_id
    target, mask = shift_right(labels, model.config.bos_id), model.memory_mask(source)
    source_tokens = tokens = None
    if is_host(labels):
        tokens, source_tokens = real_tokens(needed_by(labels, target, pad_id)), real_tokens(source != pad_id)
    memory = (model.encoder(source, mask) if source_tokens is None else
              in_place_of(model.encoder, _encoder, source, mask, source_tokens))
    causal = target_mask(target, pad_id)
    if tokens is None and source_tokens is None:
        hidden = model.decoder(target, memory, causal, mask)
    else:
        hidden = in_place_of(model.decoder, _decoder, target, memory, causal, mask, tokens, source_tokens)
    if tokens is not None:
        labels = tokens.pack(labels)
    last: Any = model.decoder.embedding.table if model.projection is None else model.projection
    return F.linear_cross_entropy(hidden, last.weight, labels, getattr(last, "bias", None), pad_id, reduction,
                                  label_smoothing)


# --------------------------------------------------------------------------- which tokens


class RealTokens:
    """Which places of a padded batch hold tokens.

    Args:
        shape: (B, T)
        places: the indices of the real tokens among the B·T places, ascending.
    """

    def __init__(self, shape: tuple[int, int], places: np.ndarray) -> None:
        self.shape, self.places = shape, places

    def pack(self, x: Any) -> Any:
        """Take the real tokens alone: (B, T, …), a tensor or a raw array → (N, …)."""
        return gather_rows(x.reshape((math.prod(self.shape), *x.shape[2:])), self.places)

    def unpack(self, x: Tensor) -> Tensor:
        """Put each token in its place, with zeros elsewhere: (N, D) → (B, T, D)."""
        return scatter_rows(x, self.places, math.prod(self.shape)).reshape((*self.shape, *x.shape[1:]))


def real_tokens(is_real: np.ndarray) -> RealTokens | None:
    """The places where `is_real`, booleans (B, T), is true; None if it is true nearly everywhere."""
    places = np.flatnonzero(is_real)
    return RealTokens(is_real.shape, places) if len(places) <= MOST * is_real.size else None


def needed_by(labels: np.ndarray, target: np.ndarray, pad_id: int) -> np.ndarray:
    """The places of `target` (B, T), the decoder's input, that affect the loss of `labels`: booleans.

    A place does if it has a label, or a token to which a later place with a label may attend.
    """
    has_label = labels != pad_id
    before_a_label = np.logical_or.accumulate(has_label[:, ::-1], axis=1)[:, ::-1]
    return has_label | (before_a_label & (target != pad_id))


# --------------------------------------------------------------------------- the modules, on packed tokens
#
# Each function computes the forward of its module on (N, D) instead of (B, T, D); with None for `tokens`, on (B, T, D).
# `in_place_of` reports it as a call of the module, to a profile, say.


def _encoder(encoder: Any, source: Any, mask: Any, tokens: RealTokens) -> Tensor:
    x = in_place_of(encoder.embedding, _embedding, source, tokens)
    for layer in encoder.layers:
        x = in_place_of(layer, _encoder_layer, x, mask, tokens)
    return x if encoder.norm is None else encoder.norm(x)


def _decoder(decoder: Any, target: Any, memory: Tensor, mask: Any, memory_mask: Any, tokens: RealTokens | None,
             memory_tokens: RealTokens | None) -> Tensor:
    x = in_place_of(decoder.embedding, _embedding, target, tokens)
    for layer in decoder.layers:
        x = in_place_of(layer, _decoder_layer, x, memory, mask, memory_mask, tokens, memory_tokens)
    return x if decoder.norm is None else decoder.norm(x)


def _embedding(module: Any, ids: Any, tokens: RealTokens | None) -> Tensor:
    if tokens is None:
        return module.forward(ids)
    positions = F.embedding(tokens.places % ids.shape[1], module.positions(ids.shape[1]))
    return _dropout(module.dropout, module.table(tokens.pack(ids)) * module.scale + positions, tokens)


def _encoder_layer(layer: Any, x: Tensor, mask: Any, tokens: RealTokens) -> Tensor:
    x = in_place_of(layer.self_attention_residual, _residual, x, tokens, lambda y: in_place_of(
        layer.self_attention, _attention, y, y, mask, tokens, tokens))
    return in_place_of(layer.feed_forward_residual, _residual, x, tokens, lambda y: in_place_of(
        layer.feed_forward, _feed_forward, y, tokens))


def _decoder_layer(layer: Any, x: Tensor, memory: Tensor, mask: Any, memory_mask: Any, tokens: RealTokens | None,
                   memory_tokens: RealTokens | None) -> Tensor:
    x = in_place_of(layer.self_attention_residual, _residual, x, tokens, lambda y: in_place_of(
        layer.self_attention, _attention, y, y, mask, tokens, tokens))
    x = in_place_of(layer.cross_attention_residual, _residual, x, tokens, lambda y: in_place_of(
        layer.cross_attention, _attention, y, memory, memory_mask, tokens, memory_tokens))
    return in_place_of(layer.feed_forward_residual, _residual, x, tokens, lambda y: in_place_of(
        layer.feed_forward, _feed_forward, y, tokens))


def _residual(module: Residual, x: Tensor, tokens: RealTokens | None, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
    if module.pre:
        return x + _dropout(module.dropout, sublayer(module.norm(x)), tokens)
    return module.norm(x + _dropout(module.dropout, sublayer(x), tokens))


def _feed_forward(module: FeedForward, x: Tensor, tokens: RealTokens | None) -> Tensor:
    return module.outer(_dropout(module.dropout, module.activation(module.inner(x)), tokens))


def _attention(module: MultiHeadAttention, query: Tensor, key: Tensor, mask: Any, tokens: RealTokens | None,
               key_tokens: RealTokens | None) -> Tensor:
    """Project packed tokens, and unpack queries, keys and values to (B, ·, D) to attend."""
    keys, values, queries = module.key(key), module.value(key), module.query(query)
    if tokens is not None:
        queries = tokens.unpack(queries)
    if key_tokens is not None:
        keys, values = key_tokens.unpack(keys), key_tokens.unpack(values)
    dropout = module.p if module.training else 0.0
    context = F.multi_head_attention(queries, keys, values, module.num_heads, mask, dropout)
    return module.output(context if tokens is None else tokens.pack(context))


def _dropout(module: nn.Dropout, x: Tensor, tokens: RealTokens | None) -> Tensor:
    """Dropout whose mask is drawn for all places, so that a token has the same mask with and without padding."""
    if tokens is None or not module.training or not module.p:
        return module(x)
    mask = dropout_mask((*tokens.shape, x.shape[-1]), module.p, x.device)
    return F.dropout_with_mask(x, tokens.pack(mask), module.p)
