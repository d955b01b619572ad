"""From source ids to target ids, or from a prompt to its continuation: greedily, by sampling or by beam search.

    search.py          the loop of all of these: hypotheses, step by step
    beam.py            ``greedy`` and ``beam_search`` of a `Transformer`
    generate.py        ``generate`` and ``stream`` of a decoder-only model
    controls.py        what may follow: minimum length, repetitions, prefixes; draws at random
    cache.py           keys and values of the tokens so far
    recorded_steps.py  on a GPU, a step as one launch
"""

from transformer.decode.beam import beam_search, greedy
from transformer.decode.cache import Cache
from transformer.decode.controls import Controls
from transformer.decode.generate import generate, stream
from transformer.decode.search import Hypothesis

__all__ = ["Cache", "Controls", "Hypothesis", "beam_search", "generate", "greedy", "stream"]
