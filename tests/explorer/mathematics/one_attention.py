"""Attentions alone, without a model around them: as data for the page, and as the engine computes them."""

import base64
from dataclasses import dataclass
from typing import Any

import numpy as np

import minigrad
from minigrad import Tensor, tapping
from minigrad import functional as F

from tests.transformer.tiny import jitter
from transformer.model import MultiHeadAttention

HEADS, D_MODEL = 2, 6
WIDTH = D_MODEL // HEADS
TAPS = {"scores": "R", "scaled": "S", "masked": "Sm", "weights": "A", "dropped_weights": "Ad", "context": "O"}
PER_HEAD = ("Q", "K", "V", "R", "S", "Sm", "A", "Ad", "O")


@dataclass
class Case:
    """The inputs of one attention.

    x and g are (B, T, D), memory (B, S, D) or None; mask (B, 1 or H, T, S), True = may attend; dropped (B, H, T, S),
    True = kept.
    """

    x: np.ndarray
    memory: np.ndarray | None
    g: np.ndarray
    mask: np.ndarray | None = None
    dropped: np.ndarray | None = None
    p: float = 0.0
    bias: bool = True

    @property
    def module(self) -> Any:
        """The attention: weights that float32 can hold, in float64."""
        with minigrad.random.fork(5):
            module = MultiHeadAttention(D_MODEL, HEADS, bias=self.bias)
        jitter(module, scale=0.4)
        return module.to(None, np.float64)


def draw(seed: int, items: int, queries: int, keys: int | None, **options: Any) -> Case:
    """Normal inputs; keys=None: self-attention. The scores are large enough for weights far from uniform."""
    rng = np.random.default_rng(seed)

    def normal(length: int) -> np.ndarray:
        return 1.5 * rng.standard_normal((items, length, D_MODEL))

    return Case(normal(queries), None if keys is None else normal(keys), normal(queries), **options)


def padding(lengths: list[int], longest: int) -> np.ndarray:
    """(B, 1, 1, S): which keys are there."""
    return (np.arange(longest) < np.array(lengths)[:, None])[:, None, None, :]


def cases() -> dict[str, Case]:
    """By name: every kind of attention, and what is hard in it."""
    causal = np.tril(np.ones((5, 5), dtype=bool)) & padding([5, 3], 5)
    one_query_sees_nothing = np.broadcast_to(padding([6, 4], 6), (2, 1, 4, 6)).copy()
    one_query_sees_nothing[1, 0, 2] = False
    kept = np.random.default_rng(3).random((2, HEADS, 4, 6)) > 0.25
    by_head = np.random.default_rng(9).random((2, HEADS, 4, 4)) > 0.4
    return {
        "padded": draw(0, 2, 5, None, mask=np.broadcast_to(padding([5, 3], 5), (2, 1, 5, 5))),
        "causal": draw(1, 2, 5, None, mask=causal),
        "cross": draw(2, 2, 4, 6, mask=np.broadcast_to(padding([6, 4], 6), (2, 1, 4, 6))),
        "dropout": draw(4, 2, 4, 6, mask=one_query_sees_nothing, dropped=kept, p=0.25),
        "plain": draw(5, 1, 3, None, bias=False),
        "a mask for each head": draw(6, 2, 4, None, mask=by_head),
    }


def encoded(array: np.ndarray | None, dtype: str) -> dict[str, Any] | None:
    """An array of the page's data."""
    if array is None:
        return None
    data = base64.b64encode(np.ascontiguousarray(array, dtype=np.dtype(dtype).newbyteorder("<")).tobytes()).decode()
    return {"shape": list(array.shape), "dtype": dtype, "data": data}


def page_data(cases: list[Case]) -> dict[str, Any]:
    """What the mathematics of the page reads of its data: one attention for each case."""

    def attention(case: Case) -> dict[str, Any]:
        def linear(module: Any) -> dict[str, Any]:
            bias = None if module.bias is None else encoded(module.bias.numpy(), "float32")
            return {"weight": encoded(module.weight.numpy(), "float32"), "bias": bias}

        module = case.module
        return {
            "numHeads": HEADS, "scale": WIDTH**-0.5, "usualScale": True, "p": case.p, "q": None, "k": None, "v": None,
            "weights": {name: linear(getattr(module, name)) for name in ("query", "key", "value", "output")},
            "x": encoded(case.x, "float64"), "m": encoded(case.memory, "float64"), "g": encoded(case.g, "float64"),
            "mask": encoded(case.mask, "uint8"), "dropped": encoded(case.dropped, "uint8"),
        }

    return {"format": 1, "attentions": [attention(case) for case in cases]}


def engine(case: Case, scaling: bool = True, masking: bool = True, edit: dict[str, Any] | None = None,
           item: int = 0) -> list[list[dict[str, np.ndarray]]]:
    """What minigrad computes: for each batch item and head, 2-D arrays by symbol, those of the shared tensors in each.

    An edit sets one entry of the `item`, by adding a constant to it.
    """
    module, seen = case.module, {}

    def keep(symbol: str, tensor: Any) -> Any:
        tensor.retain_grad()
        seen[symbol] = tensor
        return tensor

    def edited(symbol: str, tensor: Any) -> Any:
        if edit is None or edit["symbol"] != symbol:
            return keep(symbol, tensor)
        place = (item, edit["head"], edit["row"], edit["col"])
        offset = np.zeros(tensor.shape)
        offset[place] = edit["value"] - tensor.numpy()[place]
        return keep(symbol, tensor + Tensor(offset))

    x = Tensor(case.x, requires_grad=True)
    memory = x if case.memory is None else Tensor(case.memory, requires_grad=True)
    g = case.g.copy()
    if edit is not None and edit["symbol"] == "G":
        g[item, edit["row"], edit["col"]] = edit["value"]
    xq, xk, xv = keep("Xq", x * 1.0), keep("Xk", memory * 1.0), keep("Xv", memory * 1.0)
    q = edited("Q", module.split_heads(module.query(xq)))
    k = edited("K", module.split_heads(module.key(xk)))
    v = edited("V", module.split_heads(module.value(xv)))
    with tapping(lambda name, tensor: keep(TAPS[name], tensor) if name in TAPS else None):
        context = F.scaled_dot_product_attention(q, k, v, case.mask if masking else None, case.p, dropped=case.dropped,
                                                 scale=WIDTH**-0.5 if scaling else 1.0)
    y = keep("Y", module.output(keep("C", module.join_heads(context))))
    (y * Tensor(g)).sum().backward()
    seen.setdefault("Sm", seen["S"])
    seen.setdefault("Ad", seen["A"])
    seen["X"] = x
    if case.memory is not None:
        seen["M"] = memory
    return [[matrices(module, seen, b, h) | {"G": g[b]} for h in range(HEADS)] for b in range(len(case.x))]


def matrices(module: Any, seen: dict[str, Any], item: int, head: int) -> dict[str, np.ndarray]:
    """The tensors and gradients of one head, by symbol; weights stand right of what they multiply."""
    found = {}
    for symbol, tensor in seen.items():
        place = (item, head) if symbol in PER_HEAD else (item,)
        found |= {symbol: tensor.numpy()[place], f"d{symbol}": tensor.grad.numpy()[place]}
    mine = slice(head * WIDTH, (head + 1) * WIDTH)
    for letter, linear, rows in (("Q", module.query, mine), ("K", module.key, mine), ("V", module.value, mine),
                                 ("O", module.output, slice(None))):
        weight, bias = linear.weight, linear.bias
        found |= {f"W{letter}": weight.numpy()[rows].T, f"dW{letter}": weight.grad.numpy()[rows].T}
        if bias is not None:
            found |= {f"b{letter}": bias.numpy()[None, rows], f"db{letter}": bias.grad.numpy()[None, rows]}
    found["D"] = (found["A"] * found["dA"]).sum(axis=1, keepdims=True)
    # Of one head alone; the engine has the gradient of the three paths summed over the heads.
    for path, letter in (("Xq", "Q"), ("Xk", "K"), ("Xv", "V")):
        del found[path]
        found[f"sum of d{path}"] = found.pop(f"d{path}")
        found[f"d{path}"] = found[f"d{letter}"] @ found[f"W{letter}"].T
    return found
