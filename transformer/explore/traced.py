"""The results of `transformer.trace`: the tensors of one attention and their gradients, whole and by head.

The names of the steps are those of the taps in transformer/model/attention.py and minigrad/functional/attention.py. A
head's matrices have the symbols of docs/backprop_through_attention.md, in ASCII:

    Q = X·WQ + bQ   K = M·WK + bK   V = M·WV + bV      M is X in self-attention
    R = Q·Kᵀ        S = R/√d_k      Sm = S, -inf where the mask forbids
    A = softmax(Sm) Ad = dropout(A) O = Ad·V
    C = the O of all heads, side by side               Y = C·WO + bO

Every attention has the steps from Q, K and V to O, the *core*. The others are known only of an attention that computes
them in this way.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from minigrad import Tensor, nn
from minigrad.device import on_device_of, xp
from minigrad.functional.attention import join_heads

from transformer.model import Residual

Array = Any

INPUTS = ("query_input", "key_input", "value_input")
PER_HEAD = {"Q": "queries", "K": "keys", "V": "values", "R": "scores", "S": "scaled", "Sm": "masked", "A": "weights",
            "Ad": "dropped_weights", "O": "context"}  # each (B, H, ·, ·)
FIRST, *STEPS, LAST = PER_HEAD.values()  # in order
SHARED = {"C": "concatenated", "Y": "output"}  # each (B, T, D)
TAPS = (*INPUTS, *PER_HEAD.values(), *SHARED.values())
RETURNED = "returned_weights"  # A as returned to the caller; its gradient is that of its use by the loss alone
PROJECTIONS = {"Q": "query", "K": "key", "V": "value", "O": "output"}  # the children of a `MultiHeadAttention`
_SAME_WITHOUT = {"masked": "scaled", "dropped_weights": "weights"}  # steps that only happen with a mask, with dropout
_OF_KEYS = ("keys", "values")  # their rows are keys


class AttentionTrace:
    """One call of an attention: B items, H heads, T queries, S keys, D features.

    Every tensor is detached, on the device and in the dtype of the computation; scores of float16, which may have no
    room for them, are in float32. Those of the core are there in every attention, and have four axes: an attention
    without heads has one, and further axes before the heads count as items.
    What heads share, such as the keys of grouped queries, is there once: such a tensor has fewer heads than H, or fewer
    items than B. The other tensors are None where the module does not compute them as a `MultiHeadAttention` does. A
    mask that was not given is None, and `masked` then equals `scaled`; `dropped_weights` likewise equals `weights`
    without dropout.

    Attributes:
        name: the dotted name of the module that called the attention function.
        module: that module; its parameters have the ``.grad`` of the backward.
        query_input, key_input, value_input: X, M and M: (B, T, D), (B, S, ·), (B, S, ·). The gradient of each is that
            of its own path, even if all three are one tensor.
        queries, keys, values: Q, K, V: (B, H, T, d), (B, H, S, d), (B, H, S, d_v).
        scores, scaled, masked: Q Kᵀ, that times the scale, and that with -inf where the mask forbids: (B, H, T, S).
        weights, dropped_weights: the softmax, and that after dropout: (B, H, T, S).
        context, concatenated, output: (B, H, T, d_v), (B, T, H·d_v), (B, T, D).
        mask: True = may attend, a raw array (B, H, T, S), or None.
        dropped: the dropout mask, True = kept, a raw array (B, H, T, S), or None.
        projections: by letter, those of the maps of Q, K, V and O that are known: the tensor of the letter was found to
            be ``x W + b``, by the numbers.
        residual: the residual connection around it, or None.
    """

    query_input: Tensor | None
    key_input: Tensor | None
    value_input: Tensor | None
    queries: Tensor
    keys: Tensor
    values: Tensor
    scores: Tensor
    scaled: Tensor
    masked: Tensor
    weights: Tensor
    dropped_weights: Tensor
    context: Tensor
    concatenated: Tensor | None
    output: Tensor | None

    def __init__(self, name: str, module: nn.Module, seen: dict[str, Any]) -> None:
        self.name, self.module = name, module
        self.projections: dict[str, nn.Linear] = {}
        self.residual: ResidualTrace | None = None
        self._recorded = seen  # by name, constants of the steps too; the recorder may add to it

    def __getattr__(self, name: str) -> Tensor | None:
        if name not in TAPS:
            raise AttributeError(f"an AttentionTrace has no {name!r}")
        return self.value(name) if name in self else None

    def __contains__(self, tap: object) -> bool:
        """Whether the attention has the tensor of that name."""
        return tap in TAPS and self.taken(str(tap)) in self._recorded

    # ------------------------------------------------------------------ facts

    @property
    def is_self(self) -> bool | None:
        """Whether queries and keys are made of one input; None if the inputs are not known."""
        return self._are_one("query_input", "key_input")

    @property
    def is_whole(self) -> bool:
        """Whether it is known from X and M to Y, and heads share nothing; else the core is what is explained."""
        known = self.projections.keys() == PROJECTIONS.keys() and all(tap in self for tap in TAPS)
        return known and self.joined and all(self._shape(tap)[1] == self.num_heads for tap in PER_HEAD.values())

    @property
    def joined(self) -> bool:
        """Whether C is known, and is the O of all heads side by side."""
        if "concatenated" not in self:
            return False
        expected, found = join_heads(self.context._data), self.value("concatenated")._data
        return expected.shape == found.shape and bool(((expected == found) | (found != found)).all())  # NaN, too

    @property
    def kind(self) -> str:
        """"encoder self", "decoder self" or "cross"; of an attention outside a Transformer, "self" or "cross".

        Where the inputs are not known, the names of the modules say it, "self_attention" or "cross_attention". Where
        these do not, it is "attention".
        """
        stack, *inner = self.name.split(".")
        if self.is_self is False or (self.is_self is None and "cross_attention" in inner):
            return "cross"
        if self.is_self is None and "self_attention" not in inner:
            return "attention"
        return f"{stack} self" if stack in ("encoder", "decoder") else "self"

    @property
    def reached(self) -> bool:
        """Whether a gradient has reached the attention."""
        return self._tensor("context").grad is not None

    @property
    def weights_in_loss(self) -> bool:
        """Whether the loss also uses the weights that were returned to the caller, so that dA has a second part."""
        returned = self._recorded.get(RETURNED)
        return returned is not None and returned.grad is not None

    @property
    def batch_size(self) -> int:
        """The number of batch items, B."""
        return self._shape("context")[0]

    @property
    def num_heads(self) -> int:
        """The number of heads, H."""
        return self._shape("context")[1]

    @property
    def p(self) -> float:
        """The probability with which weights were dropped."""
        return float(self._recorded.get("p", 0.0))

    @property
    def scale(self) -> float:
        """What scores are multiplied by, usually 1/√d_k."""
        return float(self._recorded["scale"])

    @property
    def usual_scale(self) -> bool:
        """Whether the scale is 1/√d_k."""
        return math.isclose(self.scale, 1 / math.sqrt(max(1, self._shape("queries")[-1])), rel_tol=1e-12)

    @property
    def mask(self) -> Array | None:
        """True where a query may attend to a key."""
        return self._mask("mask", "masked")

    @property
    def dropped(self) -> Array | None:
        """True where dropout kept a weight."""
        return self._mask("dropped", "dropped_weights")

    # ------------------------------------------------------------------ tensors

    def taken(self, tap: str) -> str:
        """The tap that was recorded for `tap`: without a mask, `scaled` for `masked`; likewise without dropout."""
        return tap if tap in self._recorded else _SAME_WITHOUT.get(tap, tap)

    def value(self, tap: str) -> Tensor:
        """The tensor of that name; ValueError names those that there are."""
        return self._shown(tap, self._tensor(tap).detach())

    def gradient(self, tap: str) -> Tensor:
        """The gradient of the loss with respect to the tensor of that name, in its shape.

        Raises:
            ValueError: there is no tensor of that name, or no gradient has reached it.
        """
        gradient = self._tensor(tap).grad
        if gradient is None:
            raise ValueError(f"no gradient has reached {tap} of {self.name} yet: call backward() on a loss that was "
                             "computed inside the trace block")
        return self._shown(tap, gradient)

    def place(self, tap: str, item: int, head: int) -> tuple[int, ...]:
        """Where the tensor of that name has the matrix of an item and a head; what several share is in one place."""
        if tap not in PER_HEAD.values():
            return (item,)
        *own, heads = self._lead(tap)
        *items, count = self._lead("context")
        if own != items:
            at = np.unravel_index(item, items)
            item = int(np.ravel_multi_index([i if n > 1 else 0 for i, n in zip(at, own, strict=True)], own))
        return item, head * heads // count

    def sharing(self, symbol: str, head: int) -> list[int]:
        """The heads that have the matrix of a symbol of `PER_HEAD` in common with `head`; most often this one alone."""
        mine = self.place(PER_HEAD[symbol], 0, head)
        return [other for other in range(self.num_heads) if self.place(PER_HEAD[symbol], 0, other) == mine]

    def head(self, item: int = 0, head: int = 0) -> HeadTrace:
        """One head for one batch item, as matrices; both are counted from 0.

        Raises:
            IndexError: there is no such item or head.
        """
        for what, index, count in (("batch item", item, self.batch_size), ("head", head, self.num_heads)):
            if not 0 <= index < count:
                raise IndexError(f"there is no {what} {index} in {self.name}: it has {count}, counted from 0")
        return HeadTrace(self, item, head)

    def _tensor(self, tap: str) -> Tensor:
        """The tensor that was recorded, with its graph and its gradient."""
        if tap not in self:
            there = ", ".join(tap for tap in TAPS if tap in self)
            why = f"{self.name} does not compute it as a MultiHeadAttention does, or does not tap it: "
            raise ValueError(f"there is no {tap!r} in this attention: {why if tap in TAPS else ''}there are {there}")
        tensor: Tensor = self._recorded[self.taken(tap)]
        return tensor

    def _lead(self, tap: str) -> tuple[int, ...]:
        """The axes of items, one or more, and that of heads, of a tensor of the core."""
        lead = tuple(self._tensor(tap).shape[:-2])
        most = self._tensor("context").ndim - 2
        lead = (1,) * (most - len(lead)) + lead
        group = self._recorded.get("group", 1)
        if group > 1 and tap not in _OF_KEYS:
            lead = (*lead[:-1], lead[-1] * group)
        if most == 1:  # the axis is that of heads if it has groups
            return (1, *lead) if group > 1 else (*lead, 1)
        return lead or (1, 1)

    def _shape(self, tap: str) -> tuple[int, ...]:
        """The shape in which a tensor is shown."""
        tensor = self._tensor(tap)
        rows, columns = tensor.shape[-2:]
        if tap not in PER_HEAD.values():
            return tuple(tensor.shape)
        *items, heads = self._lead(tap)
        return math.prod(items), heads, rows if tap in _OF_KEYS else rows // self._recorded.get("group", 1), columns

    def _shown(self, tap: str, tensor: Tensor) -> Tensor:
        shape = self._shape(tap)
        return tensor if tensor.shape == shape else tensor.reshape(shape)

    def _mask(self, name: str, tap: str) -> Array | None:
        """A mask in the shape of the tensor that it makes."""
        mask = self._recorded.get(name)
        if mask is None:
            return None
        with on_device_of(mask):
            return xp(mask).broadcast_to(mask, self._tensor(tap).shape).reshape(self._shape(tap))

    def _are_one(self, *taps: str) -> bool | None:
        """Whether two inputs are one tensor, or equal: a module with backward hooks gets copies."""
        if not all(tap in self._recorded for tap in taps):
            return None
        a, b = (self._recorded[f"{tap} given"] for tap in taps)
        return a is b or (a.shape == b.shape and bool((a._data == b._data).all()))

    @property
    def _one_memory(self) -> bool | None:
        return self._are_one("key_input", "value_input")


class HeadTrace:
    """One head of an attention, for one batch item: 2-D raw arrays by their symbols (see the top of this file).

    Weights are laid out as in the paper, input @ weight: WQ is (D, D/H), the head's columns of the whole; WO is (D, D).
    Biases are 1-D. X, M, C, Y, WO and bO belong to all heads, and the gradients of weights and biases sum over the
    batch. A matrix that heads share, such as the K of grouped queries, belongs to each of them, and its gradient sums
    over them. M is absent in self-attention; what is not known of the attention, missing biases and the gradients of
    frozen parameters are absent, too.

    Attributes:
        attention, item, head: the traced attention, and the numbers of the item and the head.
    """

    def __init__(self, attention: AttentionTrace, item: int, head: int) -> None:
        self.attention, self.item, self.head = attention, item, head

    @property
    def values(self) -> dict[str, Array]:
        """The matrices by symbol."""
        attention, found = self.attention, dict[str, Array]()
        if attention.query_input is not None:
            found["X"] = attention.query_input._data[self.item]
        if attention.key_input is not None and not attention.is_self:
            found["M"] = attention.key_input._data[self.item]
        return found | self._parameters(lambda parameter: parameter._data) | self._steps(attention.value)

    @property
    def gradients(self) -> dict[str, Array]:
        """The gradients by symbol: "A" is dA. The gradient of X is the sum over its paths, three in self-attention.

        Raises:
            ValueError: no gradient has arrived yet.
        """
        attention, found = self.attention, dict[str, Array]()
        if all(tap in attention for tap in INPUTS):
            by_path = [attention.gradient(tap)._data[self.item] for tap in INPUTS]
            with on_device_of(by_path[0]):
                through_memory = by_path[1] + by_path[2] if attention._one_memory else by_path[1]
                found = ({"X": by_path[0] + through_memory} if attention.is_self else
                         {"X": by_path[0], "M": through_memory})
        return found | self._parameters(_gradient_in(attention)) | self._steps(attention.gradient)

    def _steps(self, of: Any) -> dict[str, Array]:
        attention = self.attention
        return {symbol: of(tap)._data[attention.place(tap, self.item, self.head)]
                for symbol, tap in (PER_HEAD | SHARED).items() if tap in attention}

    def _parameters(self, of: Any) -> dict[str, Array]:
        found = {}
        for letter, linear in self.attention.projections.items():
            rows = rows_of(self.attention, letter, self.head)
            weight = of(linear.weight)
            bias = None if linear.bias is None else of(linear.bias)
            if weight is not None:
                found[f"W{letter}"] = weight[rows].T  # (out, in) -> (in, out)
            if bias is not None:
                found[f"b{letter}"] = bias[rows]
        return found


def rows_of(attention: AttentionTrace, letter: str, head: int) -> slice:
    """The rows of the weight of a projection, (out, in), that are a head's; those of the output are all heads'."""
    if letter == "O":
        return slice(None)
    width = attention._shape(PER_HEAD[letter])[-1]
    place = attention.place(PER_HEAD[letter], 0, head)[1]
    return slice(place * width, (place + 1) * width)


@dataclass(frozen=True, repr=False)
class ResidualTrace:
    """The residual connection around an attention.

    Attributes:
        module: the module, with its norm, and ``module.pre``, whether the norm comes first.
        stream: its input x, (B, T, D); after the backward ``stream.grad`` is the whole gradient of x from here, along
            the residual and through the sublayer.
        result: its output; ``result.grad`` is the gradient that arrives from above.
    """

    module: Residual
    stream: Tensor
    result: Tensor


def _gradient_in(attention: AttentionTrace) -> Any:
    def gradient(parameter: nn.Parameter) -> Array | None:
        if parameter.grad is not None:
            return parameter.grad._data
        if parameter.requires_grad:
            raise ValueError(f"a parameter of {attention.name} has no gradient: was zero_grad() called after the "
                             "backward?")
        return None

    return gradient
