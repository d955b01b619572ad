"""The data of the page: JSON whose arrays are bytes in base64.

Weights are stored in float32 where that is exact, the inputs of an attention and the gradient of its output in float64.
The page recomputes everything between them, forward and backward, so it shows the numbers of the engine and can also
show those of changed values. `page_data` returns the data of a page, `attention_data` that of one attention:

    x, m            X and M, the inputs of queries and of keys and values; m is null where M is X
    g               dY, the gradient of the output
    weights         of the four projections as the module has them, (out, in)
    mask, dropped   1 = may attend, 1 = kept; null where there is none
    residual        the connection around it: its input, the gradient of that, the gradient of its output
    checks          by symbol, finite differences beside the engine's gradient (transformer/explore/checks.py)
    history         weights and gradients of the scaled scores at checkpoints of the training, oldest first
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

from transformer.explore.checks import Check
from transformer.explore.steps import check_formulas
from transformer.explore.traced import AttentionTrace, ResidualTrace

FORMAT = 1
DTYPES = ("float64", "float32", "uint8")
Json = dict[str, Any]


@dataclass(frozen=True)
class Tokens:
    """The labels of rows and columns: a list of tokens for each batch item, all of one length.

    Attributes:
        source: the tokens that the encoder reads.
        target: the tokens that the decoder reads, begin-of-sentence first.
        following: the right next token after each of those; an empty text where it is unknown.
    """

    source: list[list[str]]
    target: list[list[str]]
    following: list[list[str]]

    def of(self, side: str, item: int) -> list[str]:
        """The tokens of a "source" or a "target"."""
        return (self.source if side == "source" else self.target)[item]


@dataclass(frozen=True)
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


def decode_array(entry: Json) -> np.ndarray[Any, Any]:
    """The array that `encode_array` wrote; ValueError for malformed entries."""
    if entry["dtype"] not in DTYPES:
        raise ValueError(f"decode_array: dtype {entry['dtype']!r} is none of {', '.join(DTYPES)}")
    stored = np.frombuffer(base64.b64decode(entry["data"], validate=True), np.dtype(entry["dtype"]).newbyteorder("<"))
    return stored.reshape(entry["shape"]).astype(entry["dtype"])


def page_data(title: str, loss: float | None, loss_name: str, precision: str, tokens: Tokens,
              attentions: Sequence[Json], left_out: Sequence[str]) -> Json:
    """The data of a page; `attentions` come from `attention_data`."""
    return {"format": FORMAT, "title": title, "loss": loss, "lossName": loss_name, "precision": precision,
            "tokens": {"source": tokens.source, "target": tokens.target, "next": tokens.following},
            "attentions": list(attentions), "leftOut": list(left_out)}


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
    queries, keys = sides(attention)
    module = attention.module
    return {
        "name": attention.name, "kind": attention.kind if attention.kind != "self" else "encoder self",
        "layer": layer_of(attention.name), "queries": queries, "keys": keys,
        "numHeads": attention.num_heads, "scale": 1 / math.sqrt(max(1, attention.queries.shape[-1])),
        "p": attention.p,
        "weights": {name: {"weight": _lossless(projection.weight),
                           "bias": None if projection.bias is None else _lossless(projection.bias)}
                    for name, projection in (("query", module.query), ("key", module.key), ("value", module.value),
                                             ("output", module.output))},
        "x": _doubles(attention.query_input),
        "m": None if attention.is_self else _doubles(attention.key_input),
        "mask": None if attention.mask is None else encode_array(_of_all_heads(attention.mask), "uint8"),
        "dropped": None if attention.dropped is None else encode_array(attention.dropped, "uint8"),
        "g": _doubles(attention.gradient("output")),
        "residual": None if attention.residual is None else _residual(attention.residual),
        "checks": {symbol: [_finite(check) for check in found] for symbol, found in checks.items()},
        "history": [{"step": snapshot.step,
                     "weights": encode_array(snapshot.weights[attention.name], "float32"),
                     "gradScores": encode_array(snapshot.gradients[attention.name], "float32")}
                    for snapshot in history],
    }


def sides(attention: AttentionTrace) -> tuple[str, str]:
    """Which tokens label the queries and which the keys, "source" or "target"."""
    if attention.kind == "cross":
        return "target", "source"
    side = "target" if attention.kind == "decoder self" else "source"
    return side, side


def layer_of(name: str) -> int:
    """The number in a dotted name, counted from 0: 2 of "decoder.layers.2.cross_attention"; 0 if there is none."""
    return next((int(part) for part in name.split(".") if part.isdigit()), 0)


def _residual(residual: ResidualTrace) -> Json | None:
    stream, result, norm = residual.stream, residual.result, residual.module.norm
    if stream.grad is None or result.grad is None or norm.weight is None:
        return None
    return {"norm": "pre" if residual.module.pre else "post", "eps": norm.eps, "weight": _lossless(norm.weight),
            "bias": None if norm.bias is None else _lossless(norm.bias), "stream": _doubles(stream),
            "gradStream": _doubles(stream.grad), "gradResult": _doubles(result.grad)}


def _doubles(tensor: Tensor) -> Json:
    return encode_array(tensor._data, "float64")


def _lossless(parameter: Tensor) -> Json:
    """A parameter in float32 if that is exact, as after training in float32; else in float64."""
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
