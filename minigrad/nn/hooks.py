"""Hooks on modules: functions called before and after a forward, and when the gradients of a module are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minigrad.engine.node import TensorBase
from minigrad.functional.bundle import bundle

Gradients = tuple[Any, ...]  # tensors, and None for what needs none


class ModuleHooks:
    """The hooks of one module, each under the number of its handle, in the order of registration."""

    def __init__(self) -> None:
        self.before: dict[int, Callable[..., Any]] = {}
        self.after: dict[int, Callable[..., Any]] = {}
        self.backward: dict[int, Callable[..., Any]] = {}

    def call(self, module: Any, /, *args: Any, **kwargs: Any) -> Any:
        """The forward of `module`, with its hooks around it."""
        for hook in list(self.before.values()):
            changed = hook(module, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
        output = self._between_nodes(module, args, kwargs) if self.backward else module.forward(*args, **kwargs)
        for hook in list(self.after.values()):
            changed = hook(module, args, output)
            output = output if changed is None else changed
        return output

    def _between_nodes(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The forward, with backward hooks that wait for the gradients of its inputs and outputs.

        All inputs pass through one node, which is older than anything in the module, and all outputs through one that
        is newer: the backward comes to the outputs' first, and to the inputs' when all gradients have arrived there.
        """
        grad_output: list[Any] = []

        def at_inputs(gradients: Gradients) -> Gradients:
            for hook in list(self.backward.values()):
                changed = hook(module, gradients, tuple(grad_output))
                if changed is not None:
                    gradients = _in_place_of(gradients, changed, module)
            return gradients

        inputs = _through_one_node(args, at_inputs)
        enters = inputs is not args
        output = module.forward(*inputs, **kwargs)
        outputs = output if isinstance(output, tuple | list) else (output,)
        if outputs is not output and not isinstance(output, TensorBase):
            raise TypeError(f"{type(module).__name__}: a backward hook needs a forward that returns a tensor, or a "
                            f"tuple or list of them, got {type(output).__name__}")

        def at_outputs(gradients: Gradients) -> Gradients:  # without the outputs, whose node refers to this function
            grad_output[:] = gradients
            if not enters:
                at_inputs((None,))
            return gradients

        parts = _through_one_node(outputs, at_outputs)
        if outputs is not output:
            return parts[0]
        return type(output)(*parts) if hasattr(output, "_fields") else type(output)(parts)


def _through_one_node(values: Sequence[Any], told: Callable[[Gradients], Gradients]) -> Sequence[Any]:
    """`values`; those that require a gradient as parts of one node, of which `told` gets and returns the gradients."""
    places = [i for i, value in enumerate(values) if isinstance(value, TensorBase) and value._requires_grad]
    whole, apart = bundle([values[i] for i in places]) if places else (None, None)
    if whole is None or apart is None or whole._node is None:  # the last under no_grad: there will be no backward
        return values
    nothing = [None] * len(values)

    def placed(parts: list[Any], others: Sequence[Any]) -> Gradients:
        found = dict(zip(places, parts, strict=True))
        return tuple([found.get(i, other) for i, other in enumerate(others)])

    def arrived(gradient: Any) -> Any:
        gradients = placed(apart(gradient), nothing)
        changed = told(gradients)
        return None if changed is gradients else bundle([changed[i] for i in places])[0]

    whole.register_hook(arrived)
    return placed(apart(whole), values)


def _in_place_of(gradients: Gradients, changed: Any, module: Any) -> Gradients:
    """What a hook returned, with the shapes of `gradients`."""
    changed = tuple(changed) if isinstance(changed, tuple | list) else (changed,)
    needed, given = ([getattr(g, "shape", None) for g in side] for side in (gradients, changed))
    if given != needed:
        raise ValueError(f"{type(module).__name__}: what a backward hook returns takes the place of grad_input, and "
                         f"must have the shapes {needed}, got {given}")
    return changed
