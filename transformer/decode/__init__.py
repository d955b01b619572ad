"""From source ids to target ids: greedy decoding, beam search and sampling, in batches, with a KV cache."""

from transformer.decode.beam import beam_search
from transformer.decode.key_value_cache import KeyValueCache
from transformer.decode.kv_cache import DecoderCache, LayerCache
from transformer.decode.next_token import decoder_of
from transformer.decode.sampling import greedy, sample
from transformer.decode.steps import Hypothesis

__all__ = ["DecoderCache", "Hypothesis", "KeyValueCache", "LayerCache", "beam_search", "decoder_of", "greedy", "sample"]
