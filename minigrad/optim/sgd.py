"""Stochastic gradient descent, with and without momentum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minigrad.arguments import LARGEST, number
from minigrad.optim.optimizer import Array, Optimizer, Parameters, Update


class SGD(Optimizer):
    """``p ← p − lr·d``, where the direction d comes from the gradient g as follows (PyTorch's conventions).

    * weight decay λ (an L2 penalty λ/2·‖p‖²): ``g ← g + λp``
    * momentum μ, dampening τ: ``b ← μb + (1 − τ)g``, and b = g at the first update; then d = b
    * Nesterov momentum: d = g + μb

    Args:
        params: tensors or groups, see `Optimizer`.
        lr: learning rate.
        momentum: μ. Heavy ball, Polyak, "Some methods of speeding up the convergence of iteration methods",
            1964.
        dampening: τ.
        weight_decay: λ.
        nesterov: Sutskever et al., "On the importance of initialization and momentum in deep learning", 2013;
            needs a momentum above 0 and no dampening.
    """

    def __init__(self, params: Parameters, lr: float = 1e-3, momentum: float = 0.0, dampening: float = 0.0,
                 weight_decay: float = 0.0, nesterov: bool = False) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "dampening": dampening,
                                  "weight_decay": weight_decay, "nesterov": nesterov})

    def check_options(self, options: dict[str, Any]) -> None:
        """Raise ValueError if an option is out of range, or if `nesterov` does not go with the momentum."""
        super().check_options(options)
        number(options["momentum"], "momentum", "SGD", 0, LARGEST)
        number(options["dampening"], "dampening", "SGD", -LARGEST, LARGEST)
        if options["nesterov"] and (options["momentum"] <= 0 or options["dampening"] != 0):
            raise ValueError(
                f"SGD: nesterov needs momentum > 0 and dampening = 0, got momentum="
                f"{options['momentum']!r} and dampening={options['dampening']!r}"
            )

    def state_names(self, options: dict[str, Any]) -> tuple[str, ...]:
        """The momentum buffer b, if there is momentum."""
        return ("momentum_buffer",) if options["momentum"] else ()

    def rule(self, step: int, options: dict[str, Any], constant: Callable[[float], Any]) -> Update:
        """The formulas above."""
        lr, momentum, weight_decay = (float(options[name]) for name in ("lr", "momentum", "weight_decay"))
        new = 1.0 if step == 1 else 1 - float(options["dampening"])  # at the first update b is 0
        rate, kept, share, decay = map(constant, (lr, momentum, new, weight_decay))

        def update(p: Array, g: Array, *state: Array) -> None:
            if weight_decay:
                g = g + decay * p
            for b in state:
                b *= kept
                b += share * g
                g = g + kept * b if options["nesterov"] else b
            p -= rate * g

        return update
