"""The live model of a page: all that a browser needs to run a translator on any text, forward and backward.

    config       that of the model (`TransformerConfig.to_json`)
    parameters   by dotted name, a tied one under its first name; in float32 where that is exact, else in float64
    tokenizers   source and target: their kind, their tokens by id, and the merges of byte pairs, first learned first
    texts        source and target, a list each: the sentences with which the page opens
    ids          theirs, a list for each sentence, with end-of-sentence: of a translation by the model, the tokens that
                 it wrote, which its text may not encode to
    written      whether it wrote the targets itself

The page computes what `transformer.model` defines. A model that computes anything else has no live model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from minigrad import no_grad, random
from minigrad.device import to_numpy

from transformer.data.batches import Example
from transformer.data.tokenizer import BytePairTokenizer, CharacterTokenizer, Tokenizer, WordTokenizer
from transformer.explore.data import Json, lossless
from transformer.model import Transformer
from transformer.translator import Translator

LIVE_LIMIT = 3_000_000  # bytes of a page with a live model
# A float32 in base64; the bytes of a parameter's name, shape and dtype are few beside those of its numbers.
BYTES_PER_NUMBER = 4 * 4 / 3


@dataclass(frozen=True, repr=False)
class LiveModel:
    """A model as a page holds it.

    Attributes:
        model: in float64 and evaluation mode.
        source_tokenizer, target_tokenizer: its tokenizers.
        texts: the sources and the targets with which the page opens.
        examples: their token ids.
        written: whether the model wrote the targets itself.
    """

    model: Transformer
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    texts: tuple[Sequence[str], Sequence[str]]
    examples: Sequence[Example]
    written: bool

    @cached_property
    def problem(self) -> str | None:
        """What tells the model from one that is built anew from its configuration and has its parameters; or None.

        It may have other modules, or hooks, or another number in one of them: an epsilon, the number of heads. The
        logits of the sentences tell.
        """
        config, table = self.model.config, self.model.decoder.embedding.table.weight
        with random.fork():
            anew = Transformer(config).to(table.device, table.dtype).eval()
        parts, defined = ([(name, type(module), module.has_hooks) for name, module in of.named_modules()]
                          for of in (self.model, anew))
        if parts != defined:
            return "it has parts that transformer.model does not define"
        own, expected = ({name: (parameter.shape, parameter.requires_grad) for name, parameter in of.named_parameters()}
                         for of in (self.model, anew))
        if own != expected:  # of another shape, left out, added, tied, or frozen
            return "its parameters are not those of its configuration"
        anew.load_state_dict(self.model.state_dict())
        for source, target in self.examples:
            with no_grad():
                logits, others = (to_numpy(of([source], [[config.bos_id, *target]])._data) for of in (self.model, anew))
            if not np.allclose(logits, others, rtol=1e-9, atol=1e-9 * abs(others).max()):
                return "it does not compute what its configuration says"
        return None

    @cached_property
    def json(self) -> Json:
        """The entry "model" of a page's data."""
        sources, targets = self.texts
        end = self.model.config.eos_id
        return {"config": self.model.config.to_json(),
                "parameters": {name: lossless(parameter) for name, parameter in self.model.named_parameters()},
                "tokenizers": {"source": described(self.source_tokenizer), "target": described(self.target_tokenizer)},
                "texts": {"source": list(sources), "target": list(targets)},
                "ids": {"source": [list(source) for source, _ in self.examples],
                        "target": [[*target, end] for _, target in self.examples]},
                "written": self.written}


def why_not_live(translator: Translator) -> str | None:
    """Why a page cannot run such a model, in words; None if it can, unless `LiveModel.problem` finds a reason."""
    for tokenizer in (translator.source_tokenizer, translator.target_tokenizer):
        if type(tokenizer) not in (WordTokenizer, CharacterTokenizer, BytePairTokenizer):
            return f"its {type(tokenizer).__name__} splits texts in a way of its own"
    return None


def described(tokenizer: Tokenizer) -> Json:
    """A tokenizer in a page's data."""
    found = {"kind": tokenizer.kind, "tokens": list(tokenizer.vocabulary.tokens)}
    if isinstance(tokenizer, BytePairTokenizer):
        found["merges"] = tokenizer.to_json()["tokenizers"]["model"]["merges"]
    return found
