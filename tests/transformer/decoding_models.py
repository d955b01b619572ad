"""For the tests of decoding: small models with peaked distributions, and translations found the slow and plain way."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

import minigrad

from transformer import Transformer, TransformerConfig
from transformer.decode import Hypothesis

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


def next_log_probabilities(model: Transformer, source: np.ndarray, prefixes: list[list[int]]) -> np.ndarray:
    """log P(token | prefix, source) for prefixes of one length, without cache: (prefixes, V)."""
    sources, target = np.repeat(trimmed(source), len(prefixes), axis=0), [[BOS, *prefix] for prefix in prefixes]
    with minigrad.no_grad():
        logits = model.eval()(sources, target).numpy()[:, -1].astype(np.float64)
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def all_translations(model: Transformer, source: np.ndarray, max_length: int) -> dict[tuple[int, ...], float]:
    """The log-probability of every translation of one source: tuples that end in EOS, or have `max_length` letters."""
    found: dict[tuple[int, ...], float] = {}
    known = {(): 0.0}
    for length in range(max_length):
        prefixes = list(itertools.product(LETTERS, repeat=length))
        following = next_log_probabilities(model, source, [list(prefix) for prefix in prefixes])
        for prefix, row in zip(prefixes, following, strict=True):
            found[(*prefix, EOS)] = known[prefix] + row[EOS]
            known |= {(*prefix, letter): known[prefix] + row[letter] for letter in LETTERS}
    return found | {prefix: value for prefix, value in known.items() if len(prefix) == max_length}


def plain_greedy(model, source, max_length) -> Hypothesis:
    """One sentence, one token at a time, everything computed anew at each step."""
    ids, total = [], 0.0
    while len(ids) < max_length:
        row = next_log_probabilities(model, source, [ids])[0]
        token = max((EOS, *LETTERS), key=lambda t: row[t])
        total += row[token]
        if token == EOS:
            return Hypothesis(ids, total, total, True)
        ids.append(token)
    return Hypothesis(ids, total, total, False)
