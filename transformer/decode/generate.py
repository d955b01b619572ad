"""Continue prompts with a decoder-only model: greedily, by sampling, or by beam search."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minigrad import Tensor, nn, parallel, random
from minigrad.arguments import whole_number
from minigrad.device import is_array, plain, to_numpy

from transformer.decode.beam import Choose, Hypothesis, Search, scoring
from transformer.decode.controls import Controls, DecodingError, controls_of, nothing_left
from transformer.decode.sampling import drawing
from transformer.decode.steps import LEAST_ROWS, Steps, decoding
from transformer.model import Transformer

Prompt = NDArray[np.int64]  # (T,)


def generate(model: nn.Module, prompt: Any, max_new_tokens: int, *, temperature: float | None = None,
             top_k: int | None = None, top_p: float | None = None, beam_size: int = 1, alpha: float = 0.6,
             end_id: int | None = None, never: Sequence[int] = (), memory: Tensor | None = None, **controls: Any
             ) -> list[Hypothesis]:
    """Continue each prompt with the tokens that the model predicts.

    By default the most probable token follows at each step (greedy decoding). With a `temperature`, `top_k` or `top_p`,
    tokens are drawn at random; with a `beam_size` above 1, beam search looks for the most probable continuation.

    Args:
        model: a decoder-only model such as `LanguageModel`: ids (B, T) → logits (B, T, V), in any mode; it runs in
            evaluation mode. If it takes a `Cache`, as ``model(ids, cache=…)``, and its attentions use it, it reads each
            token once, else all tokens at every step. Within `minigrad.parallel.threads`, threads divide the prompts.
        prompt: ids (B, T), or a list of B lists of any lengths. Prompts of one length form a batch: each is continued
            as it would be alone, without padding.
        max_new_tokens: the most tokens to add, `end_id` included.
        temperature, top_k, top_p: as for `sampling.draw`. ``minigrad.manual_seed`` makes the draws reproducible; those
            of the first prompts do not depend on how many follow. Repeat a prompt to get several samples of it.
        beam_size, alpha: as for `beam_search`; ``|Y|`` counts the new tokens.
        end_id: the token that ends a text; None: each has `max_new_tokens`.
        never: tokens that no continuation contains.
        memory: for a model with cross-attention, (B, S, D), a row for each prompt: ``model(ids, memory=…)``.
        controls: the options of `Controls`, by name.

    Returns:
        For each prompt a hypothesis, whose `ids` are the new tokens.

    Raises:
        ValueError: a prompt without tokens, or one that grows beyond the model's `max_length`; an option out of range,
            or a beam and sampling at once; a model that returns another shape; a memory of another batch.
        TypeError: prompts or tokens that are no integers; a model that is no decoder-only module, or returns more than
            logits; an option that there is not.
        IndexError: an id outside the vocabulary.
        NotFinite: the model gives no finite probabilities.
    """
    prompts = _prompts(model, prompt, max_new_tokens, "generate")
    beam_size = whole_number(beam_size, "beam_size", "generate", least=1)
    options = controls_of(generate, controls)
    choose = _choose(max_new_tokens, len(prompts), temperature, top_k, top_p)
    score = scoring(alpha if beam_size > 1 else 0.0, "generate")
    if memory is not None and len(memory) != len(prompts):
        raise ValueError(f"generate: the memory must have a row for each of the {len(prompts)} prompts, got shape "
                         f"{tuple(memory.shape)}")
    if beam_size > 1 and choose is not None:
        raise ValueError("generate: beam search draws nothing at random; leave out beam_size, or temperature, top_k "
                         "and top_p")

    def extend(rows: NDArray[np.int64]) -> list[Hypothesis]:
        with decoding(model):
            batch = np.stack([prompts[row] for row in rows])
            steps = _steps(model, batch, max_new_tokens, end_id, never, None if memory is None else memory[rows],
                           options)
            return [best for [best] in Search(steps, beam_size, 1, score, choose and choose(rows)).results()]

    groups = _groups(prompts)
    found = dict(zip(chain(*groups), chain(*parallel.run([partial(extend, rows) for rows in groups])), strict=True))
    return [found[row] for row in range(len(prompts))]


def stream(model: nn.Module, prompt: Any, max_new_tokens: int, *, temperature: float | None = None,
           top_k: int | None = None, top_p: float | None = None, end_id: int | None = None, never: Sequence[int] = (),
           memory: Tensor | None = None, **controls: Any) -> Iterator[int]:
    """The tokens that `generate` adds to one prompt, each as soon as it is known: ``for token in stream(…)``.

    Args:
        prompt: ids (T,).
        memory: for a model with cross-attention, (1, S, D).
        model, max_new_tokens, temperature, top_k, top_p, end_id, never, controls: as for `generate`.

    Returns:
        An iterator of ids, without `end_id`. Between tokens the caller's settings hold.

    Raises:
        ValueError, TypeError: as `generate`, at once.
        IndexError, NotFinite: as `generate`, from the iterator.
    """
    prompts = _prompts(model, [prompt], max_new_tokens, "stream")
    options = controls_of(stream, controls)
    choose = _choose(max_new_tokens, 1, temperature, top_k, top_p)
    steps = _steps(model, np.stack(prompts), max_new_tokens, end_id, never, memory, options)
    search = Search(steps, 1, 1, scoring(0.0, "stream"), choose and choose(np.zeros(1, np.int64)))

    def tokens() -> Iterator[int]:
        known = 0
        while search.texts.size:
            with decoding(model):
                search.step()
            ids = steps.said[0, 0].tolist() if search.texts.size else search.results()[0][0].ids
            yield from ids[known:]
            known = len(ids)

    return tokens()


def _steps(model: nn.Module, prompts: NDArray[np.int64], max_new_tokens: int, end_id: int | None,
           never: Sequence[int], memory: Tensor | None, controls: Controls) -> Steps:
    """The steps that continue `prompts`, ids (B, T)."""
    special = [whole_number(token, "a token of never", "generate", least=None) for token in never]
    if end_id is not None:
        special.append(whole_number(end_id, "end_id", "generate", least=None))
    if controls.min_length > max_new_tokens:
        raise DecodingError(f"generate: min_length {controls.min_length} is more than max_new_tokens {max_new_tokens}")

    def forward(ids: NDArray[np.int64], *memories: Any, **kept: Any) -> Any:
        logits = model(ids, **dict(zip(["memory"], memories, strict=False)), **kept)
        shape = tuple(getattr(logits, "shape", ()))
        if len(shape) != 3 or shape[0] != len(ids) or (not kept and shape[1] != ids.shape[1]):
            raise ValueError("generate: the model must return logits alone, of shape (batch, length, vocabulary), got "
                             f"a {type(logits).__name__} {shape} for ids of shape {ids.shape}")
        for token in special:
            if not 0 <= token < shape[2]:
                raise IndexError(f"generate: the token {token} of end_id and never is outside the vocabulary of "
                                 f"{shape[2]}")
        if shape[2] == len(set(never)):
            raise nothing_left()
        return logits

    return Steps(model, forward, prompts, () if memory is None else (memory,), np.full(len(prompts), max_new_tokens),
                 -1 if end_id is None else end_id, never, controls)


def _choose(steps: int, count: int, temperature: float | None, top_k: int | None, top_p: float | None
            ) -> Callable[[NDArray[np.int64]], Choose] | None:
    """How to draw for those rows of `count` that form a batch; None where nothing is drawn.

    The random numbers of a row do not depend on the batch that it is in.
    """
    if temperature is None and top_k is None and top_p is None:
        return None
    options = 1.0 if temperature is None else temperature, top_k, top_p
    drawing(np.empty((0, 0)), *options)  # they are checked before a number is drawn
    uniform = random.next_generator().random((count, steps))
    return lambda rows: drawing(uniform[rows], *options)


def _groups(prompts: list[Prompt]) -> list[NDArray[np.int64]]:
    """The numbers of the prompts in batches of one length; within `parallel.threads` several for a common length."""
    by_length: dict[int, list[int]] = defaultdict(list)
    for row, ids in enumerate(prompts):
        by_length[len(ids)].append(row)
    return [part for rows in by_length.values()
            for part in np.array_split(rows, max(1, min(parallel.thread_count(), len(rows) // LEAST_ROWS)))]


def _prompts(model: nn.Module, prompt: Any, max_new_tokens: int, caller: str) -> list[Prompt]:
    """The prompts on the host, checked with the model."""
    if not isinstance(model, nn.Module) or isinstance(model, Transformer):
        raise TypeError(f"{caller}: the model must be a decoder-only Module, whose call takes ids (B, T) and returns "
                        f"logits (B, T, V), got a {type(model).__name__}")
    max_new_tokens = whole_number(max_new_tokens, "max_new_tokens", caller, least=1)
    raw = prompt.data if isinstance(prompt, Tensor) else prompt
    rows = [np.asarray(plain(row.data if isinstance(row, Tensor) else row, f"{caller}: prompts"))
            for row in (to_numpy(plain(raw, f"{caller}: prompts")) if is_array(raw) else raw)]
    for number, row in enumerate(rows):
        if row.ndim != 1:
            raise ValueError(f"{caller}: prompts must be ids (batch, length) or lists of ids; prompt {number} has "
                             f"shape {row.shape}; a single prompt is [ids]")
        if not row.size:
            raise ValueError(f"{caller}: prompt {number} has no tokens; begin with a token such as begin-of-text")
        if row.dtype.kind not in "iu":
            raise TypeError(f"{caller}: prompts must be integers, prompt {number} is of {row.dtype}")
    return [row.astype(np.int64) for row in rows]
