"""Gradient checkpointing: keep the inputs of a function in place of everything it computes, and compute it again.

Chen, Xu, Zhang and Guestrin, "Training deep nets with sublinear memory cost", 2016 (arXiv:1604.06174).

It is the engine's expansion at work (`minigrad.autograd`): one node stands for the whole function; when a backward
reaches it, the function runs again, is recorded in the node's place, and the traversal goes on through what it
recorded. So parameters that the function refers to, nested checkpoints and derivatives of any order need no special
care.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minigrad import random
from minigrad.autograd import boundary
from minigrad.bundle import bundle
from minigrad.modes import enable_grad, fused, fused_kernels, recording
from minigrad.plan import Plan
from minigrad.rules import Rules
from minigrad.tape import Node, TensorBase, gradient_target, next_number, wrap


class Segment:
    """A call to be made again: the function, its arguments, and what the call depended on besides."""

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.function, self.args, self.kwargs = function, args, kwargs
        self.random_state, self.fused = random.get_state(), fused_kernels.get()

    def run(self) -> tuple[Any, Any]:
        """The differentiable results as one tensor (None if there are none), and how to put all of them in place."""
        output = self.function(*self.args, **self.kwargs)
        several = isinstance(output, (tuple, list))
        parts = list(output) if several else [output]
        for part in parts:
            if not isinstance(part, TensorBase):
                raise TypeError(f"checkpoint: the function must return a tensor, or a tuple or list of them, got "
                                f"{type(part).__name__}")
        places = [i for i, part in enumerate(parts) if part._requires_grad]
        if not places:
            return None, lambda whole: output
        whole, apart = bundle([parts[i] for i in places])
        others = [wrap(part._data, None, part._tick) for part in parts]

        def in_place(whole: Any) -> Any:
            results: list[Any] = list(others)
            for place, part in zip(places, apart(whole), strict=True):
                results[place] = part
            return type(output)(results) if several else results[0]

        return whole, in_place

    def run_again(self) -> Any:
        """The differentiable results as one tensor, recorded, from the same random numbers."""
        with random.fork(), enable_grad(), fused(self.fused):
            random.set_state(self.random_state)
            return self.run()[0]


class Recomputation(Rules):
    """The operation whose node stands for a segment."""

    def expand(self, node: Node) -> Any:
        """Record the segment in the place of `node`."""
        whole = node.saved[0].run_again()
        if whole is None or tuple(whole.shape) != tuple(node.shape) or whole.dtype != node.dtype:
            got = "nothing that requires a gradient" if whole is None else f"{tuple(whole.shape)} {whole.dtype}"
            raise RuntimeError(f"checkpoint: the function gave {tuple(node.shape)} {node.dtype} the first time and "
                               f"{got} the second; it must depend on its arguments and parameters alone")
        return whole


def _checkpoint(x):  # type: ignore[no-untyped-def]
    return x


_recomputation = Recomputation(_checkpoint)
_plan = Plan((), (), (), (), (), None, expands=True, recomputes=True)


def checkpoint(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """``function(*args, **kwargs)``, of which the tape keeps only the arguments; backward computes it again.

    Memory: what the function saves lives during its own forward and its own backward, never beyond. Time: one more
    forward. Random draws (dropout) are the same both times. Parameters and tensors that the function refers to
    receive their gradients as ever.

    Args:
        function: of tensors, to a tensor or a tuple or list of tensors; it must compute the same when called again.
        args, kwargs: its arguments.

    Returns:
        What the function returned.

    Raises:
        TypeError: the function returned something else than tensors.
        RuntimeError: in the backward, if the second call gave another shape or dtype, or if an argument or parameter
            was changed in place in between.
    """
    if not recording.get():
        return function(*args, **kwargs)
    segment, oldest = Segment(function, args, kwargs), next_number()
    whole, in_place = segment.run()
    if whole is None:
        return in_place(None)
    parents = boundary(gradient_target(whole), oldest)
    given = [a for a in (*args, *kwargs.values(), *parents) if isinstance(a, TensorBase)]
    ticks = tuple((tensor._tick, tensor._tick[0], tensor._data) for tensor in given)
    output = wrap(whole._data, None, whole._tick)
    output._node = Node(_recomputation, _plan, tuple(parents), (segment,), ticks, whole._data.shape, whole._data.dtype)
    output._requires_grad = True
    return in_place(output)
