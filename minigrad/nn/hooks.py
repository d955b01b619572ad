"""Hooks on modules: functions called before and after a forward, and when the gradients of a module are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minigrad.engine.node import TensorBase
from minigrad.functional.bundle import bundle


class ModuleHooks:
    """The hooks of one module, each under the number of its handle, in the order of registration."""

    def __init__(self) -> None:
        self.before: dict[int, Callable[..., Any]] = {}
        self.after: dict[int, Callable[..., Any]] = {}
        self.backward: dict[int, Callable[..., Any]] = {}

    def call(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The forward of `module`, with its hooks around it."""
        for hook in list(self.before.values()):
            changed = hook(module, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
        crossing = Crossing(module, self.backward) if self.backward else None
        inputs = args if crossing is None else crossing.enter(args)
        output = module.forward(*inputs, **kwargs)
        if crossing is not None:
            output = crossing.leave(output)
        for hook in list(self.after.values()):
            changed = hook(module, args, output)
            output = output if changed is None else changed
        return output


class Crossing:
    """One call of a module whose backward hooks wait for the gradients of its inputs and outputs.

    All inputs pass through one node, which is older than anything in the module, and all outputs through one that is
    newer: the backward comes to the outputs' first, and to the inputs' when all gradients have arrived there.
    """

    def __init__(self, module: Any, hooks: dict[int, Callable[..., Any]]) -> None:
        self.module, self.hooks = module, hooks
        self.grad_output: tuple[Any, ...] = ()
        self.enters = False

    def enter(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments; those that require a gradient as parts of one node."""
        places = _differentiable(args)
        if not places:
            return args
        whole, apart = bundle([args[i] for i in places])
        if whole._node is None:  # no_grad: there will be no backward
            return args
        self.enters = True

        def arrived(gradient: Any) -> Any:
            changed = self.run(_placed(apart(gradient), places, len(args)))
            return None if changed is None else bundle([changed[i] for i in places])[0]

        whole.register_hook(arrived)
        return tuple(_placed(apart(whole), places, len(args), args))

    def leave(self, output: Any) -> Any:
        """The output, a tensor or a tuple or list of them; what requires a gradient as parts of one node."""
        several = isinstance(output, (tuple, list))
        if not several and not isinstance(output, TensorBase):
            raise TypeError(f"{type(self.module).__name__}: a backward hook needs a forward that returns a tensor, "
                            f"or a tuple or list of them, got {type(output).__name__}")
        parts = list(output) if several else [output]
        places, count = _differentiable(parts), len(parts)
        self.grad_output = (None,) * count
        if not places:
            return output
        whole, apart = bundle([parts[i] for i in places])
        if whole._node is None:
            return output

        def arrived(gradient: Any) -> None:  # it must not refer to the outputs, whose node refers to it
            self.grad_output = tuple(_placed(apart(gradient), places, count))
            if not self.enters:
                self.run((None,))

        whole.register_hook(arrived)
        parts = _placed(apart(whole), places, count, parts)
        if hasattr(output, "_fields"):  # a named tuple
            return type(output)(*parts)
        return type(output)(parts) if several else parts[0]

    def run(self, grad_input: Any) -> tuple[Any, ...] | None:
        """Call the hooks; the gradients of the inputs if a hook replaced them, else None."""
        replaced = False
        for hook in list(self.hooks.values()):
            changed = hook(self.module, tuple(grad_input), self.grad_output)
            if changed is not None:
                grad_input = self.checked(changed if isinstance(changed, (tuple, list)) else (changed,), grad_input)
                replaced = True
        return tuple(grad_input) if replaced else None

    def checked(self, changed: Sequence[Any], grad_input: Sequence[Any]) -> Sequence[Any]:
        """What a hook returned, having checked that it can take the place of the gradients."""
        where = f"{type(self.module).__name__}: what a backward hook returns takes the place of grad_input"
        if len(changed) != len(grad_input):
            raise ValueError(f"{where}, and must have {len(grad_input)} entries, got {len(changed)}")
        for position, (new, old) in enumerate(zip(changed, grad_input, strict=True)):
            if old is not None and (not isinstance(new, TensorBase) or new._data.shape != old._data.shape):
                got = f"shape {tuple(new._data.shape)}" if isinstance(new, TensorBase) else type(new).__name__
                raise ValueError(f"{where}; entry {position} must be a tensor of shape {tuple(old._data.shape)}, "
                                 f"got {got}")
        return changed


def _differentiable(values: Any) -> list[int]:
    """The positions of the tensors that require a gradient."""
    return [i for i, value in enumerate(values) if isinstance(value, TensorBase) and value._requires_grad]


def _placed(parts: list[Any], places: list[int], count: int, others: Any = None) -> list[Any]:
    """A list of `count` with `parts` at `places`, and `others` (or None) elsewhere."""
    placed = [None] * count if others is None else list(others)
    for place, part in zip(places, parts, strict=True):
        placed[place] = part
    return placed
