"""The data of the page: JSON whose arrays are bytes in base64.

`page_data` returns the data of a page:

    title, loss, lossName, precision
    tokens       the labels of the rows, "source", "target" and "next" (`Tokens`)
    attentions   what is known of each attention, in the order in which they ran
    leftOut      the names of those for which there was no room
    model        the live model (transformer/explore/live.py), with which the page computes all of these; or null
    notLive      why there is none, in words; or null
    opens        the name of the attention that the page of a live model opens with; null: the page chooses
    stories      those that the page can tell (transformer/explore/stories.py)

Without a live model the page recomputes each attention between its ends, forward and backward, so it shows the numbers
of the engine and can also show those of changed values. `attention_data` returns what it needs for that. Weights are
stored in float32 where that is exact, the inputs of an attention and the gradient of its output in float64:

    x, m            X and M, the inputs of queries and of keys and values; m is null where M is X
    weights         of the four projections as the module has them, (out, in)
    q, k, v         Q, K and V, in place of those, of an attention of which the core alone is known; null otherwise
    joined          whether C and Y come after the core: false where the heads' O go to the module as they are
    g               dY, the gradient of the output; of a core that of C, or of the O of the heads side by side
    mask, dropped   1 = may attend, 1 = kept; null where there is none
    residual        the connection around it: its input, the gradient of that, the gradient of its output
    checks          by symbol, finite differences beside the engine's gradient (transformer/explore/checks.py)
    history         weights and gradients of the scaled scores at checkpoints of the training, oldest first

With a live model the page makes every tensor itself, and `facts_of_attention` leaves out all arrays but the history.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from minigrad import Tensor
from minigrad.device import to_numpy
from minigrad.functional.attention import join_heads

from transformer.explore.checks import Check
from transformer.explore.labels import names, row_names
from transformer.explore.steps import check_formulas
from transformer.explore.traced import PER_HEAD, PROJECTIONS, AttentionTrace, ResidualTrace

FORMAT = 2
Json = dict[str, Any]


@dataclass(frozen=True, repr=False)
class Tokens:
    """The tokens that rows and columns are named by: a list for each batch item, all of one length.

    Attributes:
        source: the tokens that the encoder reads.
        target: the tokens that the decoder reads, begin-of-sentence first.
        following: the right next token after each of those; an empty text where it is unknown.
    """

    source: list[list[str]]
    target: list[list[str]]
    following: list[list[str]]

    def keys(self, side: str, item: int) -> list[str]:
        """The names of the tokens of a "source" or a "target", as keys."""
        return names((self.source if side == "source" else self.target)[item])

    def queries(self, side: str, item: int) -> list[str]:
        """The same as queries: of a "target", each names the token that is read and the one to be written."""
        return self.keys(side, item) if side == "source" else row_names(self.target[item], self.following[item])


@dataclass(frozen=True, repr=False)
class Snapshot:
    """The attentions of a checkpoint of the training on the same sentence, by name.

    Attributes:
        step: the number of updates before the checkpoint.
        weights, gradients: A and dS, float32 (B, H, T, S).
    """

    step: int
    weights: dict[str, np.ndarray[Any, Any]]
    gradients: dict[str, np.ndarray[Any, Any]]


def encode_array(array: Any, dtype: str) -> Json:
    """An array, of any device, as JSON: shape, dtype and its little-endian bytes in C order."""
    host = np.asarray(to_numpy(array), dtype=np.dtype(dtype).newbyteorder("<"))
    return {"shape": list(host.shape), "dtype": dtype, "data": base64.b64encode(host.tobytes()).decode("ascii")}


def page_data(title: str, loss: float | None, loss_name: str, precision: str, tokens: Tokens,
              attentions: Sequence[Json], left_out: Sequence[str] = (), model: Json | None = None,
              not_live: str | None = None, opens: str | None = None, stories: Sequence[Json] = ()) -> Json:
    """The data of a page, as the top of this file describes them."""
    return {"format": FORMAT, "title": title, "loss": loss, "lossName": loss_name, "precision": precision,
            "tokens": {"source": tokens.source, "target": tokens.target, "next": tokens.following},
            "attentions": list(attentions), "leftOut": list(left_out), "model": model, "notLive": not_live,
            "opens": opens, "stories": list(stories)}


def attention_data(attention: AttentionTrace, checks: Mapping[str, Sequence[Check]],
                   history: Sequence[Snapshot] = ()) -> Json:
    """The data of one attention.

    Args:
        attention: a traced attention, after the backward.
        checks: checks from `measure`; empty if nothing was measured.
        history: snapshots that contain this attention.

    Raises:
        ValueError: there is no gradient yet, keys and values have two inputs, or the loss uses the weights.
    """
    check_formulas(attention)
    return {
        **facts_of_attention(attention, checks, history),
        **(_whole(attention) if attention.is_whole else _core(attention)),
        "mask": None if attention.mask is None else encode_array(_of_all_heads(attention.mask), "uint8"),
        "dropped": None if attention.dropped is None else encode_array(attention.dropped, "uint8"),
        "residual": None if attention.residual is None else _residual(attention.residual),
    }


def facts_of_attention(attention: AttentionTrace, checks: Mapping[str, Sequence[Check]],
                       history: Sequence[Snapshot] = ()) -> Json:
    """The data of one attention without its tensors; arguments as of `attention_data`."""
    queries, keys = sides(attention)
    return {
        "name": attention.name, "kind": attention.kind if attention.kind != "self" else "encoder self",
        "layer": layer_of(attention.name), "queries": queries, "keys": keys,
        "numHeads": attention.num_heads, "scale": attention.scale, "usualScale": attention.usual_scale,
        "p": attention.p, "mask": None, "dropped": None, "residual": None,
        "checks": {symbol: [_finite(check) for check in found] for symbol, found in checks.items()},
        "history": [{"step": snapshot.step,
                     "weights": encode_array(snapshot.weights[attention.name], "float32"),
                     "gradScores": encode_array(snapshot.gradients[attention.name], "float32")}
                    for snapshot in history],
    }


def _whole(attention: AttentionTrace) -> Json:
    """The ends of an attention that is known from X and M to Y."""
    return {
        "weights": {PROJECTIONS[letter]: {"weight": lossless(projection.weight),
                                          "bias": None if projection.bias is None else lossless(projection.bias)}
                    for letter, projection in attention.projections.items()},
        "x": _doubles(attention.value("query_input")),
        "m": None if attention.is_self else _doubles(attention.value("key_input")),
        "q": None, "k": None, "v": None, "joined": True, "g": _doubles(attention.gradient("output")),
    }


def _core(attention: AttentionTrace) -> Json:
    """The ends of an attention of which the core alone is known."""
    arrives = attention.gradient("concatenated") if attention.joined else join_heads(attention.gradient("context"))
    return {"weights": None, "x": None, "m": None,
            **{letter: _doubles(attention.value(PER_HEAD[letter.upper()])) for letter in "qkv"},
            "joined": attention.joined, "g": _doubles(arrives)}


def sides(attention: AttentionTrace) -> tuple[str, str]:
    """Which tokens label the queries and which the keys, "source" or "target"."""
    queries, keys = attention.scores.shape[-2:]
    if attention.kind == "cross" or (attention.kind == "attention" and queries != keys):
        return "target", "source"
    side = "target" if attention.name.split(".")[0] == "decoder" else "source"
    return side, side


def layer_of(name: str) -> int:
    """The number in a dotted name, counted from 0: 2 of "decoder.layers.2.cross_attention"; 0 if there is none."""
    return next((int(part) for part in name.split(".") if part.isdigit()), 0)


def _residual(residual: ResidualTrace) -> Json | None:
    stream, result, norm = residual.stream, residual.result, residual.module.norm
    if stream.grad is None or result.grad is None or norm.weight is None:
        return None
    return {"norm": "pre" if residual.module.pre else "post", "eps": norm.eps, "weight": lossless(norm.weight),
            "stream": _doubles(stream), "gradStream": _doubles(stream.grad), "gradResult": _doubles(result.grad)}


def _doubles(tensor: Tensor) -> Json:
    return encode_array(tensor._data, "float64")


def lossless(parameter: Tensor) -> Json:
    """A parameter, encoded in float32 if that is exact, as after training in float32; else in float64."""
    host = to_numpy(parameter._data)
    with np.errstate(over="ignore"):
        short = host.astype(np.float32)
    return encode_array(host, "float32" if np.array_equal(host, short, equal_nan=True) else "float64")


def _of_all_heads(mask: Any) -> np.ndarray[Any, Any]:
    """A mask (B, H, T, S), reduced to (B, 1, T, S) if it is the same for each head."""
    host = to_numpy(mask)
    return host[:, :1] if (host == host[:, :1]).all() else host


def _finite(check: Check) -> Json:
    """A check as JSON, which has no NaN and no infinity: null stands for both."""
    return {name: value if math.isfinite(value) else None for name, value in check._asdict().items()}
