"""Losses as modules: each is called with (input, target), and keeps the options of its function."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from minigrad import functional as F
from minigrad.arguments import number, whole_number
from minigrad.functional.loss import REDUCTIONS, check_reduction
from minigrad.nn.module import Module
from minigrad.tensor import Tensor


class Loss(Module):
    """Calls its `function` of (input, target) with its options, which are attributes. Base of the others.

    Args:
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
        allowed: the reductions that there are, for a loss with others.
    """

    function: ClassVar[Any]  # of the input, the target and the options by name
    options: ClassVar[tuple[str, ...]] = ("reduction",)
    not_printed: ClassVar[tuple[str, ...]] = ()  # more options, which the repr leaves out

    def __init__(self, reduction: str = "mean", allowed: tuple[str, ...] = REDUCTIONS) -> None:
        super().__init__()
        check_reduction(reduction, type(self).__name__, allowed)
        self.reduction = reduction

    def register_factor(self, name: str, factor: Any) -> None:
        """A weight as a buffer: it moves with the module and is saved with it. What is no tensor becomes float32."""
        given = factor is None or isinstance(factor, Tensor)
        self.register_buffer(name, factor if given else Tensor(factor, dtype=np.float32))

    def forward(self, input: Tensor, target: Any) -> Tensor:
        """The loss of `input` to `target`; their shapes are those of the function."""
        options = {name: getattr(self, name) for name in (*self.options, *self.not_printed)}
        return self.function(input, target, **options)

    def extra_repr(self) -> str:
        """The options, but for weights."""
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in self.options)


class MSELoss(Loss):
    """The squared error, see `functional.mse_loss`.

    Args:
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
    """

    function = staticmethod(F.mse_loss)


class L1Loss(Loss):
    """The absolute error, see `functional.l1_loss`.

    Args:
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
    """

    function = staticmethod(F.l1_loss)


class SmoothL1Loss(Loss):
    """Squared up to β and straight from there, see `functional.smooth_l1_loss`.

    Args:
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
        beta: β; 0 gives `L1Loss`.
    """

    function = staticmethod(F.smooth_l1_loss)
    options = ("reduction", "beta")

    def __init__(self, reduction: str = "mean", beta: float = 1.0) -> None:
        super().__init__(reduction)
        self.beta = number(beta, "beta", "SmoothL1Loss")


class HuberLoss(Loss):
    """Squared up to δ and straight from there with slope δ, see `functional.huber_loss`.

    Args:
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
        delta: δ.
    """

    function = staticmethod(F.huber_loss)
    options = ("reduction", "delta")

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction)
        self.delta = number(delta, "delta", "HuberLoss")


class NLLLoss(Loss):
    """The negative log-likelihood of target ids (…), from log-probabilities (…, C), see `functional.nll_loss`.

    Args:
        weight: (C,), a factor for each class, or None.
        ignore_index: rows with this target count for nothing.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
    """

    function = staticmethod(F.nll_loss)
    not_printed = ("weight", "ignore_index")
    weight: Tensor | None

    def __init__(self, weight: Any = None, ignore_index: int = -100, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.register_factor("weight", weight)
        self.ignore_index = whole_number(ignore_index, "ignore_index", "NLLLoss", least=None)


class CrossEntropyLoss(Loss):
    """The cross-entropy between logits (…, C) and target ids (…), see `functional.cross_entropy`.

    Args:
        weight: (C,), a factor for each class, or None.
        ignore_index: rows with this target count for nothing.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
        label_smoothing: how much of the target is spread over all classes, in [0, 1].
    """

    function = staticmethod(F.cross_entropy)
    options = ("reduction", "label_smoothing")
    not_printed = ("weight", "ignore_index")
    weight: Tensor | None

    def __init__(self, weight: Any = None, ignore_index: int = -100, reduction: str = "mean",
                 label_smoothing: float = 0.0) -> None:
        super().__init__(reduction)
        self.register_factor("weight", weight)
        self.ignore_index = whole_number(ignore_index, "ignore_index", "CrossEntropyLoss", least=None)
        self.label_smoothing = number(label_smoothing, "label_smoothing", "CrossEntropyLoss", 0, 1)


class BCELoss(Loss):
    """The binary cross-entropy of probabilities, see `functional.binary_cross_entropy`.

    Args:
        weight: a factor for each loss, that broadcasts to them, or None.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
    """

    function = staticmethod(F.binary_cross_entropy)
    not_printed = ("weight",)
    weight: Tensor | None

    def __init__(self, weight: Any = None, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.register_factor("weight", weight)


class BCEWithLogitsLoss(Loss):
    """The binary cross-entropy of logits, see `functional.binary_cross_entropy_with_logits`.

    Args:
        weight: a factor for each loss, that broadcasts to them, or None.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
        pos_weight: a factor for the positive part of the losses, that broadcasts to them, or None.
    """

    function = staticmethod(F.binary_cross_entropy_with_logits)
    not_printed = ("weight", "pos_weight")
    weight: Tensor | None
    pos_weight: Tensor | None

    def __init__(self, weight: Any = None, reduction: str = "mean", pos_weight: Any = None) -> None:
        super().__init__(reduction)
        self.register_factor("weight", weight)
        self.register_factor("pos_weight", pos_weight)


class KLDivLoss(Loss):
    """The Kullback-Leibler divergence from the target to log-probabilities, see `functional.kl_div`.

    Args:
        reduction: ``"batchmean"``, ``"mean"``, ``"sum"`` or ``"none"``.
        log_target: whether the target holds logarithms.
    """

    function = staticmethod(F.kl_div)
    options = ("reduction", "log_target")

    def __init__(self, reduction: str = "mean", log_target: bool = False) -> None:
        super().__init__(reduction, ("batchmean", *REDUCTIONS))
        self.log_target = log_target


class CosineSimilarity(Module):
    """The cosine of the angle between vectors, see `functional.cosine_similarity`.

    Args:
        axis: the axis along which the vectors lie.
        eps: a lower bound for their lengths.
    """

    def __init__(self, axis: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.axis = whole_number(axis, "axis", "CosineSimilarity", least=None)
        self.eps = number(eps, "eps", "CosineSimilarity")

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Compare the vectors of two tensors that broadcast against each other."""
        return F.cosine_similarity(x1, x2, self.axis, self.eps)

    def extra_repr(self) -> str:
        """The axis and eps."""
        return f"axis={self.axis}, eps={self.eps}"
