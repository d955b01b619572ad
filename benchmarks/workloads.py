"""What is trained in the benchmarks: the sizes, the batches, and the weights that every peer begins with.

All peers compute the same function: pre-norm, a final norm in both stacks, ReLU, biases in attention and feed-forward,
sinusoidal positions, embeddings times √d, no bias in the projection to the vocabulary. Their weights are made once, by
minigrad, and handed over in a file with PyTorch's names, so that the losses can be compared step by step.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Self

import numpy as np
from paired import ROOT

PAD, BOS, EOS, FIRST = 0, 1, 2, 3  # the special tokens, and the first ordinary one
LEARNING_RATE, BETAS, EPSILON = 3e-4, (0.9, 0.98), 1e-9  # of AdamW, without weight decay
CLIP_NORM = 1.0  # the greatest norm of the gradient, where a step clips it
POSITIONS = "positions"  # the name of their table in the file of weights


@dataclass(frozen=True)
class Workload:
    """A model, and the batches it is trained on.

    Attributes:
        name: of the size.
        vocabulary, d_model, heads, d_ff: of the model.
        layers: of each of the two stacks.
        batch, length: sentences in a batch, and tokens of the longest, end-of-sentence included; both sides alike.
        dropout: on embeddings, attention weights, feed-forward activations and residuals.
        padded: sentences have unequal lengths, spread evenly from a third of `length` to `length`.
        text: a table of pairs of sentences, whose batches are those of `train`, each of at most batch × length tokens
            a side; sentences longer than `length` are left out. None: random tokens.
    """

    name: str
    vocabulary: int
    d_model: int
    heads: int
    d_ff: int
    layers: int
    batch: int
    length: int
    dropout: float = 0.0
    padded: bool = False
    text: str | None = None

    @property
    def title(self) -> str:
        """What its row in a table is called."""
        return f"{self.name}, dropout {self.dropout:g}"

    def to_json(self) -> str:
        """For the command line of a measured process."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The inverse of `to_json`."""
        return cls(**json.loads(text))

    def config(self) -> Any:
        """The same as a `TransformerConfig`."""
        from transformer import TransformerConfig

        return TransformerConfig(
            self.vocabulary, self.vocabulary, d_model=self.d_model, num_heads=self.heads, d_ff=self.d_ff,
            num_encoder_layers=self.layers, num_decoder_layers=self.layers, dropout=self.dropout,
            max_length=self.length, pad_id=PAD, bos_id=BOS, eos_id=EOS)

    def batches(self, count: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """`count` batches: source and labels, each (batch, length), int64; always the same ones."""
        if self.text:
            return list(islice(self._real_batches(self.text), count))
        random = np.random.default_rng(0)
        return [(self._sentences(random), self._sentences(random)) for _ in range(count)]

    def _real_batches(self, text: str) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        from transformer.data import batches_by_length, build_tokenizers, collate, encode_pairs
        from transformer.data.parallel_text import read_parallel

        pairs = read_parallel(text)
        tokenizers = build_tokenizers("words", *zip(*pairs, strict=True), size=self.vocabulary)
        examples = [(source, target) for source, target in encode_pairs(pairs, *tokenizers)
                    if max(len(source), len(target) + 1) <= self.length]
        for indices in batches_by_length(examples, self.batch * self.length, 0, 0):
            batch = collate(examples, indices)
            yield batch.source, np.ascontiguousarray(batch.target[:, 1:])

    def _sentences(self, random: np.random.Generator) -> np.ndarray:
        shortest = self.length / 3 if self.padded else self.length
        lengths = random.permutation(np.linspace(self.length, shortest, self.batch).round().astype(np.int64))
        ids = random.integers(FIRST, self.vocabulary, (self.batch, self.length))
        ids[np.arange(self.length) >= lengths[:, None]] = PAD
        ids[np.arange(self.batch), lengths - 1] = EOS
        return ids

    def model(self, endless: bool = False) -> Any:
        """A `Transformer` of this size with the weights to begin with.

        `endless` is for decoding: the logit of end-of-sentence is always 0, less than the best of the other tokens, so
        that every sentence gets the greatest length. And logits are ten times what they would be, so that no choice
        depends on how a library rounds.
        """
        import minigrad

        from transformer import Transformer

        minigrad.manual_seed(1)
        model = Transformer(self.config())
        if endless:
            model.projection.weight.data[:] *= 10
            model.projection.weight.data[EOS] = 0
        return model

    def write_weights(self, path: Path, endless: bool = False) -> None:
        """Write the weights of `model`, by PyTorch's names, and the table of positions, to a safetensors file."""
        from minigrad.checkpoint import save_tensors

        from transformer.interop import to_pytorch
        from transformer.model import sinusoid

        state: dict[str, Any] = dict(to_pytorch(self.model(endless)))
        state[POSITIONS] = sinusoid(self.length, self.d_model).astype(np.float32)
        save_tensors(path, state)


def shifted(labels: np.ndarray) -> np.ndarray:
    """What the decoder reads: begin-of-sentence, then the labels but the last."""
    return np.concatenate([np.full_like(labels[:, :1], BOS), labels[:, :-1]], axis=1)


SIZES = {size.name: size for size in (
    Workload("toy", vocabulary=13, d_model=64, heads=4, d_ff=256, layers=2, batch=64, length=12),
    Workload("small", vocabulary=8000, d_model=256, heads=8, d_ff=1024, layers=3, batch=64, length=16),
    Workload("mid", vocabulary=8000, d_model=256, heads=8, d_ff=1024, layers=3, batch=32, length=64),
    Workload("base", vocabulary=8000, d_model=512, heads=8, d_ff=2048, layers=6, batch=16, length=32),
)}
#: The small model on 5,000 real pairs, English and French, in batches of the size that `train` makes.
REAL = Workload("tatoeba", vocabulary=4000, d_model=256, heads=8, d_ff=1024, layers=3, batch=128, length=16,
                padded=True, text=str(ROOT.parent / "shared/data/tatoeba-fra-eng-5k/eng-fra.txt"))
#: The paper's base model at the paper's batch: about 25,000 tokens of each language, and its vocabulary of 37,000.
PAPER = Workload("paper", vocabulary=37000, d_model=512, heads=8, d_ff=2048, layers=6, batch=391, length=64)
#: For trying out a script.
DRY = Workload("tiny", vocabulary=11, d_model=16, heads=2, d_ff=24, layers=1, batch=6, length=9)


def variations(names: Iterable[str], dropouts: Iterable[float] = (0.0, 0.1)) -> list[Workload]:
    """The sizes of these names, each with every dropout."""
    dropouts = list(dropouts)
    return [replace((SIZES | {REAL.name: REAL})[name], dropout=dropout) for name in names for dropout in dropouts]
