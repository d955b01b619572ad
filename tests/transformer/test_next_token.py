"""The step that all ways of decoding share: two ways to compute it, and a KV cache in which nothing moves."""

import tracemalloc

import numpy as np
import pytest

import minigrad
from minigrad.engine.watch import Watcher, watch

from tests.transformer.decoding_models import BOS, peaked_model, random_sources
from tests.transformer.tiny import VOCABULARY, tiny_model
from transformer import Transformer, TransformerConfig
from transformer.decode import greedy
from transformer.decode.next_token import AsWritten, OnArrays
from transformer.decode.steps import translation

OPTIONS = [
    {}, {"norm": "post"}, {"norm": "post", "final_norm": True}, {"final_norm": False}, {"positions": "learned"},
    {"sinusoid_layout": "halves", "first_position": 1}, {"activation": "gelu"}, {"activation": "gelu_tanh"},
    {"activation": "silu"},
    {"bias": False, "norm_bias": False}, {"num_decoder_layers": 0}, {"num_heads": 1}, {"layer_norm_eps": 0.1},
    {"tie_output": True, "share_embeddings": True},
]


def model_with(options, dtype=np.float64):
    defaults = {"num_decoder_layers": 2, "max_length": 40, "output_bias": "tie_output" not in options}
    return tiny_model(dtype, **defaults | options).eval()


def encoded(model, sources):
    return model.encode(sources), model.memory_mask(sources)


# --- On arrays and as written ---------------------------------------------------------------------


@pytest.mark.parametrize(("options", "dtype", "tolerance"), [*((options, np.float64, 1e-12) for options in OPTIONS),
                                                             ({}, np.float32, 1e-5)], ids=str)
def test_both_ways_compute_the_same(options, dtype, tolerance):
    """One hypothesis of each sentence, then three that follow it or one another, then fewer sentences."""
    model, rng = model_with(options, dtype), np.random.default_rng(2)
    with minigrad.no_grad():
        decoders = [kind(model, *encoded(model, random_sources(1))) for kind in (OnArrays, AsWritten)]

        def compare(tokens, parents=None):
            ours, theirs = (decoder(tokens, parents) for decoder in decoders)
            assert ours.dtype == theirs.dtype == dtype
            assert ours.shape == (tokens.size, VOCABULARY)
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance)

        for _ in range(3):
            compare(rng.integers(3, 9, (5, 1)))
        compare(rng.integers(3, 9, (5, 3)), np.zeros((5, 3), int))
        for _ in range(2):
            compare(rng.integers(3, 9, (5, 3)), rng.integers(0, 3, (5, 3)))
        for decoder in decoders:
            decoder.select(np.array([4, 0]))
        compare(rng.integers(3, 9, (2, 1)), np.array([[2], [0]]))


def test_a_model_as_made_here_is_decoded_on_arrays(monkeypatch):
    model, sources = peaked_model(0), random_sources(0)
    expected = greedy(model, sources)
    monkeypatch.setattr(AsWritten, "__call__", None)
    assert greedy(model, sources) == expected


class Recorder(Watcher):
    """Counts the modules that it is told of."""

    def __init__(self):
        self.modules = []

    def before(self, what, given):
        self.modules.append(type(what))


def test_whoever_watches_sees_the_modules_and_compositions_run_where_they_are_asked_for(monkeypatch):
    model, sources, recorder = peaked_model(0), random_sources(0), Recorder()
    found = greedy(model, sources)
    expected, steps = [h.ids for h in found], max(len(h.ids) + h.finished for h in found)
    monkeypatch.setattr(OnArrays, "__call__", None)
    with watch(recorder):
        assert [h.ids for h in greedy(model, sources)] == expected
    assert recorder.modules.count(type(model.decoder.layers[0])) == 2 * steps
    with minigrad.fused(False):
        assert [h.ids for h in greedy(model, sources)] == expected


# --- Nothing moves --------------------------------------------------------------------------------


def test_a_step_allocates_as_much_whatever_was_decoded_before(monkeypatch):
    """Only attention's weights and masks grow: a copy of the keys or of the values would be many times as large."""
    hypotheses, batch = 2, 16
    monkeypatch.setattr("transformer.decode.kv_cache.FIRST_ROOM", 40 * hypotheses)
    monkeypatch.setattr("transformer.decode.next_token.COLLECT_AFTER", 40)
    config = TransformerConfig(9, 9, d_model=128, num_heads=1, d_ff=16, num_encoder_layers=1, num_decoder_layers=1)
    model = Transformer(config).eval()
    tokens, parents = np.full((batch, hypotheses), 3), np.tile(np.arange(hypotheses) // 2, (batch, 1))
    peaks = []
    with minigrad.no_grad():
        steps = translation(model, np.full((batch, 5), 3), 40)
        for step in range(30):
            tracemalloc.start()
            steps.logits()
            steps.go_on(tokens, parents if step else np.zeros_like(parents))
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    one_copy = 20 * hypotheses * batch * 128 * 4  # bytes of the keys of 20 steps
    assert max(peaks[25:]) - min(peaks[2:6]) < one_copy / 4


# --- Several hypotheses of a sentence -------------------------------------------------------------


def test_each_hypothesis_follows_its_own_past():
    """Random parents for 30 steps, between one and five hypotheses; what none descends from is dropped."""
    model, rng, lengths, hypotheses = model_with({}), np.random.default_rng(3), [], 1
    with minigrad.no_grad():
        ours, theirs = (kind(model, *encoded(model, random_sources(3, (5, 2, 7)))) for kind in (OnArrays, AsWritten))
        tokens, parents = np.full((3, 1), BOS), None
        for step in range(30):
            np.testing.assert_allclose(ours(tokens, parents), theirs(tokens, parents), rtol=0, atol=1e-12)
            lengths.append(ours.cache.length)
            if step == 24:  # the second sentence leaves
                for decoder in (ours, theirs):
                    decoder.select(np.array([0, 2]))
                tokens = tokens[:2]
            following = (5, 5, 5, 3, 1)[step % 5] if step > 20 else 5
            tokens, parents = (rng.integers(low, high, (len(tokens), following))
                               for low, high in ((3, 9), (0, hypotheses)))
            hypotheses = following
    assert max(lengths) < 0.8 * (1 + 5 * 29)
