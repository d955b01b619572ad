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

from transformer.decode.beam import scoring, search
from transformer.decode.controls import Controls, DecodingError
from transformer.decode.next_token import Continuation
from transformer.decode.sampling import Choice, check_options, completed, drawing, follow, most_probable_token
from transformer.decode.steps import LEAST_ROWS, Hypothesis, Steps, decoding
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
            evaluation mode. Where a `KeyValueCache` can serve it, it reads each token once, else all tokens at every
            step. Within `minigrad.parallel.threads`, threads divide the prompts.
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
            logits.
        IndexError: an id outside the vocabulary.
        NotFinite: the model gives no finite probabilities.
    """
    prompts = _prompts(model, prompt, max_new_tokens, "generate")
    beam_size = whole_number(beam_size, "beam_size", "generate", least=1)
    score, options = scoring(alpha, "generate"), Controls(**controls)
    choice_of = _choice("generate", max_new_tokens, len(prompts), temperature, top_k, top_p)
    if memory is not None and len(memory) != len(prompts):
        raise ValueError(f"generate: the memory must have a row for each of the {len(prompts)} prompts, got shape "
                         f"{tuple(memory.shape)}")
    if beam_size > 1 and choice_of is not _greedy:
        raise ValueError("generate: beam search draws nothing at random; leave out beam_size, or temperature, top_k "
                         "and top_p")

    def extend(rows: NDArray[np.int64]) -> list[Hypothesis]:
        with decoding(model):
            batch = np.stack([prompts[row] for row in rows])
            steps = _steps(model, batch, max_new_tokens, end_id, never, None if memory is None else memory[rows],
                           options)
            if beam_size > 1:
                return [best for [best] in search(steps, beam_size, 1, score)]
            return completed(steps, choice_of(rows))

    groups = _groups(prompts)
    found = dict(zip(chain(*groups), chain(*parallel.run([partial(extend, rows) for rows in groups])), strict=True))
    return [found[row] for row in range(len(prompts))]


def stream(model: nn.Module, prompt: Any, max_new_tokens: int, *, temperature: float | None = None,
           top_k: int | None = None, top_p: float | None = None, end_id: int | None = None,
           never: Sequence[int] = (), memory: Tensor | None = None, **controls: Any) -> Iterator[int]:
    """The tokens that `generate` adds to one prompt, each as soon as it is known: ``for token in stream(…)``.

    Args:
        prompt: ids (T,).
        model, max_new_tokens, temperature, top_k, top_p, end_id, never, controls: as for `generate`.
        memory: for a model with cross-attention, (1, S, D).

    Returns:
        An iterator of ids, without `end_id`. Between tokens the caller's settings hold.

    Raises:
        ValueError, TypeError: as `generate`, at once.
        IndexError, NotFinite: as `generate`, from the iterator.
    """
    batch = np.stack(_prompts(model, [prompt], max_new_tokens, "stream"))
    choose = _choice("stream", max_new_tokens, 1, temperature, top_k, top_p)(np.zeros(1, np.int64))
    steps = _steps(model, batch, max_new_tokens, end_id, never, memory, Controls(**controls))
    following = follow(steps, choose)

    def tokens() -> Iterator[int]:
        while True:
            with decoding(model):
                step = next(following, None)
            if step is None or step[1][0] == end_id:
                return
            yield int(step[1][0])

    return tokens()


def _steps(model: nn.Module, prompts: NDArray[np.int64], max_new_tokens: int, end_id: int | None,
           never: Sequence[int], memory: Tensor | None, controls: Controls) -> Steps:
    """The steps that continue `prompts`, ids (B, T)."""
    never = [whole_number(token, "a token of never", "generate", least=None) for token in never]
    end_id = None if end_id is None else whole_number(end_id, "end_id", "generate", least=None)
    if controls.min_length > max_new_tokens:
        raise DecodingError(f"generate: min_length {controls.min_length} is more than max_new_tokens {max_new_tokens}")
    return Steps(model, Continuation(model, prompts, never, end_id, memory), prompts,
                 [max_new_tokens] * len(prompts), -1 if end_id is None else end_id, never, controls,
                 np.empty((len(prompts), 0), np.int64))


def _greedy(rows: NDArray[np.int64]) -> Choice:
    return most_probable_token


def _choice(caller: str, steps: int, count: int, temperature: float | None, top_k: int | None, top_p: float | None
            ) -> Callable[[NDArray[np.int64]], Choice]:
    """How to choose tokens for those rows of `count` that form a batch: `_greedy`, or at random.

    The random numbers of a row do not depend on the batch that it is in.
    """
    if temperature is None and top_k is None and top_p is None:
        return _greedy
    heat = 1.0 if temperature is None else temperature
    check_options(caller, heat, top_k, top_p)
    uniform = random.next_generator().random((count, steps))
    return lambda rows: drawing(lambda step, left: uniform[rows[left], step], heat, top_k, top_p)


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
