"""Losses as modules: the functions of `minigrad.functional` with their options kept, each called (input, target)."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad import functional as F
from minigrad.arguments import public
from minigrad.functional.loss import REDUCTIONS, check_reduction
from minigrad.nn.module import Module
from minigrad.tensor import Tensor


class Loss(Module):
    """What the losses share. Base of the others.

    Args:
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
        allowed: the reductions that there are, for a loss with others.
    """

    def __init__(self, reduction: str = "mean", allowed: tuple[str, ...] = REDUCTIONS) -> None:
        super().__init__()
        check_reduction(reduction, type(self).__name__, allowed)
        self.reduction = reduction

    def register_factor(self, name: str, factor: Any) -> None:
        """A weight as a buffer: it moves with the module and is saved with it. What is no tensor becomes float32."""
        given = factor is None or isinstance(factor, Tensor)
        self.register_buffer(name, factor if given else Tensor(factor, dtype=np.float32))

    def extra_repr(self) -> str:
        """How the losses are reduced."""
        return f"reduction={self.reduction!r}"


class MSELoss(Loss):
    """The squared error, see `functional.mse_loss`.

    Args:
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
    """

    def forward(self, input: Tensor, target: Any) -> Tensor:
        """The loss of `input`, any shape, to a `target` of the same shape."""
        return F.mse_loss(input, target, self.reduction)


class L1Loss(Loss):
    """The absolute error, see `functional.l1_loss`.

    Args:
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
    """

    def forward(self, input: Tensor, target: Any) -> Tensor:
        """The loss of `input`, any shape, to a `target` of the same shape."""
        return F.l1_loss(input, target, self.reduction)


class SmoothL1Loss(Loss):
    """Squared up to β and straight from there, see `functional.smooth_l1_loss`.

    Args:
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
        beta: β; 0 gives `L1Loss`.
    """

    def __init__(self, reduction: str = "mean", beta: float = 1.0) -> None:
        super().__init__(reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Any) -> Tensor:
        """The loss of `input`, any shape, to a `target` of the same shape."""
        return F.smooth_l1_loss(input, target, self.reduction, self.beta)

    def extra_repr(self) -> str:
        """The reduction and β."""
        return f"{super().extra_repr()}, beta={self.beta}"


class HuberLoss(Loss):
    """Squared up to δ and straight from there with slope δ, see `functional.huber_loss`.

    Args:
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
        delta: δ.
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction)
        self.delta = delta

    def forward(self, input: Tensor, target: Any) -> Tensor:
        """The loss of `input`, any shape, to a `target` of the same shape."""
        return F.huber_loss(input, target, self.reduction, self.delta)

    def extra_repr(self) -> str:
        """The reduction and δ."""
        return f"{super().extra_repr()}, delta={self.delta}"


class NLLLoss(Loss):
    """The negative log-likelihood of target ids, of log-probabilities, see `functional.nll_loss`.

    Args:
        weight: (C,), a factor for each class, or None.
        ignore_index: rows with this target count for nothing.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
    """

    weight: Tensor | None

    def __init__(self, weight: Any = None, ignore_index: int = -100, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.register_factor("weight", weight)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Any) -> Tensor:
        """The loss of log-probabilities (…, C) for integer ids (…)."""
        return F.nll_loss(input, target, self.weight, self.ignore_index, self.reduction)


class CrossEntropyLoss(Loss):
    """The cross-entropy between logits and target ids, see `functional.cross_entropy`.

    Args:
        weight: (C,), a factor for each class, or None.
        ignore_index: rows with this target count for nothing.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
        label_smoothing: how much of the target is spread over all classes, in [0, 1].
    """

    weight: Tensor | None

    def __init__(self, weight: Any = None, ignore_index: int = -100, reduction: str = "mean",
                 label_smoothing: float = 0.0) -> None:
        super().__init__(reduction)
        self.register_factor("weight", weight)
        self.ignore_index, self.label_smoothing = ignore_index, label_smoothing

    def forward(self, input: Tensor, target: Any) -> Tensor:
        """The loss of logits (…, C) for integer ids (…)."""
        return F.cross_entropy(input, target, self.weight, self.ignore_index, self.reduction, self.label_smoothing)

    def extra_repr(self) -> str:
        """The reduction and the smoothing."""
        return f"{super().extra_repr()}, label_smoothing={self.label_smoothing}"


class BCELoss(Loss):
    """The binary cross-entropy of probabilities, see `functional.binary_cross_entropy`.

    Args:
        weight: a factor for each loss, that broadcasts to them, or None.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
    """

    weight: Tensor | None

    def __init__(self, weight: Any = None, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.register_factor("weight", weight)

    def forward(self, input: Tensor, target: Any) -> Tensor:
        """The loss of probabilities, any shape, to a `target` of the same shape."""
        return F.binary_cross_entropy(input, target, self.weight, self.reduction)


class BCEWithLogitsLoss(Loss):
    """The binary cross-entropy of logits, see `functional.binary_cross_entropy_with_logits`.

    Args:
        weight: a factor for each loss, that broadcasts to them, or None.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
        pos_weight: a factor for the positive part of the losses, that broadcasts to them, or None.
    """

    weight: Tensor | None
    pos_weight: Tensor | None

    def __init__(self, weight: Any = None, reduction: str = "mean", pos_weight: Any = None) -> None:
        super().__init__(reduction)
        self.register_factor("weight", weight)
        self.register_factor("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Any) -> Tensor:
        """The loss of logits, any shape, to a `target` of the same shape."""
        return F.binary_cross_entropy_with_logits(input, target, self.weight, self.reduction, self.pos_weight)


class KLDivLoss(Loss):
    """The Kullback-Leibler divergence from the target to log-probabilities, see `functional.kl_div`.

    Args:
        reduction: ``"batchmean"``, ``"mean"``, ``"sum"`` or ``"none"``.
        log_target: whether the target holds logarithms.
    """

    def __init__(self, reduction: str = "mean", log_target: bool = False) -> None:
        super().__init__(reduction, ("batchmean", *REDUCTIONS))
        self.log_target = log_target

    def forward(self, input: Tensor, target: Any) -> Tensor:
        """The divergence of log-probabilities, any shape, from a `target` of the same shape."""
        return F.kl_div(input, target, self.reduction, self.log_target)

    def extra_repr(self) -> str:
        """The reduction, and what the target is."""
        return f"{super().extra_repr()}, log_target={self.log_target}"


class CosineSimilarity(Module):
    """The cosine of the angle between vectors, see `functional.cosine_similarity`.

    Args:
        axis: the axis along which the vectors lie.
        eps: a lower bound for their lengths.
    """

    @public
    def __init__(self, axis: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.axis, self.eps = axis, eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Compare the vectors of two tensors that broadcast against each other."""
        return F.cosine_similarity(x1, x2, self.axis, self.eps)

    def extra_repr(self) -> str:
        """The axis and eps."""
        return f"axis={self.axis}, eps={self.eps}"
