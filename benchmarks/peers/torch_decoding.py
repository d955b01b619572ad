"""Greedy decoding and beam search in PyTorch, with a key-value cache by hand around the layers of `torch_training`.

The cache has its full size from the start, and each step writes one column; the memory's keys and values are computed
once. Beam search keeps a row for each beam, and moves the rows of the cache when beams change places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor
from workloads import BOS, PAD, Workload

from peers.torch_training import Attention, DecoderLayer, TransformerByHand, loaded

NEVER = [PAD, BOS]  # tokens that no translation contains


class Cached:
    """The decoder, one token at a time.

    Args:
        model: in evaluation mode, under ``inference_mode``.
        source: ids (B, S).
        tokens: how many there will be.
        beam: rows of each sentence, next to each other.
    """

    def __init__(self, model: TransformerByHand, source: Tensor, tokens: int, beam: int) -> None:
        self.model = model
        self.layers: list[DecoderLayer] = list(model.decoder.layers)
        memory, mask = model.encode(source)
        self.mask = None if mask is None else mask.repeat_interleave(beam, 0)
        self.memory = [[part.repeat_interleave(beam, 0) for part in layer.multihead_attn.project(memory, 1, 3)]
                       for layer in self.layers]  # keys and values, each (rows, H, S, D/H)
        rows, heads = len(source) * beam, self.layers[0].self_attn.heads
        shape = (rows, heads, tokens, memory.shape[-1] // heads)
        self.cache = [[memory.new_empty(shape), memory.new_empty(shape)] for _ in self.layers]
        self.length = 0

    def logits(self, last: Tensor) -> Tensor:
        """The last token of each row → logits of the next one, (rows, V), −inf for what never comes."""
        model = self.model
        x = model.embed(model.decoder, last[:, None], self.length)
        for layer, cache, memory in zip(self.layers, self.cache, self.memory, strict=True):
            x = x + self.to_itself(layer.self_attn, layer.norm1(x), *cache)
            x = x + layer.cross_attention(layer.norm2(x), *memory, self.mask)
            x = x + layer.feed_forward(layer.norm3(x))
        self.length += 1
        logits = model.projection(model.decoder.norm(x))[:, 0]
        logits[:, NEVER] = -torch.inf
        return logits

    def to_itself(self, attention: Attention, x: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """Self-attention of the new tokens (rows, 1, D) to those before and to themselves."""
        end = self.length + 1
        queries, keys[:, :, self.length:end], values[:, :, self.length:end] = attention.project(x, 0, 3)
        return attention.attend(queries, keys[:, :, :end], values[:, :, :end])

    def select(self, rows: Tensor) -> None:
        """Let the rows of the cache change places, each with one of the same sentence."""
        for cache in self.cache:
            for part in cache:
                part[:, :, :self.length] = part[rows, :, :self.length]


def greedy(model: TransformerByHand, source: Tensor, tokens: int) -> Tensor:
    """(B, S) → (B, tokens): the most probable token at each step."""
    steps = Cached(model, source, tokens, beam=1)
    chosen = [source.new_full((len(source),), BOS)]
    for _ in range(tokens):
        chosen.append(steps.logits(chosen[-1]).argmax(-1))
    return torch.stack(chosen[1:], 1)


def beam_search(model: TransformerByHand, source: Tensor, tokens: int, beam: int) -> Tensor:
    """(B, S) → (B, tokens): the most probable of the `beam` best, none of which ever ends."""
    batch = len(source)
    steps = Cached(model, source, tokens, beam)
    first_rows = torch.arange(batch, device=source.device)[:, None] * beam
    scores = torch.full((batch, beam), -torch.inf, device=source.device)
    scores[:, 0] = 0.0  # at first all rows of a sentence are equal: one may go on
    ids = source.new_empty((batch * beam, 0))
    last = source.new_full((batch * beam,), BOS)
    for _ in range(tokens):
        gained, choices = steps.logits(last).log_softmax(-1).topk(beam)  # of each row, (rows, beam)
        candidates = (scores[:, :, None] + gained.view(batch, beam, beam)).flatten(1)
        scores, best = candidates.topk(beam)
        rows = (first_rows + best // beam).flatten()
        last = choices.view(batch, -1).gather(1, best).flatten()
        steps.select(rows)
        ids = torch.cat([ids[rows], last[:, None]], 1)
    return ids.view(batch, beam, tokens)[:, 0]


@contextmanager
def decoder(workload: Workload, weights: str, threads: int, beam: int, tokens: int,
            device: str = "cpu") -> Iterator[Callable[[np.ndarray], list[list[int]]]]:
    """See `minigrad_decoding`."""
    model = loaded(workload, weights, threads, device)
    model.eval()

    def decode(source: np.ndarray) -> list[list[int]]:
        with torch.inference_mode():
            ids = torch.from_numpy(source).to(device)
            return (greedy(model, ids, tokens) if beam == 1 else beam_search(model, ids, tokens, beam)).tolist()

    yield decode
