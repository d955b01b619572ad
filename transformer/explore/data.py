"""The data of the page: JSON whose arrays are bytes in base64.

    title        what the page is about
    attentions   what is known of each attention, in the order in which they ran: `facts_of_attention`
    model        the live model (transformer/explore/live.py), with which the page computes every tensor
    opens        the name of the attention that the page opens with; null: it opens at the loss
    stories      those that the page can tell (transformer/explore/stories.py)
"""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from minigrad import Tensor
from minigrad.device import to_numpy

from transformer.explore.checks import Check
from transformer.explore.traced import AttentionTrace

Json = dict[str, Any]


class Tokens(NamedTuple):
    """The tokens that rows and columns are named by: a list for each batch item, all of one length.

    Attributes:
        source: the tokens that the encoder reads.
        target: the tokens that the decoder reads, begin-of-sentence first.
        following: the right next token after each of those.
    """

    source: list[list[str]]
    target: list[list[str]]
    following: list[list[str]]


def encoded(parameter: Tensor) -> Json:
    """A parameter as JSON: shape, dtype and its little-endian bytes in C order."""
    array = exact(parameter)
    return {"shape": list(array.shape), "dtype": array.dtype.name, "data": b64encode(array.tobytes()).decode("ascii")}


def facts_of_attention(attention: AttentionTrace, checks: Mapping[str, Sequence[Check]]) -> Json:
    """What a page cannot compute itself of an attention.

    Args:
        attention: a traced attention, after the backward.
        checks: by symbol, finite differences beside the engine's gradient; empty if nothing was measured.
    """
    queries, keys = sides(attention)
    return {
        "name": attention.name, "kind": attention.kind, "queries": queries, "keys": keys,
        # JSON has no NaN and no infinity: null stands for both.
        "checks": {symbol: [{name: value if math.isfinite(value) else None for name, value in check._asdict().items()}
                            for check in found] for symbol, found in checks.items()},
    }


def sides(attention: AttentionTrace) -> tuple[str, str]:
    """Which tokens name the queries and which the keys of a Transformer's attention, "source" or "target"."""
    if attention.kind == "cross":
        return "target", "source"
    side = "target" if attention.name.startswith("decoder") else "source"
    return side, side


def exact(parameter: Tensor) -> np.ndarray:
    """A parameter in the smallest of float16, float32 and float64 that holds it: that of its training, as a rule."""
    host = to_numpy(parameter._data)
    with np.errstate(over="ignore"):
        return next(array for array in map(host.astype, ("<f2", "<f4", "<f8"))
                    if np.array_equal(host, array, equal_nan=True))
