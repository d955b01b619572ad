"""Rows for the losses, the similarity of vectors and rms_norm: targets of both kinds, every reduction, kinks."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from minigrad import Tensor, ops
from minigrad import functional as F

from tests.minigrad.functional.case import Case

TARGET = np.random.default_rng(31).normal(size=(3, 4))
LABELS = np.array([[1.0, 0.0, 1.0, 0.3], [0.0, 0.0, 0.9, 1.0], [1.0, 1.0, 0.0, 0.5]])
WEIGHT = np.array([0.5, 2.0, 1.0, 0.25])
CLASSES = [0.5, 2.0, 1.0, 0.0, 1.5]


def given(function: Callable[..., Any], *arguments: Any, **options: Any) -> Callable[..., Any]:
    """The function of its first argument alone."""
    return lambda x: function(x, *arguments, **options)


def with_options(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    return lambda *inputs: function(*inputs, **options)


def of_probabilities(target: Any, **options: Any) -> Callable[..., Any]:
    return lambda x: F.binary_cross_entropy(ops.sigmoid(x), target, **options)


def of_log_probabilities(target: Any, **options: Any) -> Callable[..., Any]:
    return lambda x: F.nll_loss(F.log_softmax(x), np.array(target), **options)


def between_distributions(x: Tensor, y: Tensor) -> Tensor:
    return F.kl_div(F.log_softmax(x), F.softmax(y), reduction="batchmean")


PAIR = ((3, 4), (3, 4))

LOSSES = [
    Case("mse_loss", F.mse_loss, PAIR),
    Case("mse_loss summed, of an array", given(F.mse_loss, TARGET, "sum"), ((3, 4),)),
    Case("mse_loss by element", with_options(F.mse_loss, reduction="none"), PAIR),
    Case("mse_loss of numbers", F.mse_loss, ((), ())),
    Case("mse_loss of a list", given(F.mse_loss, [1, 0, 2], "none"), ((3,),)),
    Case("mse_loss of an empty batch", with_options(F.mse_loss, reduction="sum"), ((0, 4), (0, 4))),
    Case("l1_loss", F.l1_loss, PAIR),
    Case("l1_loss by element", given(F.l1_loss, TARGET, "none"), ((3, 4),)),
    Case("huber_loss", F.huber_loss, PAIR),
    Case("huber_loss, mostly straight", with_options(F.huber_loss, reduction="sum", delta=0.3), PAIR),
    Case("huber_loss, mostly square, by element", given(F.huber_loss, TARGET, "none", 2.5), ((3, 4),)),
    Case("smooth_l1_loss", F.smooth_l1_loss, PAIR),
    Case("smooth_l1_loss, mostly straight", given(F.smooth_l1_loss, TARGET, "sum", 0.3), ((3, 4),)),
    Case("smooth_l1_loss without a curve", with_options(F.smooth_l1_loss, beta=0.0, reduction="none"), PAIR),
    Case("nll_loss", of_log_probabilities([1, 0, 4]), ((3, 5),)),
    Case("nll_loss weighted", of_log_probabilities([1, 0, 4], weight=CLASSES), ((3, 5),)),
    Case("nll_loss of sequences, some ignored", of_log_probabilities([[1, -100, 4], [2, 2, -100]], reduction="sum"),
         ((2, 3, 5),)),
    Case("nll_loss by row, weighted", of_log_probabilities([1, 3, -1], weight=CLASSES, ignore_index=-1,
                                                           reduction="none"), ((3, 5),)),
    Case("nll_loss all ignored", of_log_probabilities([-100, -100]), ((2, 5),)),
    Case("cross_entropy weighted", given(F.cross_entropy, [1, 0, 4], CLASSES), ((3, 5),)),
    Case("cross_entropy weighted and smoothed, one ignored",
         given(F.cross_entropy, [[1, 0, 4], [2, 2, -100]], CLASSES, label_smoothing=0.2), ((2, 3, 5),)),
    Case("cross_entropy weighted, by row", given(F.cross_entropy, [1, 3, 4], CLASSES, reduction="none",
                                                 label_smoothing=0.1), ((3, 5),)),
    Case("cross_entropy of weights that are learnt", lambda x, w: F.cross_entropy(x, [1, 0, 4], 2 + ops.tanh(w)),
         ((3, 5), (5,))),
    Case("binary_cross_entropy", of_probabilities(LABELS), ((3, 4),)),
    Case("binary_cross_entropy weighted, summed", of_probabilities(LABELS, weight=WEIGHT, reduction="sum"), ((3, 4),)),
    Case("binary_cross_entropy of targets that are learnt",
         lambda x, y: F.binary_cross_entropy(ops.sigmoid(x), ops.sigmoid(y), reduction="none"), PAIR),
    Case("binary_cross_entropy_with_logits", given(F.binary_cross_entropy_with_logits, LABELS), ((3, 4),)),
    Case("binary_cross_entropy_with_logits, all options",
         given(F.binary_cross_entropy_with_logits, LABELS, LABELS[:, :1] + 0.5, "sum", WEIGHT), ((3, 4),)),
    Case("binary_cross_entropy_with_logits by element",
         with_options(F.binary_cross_entropy_with_logits, reduction="none"), PAIR),
    Case("kl_div", between_distributions, PAIR),
    Case("kl_div, some impossible", given(F.kl_div, LABELS, "sum"), ((3, 4),)),
    Case("kl_div of logarithms", with_options(F.kl_div, log_target=True), PAIR),
    Case("kl_div of logarithms, some impossible",
         given(F.kl_div, np.where(LABELS > 0, TARGET, -math.inf), "none", log_target=True), ((3, 4),)),
    Case("cosine_similarity", F.cosine_similarity, PAIR),
    Case("cosine_similarity of columns", with_options(F.cosine_similarity, axis=0), PAIR),
    Case("cosine_similarity of vectors", with_options(F.cosine_similarity, axis=-1), ((4,), (4,))),
    Case("cosine_similarity, broadcasting", with_options(F.cosine_similarity, axis=-1, eps=0.1), ((2, 1, 4), (3, 4))),
    Case("normalize", F.normalize, ((3, 4),)),
    Case("normalize columns", given(F.normalize, axis=0), ((3, 4),)),
    Case("normalize by sums", given(F.normalize, p=1), ((3, 4),)),
    Case("normalize by cubes", given(F.normalize, p=3, axis=-1), ((2, 3, 4),)),
    Case("normalize by the largest", given(F.normalize, p=math.inf), ((3, 4),)),
    Case("normalize short vectors", given(F.normalize, eps=10.0), ((3, 4),)),
    Case("rms_norm", F.rms_norm, ((2, 3, 4), (4,))),
    Case("rms_norm of a vector", F.rms_norm, ((4,), (4,))),
    Case("rms_norm bare", with_options(F.rms_norm, eps=0.1), ((3, 4),)),
    Case("rms_norm of one feature", with_options(F.rms_norm, eps=0.1), ((3, 1), (1,))),
    Case("rms_norm of an empty batch", F.rms_norm, ((0, 4), (4,))),
]
