"""For the tests of decoding: small models with peaked distributions, and translations found the slow and plain way."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import minigrad
from minigrad import functional as F
from minigrad import nn

from transformer import Transformer, TransformerConfig

PAD, BOS, EOS = 0, 1, 2
LETTERS = (3, 4, 5)  # the target's ordinary tokens


def peaked_model(seed: int, sharpness: float = 6.0, dtype: Any = np.float64, **changes: Any) -> Transformer:
    """An untrained model with a target vocabulary of three letters, made certain of itself by large output weights."""
    options = {"d_model": 16, "num_heads": 2, "num_encoder_layers": 1, "num_decoder_layers": 2, "d_ff": 32,
               "dropout": 0.1, "max_length": 40, "output_bias": True} | changes
    with minigrad.random.fork(seed):
        model = Transformer(TransformerConfig(9, 3 + len(LETTERS), **options))
    model.projection.weight.data[...] *= sharpness
    return model.to(dtype=dtype)


def prefer(model: Transformer, **logits: float) -> Transformer:
    """Add to the logits of eos, pad or bos; returns the model."""
    for name, amount in logits.items():
        model.projection.bias.data[getattr(model.config, f"{name}_id")] += amount
    return model


def random_sources(seed: int, lengths: tuple[int, ...] = (5, 2, 7, 1, 4)) -> np.ndarray:
    """Source ids of these lengths, each with end-of-sentence after it, padded."""
    rng = np.random.default_rng(seed)
    sources = np.full((len(lengths), max(lengths) + 1), PAD)
    for row, length in zip(sources, lengths, strict=True):
        row[:length + 1] = [*rng.integers(3, 9, length), EOS]
    return sources


def trimmed(source: np.ndarray) -> np.ndarray:
    """A padded row as a batch of its own, (1, length)."""
    return source[None, :np.count_nonzero(source)]


def controlled(logits, ids, added, end, prefix=(), min_length=0, repetition_penalty=1.0, no_repeat_ngram_size=0):
    """The log-probabilities after the tokens `ids`, token by token, of logits (V,); as Hugging Face's processors do."""
    logits = [float(x) for x in logits]
    for token in set(ids):
        logits[token] = logits[token] / repetition_penalty if logits[token] > 0 else logits[token] * repetition_penalty
    row = F.log_softmax(np.array(logits))
    n = no_repeat_ngram_size
    for token in range(len(row)):
        seen = {tuple(ids[i:i + n]) for i in range(len(ids) - n + 1)}
        repeats = n > 0 and (*ids, token)[-n:] in seen
        too_early = token == end and added < min_length
        if (added < len(prefix) and token != prefix[added]) or (added >= len(prefix) and (repeats or too_early)):
            row[token] = -np.inf
    return row


def following(model, source, prefixes, **options):
    """log P(token | prefix, source), after the options, for prefixes of one length: a row (V,) for each."""
    sources = np.repeat(trimmed(source), len(prefixes), axis=0)
    return after(lambda texts: model(sources, [[BOS, *ids] for ids in texts]), [], prefixes, **options)


def after(logits, prompt, continuations, **options):
    """log P(token | ids), after the options, for continuations of one length, from the `logits` of whole texts."""
    texts = [[*prompt, *ids] for ids in continuations]
    with minigrad.no_grad(), nn.evaluating():
        rows = logits(texts).numpy()[:, -1]
    return [controlled(row, ids, len(ids) - len(prompt), EOS, **options) for row, ids in zip(rows, texts, strict=True)]


def normalised(log_probability: float, tokens: int, alpha: float) -> float:
    """Wu et al. 2016, equation 14, written out once more; `tokens` counts end-of-sentence."""
    return log_probability / ((5 + tokens) ** alpha / (5 + 1) ** alpha)


def plain_beam(model, source, size, num_best, max_length, alpha, following_of=following):
    """One sentence, computed anew at each step, always to the greatest length: (ids, score, finished), best first.

    `following_of` gives the log-probabilities of what follows some ids, as `following` does.
    """
    beam, done = [((), 0.0)], []
    for length in range(1, max_length + 1):
        if not beam:
            break
        rows = following_of(model, source, [list(ids) for ids, _ in beam])
        candidates = [((*ids, token), total + row[token]) for (ids, total), row in zip(beam, rows, strict=True)
                      for token in (EOS, *LETTERS) if row[token] > -math.inf]
        candidates.sort(key=lambda candidate: -candidate[1])
        beam = []
        for ids, total in candidates[:size]:
            if ids[-1] == EOS:
                done.append((ids[:-1], normalised(total, length, alpha), True))
            else:
                beam.append((ids, total))
    done.sort(key=lambda hypothesis: -hypothesis[1])
    cut_off = [(ids, normalised(total, len(ids), alpha), False) for ids, total in beam]
    return (done + cut_off)[:num_best]
