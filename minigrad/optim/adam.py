"""Adam and AdamW."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from minigrad.device import xp
from minigrad.optim.optimizer import Array, Optimizer, Options, Parameters


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

    def state_names(self, options: Options) -> tuple[str, ...]:
        """m and v, by PyTorch's names."""
        return ("exp_avg", "exp_avg_sq")

    def constants(self, step: int, options: Options) -> Sequence[float]:
        """The constants of the formulas above; they include both corrections, which saves passes over the arrays.

        For c = √(1 − β₂ᵗ): ``m̂ / (√v̂ + ε) = c / (1 − β₁ᵗ) · m / (√v + cε)``.
        """
        lr, eps, weight_decay, (beta1, beta2) = (options[name] for name in ("lr", "eps", "weight_decay", "betas"))
        c = math.sqrt(1 - beta2**step)
        return (beta1, 1 - beta1, beta2, 1 - beta2, lr * c / (1 - beta1**step), c * eps,
                weight_decay, 1 - lr * weight_decay)

    def update(self, constants: Sequence[Any], p: Array, g: Array, *state: Array) -> None:
        """The formulas above."""
        beta1, new1, beta2, new2, rate, epsilon, decay, kept = constants
        m, v = state
        if decay and self.decoupled_weight_decay:
            p *= kept
        elif decay:
            g = g + decay * p
        m *= beta1
        m += new1 * g
        v *= beta2
        v += new2 * (g * g)
        scale = xp(v).sqrt(v)
        scale += epsilon
        p -= rate * (m / scale)


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
