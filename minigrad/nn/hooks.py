"""Hooks on modules: functions called before and after a forward, and when the gradients of a module are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

from minigrad.engine.interpreters import interpreters
from minigrad.engine.node import TensorBase
from minigrad.functional.bundle import bundle
from minigrad.tensor.hooks import RemovableHandle


class Hookable:
    """What can be called with hooks around its ``forward``; every Module is."""

    _hooks: ModuleHooks | None = None

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the module's result; called by ``module(...)``."""
        raise NotImplementedError(f"{type(self).__name__} must define forward()")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The result of ``forward`` with the same arguments, with the hooks around it."""
        entries = interpreters()
        for entry in entries:
            entry.module_begins(self)
        try:
            return self.forward(*args, **kwargs) if self._hooks is None else self._hooks.call(self, args, kwargs)
        finally:
            for entry in reversed(entries):
                entry.module_ends(self)

    # ------------------------------------------------------------------ hooks

    def register_forward_pre_hook(self, hook: Callable[[Self, tuple[Any, ...]], Any]) -> RemovableHandle:
        """Call ``hook(module, args)`` before every forward; it may return other positional arguments."""
        return RemovableHandle(self._own_hooks().before, hook)

    def register_forward_hook(self, hook: Callable[[Self, tuple[Any, ...], Any], Any]) -> RemovableHandle:
        """Call ``hook(module, args, output)`` after every forward; it may return another output."""
        return RemovableHandle(self._own_hooks().after, hook)

    def register_full_backward_hook(self, hook: Callable[[Self, tuple[Any, ...], tuple[Any, ...]], Any]
                                    ) -> RemovableHandle:
        """Call ``hook(module, grad_input, grad_output)`` in every backward, once both are known.

        `grad_input` has an entry for each positional argument, `grad_output` for each output (None for what needs no
        gradient); it may return others for `grad_input`. Where no argument requires a gradient, `grad_input` is
        ``(None,)``. The output must be a tensor, or a tuple or list of them. Several arguments (or outputs) that
        require gradients are copied once, so that all their gradients arrive together.
        """
        return RemovableHandle(self._own_hooks().backward, hook)

    @property
    def has_hooks(self) -> bool:
        """Whether a hook is registered: then what the module does must go through a call of it."""
        return self._hooks is not None and bool(self._hooks.before or self._hooks.after or self._hooks.backward)

    def _own_hooks(self) -> ModuleHooks:
        if self._hooks is None:
            self._hooks = ModuleHooks()
        return self._hooks


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
