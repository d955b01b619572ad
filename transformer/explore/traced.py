"""The results of `transformer.trace`: the tensors of one attention and their gradients, whole and by head.

The names of the steps are those of the taps in transformer/model/attention.py and minigrad/functional/attention.py. A
head's matrices have the symbols of docs/backprop_through_attention.md, in ASCII:

    Q = X·WQ + bQ   K = M·WK + bK   V = M·WV + bV      M is X in self-attention
    R = Q·Kᵀ        S = R/√d_k      Sm = S, -inf where the mask forbids
    A = softmax(Sm) Ad = dropout(A) O = Ad·V
    C = the O of all heads, side by side               Y = C·WO + bO
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from minigrad import Tensor, nn
from minigrad.device import on_device_of, xp

from transformer.model import MultiHeadAttention, Residual

Array = Any

INPUTS = ("query_input", "key_input", "value_input")
PER_HEAD = {"Q": "queries", "K": "keys", "V": "values", "R": "scores", "S": "scaled", "Sm": "masked", "A": "weights",
            "Ad": "dropped_weights", "O": "context"}  # each (B, H, ·, ·)
SHARED = {"C": "concatenated", "Y": "output"}  # each (B, T, D)
TAPS = (*INPUTS, *PER_HEAD.values(), *SHARED.values())
RETURNED = "returned_weights"  # A as returned to the caller; its gradient is that of its use by the loss alone
_SAME_WITHOUT = {"masked": "scaled", "dropped_weights": "weights"}  # steps that only happen with a mask, with dropout


class AttentionTrace:
    """One call of a `MultiHeadAttention`: B items, H heads, T queries, S keys, D features.

    Every tensor is detached, on the device and in the dtype of the computation. A mask that was not given is None, and
    `masked` then equals `scaled`; `dropped_weights` likewise equals `weights` without dropout.

    Attributes:
        name: the module's dotted name in the model.
        module: the attention itself; its parameters have the ``.grad`` of the backward.
        query_input, key_input, value_input: X, M and M: (B, T, D), (B, S, ·), (B, S, ·). The gradient of each is that
            of its own path, even if all three are one tensor.
        queries, keys, values: Q, K, V: (B, H, T, D/H), (B, H, S, D/H), (B, H, S, D/H).
        scores, scaled, masked: Q Kᵀ, that over √(D/H), and that with -inf where the mask forbids: (B, H, T, S).
        weights, dropped_weights: the softmax, and that after dropout: (B, H, T, S).
        context, concatenated, output: (B, H, T, D/H), (B, T, D), (B, T, D).
        mask: True = may attend, a raw array (B, H, T, S), or None.
        dropped: the dropout mask, True = kept, a raw array (B, H, T, S), or None.
        residual: the residual connection around it, or None.
    """

    query_input: Tensor
    key_input: Tensor
    value_input: Tensor
    queries: Tensor
    keys: Tensor
    values: Tensor
    scores: Tensor
    scaled: Tensor
    masked: Tensor
    weights: Tensor
    dropped_weights: Tensor
    context: Tensor
    concatenated: Tensor
    output: Tensor
    mask: Array | None
    dropped: Array | None

    def __init__(self, name: str, module: MultiHeadAttention, seen: dict[str, Any]) -> None:
        self.name, self.module = name, module
        self.residual: ResidualTrace | None = None
        query, key, value = (seen[f"{tap} given"] for tap in INPUTS)
        self.is_self, self._one_memory = _are_one(query, key, module), _are_one(key, value, module)
        self._returned: Tensor | None = seen.get(RETURNED)
        self._instead = {step: other for step, other in _SAME_WITHOUT.items() if step not in seen}
        self._recorded: dict[str, Tensor] = {tap: seen[self.taken(tap)] for tap in TAPS}
        for tap, tensor in self._recorded.items():
            setattr(self, tap, tensor.detach())
        for constant in ("mask", "dropped"):
            setattr(self, constant, _broadcast(seen.get(constant), self.scores))

    @property
    def kind(self) -> str:
        """"encoder self", "decoder self" or "cross"; of an attention outside a Transformer, "self" or "cross"."""
        if not self.is_self:
            return "cross"
        stack = self.name.partition(".")[0]
        return f"{stack} self" if stack in ("encoder", "decoder") else "self"

    @property
    def reached(self) -> bool:
        """Whether a gradient has reached the attention."""
        return self._recorded["output"].grad is not None

    @property
    def weights_in_loss(self) -> bool:
        """Whether the loss also uses the weights that were returned to the caller, so that dA has a second part."""
        return self._returned is not None and self._returned.grad is not None

    @property
    def batch_size(self) -> int:
        """The number of batch items, B."""
        return int(self.scores.shape[0])

    @property
    def num_heads(self) -> int:
        """The number of heads, H."""
        return int(self.scores.shape[1])

    @property
    def p(self) -> float:
        """The probability with which weights were dropped."""
        return 0.0 if self.dropped is None else self.module.p

    def taken(self, tap: str) -> str:
        """The tap that was recorded for `tap`: without a mask, `scaled` for `masked`; likewise without dropout."""
        return self._instead.get(tap, tap)

    def value(self, tap: str) -> Tensor:
        """The tensor of that name; ValueError names the known ones."""
        if tap not in TAPS:
            raise ValueError(f"there is no {tap!r} in an attention; there are {', '.join(TAPS)}")
        tensor: Tensor = getattr(self, tap)
        return tensor

    def gradient(self, tap: str) -> Tensor:
        """The gradient of the loss with respect to the tensor of that name, in its shape.

        Raises:
            ValueError: there is no tensor of that name, or no gradient has reached it.
        """
        self.value(tap)
        gradient = self._recorded[tap].grad
        if gradient is None:
            raise ValueError(f"no gradient has reached {tap} of {self.name} yet: call backward() on a loss that was "
                             "computed inside the trace block")
        return gradient

    def head(self, item: int = 0, head: int = 0) -> HeadTrace:
        """One head for one batch item, as matrices; both are counted from 0.

        Raises:
            IndexError: there is no such item or head.
        """
        for what, index, count in (("batch item", item, self.batch_size), ("head", head, self.num_heads)):
            if not 0 <= index < count:
                raise IndexError(f"there is no {what} {index} in {self.name}: it has {count}, counted from 0")
        return HeadTrace(self, item, head)

    def heads(self, item: int = 0) -> Iterator[HeadTrace]:
        """Every head for one batch item."""
        return (self.head(item, head) for head in range(self.num_heads))

    def __repr__(self) -> str:
        batch, heads, queries, keys = self.scores.shape
        return (f"<AttentionTrace {self.name}: {self.kind}, {batch} items, {heads} heads, {queries} queries, "
                f"{keys} keys>")


class HeadTrace:
    """One head of an attention, for one batch item: 2-D raw arrays by their symbols (see the top of this file).

    Weights are laid out as in the paper, input @ weight: WQ is (D, D/H), the head's columns of the whole; WO is (D, D).
    Biases are 1-D. X, M, C, Y, WO and bO belong to all heads, and the gradients of weights and biases sum over the
    batch. M is absent in self-attention; missing biases and the gradients of frozen parameters are absent, too.

    Attributes:
        attention, item, head: the traced attention, and the numbers of the item and the head.
    """

    def __init__(self, attention: AttentionTrace, item: int, head: int) -> None:
        self.attention, self.item, self.head = attention, item, head

    def __repr__(self) -> str:
        return f"<HeadTrace of {self.attention.name}: item {self.item}, head {self.head}>"

    @property
    def values(self) -> dict[str, Array]:
        """The matrices by symbol."""
        found = {"X": self.attention.query_input._data[self.item]}
        if not self.attention.is_self:
            found["M"] = self.attention.key_input._data[self.item]
        return found | self._parameters(lambda parameter: parameter._data) | self._steps(self.attention.value)

    @property
    def gradients(self) -> dict[str, Array]:
        """The gradients by symbol: "A" is dA. The gradient of X is the sum over its paths, three in self-attention.

        Raises:
            ValueError: no gradient has arrived yet.
        """
        attention = self.attention
        by_path = [attention.gradient(tap)._data[self.item] for tap in INPUTS]
        with on_device_of(by_path[0]):
            through_memory = by_path[1] + by_path[2] if attention._one_memory else by_path[1]
            found = {"X": by_path[0] + through_memory} if attention.is_self else {"X": by_path[0], "M": through_memory}
        return found | self._parameters(_gradient_in(attention)) | self._steps(attention.gradient)

    def _steps(self, of: Any) -> dict[str, Array]:
        per_head = {symbol: of(tap)._data[self.item, self.head] for symbol, tap in PER_HEAD.items()}
        return per_head | {symbol: of(tap)._data[self.item] for symbol, tap in SHARED.items()}

    def _parameters(self, of: Any) -> dict[str, Array]:
        module = self.attention.module
        width = module.query.weight.shape[0] // module.num_heads
        mine = slice(self.head * width, (self.head + 1) * width)
        found = {}
        for letter, linear, rows in (("Q", module.query, mine), ("K", module.key, mine), ("V", module.value, mine),
                                     ("O", module.output, slice(None))):
            weight = of(linear.weight)
            bias = None if linear.bias is None else of(linear.bias)
            if weight is not None:
                found[f"W{letter}"] = weight[rows].T  # (out, in) -> (in, out)
            if bias is not None:
                found[f"b{letter}"] = bias[rows]
        return found


@dataclass(frozen=True)
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


def _are_one(a: Tensor, b: Tensor, module: MultiHeadAttention) -> bool:
    """Whether two inputs are one tensor; or equal, if the module has backward hooks and therefore gets copies."""
    if module._hooks is None or not module._hooks.backward:
        return a is b
    return a is b or (a.shape == b.shape and bool((a._data == b._data).all()))


def _gradient_in(attention: AttentionTrace) -> Any:
    def gradient(parameter: nn.Parameter) -> Array | None:
        if parameter.grad is not None:
            return parameter.grad._data
        if parameter.requires_grad:
            raise ValueError(f"a parameter of {attention.name} has no gradient: was zero_grad() called after the "
                             "backward?")
        return None

    return gradient


def _broadcast(mask: Array | None, like: Tensor) -> Array | None:
    if mask is None:
        return None
    with on_device_of(mask):
        return xp(mask).broadcast_to(mask, like.shape)
