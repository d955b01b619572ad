"""What a text may say next, what it must, and what is drawn: the one place that all ways of decoding pass."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minigrad import functional as F
from minigrad.arguments import number, whole_number
from minigrad.device import asarray_on, device_of, xp

Ids = NDArray[np.int64]  # token ids or row numbers, on the host
# By option, what checks it, and its range.
RANGES: dict[str, tuple[Any, ...]] = {
    "end_id": (whole_number, 0),
    "min_length": (whole_number, 0),
    "repetition_penalty": (number, 1e-3, 1e3),  # no finite logits of use overflow
    "no_repeat_ngram_size": (whole_number, 0),
    "temperature": (number, 1e-9, 1e9),
    "top_k": (whole_number, 1),
    "top_p": (number, 0, 1),
}
# The options that every function of decoding takes by name, in its ``**controls``.
EVERYWHERE = "min_length", "repetition_penalty", "no_repeat_ngram_size"


def refuse_unknown(function: Callable[..., Any], given: Iterable[str]) -> None:
    """Refuse what `function` was given in its ``**controls``, unless it is one of those of `EVERYWHERE`.

    Raises:
        TypeError: an option that there is not. The message names the function and all its options.
    """
    if unknown := {*given}.difference(EVERYWHERE):
        own = [name for name, parameter in signature(function).parameters.items()
               if parameter.default is not parameter.empty]
        raise TypeError(f"{function.__name__}() has no option {min(unknown)!r}; there are "
                        f"{', '.join([*own, *EVERYWHERE])}")


@dataclass(frozen=True)
class Controls:
    """Options of every way of decoding, off by default. Most have the names of Hugging Face's ``generate``.

    Attributes:
        end_id: the token that ends a text; None: none does.
        never: tokens that no text contains.
        min_length: the fewest tokens before the end of a text, a prompt apart. The end has no probability until then.
        repetition_penalty: above 1 makes less probable what the text has, a prompt included: divides its positive
            logits, and multiplies its negative ones (Keskar et al. 2019, arXiv:1909.05858, section 4.1). From 0.001 to
            1000.
        no_repeat_ngram_size: n, no n tokens follow one another twice in a text, a prompt included; 0: they may.
        temperature: divides the logits. Below 1, it makes probable tokens more probable; near its limit 0, the first.
        top_k: draw from the k most probable tokens only.
        top_p: draw from the smallest set of most probable tokens that together have at least this probability (nucleus
            sampling, Holtzman et al. 2020), after `temperature` and `top_k`.

    Raises:
        TypeError: an option that is no number; a token that is no integer.
        ValueError: an option out of range, or a token below 0; in decoding, options that no text meets.
    """

    end_id: int | None = None
    never: Sequence[int] = ()
    min_length: int = 0
    repetition_penalty: float = 1.0
    no_repeat_ngram_size: int = 0
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None

    def __post_init__(self) -> None:
        for name, (check, *limits) in RANGES.items():
            value = getattr(self, name)
            if value is not None or name in EVERYWHERE:
                check(value, name, "decoding", *limits)
        for token in self.never:
            whole_number(token, "a token of never", "decoding", 0)

    def rules(self, texts: Ids, added: int, classes: int, forced: Ids | None = None) -> tuple[Any, Any]:
        """What `log_probabilities` needs to know of each text.

        Args:
            texts: the tokens so far, (rows, length), on the host.
            added: how many of these are not of a prompt.
            classes: V.
            forced: the token that must follow, (rows,); −1: any may. It comes before all other options. None: any.

        Returns:
            Host arrays of booleans (rows, V), or None: which tokens a text has said, and which may not follow.

        Raises:
            IndexError: `end_id` outside the vocabulary.
        """
        if self.end_id is not None and self.end_id >= classes:
            raise IndexError(f"decoding: the token {self.end_id} that ends a text is outside the vocabulary of "
                             f"{classes}")
        shape, said, banned = (len(texts), classes), None, None
        if self.repetition_penalty != 1:
            said = np.zeros(shape, bool)
            np.put_along_axis(said, texts, True, axis=1)
            said[:, list(self.never)] = False  # such as begin-of-sentence, which stands in every text
        if added < self.min_length or self.no_repeat_ngram_size or forced is not None:
            banned = np.zeros(shape, bool)
            if self.end_id is not None:
                banned[:, self.end_id] = added < self.min_length
            if 0 < self.no_repeat_ngram_size <= texts.shape[1]:
                ngrams = np.lib.stride_tricks.sliding_window_view(texts, self.no_repeat_ngram_size, axis=1)
                last = texts[:, None, texts.shape[1] - self.no_repeat_ngram_size + 1:]
                row, place = (ngrams[:, :, :-1] == last).all(axis=2).nonzero()
                banned[row, ngrams[row, place, -1]] = True
            if forced is not None:
                must = forced >= 0
                banned[must] = np.arange(classes) != forced[must, None]
        return said, banned

    def log_probabilities(self, logits: Any, said: Any = None, banned: Any = None) -> Any:
        """The log-probabilities of the next token of each text, −inf for what may not follow.

        Probabilities are those of the logits, after the penalty: what may not follow keeps its share.

        Args:
            logits: a raw array (rows, V).
            said, banned: the `rules`, on the host or on its device.

        Returns:
            A new raw array (rows, V).

        Raises:
            IndexError: one of `never` outside the vocabulary.
        """
        device = device_of(logits)
        if said is not None:
            said, penalty, where = asarray_on(device, said), float(self.repetition_penalty), xp(logits).where
            logits = where(said, where(logits > 0, logits / penalty, logits * penalty), logits)
        out = F.log_softmax(logits)
        for token in self.never:
            out[:, token] = -math.inf
        if banned is not None:
            out[asarray_on(device, banned)] = -math.inf
        return out

    def draw(self, log_probabilities: Any, uniform: Any) -> Any:
        """One token for each row, by inverting the cumulative distribution at `uniform`.

        Args:
            log_probabilities: a raw array (rows, V), −inf for tokens that must not be drawn.
            uniform: numbers in [0, 1), (rows,).

        Returns:
            Raw integers (rows,).
        """
        namespace = xp(log_probabilities)
        probabilities = F.softmax(log_probabilities.astype(np.float64) / (self.temperature or 1.0))
        order = None if self.top_k is self.top_p is None else namespace.argsort(-probabilities, axis=-1)
        if order is not None:
            probabilities = namespace.take_along_axis(probabilities, order, axis=-1)
        if self.top_k is not None:
            probabilities[:, self.top_k:] = 0.0
        if self.top_p is not None:
            before = probabilities.cumsum(axis=-1) - probabilities  # the total of the more probable tokens
            probabilities[before >= self.top_p * probabilities.sum(axis=-1, keepdims=True)] = 0.0
        cumulative = probabilities.cumsum(axis=-1)
        # The first token whose cumulative probability exceeds the threshold: it is never one of probability 0.
        place = (cumulative > uniform[:, None] * cumulative[:, -1:]).argmax(axis=-1)
        return place if order is None else namespace.take_along_axis(order, place[:, None], axis=-1)[:, 0]
