"""The attentions that ran inside a `transformer.trace` block, and finite differences of a loss in their tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from minigrad import Tensor, nn, no_grad, random, tapping
from minigrad.engine.watch import watch

from transformer.explore.recorder import Mover
from transformer.explore.traced import AttentionTrace

NONE = ("none: in the block no module of the model called scaled_dot_product_attention or multi_head_attention, on "
        "which every attention that can be traced is built")


class Calls(Mapping[str, AttentionTrace]):
    """The attentions that ran inside a block, by their dotted names, in the order in which they first ran.

    Attributes:
        model: the module that was traced.
    """

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self._calls: dict[str, list[AttentionTrace]] = {}
        self._state = random.get_state()

    @property
    def names(self) -> list[str]:
        """The dotted names of the attentions that ran."""
        return list(self._calls)

    def calls(self, name: str) -> list[AttentionTrace]:
        """Every call of one attention, in order; KeyError if there was none."""
        if name not in self._calls:
            raise KeyError(f"no attention {name!r} was traced; there are {', '.join(self._calls) or NONE}")
        return self._calls[name]

    def __getitem__(self, name: str) -> AttentionTrace:
        """The latest call of the attention with this name."""
        return self.calls(name)[-1]

    def __iter__(self) -> Iterator[str]:
        return iter(self._calls)

    def __len__(self) -> int:
        return len(self._calls)

    def replay(self, loss: Callable[[], Any]) -> float:
        """The value of the loss, with the dropout masks of the block."""
        with random.fork(), no_grad():
            random.set_state(self._state)
            return float(loss())

    def finite_difference(self, loss: Callable[[], Any], name: str, tap: str | tuple[str, ...], direction: Any,
                          step: float = 1e-5) -> float:
        """The derivative of `loss` as a tensor inside an attention moves along `direction`, by a central difference.

        ``(L(T + h·direction) − L(T − h·direction)) / 2h``: what ``(attention.gradient(tap) * direction).sum()`` must
        be. Only float64 has enough digits for the comparison. Dropout masks are those of the block, if `loss` draws
        the same random numbers in the same order.

        Args:
            loss: computes the loss of the block again, from the start: a scalar Tensor.
            name: the attention; of several calls, the latest moves.
            tap: the tensor, a name of `traced.TAPS`; or the names of several that move together.
            direction: an array or Tensor of the tensor's shape.
            step: h.

        Raises:
            KeyError: `name` was not traced.
            ValueError: `tap` is unknown or did not occur there, or `direction` has another shape.
        """
        traced, taps = self[name], (tap,) if isinstance(tap, str) else tap
        # In the shape of the computation.
        moved = Tensor(direction, device=traced.context.device).reshape(traced._tensor(taps[0]).shape)

        def loss_at(distance: float) -> float:
            mover = Mover(self.model, name, len(self.calls(name)), list(map(traced.taken, taps)), moved * distance)
            with watch(mover), tapping(mover.tensor):
                value = self.replay(loss)
            if mover.moved != len(taps):
                raise ValueError(f"finite_difference: the loss did not come by {tap} of {name}; it must compute again "
                                 "what was traced, with that tensor")
            return value

        return (loss_at(step) - loss_at(-step)) / (2 * step)
