"""Leaving padding out of the work that is done token by token.

A batch of sentences of unequal length is padded to (B, T). Attention needs it so; but projections, norms, feed-forward,
dropout and the loss work on each token alone, and the real ones, end to end, are all that they need to see. So between
the attentions the model can go on with (N, D), the N real tokens, and lay them out as (B, T, D) where heads attend.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minigrad import Tensor, nn
from minigrad import functional as F
from minigrad.device.local import Setting, Switch
from minigrad.functional.compositions import composing
from minigrad.functional.dropout import dropout_mask
from minigrad.functional.more.rows import gather_rows, scatter_rows

_leaves_out = Switch("transformer.leaves_out_padding", True)
MOST = 0.9  # of all places: with more real tokens, laying them out costs more than leaving out the others saves


def with_padding() -> Setting[bool]:
    """A context, and decorator, within which every sentence keeps its padding and every tensor its shape (B, T, D)."""
    return _leaves_out.set_to(False)


class RealTokens:
    """Which places of a padded batch hold tokens.

    Args:
        shape: (B, T)
        places: of the real tokens, as indices into the B·T places, ascending.
    """

    def __init__(self, shape: tuple[int, int], places: np.ndarray) -> None:
        self.shape, self.places = shape, places

    def pack(self, x: Any) -> Any:
        """Real tokens alone: (B, T, …), a tensor or a raw array → (N, …)."""
        return gather_rows(x.reshape((math.prod(self.shape), *x.shape[2:])), self.places)

    def unpack(self, x: Tensor) -> Tensor:
        """Each token in its place, zeros where there is none: (N, D) → (B, T, D)."""
        return scatter_rows(x, self.places, math.prod(self.shape)).reshape((*self.shape, *x.shape[1:]))


def real_tokens(is_real: np.ndarray) -> RealTokens | None:
    """What is to be computed where `is_real`, booleans (B, T), says so; None if nothing is to be left out.

    That is so if nearly all are real, within `with_padding`, and on compositions, whose steps are for looking at. (On a
    GPU to count tokens would be to wait for it: there nobody asks.)
    """
    if composing() or not _leaves_out.get():
        return None
    places = np.flatnonzero(is_real)
    return RealTokens(is_real.shape, places) if len(places) <= MOST * is_real.size else None


def needed_by(labels: np.ndarray, target: np.ndarray, pad_id: int) -> np.ndarray:
    """Which places of `target` (B, T), what a decoder reads, count for the loss of `labels`: booleans.

    A place counts if it has a label, or a token which a later place with a label may attend to.
    """
    has_label = labels != pad_id
    before_a_label = np.logical_or.accumulate(has_label[:, ::-1], axis=1)[:, ::-1]
    return has_label | (before_a_label & (target != pad_id))


def given(tokens: RealTokens | None) -> tuple[RealTokens, ...]:
    """`tokens` as further arguments of a call: none where nothing is left out.

    So whoever puts a module of their own into the model need not know of it; see `transformer.model.is_plain`.
    """
    return () if tokens is None else (tokens,)


def given_by_name(tokens: RealTokens | None, key_tokens: RealTokens | None) -> dict[str, RealTokens | None]:
    """The same for an attention."""
    return {} if tokens is None and key_tokens is None else {"tokens": tokens, "key_tokens": key_tokens}


class Dropout(nn.Dropout):
    """Dropout that a token meets alike whether or not padding was left out: the mask is drawn for all places."""

    def forward(self, x: Tensor, tokens: RealTokens | None = None) -> Tensor:
        """Drop elements of x, (B, T, D), or (N, D) for the real `tokens`, if ``training``."""
        if tokens is None or not self.training or not self.p:
            return F.dropout(x, self.p, self.training)
        mask = dropout_mask((*tokens.shape, x.shape[-1]), self.p, x.device)
        return F.dropout_with_mask(x, tokens.pack(mask), self.p)
