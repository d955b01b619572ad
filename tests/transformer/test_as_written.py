"""A model with any part of one's own: it trains, decodes and is explained as it is written."""

import pytest

import minigrad
from minigrad import nn

from tests.transformer.decoding_models import BOS, EOS, peaked_model, plain_beam, random_sources
from tests.transformer.tiny import LABELS, SOURCE, tiny_config, tiny_model
from transformer import Transformer, trace
from transformer.data import WordTokenizer
from transformer.decode import greedy
from transformer.explore.translation import explain
from transformer.model import DecoderLayer, SinusoidalPositions, shift_right
from transformer.translator import Translator

TOKENIZER = WordTokenizer.train(["a b c d e f g"])
SENTENCES = random_sources(0, (3, 1))


def replaced(cls, method="forward"):
    """Make the first module of class `cls` one of a subclass, whose method gives half of what it gave."""
    def half(self, *args, **options):
        return getattr(cls, method)(self, *args, **options) * 0.5

    def change(model):
        module = next(module for module in model.modules() if type(module) is cls)
        module.__class__ = type(f"Half{cls.__name__}", (cls,), {method: half})

    return change


def with_a_method_of_its_own(model):
    original = model.logits
    model.logits = lambda *args, **options: original(*args, **options) * 0.5


def hooked(model):
    model.encoder.layers[0].feed_forward.inner.register_forward_hook(lambda module, args, output: output * 0.5)


def without_cross_attention(model):
    model.decoder.layers[0] = DecoderLayer(model.config, cross_attention=False).to(dtype=model.projection.weight.dtype)


def with_an_activation_of_its_own(model):
    model.decoder.layers[0].feed_forward.activation = lambda x: x - x.mean(axis=-1, keepdims=True)


def as_written(model):
    return minigrad.functional.cross_entropy(model(SOURCE, shift_right(LABELS, BOS)), LABELS, ignore_index=0).item()


# Every class of module of the model, every method of the model itself, and any other change.
PARTS = dict.fromkeys(type(module) for module in tiny_model(positions="learned").modules())
CHANGES = {
    **{cls.__name__: replaced(cls) for cls in [*PARTS, SinusoidalPositions] if cls is not nn.ModuleList},
    **{method: replaced(Transformer, method) for method in ("encode", "decode", "logits")},
    **{change.__name__: change for change in (with_a_method_of_its_own, hooked, without_cross_attention,
                                              with_an_activation_of_its_own)},
}


@pytest.mark.parametrize("name", CHANGES)
def test_it_trains_decodes_and_is_explained(name):
    options = {} if name == "SinusoidalPositions" else {"positions": "learned"}
    with minigrad.random.fork(4):
        models = [tiny_model(**options), peaked_model(0, sharpness=2.0, **options),
                  Transformer(tiny_config(**options))]
    plain = as_written(models[0])
    for each in models:
        CHANGES[name](each)
    model, speaker, small = models
    expected = as_written(model)
    assert expected != plain or name == "Dropout"  # p is 0
    with trace(model):
        assert model.loss(SOURCE, LABELS).item() == pytest.approx(expected, rel=1e-12)
    speaker.eval()
    assert [tuple(hypothesis.ids) for hypothesis in greedy(speaker, SENTENCES, max_length=4)] == [
        plain_beam(speaker, source, 1, 1, 4, 0.0)[0][0] for source in SENTENCES]
    explanation = explain(Translator(small, TOKENIZER, TOKENIZER), "a b", "c d")
    ids = ([[*TOKENIZER.encode(text), EOS]] for text in ("a b", "c d"))
    assert explanation.loss == pytest.approx(small.eval().loss(*ids).item(), rel=1e-5)
