"""Greedy decoding and beam search of a `Transformer`."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

import numpy as np

from minigrad import Tensor
from minigrad.arguments import whole_number
from minigrad.functional.embedding import integer_ids

from transformer.data.batches import trimmed
from transformer.decode.controls import Controls, Ids, refuse_unknown
from transformer.decode.search import Hypothesis, Search, decoding, in_parts
from transformer.model import Transformer
from transformer.model.transformer import ids_on


def greedy(model: Transformer, source: Any, max_length: int | None = None, prefix: Any = (), **controls: Any
           ) -> list[Hypothesis]:
    """Greedy decoding: the most probable token at each step, which is a `beam_search` with one hypothesis.

    Args:
        model, source, max_length, prefix, controls: as for `beam_search`.

    Returns:
        One hypothesis for each row; its score is its log-probability.

    Raises:
        ValueError, TypeError, IndexError, NotFinite: as `beam_search`.
    """
    refuse_unknown(greedy, controls)
    return [best for [best] in beam_search(model, source, 1, 1, max_length, 0.0, prefix, **controls)]


def beam_search(model: Transformer, source: Any, beam_size: int, num_best: int = 1, max_length: int | None = None,
                alpha: float = 0.6, prefix: Any = (), **controls: Any) -> list[list[Hypothesis]]:
    """The best translations of each sentence, found by beam search.

    Each step takes the `beam_size` most probable extensions of the open hypotheses; those that end in end-of-sentence
    leave the beam. A sentence is done when no hypothesis is open, or when no continuation of an open one could beat the
    `num_best` finished ones. ``beam_size=1`` is greedy decoding.

    Args:
        model: in any mode; it decodes in evaluation mode. Within `minigrad.parallel.threads`, threads divide the batch.
        source: ids (B, S), each row ending in end-of-sentence, then padded.
        beam_size: K, the most hypotheses of a sentence that are open at a time.
        num_best: the number of translations to return for each sentence, at most `beam_size`.
        max_length: the most tokens of a translation, end-of-sentence included; by default twice the sentence's source
            tokens plus 10, but no more than the model's positions. No limit depends on padding, so that a sentence has
            the same translation alone and in a batch.
        alpha: α, from 0 to 10, of the score of a finished hypothesis of ``|Y|`` tokens, end-of-sentence included:
            ``log P / ((5 + ``|Y|``) / 6)^α`` (Wu et al. 2016, arXiv:1609.08144, equation 14).
        prefix: target ids that every translation begins with; or a list of them, with one for each row. P is the
            probability of the whole translation.
        controls: the options of `Controls`, by name: `min_length`, `repetition_penalty`, `no_repeat_ngram_size`.

    Returns:
        For each row of `source` at most `num_best` different hypotheses, best first. Hypotheses cut off at `max_length`
        follow the finished ones, where fewer than `num_best` finished.

    Raises:
        ValueError: a row without tokens; an argument out of range; another number of prefixes than of rows.
        TypeError: an option that there is not.
        IndexError: an id outside the vocabulary.
        NotFinite: the model gives no finite probabilities.
    """
    refuse_unknown(beam_search, controls)
    config = model.config
    options = Controls(end_id=config.eos_id, never=(config.pad_id, config.bos_id), **controls)
    ids = ids_on("cpu", source, config.source_vocab_size, "source")
    lengths = (ids != config.pad_id).sum(axis=1)
    if not lengths.all():
        raise ValueError(f"decoding: row {lengths.argmin()} of the source has no tokens; an empty sentence is "
                         f"end-of-sentence (id {config.eos_id}) alone")
    forced = prefixes(model, prefix, len(ids))
    limits = np.maximum(np.maximum(2 * lengths + 10, (forced >= 0).sum(axis=0)), options.min_length)
    limits = limits.clip(max=config.max_length)
    if max_length is not None:
        limits[:] = whole_number(max_length, "max_length", "decoding")
        if max_length > config.max_length:
            raise ValueError(f"decoding: max_length {max_length} is more than the model's {config.max_length} "
                             "positions; ask for fewer, or train a model with a greater TransformerConfig.max_length")

    def search(rows: Ids) -> list[list[Hypothesis]]:
        with decoding(model):
            part = model.source_ids(trimmed(ids[rows], config.pad_id))
            mask = model.memory_mask(part)
            beside = {"memory": model.encode(part, mask), "memory_mask": None if mask is None else Tensor(mask)}
        return Search(model, model.decode, ids=np.full((len(rows), 1), config.bos_id), beside=beside,
                      limits=limits[rows], controls=options, prefix=forced[:, rows], size=beam_size, num_best=num_best,
                      alpha=alpha).results()

    return in_parts(search, lengths, equal=False)


def prefixes(model: Transformer, prefix: Any, batch: int) -> Ids:
    """The tokens that each of `batch` translations begins with: (longest, batch), −1 beyond the end of a prefix.

    The `prefix` is one for all, or a list of one for each.

    Raises:
        IndexError: an id outside the vocabulary.
        ValueError: another number of prefixes; padding, begin- or end-of-sentence in one.
    """
    config, given = model.config, prefix if len(prefix) and np.ndim(prefix[0]) else [prefix] * batch
    if len(given) != batch:
        raise ValueError(f"decoding: a prefix for each of the {batch} sentences expected, got {len(given)}")
    rows = [integer_ids(row, "decoding: prefix", config.target_vocab_size) for row in given]
    for number, ids in enumerate(rows):
        if not {config.pad_id, config.bos_id, config.eos_id}.isdisjoint(ids.tolist()):
            raise ValueError(f"decoding: prefix {number} has padding, or the beginning or the end of a sentence: {ids}")
    columns = [*zip_longest(*rows, fillvalue=-1)]
    return np.array(columns, np.int64).reshape(len(columns), batch)
