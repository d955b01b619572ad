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

from minigrad import Tensor, nn
from minigrad.device import on_device_of, xp
from minigrad.functional.attention import join_heads

from transformer.model import Residual

Array = Any

INPUTS = ("query_input", "key_input", "value_input")
PER_HEAD = {"Q": "queries", "K": "keys", "V": "values", "R": "scores", "S": "scaled", "Sm": "masked", "A": "weights",
            "Ad": "dropped_weights", "O": "context"}  # each (B, H, ·, ·)
SHARED = {"C": "concatenated", "Y": "output"}  # each (B, T, D)
TAPS = (*INPUTS, *PER_HEAD.values(), *SHARED.values())
RETURNED = "returned_weights"  # A as returned to the caller; its gradient is that of its use by the loss alone
# By letter, a child of a `MultiHeadAttention`, and the taps of what it is given and of what it makes.
PROJECTIONS = {"Q": ("query", "query_input", "queries"), "K": ("key", "key_input", "keys"),
               "V": ("value", "value_input", "values"), "O": ("output", "concatenated", "output")}
# What stands for a step that did not happen: without a mask, a bias of the scores, dropout.
INSTEAD = {"masked": "biased", "biased": "scaled", "dropped_weights": "weights"}


class AttentionTrace:
    """One call of an attention: B items, H heads, T queries, S keys, D features.

    Every tensor is detached, on the device and in the dtype of the computation; scores of float16, which may have no
    room for them, are in float32. Those of the core are there in every attention, and have four axes: an attention
    without heads has one, and further axes before the heads count as items. Keys and values that G heads of queries
    share are there once: H/G of them. The other tensors are None where the module does not compute them as a
    `MultiHeadAttention` does. A mask that was not given is None, and `masked` then equals `scaled`, or the scores with
    their bias; `dropped_weights` likewise equals `weights` without dropout.

    Attributes:
        name: the dotted name of the module that called the attention function.
        module: that module; its parameters have the ``.grad`` of the backward.
        query_input, key_input, value_input: X, M and M: (B, T, D), (B, S, ·), (B, S, ·). The gradient of each is that
            of its own path, even if all three are one tensor.
        queries, keys, values: Q, K, V: (B, H, T, d), (B, H, S, d), (B, H, S, d_v).
        scores, scaled, masked: Q Kᵀ, that times the scale, and that with -inf where the mask forbids: (B, H, T, S).
        weights, dropped_weights: the softmax, and that after dropout: (B, H, T, S).
        context, concatenated, output: (B, H, T, d_v), (B, T, H·d_v), (B, T, D).
        projections: by letter, those of the maps of Q, K, V and O that are known: the tensor of the letter was found to
            be ``x W + b``, by the numbers.
        residual: the residual connection around it, or None.
    """

    def __init__(self, name: str, module: nn.Module, seen: dict[str, Any]) -> None:
        self.name, self.module = name, module
        self.projections: dict[str, nn.Linear] = {}
        self.residual: ResidualTrace | None = None
        self._recorded = seen  # by name, constants of the steps too; the recorder may add to it

    def __getattr__(self, name: str) -> Any:
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
        return self._are_one(*INPUTS[:2])

    @property
    def reads(self) -> dict[str, tuple[str, ...]]:
        """The inputs X and M, as far as they are known, and the paths on which each is read: taps.

        In self-attention X is read three times, and there is no M, nor is there one for keys and values that are made
        of different inputs.
        """
        query, *memory = INPUTS
        shares = self._are_one(*memory)
        if shares and self.is_self:
            return {"X": INPUTS}
        return ({"X": (query,)} if query in self else {}) | ({"M": tuple(memory)} if shares else {})

    @property
    def joined(self) -> bool:
        """Whether C is known, and is the O of all heads side by side."""
        if "concatenated" not in self:
            return False
        return _are_equal(join_heads(self.context._data), self.value("concatenated")._data)

    @property
    def kind(self) -> str:
        """"encoder self", "decoder self" or "cross"; of an attention outside a Transformer, "self" or "cross".

        Where the inputs are not known, the names of the modules say it, "self_attention" or "cross_attention". Where
        these do not, it is "attention".
        """
        stack, *inner = self.name.split(".")
        if self.is_self or (self.is_self is None and "self_attention" in inner):
            return f"{stack} self" if stack in ("encoder", "decoder") else "self"
        return "cross" if self.is_self is False or "cross_attention" in inner else "attention"

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
    def num_heads(self) -> int:
        """The number of heads, H."""
        return self._shape("context")[1]

    @property
    def group(self) -> int:
        """G, the number of heads of queries that share one of keys and values; most often 1."""
        return int(self._recorded.get("group", 1))

    @property
    def p(self) -> float:
        """The probability with which weights were dropped."""
        return float(self._recorded.get("p", 0.0))

    @property
    def scale(self) -> float:
        """What scores are multiplied by, usually 1/√d_k."""
        return float(self._recorded["scale"])

    # ------------------------------------------------------------------ tensors

    @property
    def mask(self) -> Array | None:
        """Who may attend to whom, True = may, (B, H, T, S); None if no mask was given."""
        return self._mask("mask")

    @property
    def dropped(self) -> Array | None:
        """Which weights dropout kept, True = kept, (B, H, T, S); None without dropout."""
        return self._mask("dropped")

    def taken(self, tap: str) -> str:
        """The tap that was recorded for `tap`: without a mask, `scaled` for `masked`; likewise without dropout."""
        while tap not in self._recorded and tap in INSTEAD:
            tap = INSTEAD[tap]
        return tap

    def has_own(self, tap: str) -> bool:
        """Whether there is a tensor of that name that is not another one, as `masked` without a mask is `scaled`."""
        return tap in self and self.taken(tap) in (tap, "biased")

    def value(self, tap: str) -> Tensor:
        """The tensor of that name; ValueError names those that there are."""
        return self._tensor(tap).detach().reshape(self._shape(tap))

    def gradient(self, tap: str) -> Tensor:
        """The gradient of the loss with respect to the tensor of that name, in its shape.

        Raises:
            ValueError: there is no tensor of that name, or no gradient has reached it.
        """
        gradient = self._tensor(tap).grad
        if gradient is None:
            raise ValueError(f"no gradient has reached {tap} of {self.name} yet: call backward() on a loss that was "
                             "computed inside the trace block")
        return gradient.reshape(self._shape(tap))

    def head(self, item: int = 0, head: int = 0) -> HeadTrace:
        """The head at an index, for the batch item at an index, as matrices.

        Raises:
            IndexError: there is no such item or head.
        """
        for what, index, count in (("batch item", item, len(self.context)), ("head", head, self.num_heads)):
            if not 0 <= index < count:
                raise IndexError(f"there is no {what} {index + 1} in {self.name}: it has {count}")
        return HeadTrace(self, item, head)

    def _tensor(self, tap: str) -> Tensor:
        """The tensor that was recorded, with its graph and its gradient."""
        if tap not in self:
            there = ", ".join(tap for tap in TAPS if tap in self)
            raise ValueError(f"there is no {tap!r} in this attention: {self.name} does not compute it as a "
                             f"MultiHeadAttention does, or does not tap it: there are {there}")
        tensor: Tensor = self._recorded[self.taken(tap)]
        return tensor

    def _shape(self, tap: str) -> tuple[int, ...]:
        """The shape in which a tensor is shown; the G heads that share keys were computed as G·T rows of one head."""
        shape = tuple(self._tensor(tap).shape)
        if tap not in PER_HEAD.values():
            return shape
        *lead, rows, columns = shape
        *items, heads = (1, *lead) if self.group > 1 else (*lead, 1) if len(lead) < 2 else lead
        apart = 1 if tap in ("keys", "values") else self.group
        return math.prod(items), heads * apart, rows // apart, columns

    def _mask(self, name: str) -> Array | None:
        """A mask in the shape of the weights."""
        mask = self._recorded.get(name)
        if mask is None:
            return None
        with on_device_of(mask):
            return xp(mask).broadcast_to(mask, self._tensor("weights").shape).reshape(self._shape("weights"))

    def _are_one(self, *taps: str) -> bool | None:
        """Whether two inputs are equal; each path has a copy of its own."""
        return _are_equal(*(self.value(tap)._data for tap in taps)) if all(tap in self for tap in taps) else None


def _are_equal(a: Array, b: Array) -> bool:
    return a.shape == b.shape and bool(((a == b) | (a != a)).all())  # NaN is equal to itself


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
        inputs = {symbol: self._matrix(taps[0], self.attention.value) for symbol, taps in self.attention.reads.items()}
        return inputs | self._parameters(lambda parameter: parameter) | self._steps(self.attention.value)

    @property
    def gradients(self) -> dict[str, Array]:
        """The gradients by symbol: "A" is dA. The gradient of X is the sum over its paths, three in self-attention.

        Raises:
            ValueError: no gradient has arrived yet.
        """
        gradient, inputs = self.attention.gradient, dict[str, Array]()
        for symbol, taps in self.attention.reads.items():
            first, *others = (self._matrix(tap, gradient) for tap in taps)
            with on_device_of(first):
                inputs[symbol] = sum(others, first)
        return inputs | self._parameters(self._gradient_of) | self._steps(gradient)

    def _steps(self, of: Any) -> dict[str, Array]:
        return {symbol: self._matrix(tap, of) for symbol, tap in (PER_HEAD | SHARED).items() if tap in self.attention}

    def _matrix(self, tap: str, of: Any) -> Array:
        whole = of(tap)._data[self.item]
        return self._own(whole) if tap in PER_HEAD.values() else whole

    def _own(self, by_head: Array) -> Array:
        return by_head[self.head * len(by_head) // self.attention.num_heads]

    def _parameters(self, of: Any) -> dict[str, Array]:
        found = {}
        for letter, linear in self.attention.projections.items():
            for kind, parameter in (("W", linear.weight), ("b", linear.bias)):
                whole = None if parameter is None else of(parameter)
                if whole is not None:
                    _, heads, *_ = (1, 1) if letter == "O" else self.attention._shape(PER_HEAD[letter])
                    by_head = whole._data.reshape((heads, -1, *whole.shape[1:]))
                    found[f"{kind}{letter}"] = self._own(by_head).T  # (out, in) -> (in, out)
        return found

    def _gradient_of(self, parameter: nn.Parameter) -> Tensor | None:
        if parameter.grad is None and parameter.requires_grad:
            raise ValueError(f"a parameter of {self.attention.name} has no gradient: was zero_grad() called after the "
                             "backward?")
        return parameter.grad


@dataclass(frozen=True, repr=False)
class ResidualTrace:
    """The residual connection around an attention; a subclass without those taps has None.

    Attributes:
        module: the module, with its norm, and ``module.pre``, whether the norm comes first.
        stream: its input x, (B, T, D); after the backward ``stream.grad`` is the whole gradient of x from here, along
            the residual and through the sublayer.
        result: its output; ``result.grad`` is the gradient that arrives from above.
    """

    module: Residual
    stream: Any = None
    result: Any = None
