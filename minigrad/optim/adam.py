"""Adam and AdamW."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from minigrad.arguments import number
from minigrad.device import xp
from minigrad.optim.optimizer import Array, Optimizer, Parameters, Update


class Adam(Optimizer):
    """Kingma and Ba, "Adam: a method for stochastic optimization", 2015, algorithm 1.

    At a parameter's update t = 1, 2, …:

    * ``m ← β₁m + (1 − β₁)g`` and ``v ← β₂v + (1 − β₂)g²``: running means of the gradient and of its square
    * ``m̂ = m / (1 − β₁ᵗ)`` and ``v̂ = v / (1 − β₂ᵗ)``: both began at 0, and this removes the bias towards it
    * ``p ← p − lr·m̂ / (√v̂ + ε)``

    Args:
        params: tensors or groups, see `Optimizer`.
        lr: learning rate.
        betas: β₁ and β₂, each in [0, 1).
        eps: ε.
        weight_decay: λ of an L2 penalty, ``g ← g + λp``. It is rescaled with the gradient; see `AdamW`.
    """

    decoupled_weight_decay = False

    def __init__(self, params: Parameters, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
                 eps: float = 1e-8, weight_decay: float = 0.0) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    def check_options(self, options: dict[str, Any]) -> None:
        """Raise ValueError if an option is out of range."""
        super().check_options(options)
        betas = options["betas"]
        pair = isinstance(betas, list | tuple) and len(betas) == 2
        if not pair or not all(0 <= number(beta, "a beta", self._name) < 1 for beta in betas):
            raise ValueError(f"{self._name}: betas must be two numbers in [0, 1), got {betas!r}")

    def state_names(self, options: dict[str, Any]) -> tuple[str, ...]:
        """m and v, by PyTorch's names."""
        return ("exp_avg", "exp_avg_sq")

    def rule(self, step: int, options: dict[str, Any], constant: Callable[[float], Any]) -> Update:
        """The formulas above, with both corrections taken out of the arrays to save passes over them.

        For c = √(1 − β₂ᵗ): ``m̂ / (√v̂ + ε) = c / (1 − β₁ᵗ) · m / (√v + cε)``.
        """
        lr, eps, weight_decay = (options[name] for name in ("lr", "eps", "weight_decay"))
        beta1, beta2 = options["betas"]
        c = math.sqrt(1 - beta2**step)
        rate, epsilon, decay, kept = map(constant, (lr * c / (1 - beta1**step), c * eps, weight_decay,
                                                    1 - lr * weight_decay))
        old1, new1, old2, new2 = map(constant, (beta1, 1 - beta1, beta2, 1 - beta2))

        def update(p: Array, g: Array, m: Array, v: Array) -> None:
            namespace = xp(p)
            if weight_decay and self.decoupled_weight_decay:
                p *= kept
            elif weight_decay:
                g = g + decay * p
            m *= old1
            t = new1 * g
            m += t
            v *= old2
            namespace.multiply(g, g, out=t)
            t *= new2
            v += t
            namespace.sqrt(v, out=t)
            t += epsilon
            namespace.divide(m, t, out=t)
            t *= rate
            p -= t

        return update


class AdamW(Adam):
    """Adam with weight decay decoupled from the gradient: ``p ← (1 − lr·λ)p`` before Adam's update.

    Loshchilov and Hutter, "Decoupled weight decay regularization", 2019, algorithm 2.

    Args:
        params, lr, betas, eps: as for `Adam`.
        weight_decay: λ; the default is PyTorch's, 0.01.
    """

    decoupled_weight_decay = True

    def __init__(self, params: Parameters, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
                 eps: float = 1e-8, weight_decay: float = 0.01) -> None:
        super().__init__(params, lr, betas, eps, weight_decay)
