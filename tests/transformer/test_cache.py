"""The KV cache: what it refuses, parts that do without, and that nothing moves; test_models.py has its logits."""

import tracemalloc
from contextlib import suppress
from functools import partial

import numpy as np
import pytest

from minigrad import Tensor, no_grad

from tests.transformer.decoding_models import peaked_model
from tests.transformer.models import IDS, SOURCES, language_model
from transformer import Transformer, TransformerConfig
from transformer.decode import Cache, beam_search, generate
from transformer.decode.search import Search

# --- What is refused ------------------------------------------------------------------------------


def test_what_a_cache_cannot_go_on_with_is_an_error():
    model = language_model().eval()
    for ids in (IDS[:2], IDS[:, :4]):
        with no_grad():
            cache = Cache()
            model(IDS[:, :4], cache=cache)
            with pytest.raises(ValueError, match=r"4 tokens of each of 3 texts .* cannot go on with ids of shape"):
                model(ids, cache=cache)
    cache = Cache()
    with no_grad():
        model(IDS[:, :4], cache=cache)
        cache.select([0, 1, 2], np.zeros((3, 2), int))
        with pytest.raises(ValueError, match="with 2 hypotheses"):
            model(np.repeat(IDS[:, :6], 2, axis=0), cache=cache)


@pytest.mark.parametrize(("texts", "error"), [([True, False, True], TypeError), ([0.5], TypeError), ([3], IndexError)])
def test_texts_that_are_no_indices_are_an_error(texts, error):
    cache = Cache()
    with no_grad():
        language_model().eval()(IDS, cache=cache)
    with pytest.raises(error, match="Cache: the numbers of texts"):
        cache.select(texts)


def test_a_layer_that_calls_its_attention_twice_is_an_error():
    model = language_model().eval()
    twice = model.layers[0].forward
    model.layers[0].forward = lambda x, *args, **options: twice(twice(x, *args, **options), *args, **options)
    with no_grad(), pytest.raises(ValueError, match="called once at each reading"):
        model(IDS, cache=Cache())


def test_there_is_no_gradient_through_a_cache():
    with pytest.raises(RuntimeError, match="no gradient through a cache"):
        language_model()(IDS, cache=Cache())


# --- Parts that do without ------------------------------------------------------------------------

# The new forward of a part, from the one that it had; the other arguments are positional.
WITHOUT = {
    "takes none": lambda forward: lambda *args: forward(*args),
    "hands it to what takes none": lambda forward: partial(lambda inner, *args, **options: inner(*args, **options),
                                                           lambda *args: forward(*args)),
    "ignores all options": lambda forward: lambda *args, **options: forward(*args),
    "ignores it by name": lambda forward: lambda *args, cache=None: forward(*args),
}


def translations(model):
    return [[h.ids for h in row] for size in (1, 3) for row in beam_search(model, SOURCES, size, max_length=8)]


def continuations(model):
    return [h.ids for h in generate(model, IDS[:, :3], 9)]


@pytest.mark.parametrize("way", WITHOUT)
@pytest.mark.parametrize(("make", "place", "written"), [
    *((peaked_model, f"decoder{place}", translations) for place in (
        "", ".layers.1", ".layers.1.self_attention", ".layers.1.cross_attention")),
    *((lambda seed: language_model(num_layers=2), place, continuations) for place in (
        "", "layers.1", "layers.1.self_attention"))])
def test_a_part_that_does_without_a_cache(make, place, written, way, monkeypatch):
    """Texts are the same, greedily and in a beam; who drives a cache gets an error before a wrong logit."""
    model = make(0).eval()
    expected = written(model)
    part = dict(model.named_modules())[place]
    monkeypatch.setattr(part, "forward", WITHOUT[way](part.forward))
    assert written(model) == expected
    if place.endswith("self_attention"):
        cache, ids = Cache(), IDS[:, :5] % 6
        forward = model if written is continuations else partial(
            model.decode, memory=Tensor(np.zeros((3, 4, 16))))
        with no_grad(), suppress(TypeError):
            forward(ids[:, :4], cache=cache)
        with no_grad(), pytest.raises(ValueError, match="a layer did not keep the keys"):
            forward(ids, cache=cache)


# --- Nothing moves --------------------------------------------------------------------------------


def test_a_step_allocates_as_much_whatever_was_decoded_before(monkeypatch):
    """Only attention's weights and masks grow: a copy of the keys or of the values would be many times as large."""
    hypotheses, batch = 2, 16
    monkeypatch.setattr("transformer.decode.cache.FIRST_ROOM", 40 * hypotheses)
    config = TransformerConfig(9, 9, d_model=128, num_heads=1, d_ff=16, num_encoder_layers=1, num_decoder_layers=1)
    model = Transformer(config).eval()
    source = np.full((batch, 5), 3)
    peaks = []
    with no_grad():
        search = Search(model, model.decode, np.full((batch, 1), 1), {"memory": model.encode(source)},
                        np.full(batch, 40), -1, (2,), size=hypotheses)
        for _ in range(30):
            tracemalloc.start()
            search.step()
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    one_copy = 20 * hypotheses * batch * 128 * 4  # bytes of the keys of 20 steps
    assert max(peaks[25:]) - min(peaks[2:6]) < one_copy / 4
