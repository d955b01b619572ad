"""A model with any part of one's own: it trains, decodes and is explained as it is written."""

import numpy as np
import pytest

import minigrad
from minigrad import nn

from tests.transformer.decoding_models import BOS, EOS, peaked_model, plain_beam, random_sources
from tests.transformer.tiny import LABELS, SOURCE, tiny_config, tiny_model
from transformer import Transformer, trace
from transformer.data import WordTokenizer
from transformer.decode import greedy
from transformer.explore.translation import explain
from transformer.model import DecoderLayer, LearnedPositions, shift_right
from transformer.translator import Translator

TOKENIZER = WordTokenizer.train(["a b c d e f g"])
SENTENCES = random_sources(0, (3, 1))


def halved(cls, method="forward"):
    """A subclass of `cls`, one of whose methods gives half of what it gave."""
    def half(self, *args, **options):
        return getattr(cls, method)(self, *args, **options) * 0.5

    return type(f"Half{cls.__name__}", (cls,), {method: half})


def replaced_in(model, cls, method="forward"):
    """`model` with the first module of class `cls` made one of the subclass."""
    module = next(module for module in model.modules() if type(module) is cls)
    module.__class__ = halved(cls, method)
    return model


def as_written(model):
    return minigrad.functional.cross_entropy(model(SOURCE, shift_right(LABELS, BOS)), LABELS, ignore_index=0)


def written(model):
    return [tuple(hypothesis.ids) for hypothesis in greedy(model, SENTENCES, max_length=4)]


# Every class of module of the model, and every method of the model itself.
PARTS = [*dict.fromkeys(type(module) for module in tiny_model().modules()), LearnedPositions]
PLACES = [*((cls, "forward") for cls in PARTS if cls is not nn.ModuleList),
          *((Transformer, method) for method in ("encode", "decode", "logits"))]


@pytest.mark.parametrize(("cls", "method"), PLACES, ids=lambda value: getattr(value, "__name__", value))
def test_it_trains_decodes_and_is_explained(cls, method):
    options = {"positions": "learned"} if cls is LearnedPositions else {}
    model = tiny_model(**options)
    plain = model.loss(SOURCE, LABELS).item()
    replaced_in(model, cls, method)
    expected = as_written(model).item()
    assert expected != plain or cls is nn.Dropout  # p is 0
    with trace(model) as traced:
        assert model.loss(SOURCE, LABELS).item() == pytest.approx(expected, rel=1e-12)
    assert len(traced) == 3

    speaker = replaced_in(peaked_model(0, sharpness=2.0, **options), cls, method).eval()
    assert written(speaker) == [plain_beam(speaker, source, 1, 1, 4, 0.0)[0][0] for source in SENTENCES]

    with minigrad.random.fork(4):
        small = replaced_in(Transformer(tiny_config(**options)), cls, method)
    explanation = explain(Translator(small, TOKENIZER, TOKENIZER), "a b", "c d")
    ids = [[*TOKENIZER.encode("a b"), EOS]], [[*TOKENIZER.encode("c d"), EOS]]
    assert explanation.loss == pytest.approx(small.eval().loss(*ids).item(), rel=1e-5)


# --- Any other change -----------------------------------------------------------------------------


def with_a_method_of_its_own(model):
    original = model.logits
    model.logits = lambda *args, **options: original(*args, **options) * 0.5


def hooked(model):
    model.encoder.layers[0].feed_forward.inner.register_forward_hook(lambda module, args, output: output * 0.5)


def without_cross_attention(model):
    model.decoder.layers[0] = DecoderLayer(model.config, cross_attention=False).to(dtype=np.float64)


def with_an_activation_of_its_own(model):
    model.decoder.layers[0].feed_forward.activation = lambda x: x - x.mean(axis=-1, keepdims=True)


@pytest.mark.parametrize("change", [with_a_method_of_its_own, hooked, without_cross_attention,
                                    with_an_activation_of_its_own])
def test_a_changed_model_trains_and_decodes_as_written(change):
    model, speaker = tiny_model(), peaked_model(0, sharpness=2.0).eval()
    for each in (model, speaker):
        change(each)
    assert model.loss(SOURCE, LABELS).item() == as_written(model).item()
    assert written(speaker) == [plain_beam(speaker, source, 1, 1, 4, 0.0)[0][0] for source in SENTENCES]
