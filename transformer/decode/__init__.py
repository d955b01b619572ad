"""From source ids to target ids, or from a prompt to its continuation: greedily, by sampling or by beam search.

    sampling.py, beam.py  ``greedy`` and ``beam_search`` of a `Transformer`; draws at random
    generate.py           ``generate`` and ``stream`` of a decoder-only model
    controls.py           what may follow: minimum length, repetitions, prefixes
    steps.py              the steps that all of these share
    next_token.py         the logits of the next token, with a KV cache or without
    kv_cache.py           keys and values as raw arrays: `LayerCache`, `DecoderCache`
    model_cache.py    `KeyValueCache`, for any model made of attentions
"""

from transformer.decode.beam import beam_search
from transformer.decode.controls import Controls
from transformer.decode.generate import generate, stream
from transformer.decode.model_cache import KeyValueCache
from transformer.decode.next_token import decoder_of
from transformer.decode.sampling import greedy
from transformer.decode.steps import Hypothesis

__all__ = ["Controls", "Hypothesis", "KeyValueCache", "beam_search", "decoder_of", "generate", "greedy", "stream"]
