"""A model with any part of one's own: it trains, decodes and is explained as it is written."""

import numpy as np
import pytest

import minigrad
from minigrad import nn

from tests.transformer.decoding_models import BOS, EOS, peaked_model, random_sources, trimmed
from tests.transformer.tiny import LABELS, SOURCE, assert_same, backward, tiny_config, tiny_model
from transformer import Transformer, trace
from transformer.data import WordTokenizer
from transformer.decode import beam_search, greedy
from transformer.explore.translation import explain
from transformer.known import PARTS, unknown_part
from transformer.model import DecoderLayer, MultiHeadAttention, shift_right
from transformer.training import ParallelGradients, packed_loss
from transformer.translator import Translator


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


# Every class of module of the model, and every method of the model itself.
PLACES = [*((cls, "forward") for cls in PARTS if cls is not nn.ModuleList),
          *((Transformer, method) for method in ("encode", "decode", "logits"))]


def options_for(cls):
    return {"positions": "learned"} if cls.__name__ == "LearnedPositions" else {}


def by_whole_prefixes(model, source, steps):
    """The tokens that the model itself finds most probable, everything computed anew at each step."""
    ids = [BOS]
    with minigrad.no_grad():
        for _ in range(steps):
            logits = model(trimmed(source), [ids]).numpy()[0, -1].copy()
            logits[[0, BOS]] = -np.inf
            ids.append(int(logits.argmax()))
            if ids[-1] == EOS:
                break
    return [token for token in ids[1:] if token != EOS]


@pytest.mark.parametrize(("cls", "method"), PLACES, ids=lambda value: getattr(value, "__name__", value))
def test_it_trains_decodes_and_is_explained(cls, method):
    model = replaced_in(tiny_model(**options_for(cls)), cls, method)
    plain = tiny_model(**options_for(cls))

    def written():
        logits = model(SOURCE, shift_right(LABELS, BOS))
        return minigrad.functional.cross_entropy(logits, LABELS, ignore_index=0)

    gradients = backward(model, written)
    assert float(written()) != float(plain.loss(SOURCE, LABELS)) or cls is nn.Dropout  # p is 0
    assert_same(backward(model, lambda: packed_loss(model, SOURCE, LABELS)), gradients)
    model.zero_grad()
    with ParallelGradients(model, 1) as compute:
        total = compute(SOURCE, LABELS, denominator=np.count_nonzero(LABELS))
    assert total == pytest.approx(float(written()) * np.count_nonzero(LABELS), rel=1e-14)

    speaker = replaced_in(peaked_model(0, sharpness=2.0, **options_for(cls)), cls, method).eval()
    sources = random_sources(0)
    expected = [by_whole_prefixes(speaker, source, 8) for source in sources]
    assert [hypothesis.ids for hypothesis in greedy(speaker, sources, max_length=8)] == expected
    assert [best.ids for best, in beam_search(speaker, sources, 1, max_length=8)] == expected

    with trace(model) as traced:
        loss = model.loss(SOURCE, LABELS)
        loss.backward()
    assert loss.item() == pytest.approx(float(written()), rel=1e-12)
    assert len(traced) == 3
    tokenizer = WordTokenizer.train(["a b c d e f g"])
    with minigrad.random.fork(4):
        small = Transformer(tiny_config(**options_for(cls)))
    translator = Translator(replaced_in(small, cls, method), tokenizer, tokenizer)
    explanation = explain(translator, "a b", "c d")
    ids = [[*tokenizer.encode("a b"), EOS]], [[*tokenizer.encode("c d"), EOS]]
    assert explanation.loss == pytest.approx(float(translator.model.eval().loss(*ids)), rel=1e-5)


def test_a_loss_of_ones_own_trains():
    model = tiny_model()
    model.__class__ = halved(Transformer, "loss")
    expected = 0.5 * float(tiny_model().loss(SOURCE, LABELS))
    assert float(packed_loss(model, SOURCE, LABELS)) == pytest.approx(expected, rel=1e-14)


# --- What a shortcut does not know ----------------------------------------------------------------


def patched(path, method):
    def change(model, monkeypatch):
        part = dict(model.named_modules())[path]
        original = getattr(part, method)
        monkeypatch.setattr(part, method, lambda *args, **options: original(*args, **options) * 0.5)

    return change


def with_a_part(name, part):
    def change(model, monkeypatch):
        owner, _, attribute = name.rpartition(".")
        setattr(dict(model.named_modules())[owner], attribute, part)

    return change


def hooked(model, monkeypatch):
    model.encoder.layers[0].feed_forward.inner.register_forward_hook(lambda module, args, output: output * 0.5)


def patched_class(model, monkeypatch):
    original = MultiHeadAttention.forward
    monkeypatch.setattr(MultiHeadAttention, "forward", lambda *args, **options: original(*args, **options) * 0.5)


CHANGES = {
    "encoder.layers.0.feed_forward.inner has hooks": hooked,
    "a method of the model was replaced": patched("", "logits"),
    "a method of decoder.layers.0 was replaced": patched("decoder.layers.0", "forward"),
    "methods of MultiHeadAttention were replaced": patched_class,
    "encoder.embedding.dropout is a Identity": with_a_part("encoder.embedding.dropout", nn.Identity()),
    "adapter is a Linear": with_a_part("adapter", nn.Linear(2, 2)),
    "encoder.layers.0.feed_forward.inner is a LayerNorm": with_a_part("encoder.layers.0.feed_forward.inner",
                                                                     nn.LayerNorm(8)),
}


@pytest.mark.parametrize("reason", CHANGES)
def test_what_a_shortcut_does_not_know(reason, monkeypatch):
    model = tiny_model()
    assert unknown_part(model) is None
    CHANGES[reason](model, monkeypatch)
    assert unknown_part(model) == reason


@pytest.mark.parametrize("reason", [reason for reason, change in CHANGES.items() if "Norm" not in reason])
def test_a_changed_model_trains_and_decodes_as_written(reason, monkeypatch):
    model = tiny_model()
    CHANGES[reason](model, monkeypatch)
    assert packed_loss(model, SOURCE, LABELS).item() == model.loss(SOURCE, LABELS).item()
    speaker, sources = peaked_model(0, sharpness=2.0).eval(), random_sources(0)
    CHANGES[reason](speaker, monkeypatch)
    found = greedy(speaker, sources, max_length=6)
    assert [hypothesis.ids for hypothesis in found] == [by_whole_prefixes(speaker, source, 6) for source in sources]


def test_explain_path_tells_which_way_was_taken_and_why():
    model = replaced_in(tiny_model(), DecoderLayer)
    name = type(model.decoder.layers[0]).__name__
    training = minigrad.explain_path(packed_loss, model, SOURCE, LABELS).steps[0]
    assert (training.operation, training.ran) == ("packed_loss", "Transformer.loss")
    assert training.declined == (("transformer.training.packed", f"decoder.layers.0 is a {name}"),)
    decoding = [step for step in minigrad.explain_path(greedy, model, SOURCE).steps if step.operation == "decoding"]
    assert f"decoder.layers.0 is a {name}" in decoding[0].declined[0]
    assert minigrad.explain_path(packed_loss, tiny_model(), SOURCE, LABELS).steps[0].declined == ()
