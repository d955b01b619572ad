"""Continue prompts with a decoder-only model: greedily, by sampling, or by beam search."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from minigrad import Tensor, nn, random
from minigrad.arguments import whole_number
from minigrad.device import asarray_on, device_of, to_numpy, xp
from minigrad.functional.embedding import integer_ids

from transformer.decode.controls import Controls, Ids
from transformer.decode.sampling import draw
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
            or a beam and sampling at once; a memory of another batch.
        TypeError: prompts that are no integers; an option that there is not.
        IndexError: an id outside the vocabulary.
        NotFinite: the model gives no finite probabilities.
    """
    sampling = {"temperature": temperature, "top_k": top_k, "top_p": top_p}
    lengths, begin = _beginning(model, prompt, max_new_tokens, end_id, never, memory, sampling, controls, beam_size,
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
    sampling = {"temperature": temperature, "top_k": top_k, "top_p": top_p}
    _, begin = _beginning(model, [prompt], max_new_tokens, end_id, never, memory, sampling, controls)
    tokens = (int(token) for [[token]] in begin(np.arange(1)))
    step = decoding(model)(lambda: next(tokens, None))
    return (token for token in iter(step, None) if token != end_id)


def _beginning(model: nn.Module, prompt: Any, max_new_tokens: int, end_id: int | None, never: Sequence[int],
               memory: Tensor | None, sampling: Mapping[str, Any], controls: Mapping[str, Any], size: int = 1,
               alpha: float = 0.0) -> tuple[Ids, Callable[[Ids], Search]]:
    """The lengths of the prompts, and what begins the `Search` that continues some of one length, by their numbers."""
    prompts = [to_numpy(integer_ids(ids, "generate: prompts"))
               for ids in (prompt.data if isinstance(prompt, Tensor) else prompt)]
    for number, ids in enumerate(prompts):
        if ids.ndim != 1 or not ids.size:
            raise ValueError("generate: prompts must be ids (batch, length) or lists of ids, each with a token such as "
                             f"begin-of-text; prompt {number} has shape {ids.shape}; a single prompt is [ids]")
    if memory is not None and len(memory) != len(prompts):
        raise ValueError(f"generate: the memory must have a row for each of the {len(prompts)} prompts, got shape "
                         f"{tuple(memory.shape)}")
    steps, options = whole_number(max_new_tokens, "max_new_tokens", "generate"), Controls(**controls)
    drawn = {name: value for name, value in sampling.items() if value is not None}
    if drawn:
        if size > 1:
            raise ValueError("generate: beam search draws nothing at random; leave out beam_size, or temperature, "
                             "top_k and top_p")
        draw(np.zeros((1, 1)), np.zeros(1), **drawn)  # which checks the options, before a number is drawn
        uniform = random.next_generator().random((len(prompts), steps))  # those of a row, whatever batch it is in

    def begin(rows: Ids) -> Search:
        def sample(scores: Any, texts: Ids, added: int) -> list[Any]:
            tokens = draw(scores, asarray_on(device_of(scores), uniform[rows[texts], added]), **drawn)
            return [tokens, scores[xp(scores).arange(len(tokens)), tokens]]

        return Search(model, model, np.stack([prompts[row] for row in rows]),
                      {} if memory is None else {"memory": memory[rows]}, np.full(len(rows), steps),
                      -1 if end_id is None else end_id, never, options, np.zeros((0, len(rows)), int), size, 1, alpha,
                      sample if drawn else None)

    return np.array([len(ids) for ids in prompts]), begin
