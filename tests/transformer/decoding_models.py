"""For the tests of decoding: small models with peaked distributions, and texts found the slow and plain way."""

import math

import numpy as np

import minigrad
from minigrad import functional as F
from minigrad import nn

from transformer import Transformer, TransformerConfig

PAD, BOS, EOS = 0, 1, 2
LETTERS = (3, 4, 5)  # the target's ordinary tokens


def peaked_model(seed, sharpness=6.0, dtype=np.float64, **changes):
    """An untrained model with a target vocabulary of three letters, made certain of itself by large output weights."""
    options = {"d_model": 16, "num_heads": 2, "num_encoder_layers": 1, "num_decoder_layers": 2, "d_ff": 32,
               "dropout": 0.1, "max_length": 40, "output_bias": True} | changes
    with minigrad.random.fork(seed):
        model = Transformer(TransformerConfig(9, 3 + len(LETTERS), **options))
    model.projection.weight.data[...] *= sharpness
    return model.to(dtype=dtype)


def prefer(model, **logits):
    """Add to the logits of eos, pad or bos; returns the model."""
    for name, amount in logits.items():
        model.projection.bias.data[getattr(model.config, f"{name}_id")] += amount
    return model


def random_sources(seed, lengths=(5, 2, 7, 1, 4)):
    """Source ids of these lengths, each with end-of-sentence after it, padded."""
    rng = np.random.default_rng(seed)
    sources = np.full((len(lengths), max(lengths) + 1), PAD)
    for row, length in zip(sources, lengths, strict=True):
        row[:length + 1] = [*rng.integers(3, 9, length), EOS]
    return sources


def controlled(logits, ids, added, end, never, prefix=(), min_length=0, repetition_penalty=1.0, no_repeat_ngram_size=0):
    """The log-probabilities after the tokens `ids`, token by token, of logits (V,); as Hugging Face's processors do."""
    logits, n = [float(x) for x in logits], no_repeat_ngram_size
    for token in {*ids} - {*never}:
        logits[token] = logits[token] / repetition_penalty if logits[token] > 0 else logits[token] * repetition_penalty
    row, seen = F.log_softmax(np.array(logits)), {tuple(ids[i:i + n]) for i in range(len(ids) - n + 1)}
    for token in range(len(row)):
        banned = (n > 0 and (*ids, token)[-n:] in seen) or (token == end and added < min_length)
        if token in never or (token != prefix[added] if added < len(prefix) else banned):
            row[token] = -np.inf
    return row


def plain_beam(model, text, size, num_best, longest, alpha, end=EOS, never=(PAD, BOS), **options):
    """The best of what follows a source, or a prompt of a decoder-only model: (ids, score, finished), best first.

    Everything is computed anew at each step, always to the greatest length.
    """
    text, translates = [*map(int, text)], isinstance(model, Transformer)
    prompt, source = ([BOS], [token for token in text if token != PAD]) if translates else (text, None)
    beam, done = [((), 0.0)], []
    for length in range(1, longest + 1):
        if beam:
            texts = [[*prompt, *ids] for ids, _ in beam]
            with minigrad.no_grad(), nn.evaluating():
                rows = (model([source] * len(texts), texts) if translates else model(texts)).numpy()[:, -1]
            rows = [controlled(row, ids, length - 1, end, never, **options)
                    for row, ids in zip(rows, texts, strict=True)]
            candidates = [((*ids, token), total + row[token]) for (ids, total), row in zip(beam, rows, strict=True)
                          for token in range(len(row)) if row[token] > -math.inf]
            candidates = sorted(candidates, key=lambda candidate: -candidate[1])[:size]
            # Wu et al. 2016, equation 14, written out once more: the end counts
            done += [(ids[:-1], total / ((5 + length) ** alpha / 6 ** alpha), True)
                     for ids, total in candidates if ids[-1] == end]
            beam = [candidate for candidate in candidates if candidate[0][-1] != end]
    done.sort(key=lambda hypothesis: -hypothesis[1])
    return (done + [(ids, total / ((5 + longest) ** alpha / 6 ** alpha), False) for ids, total in beam])[:num_best]
