"""Continue prompts with a decoder-only model: greedily, by sampling, or by beam search."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from minigrad import Tensor, nn, random
from minigrad.arguments import whole_number
from minigrad.device import to_numpy
from minigrad.functional.embedding import integer_ids

from transformer.decode.controls import Controls, Ids, refuse_unknown
from transformer.decode.search import Hypothesis, Search, decoding, in_parts


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
        temperature, top_k, top_p: how to draw, see `Controls`. ``minigrad.manual_seed`` makes draws reproducible; those
            of the first prompts do not depend on how many follow. Repeat a prompt to get several samples of it.
        beam_size, alpha: as for `beam_search`; ``|Y|`` counts the new tokens.
        end_id: the token that ends a text; None: each has `max_new_tokens`.
        never: tokens that no continuation contains.
        memory: for a model with cross-attention, (B, S, D), a row for each prompt: ``model(ids, memory=…)``.
        controls: the other options of `Controls`, by name: `min_length`, `repetition_penalty`, `no_repeat_ngram_size`.

    Returns:
        For each prompt a hypothesis, whose `ids` are the new tokens.

    Raises:
        ValueError: a prompt without tokens, or one that grows beyond the model's `max_length`; an option out of range,
            or a beam and sampling at once; a memory of another batch.
        TypeError: prompts that are no integers; an option that there is not.
        IndexError: an id outside the vocabulary.
        NotFinite: the model gives no finite probabilities.
    """
    refuse_unknown(generate, controls)
    options = Controls(end_id, never, temperature=temperature, top_k=top_k, top_p=top_p, **controls)
    lengths, begin = _beginning("generate", model, prompt, max_new_tokens, memory, options, beam_size,
                                alpha if beam_size > 1 else 0.0)
    return in_parts(lambda rows: [best for [best] in begin(rows).results()], lengths, equal=True)


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
    refuse_unknown(stream, controls)
    options = Controls(end_id, never, temperature=temperature, top_k=top_k, top_p=top_p, **controls)
    _, begin = _beginning("stream", model, [prompt], max_new_tokens, memory, options)
    tokens = (int(token) for [[token]] in begin(np.arange(1)))

    def step() -> int | None:
        with decoding(model):
            return next(tokens, None)

    return (token for token in iter(step, None) if token != end_id)


def _beginning(caller: str, model: nn.Module, prompt: Any, max_new_tokens: int, memory: Tensor | None,
               options: Controls, size: int = 1, alpha: float = 0.0) -> tuple[Ids, Callable[[Ids], Search]]:
    """The lengths of the prompts, and what begins the `Search` that continues some of one length, by their numbers."""
    steps = whole_number(max_new_tokens, "max_new_tokens", caller)
    prompts = [to_numpy(integer_ids(ids, f"{caller}: prompts")) for ids in prompt]
    for number, ids in enumerate(prompts):
        if ids.ndim != 1 or not ids.size:
            raise ValueError(f"{caller}: prompts must be ids (batch, length) or lists of ids, each with a token such "
                             f"as begin-of-text; prompt {number} has shape {ids.shape}; a single prompt is [ids]")
    if memory is not None and len(memory) != len(prompts):
        raise ValueError(f"{caller}: the memory must have a row for each of the {len(prompts)} prompts, got shape "
                         f"{tuple(memory.shape)}")
    greedy = options.temperature is options.top_k is options.top_p is None
    # Those of a row are the same, whatever batch it is in.
    uniform = None if greedy else random.next_generator().random((len(prompts), steps))

    def begin(rows: Ids) -> Search:
        return Search(model, model, ids=np.stack([prompts[row] for row in rows]),
                      beside={} if memory is None else {"memory": memory[rows]}, limits=np.full(len(rows), steps),
                      controls=options, prefix=np.zeros((0, len(rows)), int), size=size, alpha=alpha,
                      uniform=None if uniform is None else uniform[rows])

    return np.array([len(ids) for ids in prompts]), begin
