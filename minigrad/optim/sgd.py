"""Stochastic gradient descent, with and without momentum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minigrad.optim.optimizer import Array, Optimizer, Options, Parameters


class SGD(Optimizer):
    """``p ← p − lr·d``, where the direction d comes from the gradient g as follows (PyTorch's conventions).

    * weight decay λ (an L2 penalty λ/2·‖p‖²): ``g ← g + λp``
    * momentum μ: ``b ← μb + g``, where b begins at 0; then d = b

    Args:
        params: tensors or groups, see `Optimizer`.
        lr: learning rate.
        momentum: μ. Heavy ball, Polyak, "Some methods of speeding up the convergence of iteration methods",
            1964.
        weight_decay: λ.
    """

    def __init__(self, params: Parameters, lr: float = 1e-3, momentum: float = 0.0, *,
                 weight_decay: float = 0.0) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    def state_names(self, options: Options) -> tuple[str, ...]:
        """The momentum buffer b, if there is momentum."""
        return ("momentum_buffer",) if options["momentum"] else ()

    def update(self, constants: Sequence[Any], p: Array, g: Array, *state: Array) -> None:
        """The formulas above."""
        lr, momentum, weight_decay = constants
        if weight_decay:
            g = g + weight_decay * p
        for b in state:
            b *= momentum
            b += g
            g = b
        p -= lr * g
