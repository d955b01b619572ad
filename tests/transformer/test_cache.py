"""The KV cache: the logits of new tokens are those of the whole text, for every model, and nothing moves."""

import tracemalloc
from contextlib import suppress
from functools import partial

import numpy as np
import pytest

import minigrad
from minigrad import Tensor, nn, no_grad

from tests.transformer.decoding_models import peaked_model, random_sources
from tests.transformer.test_language_model import language_model
from tests.transformer.tiny import jitter, tiny_config, tiny_model
from transformer import GroupedQueryAttention, RotaryPositions, Transformer, TransformerConfig
from transformer.decode import Cache, beam_search, generate
from transformer.decode.search import Search
from transformer.model import DecoderLayer, causal_mask

SOURCES = random_sources(1, (5, 2, 7))
IDS = np.random.default_rng(0).integers(3, 9, (3, 15))
MEMORY = Tensor(np.random.default_rng(1).normal(size=(3, 7, 8)))


class Captions(nn.Module):
    """A decoder with cross-attention, whose one layer runs twice: ids (B, T) and a memory (B, S, D) → (B, T, V)."""

    def __init__(self, config):
        super().__init__()
        self.table, self.layer = nn.Embedding(11, config.d_model), DecoderLayer(config)

    def forward(self, ids, memory, cache):
        past = cache.begin(ids)
        x, mask = self.table(ids[:, past:]), causal_mask(ids.shape[1] - past, ids.shape[1])
        for number in range(2):
            x = self.layer(x, memory, mask, cache=cache[number])
        return x @ self.table.weight.mT


def captions():
    with minigrad.random.fork(2):
        model = Captions(tiny_config())
    jitter(model)
    return model.to(dtype=np.float64).eval()


def grouped(model):
    for layer in model.decoder.layers:
        layer.self_attention = GroupedQueryAttention(8, 2, 1, rotary=RotaryPositions())
        layer.cross_attention = GroupedQueryAttention(8, 2, 1)
    jitter(model)
    return model.to(dtype=np.float64)


def translating(device, change=lambda model: model, **options):
    """What computes logits from ids and a cache, of a `Transformer` with these options."""
    defaults = {"num_decoder_layers": 2, "max_length": 40}
    model = change(tiny_model(np.float64, **defaults | options)).eval().to(device)
    with no_grad():
        memory, mask = model.encode(SOURCES), model.memory_mask(SOURCES)
    return model.decode, [memory, mask]


def continuing(device, **options):
    return language_model(max_length=40, **options).eval().to(device), []


MODELS = {
    "pre-norm": lambda device: translating(device),
    "post-norm, learned": lambda device: translating(device, norm="post", positions="learned"),
    "beginning with padding": lambda device: translating(device, pad_id=3, sinusoid_layout="halves", first_position=1),
    "no layers": lambda device: translating(device, num_decoder_layers=0),
    "grouped, rotary": lambda device: translating(device, grouped),
    "as GPT-2": lambda device: continuing(device, activation="gelu_tanh", num_layers=2),
    "sinusoidal": lambda device: continuing(device, positions="sinusoidal", norm="post"),
    "as Llama": lambda device: continuing(device, positions="rotary", num_heads=4, num_kv_heads=2),
    "with a memory": lambda device: (
        language_model(max_length=40, cross_attention=True).eval().to(device), [MEMORY.to(device)]),
    "captions": lambda device: (captions().to(device), [MEMORY.to(device)]),
}
every_model = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS.keys())


def whole(forward, ids, beside, rows):
    """The logits of the last token of each of `ids` (rows, T), by a cache that has read nothing."""
    chosen = [None if x is None else x[rows] for x in beside]
    return forward(ids, *chosen, cache=Cache()).numpy()[:, -1]


@every_model
@pytest.mark.parametrize("fused", [True, False])
def test_the_logits_are_those_of_the_whole_text(make, fused, device, monkeypatch):
    """For several tokens, for one, for one, and for the rest; and with no cache, where the model does without."""
    monkeypatch.setattr("transformer.decode.cache.FIRST_ROOM", 2)
    forward, beside = make(device)
    cache = Cache()
    with minigrad.fused(fused), no_grad():
        expected = forward(IDS, *beside, cache=Cache()).numpy()
        if not isinstance(forward, Captions):
            np.testing.assert_allclose(forward(IDS, *beside).numpy(), expected, rtol=0, atol=1e-12)
        found = np.concatenate([forward(IDS[:, :end], *beside, cache=cache).numpy() for end in (4, 5, 6, 15)], axis=1)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    assert cache.length == 15


@every_model
def test_each_hypothesis_follows_its_own_past(make, device):
    """Random parents for 20 steps, between one and five hypotheses; texts leave, and one comes twice."""
    (forward, beside), rng, cache = make(device), np.random.default_rng(3), Cache()
    ids, texts = IDS[:, None, :4], np.arange(3)
    with no_grad():
        for step in range(20):
            batch, hypotheses, length = ids.shape
            flat = ids.reshape(-1, length)
            chosen = [None if x is None else x[texts] for x in beside]
            found = forward(flat, *chosen, cache=cache).numpy()[:, -1]
            rows = np.repeat(texts, hypotheses)
            np.testing.assert_allclose(found, whole(forward, flat, beside, rows), rtol=0, atol=1e-12)
            keep = np.array({6: [2, 0, 2, 1], 12: [3, 1, 2], 15: [0]}.get(step, range(batch)))
            parents = rng.integers(0, hypotheses, (len(keep), (1, 5, 5, 3, 1)[step % 5]))
            cache.select(keep, parents)
            ids = np.concatenate([ids[keep[:, None], parents], rng.integers(3, 9, (*parents.shape, 1))], axis=2)
            texts = texts[keep]


def test_a_model_whose_beginning_is_padding_masks_it():
    """As Marian's do: no token attends to the first."""
    model = tiny_model(np.float64, bos_id=0).eval()
    ids = np.array([[0, 4, 5, 6]] * 3)
    with no_grad():
        memory, cache = model.encode(SOURCES), Cache()
        found = np.concatenate([model.decode(ids[:, :end], memory, cache=cache).numpy() for end in (1, 2, 4)], axis=1)
        changed = model.decode(ids, memory).numpy()
    np.testing.assert_allclose(found, changed, rtol=0, atol=1e-12)


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


@pytest.mark.parametrize("way", WITHOUT)
@pytest.mark.parametrize("place", ["", "layers.1", "layers.1.self_attention", "layers.1.cross_attention"])
def test_a_part_that_does_without_a_cache(place, way, monkeypatch):
    """Translations are the same, greedily and in a beam; who drives a cache gets an error before a wrong logit."""
    model = peaked_model(0, sharpness=3.0).eval()

    def translations():
        return [[h.ids for h in row] for size in (1, 3) for row in beam_search(model, SOURCES, size, max_length=8)]

    expected = translations()
    part = dict(model.decoder.named_modules())[place]
    monkeypatch.setattr(part, "forward", WITHOUT[way](part.forward))
    assert translations() == expected
    if place.endswith("self_attention"):
        cache, ids = Cache(), IDS[:, :5] % 6
        with no_grad(), suppress(TypeError):
            memory = model.encode(SOURCES)
            model.decode(ids[:, :4], memory, cache=cache)
        with no_grad(), pytest.raises(ValueError, match="a layer did not keep the keys"):
            model.decode(ids, memory, cache=cache)


@pytest.mark.parametrize("way", WITHOUT)
@pytest.mark.parametrize("place", ["", "layers.0", "layers.0.self_attention"])
def test_a_language_model_that_does_without_a_cache(place, way, monkeypatch):
    model = language_model(max_length=40, num_layers=2)
    expected = generate(model, IDS[:, :3], 9)
    part = dict(model.named_modules())[place]
    monkeypatch.setattr(part, "forward", WITHOUT[way](part.forward))
    assert [h.ids for h in generate(model, IDS[:, :3], 9)] == [h.ids for h in expected]


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
