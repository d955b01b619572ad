"""What a text may not say next, and what it must: the one place that all ways of decoding pass."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minigrad import functional as F
from minigrad.arguments import number, whole_number
from minigrad.device import asarray_on, device_of, on_device_of, xp


class DecodingError(ValueError):
    """Options of decoding that no text meets; the message is one line."""


@dataclass(frozen=True)
class Controls:
    """Options of every way of decoding, off by default. Their names are those of Hugging Face's ``generate``.

    Attributes:
        min_length: the fewest tokens before the end of a text, a prompt apart. The end has no probability until then.
        repetition_penalty: above 1 makes less probable what the text has, a prompt included: divides its positive
            logits, and multiplies its negative ones (Keskar et al. 2019, arXiv:1909.05858, section 4.1).
        no_repeat_ngram_size: n, no n tokens follow one another twice in a text, a prompt included; 0: they may.

    Raises:
        TypeError: an option that is no number.
        ValueError: an option out of range; in decoding `DecodingError`, where no text meets them.
    """

    min_length: int = 0
    repetition_penalty: float = 1.0
    no_repeat_ngram_size: int = 0

    def __post_init__(self) -> None:
        for name in ("min_length", "no_repeat_ngram_size"):
            whole_number(getattr(self, name), name, "decoding", least=0)
        penalty = number(self.repetition_penalty, "repetition_penalty", "decoding")
        if not (penalty > 0 and math.isfinite(penalty)):
            raise ValueError(f"decoding: repetition_penalty must be positive and finite, got {penalty}")

    def log_probabilities(self, logits: Any, texts: NDArray[np.int64], added: int, end: int, never: Sequence[int],
                          forced: NDArray[np.int64]) -> Any:
        """The log-probabilities of the next token of each text, −inf for what may not follow.

        Probabilities are those of the logits, after the penalty: what may not follow keeps its share.

        Args:
            logits: a raw array (rows, V).
            texts: the tokens so far, (rows, length), on the host.
            added: how many of these are not of a prompt.
            end: the token that ends a text; −1: none does.
            never: tokens that no text contains.
            forced: the token that must follow, (rows,); −1: any may. It comes before all other options.

        Returns:
            A new raw array (rows, V).
        """
        rows = np.arange(len(texts))
        with on_device_of(logits):
            if self.repetition_penalty != 1:
                said = np.zeros(logits.shape, bool)
                said[rows[:, None], texts] = True
                said[:, list(never)] = False
                penalty = float(self.repetition_penalty)
                penalised = xp(logits).where(logits > 0, logits / penalty, logits * penalty)
                penalised = xp(logits).where(asarray_on(device_of(logits), said), penalised, logits)
                finite = xp(logits).isfinite(logits).all(axis=-1, keepdims=True)  # else the model is to blame
                out = F.log_softmax(penalised)
                out = xp(out).where(finite & xp(out).isnan(out), -math.inf, out)
            else:
                out = F.log_softmax(logits)
            for token in never:
                out[:, token] = -math.inf
            [must] = (forced >= 0).nonzero()
            if self == OFF and not must.size:
                return out
            banned = np.zeros(logits.shape, bool)
            if end >= 0 and added < self.min_length:
                banned[:, end] = True
            if 0 < self.no_repeat_ngram_size <= texts.shape[1]:
                ngrams = np.lib.stride_tricks.sliding_window_view(texts, self.no_repeat_ngram_size, axis=1)
                last = texts[:, None, texts.shape[1] - self.no_repeat_ngram_size + 1:]
                row, place = (ngrams[:, :, :-1] == last).all(axis=2).nonzero()
                banned[row, ngrams[row, place, -1]] = True
            banned[must] = True
            banned[must, forced[must]] = False
            if banned.any():
                out[asarray_on(device_of(out), banned)] = -math.inf
        return out


OFF = Controls()


def controls_of(function: Callable[..., Any], options: Mapping[str, Any]) -> Controls:
    """`Controls` of the options that `function` does not name itself; TypeError for one that is none of theirs."""
    unknown = [name for name in options if name not in asdict(OFF)]
    if unknown:
        own = [name for name, option in signature(function).parameters.items() if option.default is not option.empty]
        raise TypeError(f"{function.__name__}: no option {', '.join(unknown)}; there are "
                        f"{', '.join([*own, *asdict(OFF)])}")
    return Controls(**options)


def nothing_left() -> DecodingError:
    """The error for a text that no token may follow."""
    return DecodingError("decoding: no token may follow; lower min_length, raise no_repeat_ngram_size, take a "
                         "repetition_penalty nearer to 1, or allow a token of never")
