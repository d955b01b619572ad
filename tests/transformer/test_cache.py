"""The KV cache: what it refuses, parts that do without, and that nothing moves; test_models.py has its logits."""

import tracemalloc
from contextlib import suppress
from functools import partial

import numpy as np
import pytest

from minigrad import Tensor, no_grad

from tests.transformer.decoding_models import peaked_model, prefer
from tests.transformer.models import IDS, SOURCES, language_model
from transformer import Transformer, TransformerConfig
from transformer.decode import Cache, Controls, beam_search, generate
from transformer.decode.search import Search, decoding


@pytest.mark.parametrize(("then", "error", "message"), [
    (lambda model, cache: model(IDS[:2], cache=cache), ValueError, "4 tokens of each of 3 texts .* cannot go on with"),
    (lambda model, cache: model(IDS[:, :4], cache=cache), ValueError, "cannot go on with ids of shape"),
    (lambda model, cache: (cache.select([0, 1, 2], np.zeros((3, 2), int)), model(IDS[[0, 0, 1, 1, 2, 2]], cache=cache)),
     ValueError, "with 2 hypotheses"),
    *((lambda model, cache, texts=texts: cache.select(texts), error, "Cache: the numbers of texts")
      for texts, error in (([True, False, True], TypeError), ([3], IndexError))),
    (lambda model, cache: setattr(model.layers[0], "forward", lambda *args, layer=model.layers[0].forward, **options: (
        layer(*args, **options), layer(*args, **options))) or model(IDS, cache=cache),
     ValueError, "called once at each reading"),
])
def test_what_is_refused(then, error, message):
    model, cache = language_model().eval(), Cache()
    with pytest.raises(RuntimeError, match="no gradient through a cache"):
        model(IDS, cache=Cache())
    with no_grad():
        model(IDS[:, :4], cache=cache)
        with pytest.raises(error, match=message):
            then(model, cache)


def test_the_example_of_the_class():
    """Two hypotheses over two steps, the second of which drops one; other logits than alone would be a wrong mask."""
    model, cache, a, b, c, d, e = language_model().eval(), Cache(), *range(3, 8)
    with no_grad():
        for ids, parents, places, seen in (
                ([[a]], [[0, 0]], [0], None),
                ([[a, b], [a, c]], [[1, 1]], [0, 1, 1], [[1, 1, 0], [1, 0, 1]]),
                ([[a, c, d], [a, c, e]], [[0, 1]], [0, 1, 1, 2, 2], [[1, 0, 1, 1, 0], [1, 0, 1, 0, 1]])):
            np.testing.assert_allclose(model(ids, cache=cache).data[:, -1], model(ids).data[:, -1], rtol=1e-10)
            assert cache.places.tolist() == places
            assert seen is cache.seen or cache.seen.tolist() == [seen]
            cache.select([0], np.array(parents))
    assert (cache.length, cache.past) == (3, 2)
    keys, values = cache.layers[0].tokens.buffers
    assert keys.shape[::2] == values.shape[::2] == (1, 32)


# --- Parts that do without ------------------------------------------------------------------------

# The new forward of a part, from the one that it had; the other arguments are positional.
WITHOUT = {
    "takes none": lambda forward: lambda *args: forward(*args),
    "hands it to what takes none": lambda forward: partial(lambda inner, *args, **options: inner(*args, **options),
                                                           lambda *args: forward(*args)),
    "ignores all options": lambda forward: lambda *args, **options: forward(*args),
}


def translations(model):
    """Of sentences that leave the batch at different times, the second first."""
    return [[h.ids for h in row] for size in (1, 3) for row in beam_search(model, SOURCES, size)]


def continuations(model):
    return [h.ids for h in generate(model, IDS[:, :3], 9)]


@pytest.mark.parametrize("way", WITHOUT)
@pytest.mark.parametrize(("make", "place", "written"), [
    *((lambda seed: prefer(peaked_model(seed), eos=-100.0), f"decoder{place}", translations) for place in (
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


def test_a_model_that_reads_the_last_tokens_alone(monkeypatch):
    """Its cache is behind the text, so it does without."""
    model = language_model(num_layers=2).eval()
    forward = model.forward
    monkeypatch.setattr(model, "forward", lambda ids: forward(ids[:, -2:]))
    expected = continuations(model)
    monkeypatch.setattr(model, "forward", lambda ids, cache=None: forward(ids[:, -2:], cache=cache))
    assert continuations(model) == expected


# --- Nothing moves --------------------------------------------------------------------------------


def test_a_step_allocates_as_much_whatever_was_decoded_before():
    """Only attention's weights and masks grow: a copy of the keys or of the values would be many times as large."""
    hypotheses, batch, peaks = 2, 16, []
    model = Transformer(TransformerConfig(9, 9, d_model=128, num_heads=1, d_ff=16, num_encoder_layers=1,
                                          num_decoder_layers=1))
    with decoding(model):
        beside = {"memory": model.encode(np.full((batch, 5), 3))}
        steps = iter(Search(model, model.decode, np.full((batch, 1), 1), beside, np.full(batch, 40),
                            Controls(never=(2,)), np.zeros((0, batch)), size=hypotheses))
        for _ in range(30):
            tracemalloc.start()
            next(steps)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    one_copy = 20 * hypotheses * batch * 128 * 4  # bytes of the keys of 20 steps
    assert max(peaks[25:]) - min(peaks[2:6]) < one_copy / 4
