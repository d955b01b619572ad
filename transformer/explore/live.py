"""The live model of a page: all that a browser needs to run a translator on any text, forward and backward.

    config       that of the model, a `TransformerConfig`
    parameters   by dotted name, a tied one under its first name; in the smallest of float16, float32 and float64 that
                 holds it exactly
    tokenizers   source and target: their kind, their tokens by id, and the merges of byte pairs, first learned first
    texts        source and target, a list each: the sentences with which the page opens
    ids          theirs, a list for each sentence, with end-of-sentence: of a translation by the model, the tokens that
                 it wrote, which its text may not encode to
    written      whether it wrote the targets itself
    program      the step of the first sentence as a program of NumPy, a list of [modules, backward, lines]
                 (minigrad.inspect.program.Section)

The page computes what `transformer.model` defines. A model that computes anything else has no live model.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np

from minigrad import grad, random
from minigrad.device import to_numpy
from minigrad.inspect.program import Section, sections

from transformer.data.batches import Example, collate
from transformer.data.tokenizer import BytePairTokenizer, CharacterTokenizer, Tokenizer, WordTokenizer
from transformer.explore.data import Json, encoded, exact
from transformer.model import Transformer
from transformer.translator import Translator

LIMIT = 40.0  # MB of a page


def why_not_live(translator: Translator, model: Transformer, source: Any, labels: Any, limit: float) -> str | None:
    """Why a page cannot run the translator, in words; None if it can.

    A model is compared with one that is built anew from its configuration and has its parameters: with other parts, or
    another number in a part, it has another loss or another gradient.

    Args:
        translator: the model and its tokenizers.
        model: the model in float64 and evaluation mode.
        source, labels: token ids of the sentences with which the page opens.
        limit: the MB that a page may have.
    """
    for tokenizer in (translator.source_tokenizer, translator.target_tokenizer):
        if type(tokenizer) not in (WordTokenizer, CharacterTokenizer, BytePairTokenizer):
            return f"its {type(tokenizer).__name__} splits texts in a way of its own"
    # In base64; the bytes of a parameter's name and shape are few beside those of its numbers.
    if sum(exact(parameter).nbytes for parameter in model.parameters()) * 4 / 3 > limit * 1e6:
        return f"its {model.num_parameters():,} parameters do not fit into a page of {limit:g} MB (--limit)"
    with random.fork():
        anew = Transformer(model.config).to(model.device, np.float64).eval()
    own, expected = ({name: (parameter.shape, parameter.requires_grad) for name, parameter in of.named_parameters()}
                     for of in (model, anew))
    if own != expected:  # of another shape, left out, added, tied, or frozen
        return "its parameters are not those of its configuration"
    anew.load_state_dict(model.state_dict())
    found, right = (_loss_and_gradients(of, source, labels) for of in (model, anew))
    if not all(a is not None and np.allclose(a, b, rtol=1e-9, atol=1e-9 * abs(b).max())
               for a, b in zip(found, right, strict=True)):
        return ("it does not compute what its configuration says (one in float16 has rounded positions: load its "
                "weights into one in float32)")
    return None


def _loss_and_gradients(model: Transformer, source: Any, labels: Any) -> list[Any]:
    loss = model.loss(source, labels)
    gradients = grad(loss, list(model.parameters()), allow_unused=True)
    return [None if tensor is None else to_numpy(tensor._data) for tensor in (loss, *gradients)]


def live_model(translator: Translator, model: Transformer, texts: tuple[Sequence[str], Sequence[str]],
               examples: Sequence[Example], written: bool) -> Json:
    """The entry "model" of a page's data, as the top of this file describes it."""
    sources, targets = texts
    return {"config": vars(model.config),
            "parameters": {name: encoded(parameter) for name, parameter in model.named_parameters()},
            "tokenizers": {"source": described(translator.source_tokenizer),
                           "target": described(translator.target_tokenizer)},
            "texts": {"source": list(sources), "target": list(targets)},
            "ids": {"source": [list(source) for source, _ in examples],
                    "target": [[*target, model.config.eos_id] for _, target in examples]},
            "written": written, "program": program_of(deepcopy(model).to("cpu"), examples)}


def program_of(model: Transformer, examples: Sequence[Example]) -> list[Section]:
    """The sections of the program that computes the loss of the first example: the page's entry "program"."""
    batch = collate(examples, [0])
    return sections(lambda: model.loss(batch.source, batch.target[:, 1:]), model)[0]


def described(tokenizer: Tokenizer) -> Json:
    """A tokenizer in a page's data."""
    found = {"kind": tokenizer.kind, "tokens": list(tokenizer.vocabulary.tokens)}
    if isinstance(tokenizer, BytePairTokenizer):
        found["merges"] = tokenizer.to_json()["tokenizers"]["model"]["merges"]
    return found
