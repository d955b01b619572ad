"""The attentions that ran inside a `transformer.trace` block, and finite differences of a loss in their tensors."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from minigrad import Tensor, nn, no_grad, random, tapping
from minigrad.engine.watch import Watcher, watch

from transformer.explore.traced import FIRST, INPUTS, AttentionTrace
from transformer.model import Residual


def callers(model: nn.Module) -> dict[nn.Module, str]:
    """The modules by which attentions are named, and their names.

    A residual connection is none of them: what it runs belongs to the module that gave it.
    """
    return {module: name or type(module).__name__ for name, module in model.named_modules()
            if not isinstance(module, Residual)}


NONE = ("none: in the block no module of the model called scaled_dot_product_attention or multi_head_attention, on "
        "which every attention that can be traced is built")


class UnknownAttention(KeyError):
    """There is no attention of that name in the model, or it did not run in the block."""

    def __str__(self) -> str:
        return str(self.args[0])


class Calls:
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
        """Every call of one attention, in order; UnknownAttention (a KeyError) if there was none."""
        if name not in self._calls:
            known = ", ".join(self._calls) or NONE
            raise UnknownAttention(f"no attention {name!r} was traced; there are {known}")
        return self._calls[name]

    def __getitem__(self, name: str) -> AttentionTrace:
        """The latest call of the attention with this name."""
        return self.calls(name)[-1]

    def __contains__(self, name: object) -> bool:
        return name in self._calls

    def __iter__(self) -> Iterator[str]:
        return iter(self._calls)

    def __len__(self) -> int:
        return len(self._calls)

    def finite_difference(self, loss: Callable[[], Any], name: str, tap: str, direction: Any,
                          step: float = 1e-5) -> float:
        """The derivative of `loss` as one tensor inside an attention moves along `direction`, by a central difference.

        ``(L(T + h·direction) − L(T − h·direction)) / 2h``: what ``(attention.gradient(tap) * direction).sum()`` must
        be. Only float64 has enough digits for the comparison. Dropout masks are those of the block, if `loss` draws
        the same random numbers in the same order.

        Args:
            loss: computes the loss of the block again, from the start: a scalar Tensor.
            name: the attention; of several calls, the latest moves.
            tap: the tensor, a name of `traced.TAPS`.
            direction: an array or Tensor of the tensor's shape.
            step: h.

        Raises:
            UnknownAttention (a KeyError): `name` was not traced.
            ValueError: `tap` is unknown or did not occur there, or `direction` has another shape.
        """
        traced = self[name]
        shape = traced.value(tap).shape
        moved = direction if isinstance(direction, Tensor) else Tensor(direction, device=traced.context.device)
        if moved.shape != shape:
            raise ValueError(f"finite_difference: {tap} of {name} has shape {tuple(shape)}, the direction "
                             f"{tuple(moved.shape)}")
        moved = moved.reshape(traced._tensor(tap).shape)  # that of the computation
        number, taken = len(self._calls[name]), traced.taken(tap)
        return (self._loss_at(loss, name, number, taken, moved * step)
                - self._loss_at(loss, name, number, taken, moved * -step)) / (2 * step)

    def _loss_at(self, loss: Callable[[], Any], name: str, number: int, tap: str, change: Tensor) -> float:
        """The loss when `change` is added to one tensor of call `number` of an attention.

        The module that calls it alone runs on compositions, so the rest of the model keeps its speed.
        """
        module = self[name].module
        mover = _Mover(module, set(callers(self.model)), number, tap, change)
        attributes, forward = vars(module), module.forward
        own = {name: value for name, value in attributes.items() if name == "forward"}

        @functools.wraps(forward)
        def moved(*args: Any, **kwargs: Any) -> Any:
            with watch(mover), tapping(mover.tensor):
                return forward(*args, **kwargs)

        with random.fork(), no_grad():
            random.set_state(self._state)
            attributes["forward"] = moved
            try:
                value = float(loss())
            finally:
                del attributes["forward"]
                attributes.update(own)
        if not mover.moved:
            raise ValueError(f"finite_difference: the loss did not come by {tap} of {name}; it must compute again what "
                             "was traced, with that tensor")
        return value


class _Mover(Watcher):
    """Adds `change` to one tensor, in the call of that number, counted from 1, that `module` makes of an attention."""

    def __init__(self, module: nn.Module, callers: set[nn.Module], number: int, tap: str, change: Tensor) -> None:
        self.module, self.callers, self.number, self.tap, self.change = module, callers, number, tap, change
        self.running = [module]
        self.calls = 0
        self.moved = False

    def before(self, what: Any, given: Any) -> None:
        """A module inside begins."""
        if isinstance(what, nn.Module) and what in self.callers:
            self.running.append(what)

    def after(self, what: Any, given: Any, made: Any) -> None:
        """It has ended."""
        if isinstance(what, nn.Module) and what in self.callers:
            self.running.pop()

    def tensor(self, name: str, tensor: Any) -> Any:
        """The visitor of `tapping`."""
        if self.running[-1] is not self.module:
            return None
        self.calls += name == FIRST
        if name != self.tap or self.calls + (name in INPUTS) != self.number:  # inputs come before their call
            return None
        self.moved = True
        return tensor + self.change
