"""What a text may not say next, and what it must: the one place that all ways of decoding pass."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minigrad import functional as F
from minigrad.arguments import number, whole_number
from minigrad.device import asarray_on, device_of, on_device_of, xp

Ids = NDArray[np.int64]  # token ids or row numbers, on the host
PENALTIES = 1e-3, 1e3  # no finite logits of use overflow


class DecodingError(ValueError):
    """Options of decoding that no text meets; the message is one line."""


@dataclass(frozen=True)
class Controls:
    """Options of every way of decoding, off by default. Their names are those of Hugging Face's ``generate``.

    Attributes:
        min_length: the fewest tokens before the end of a text, a prompt apart. The end has no probability until then.
        repetition_penalty: above 1 makes less probable what the text has, a prompt included: divides its positive
            logits, and multiplies its negative ones (Keskar et al. 2019, arXiv:1909.05858, section 4.1). From 0.001 to
            1000.
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
        number(self.repetition_penalty, "repetition_penalty", "decoding", *PENALTIES)

    def log_probabilities(self, logits: Any, texts: Ids, added: int, end: int, never: Sequence[int],
                          forced: Ids | None = None) -> Any:
        """The log-probabilities of the next token of each text, −inf for what may not follow.

        Probabilities are those of the logits, after the penalty: what may not follow keeps its share.

        Args:
            logits: a raw array (rows, V).
            texts: the tokens so far, (rows, length), on the host.
            added: how many of these are not of a prompt.
            end: the token that ends a text; −1: none does.
            never: tokens that no text contains.
            forced: the token that must follow, (rows,); −1: any may. It comes before all other options. None: any.

        Returns:
            A new raw array (rows, V).
        """
        with on_device_of(logits):
            out = F.log_softmax(logits if self.repetition_penalty == 1 else self._penalised(logits, texts, never))
            for token in never:
                out[:, token] = -math.inf
            if self == OFF and forced is None:
                return out
            banned = np.zeros(logits.shape, bool)
            if end >= 0 and added < self.min_length:
                banned[:, end] = True
            if 0 < self.no_repeat_ngram_size <= texts.shape[1]:
                ngrams = np.lib.stride_tricks.sliding_window_view(texts, self.no_repeat_ngram_size, axis=1)
                last = texts[:, None, texts.shape[1] - self.no_repeat_ngram_size + 1:]
                row, place = (ngrams[:, :, :-1] == last).all(axis=2).nonzero()
                banned[row, ngrams[row, place, -1]] = True
            if forced is not None:
                must = forced >= 0
                banned[must] = np.arange(banned.shape[1]) != forced[must, None]
            out[asarray_on(device_of(out), banned)] = -math.inf
        return out

    def _penalised(self, logits: Any, texts: Ids, never: Sequence[int]) -> Any:
        said = np.zeros(logits.shape, bool)
        np.put_along_axis(said, texts, True, axis=1)
        said[:, list(never)] = False  # such as begin-of-sentence, which stands in every text
        penalty, where = float(self.repetition_penalty), xp(logits).where
        penalised = where(logits > 0, logits / penalty, logits * penalty)
        return where(asarray_on(device_of(logits), said), penalised, logits)


OFF = Controls()
