"""Leaving padding out: the same loss and gradients, dropout included, from less work; and when it is not done."""

import numpy as np
import pytest

import minigrad
from minigrad import Tensor, profile

from tests.transformer.tiny import PAD, VOCABULARY, assert_same, backward, tiny_config, tiny_model
from transformer import Transformer
from transformer.model import shift_right
from transformer.model.transformer import is_plain
from transformer.training.packed import RealTokens, real_tokens, with_padding

RNG = np.random.default_rng(12)


def sentences(*lengths):
    """Ids of sentences with these numbers of tokens, padded to the longest."""
    ids = RNG.integers(3, VOCABULARY, size=(len(lengths), max(lengths)))
    ids[np.arange(max(lengths)) >= np.array(lengths)[:, None]] = PAD
    return ids


SOURCE, LABELS = sentences(5, 1, 3), sentences(2, 6, 1)


@pytest.mark.parametrize("options", [
    {}, {"norm": "post"}, {"positions": "learned"}, {"share_embeddings": True, "tie_output": True},
    {"bias": False, "output_bias": True, "activation": "gelu"},
], ids=lambda options: ", ".join(map(str, options.values())) or "pre-norm")
@pytest.mark.parametrize("dropout", [0.0, 0.4])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_loss_and_gradients_are_those_of_whole_batches(options, dropout, reduction):
    model = tiny_model(dropout=dropout, **options)

    def loss():
        return model.loss(SOURCE, LABELS, 0.1, reduction)

    found = backward(model, loss)
    with with_padding():
        assert_same(found, backward(model, loss))
    with minigrad.fused(False):
        assert_same(found, backward(model, loss))
    with minigrad.random.fork(6):
        value = loss().item()
    with minigrad.random.fork(6):  # by the logits of all places
        logits = model(SOURCE, shift_right(LABELS, 1))
    every = minigrad.functional.cross_entropy(logits, LABELS, None, PAD, reduction, 0.1).item()
    np.testing.assert_allclose(value, every, rtol=1e-13)


@pytest.mark.parametrize(("source", "labels"), [
    (sentences(4, 4, 4), sentences(1, 5, 2)),
    (sentences(1, 7, 2), sentences(3, 3, 3)),
    (sentences(3, 3), sentences(2, 2)),
], ids=["the target is padded", "the source is padded", "nothing is padded"])
def test_each_side_by_itself(source, labels):
    model = tiny_model(dropout=0.3)
    found = backward(model, lambda: model.loss(source, labels))
    with with_padding():
        assert_same(found, backward(model, lambda: model.loss(source, labels)))


def test_the_rows_that_are_computed_are_the_real_ones():
    model = tiny_model()
    with profile() as measured:
        model.loss(SOURCE, LABELS)
    packed = measured.operations["linear"].forward_bytes
    with with_padding(), profile() as measured:
        model.loss(SOURCE, LABELS)
    whole = measured.operations["linear"].forward_bytes
    # features of what the linear maps give
    wide = {"encoder": 4 * 8 + 12 + 8, "decoder": 6 * 8 + 12 + 8, "memory": 2 * 8}
    real = 9 * wide["encoder"] + 9 * wide["decoder"] + 9 * wide["memory"]
    assert packed == 8 * real
    assert whole == 8 * (15 * wide["encoder"] + 18 * wide["decoder"] + 15 * wide["memory"])


def test_packing_and_unpacking():
    tokens = real_tokens(SOURCE != PAD)
    np.testing.assert_array_equal(tokens.places, [0, 1, 2, 3, 4, 5, 10, 11, 12])
    x = Tensor(RNG.normal(size=(3, 5, 2)), requires_grad=True)
    packed = tokens.pack(x)
    np.testing.assert_array_equal(packed.numpy(), x.numpy()[SOURCE != PAD])
    back = tokens.unpack(packed)
    np.testing.assert_array_equal(back.numpy(), np.where((SOURCE != PAD)[..., None], x.numpy(), 0))
    back.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.broadcast_to((SOURCE != PAD)[..., None], x.shape))


def test_when_padding_stays():
    assert isinstance(real_tokens(SOURCE != PAD), RealTokens)
    assert real_tokens(sentences(10, 10, 9) != PAD) is None  # nearly all are real
    with minigrad.fused(False):
        assert real_tokens(SOURCE != PAD) is None
    with with_padding():
        assert real_tokens(SOURCE != PAD) is None


@pytest.mark.parametrize("labels", [
    [[PAD, PAD, 5, 6, 2], [PAD, PAD, 9, 2, PAD]],
    [[5, PAD, 7, 2, PAD], [PAD, PAD, 6, 2, PAD]],
    [[PAD] * 5, [3, 4, 5, 6, 2]],
], ids=["a prompt without labels", "gaps", "a sentence without labels"])
def test_labels_that_are_missing_anywhere(labels):
    """What a later label depends on is computed, label or not: the loss is that of the logits of all places."""
    model, labels, target = tiny_model(), np.array(labels), np.array([[1, 3, 4, 5, 6], [1, 7, 8, 9, PAD]])
    source = sentences(5, 2)
    found = backward(model, lambda: model(source, target, labels))
    with with_padding():
        assert_same(found, backward(model, lambda: model(source, target, labels)))
    assert_same(found, backward(
        model, lambda: minigrad.functional.cross_entropy(model(source, target), labels, ignore_index=PAD)))
    assert_same(backward(model, lambda: model.loss(source, labels)), backward(
        model, lambda: minigrad.functional.cross_entropy(model(source, shift_right(labels, 1)), labels, None, PAD)))


class Halved(Transformer):
    def logits(self, hidden):
        return super().logits(hidden) * 0.5


class Plain(minigrad.nn.Module):
    """A module of somebody's own, around another: it takes what the interface had before padding could be left out."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x, *rest, **options):
        assert not any(isinstance(value, RealTokens) for value in (*rest, *options.values()))
        return self.inner(x, *rest, **options) * 0.5


REPLACED = {
    "the projection": lambda model: setattr(model, "projection", Plain(model.projection)),
    "a feed-forward": lambda model: setattr(model.encoder.layers[0], "feed_forward",
                                            Plain(model.encoder.layers[0].feed_forward)),
    "an attention": lambda model: setattr(model.decoder.layers[0], "cross_attention",
                                          Plain(model.decoder.layers[0].cross_attention)),
    "a dropout": lambda model: setattr(model.encoder.embedding, "dropout", minigrad.nn.Identity()),
    "a layer": lambda model: model.encoder.layers.__setitem__(0, Plain(model.encoder.layers[0])),
}


@pytest.mark.parametrize("which", REPLACED)
def test_modules_of_ones_own_are_called_and_see_whole_batches(which):
    model = tiny_model()
    REPLACED[which](model)
    logits = model(SOURCE, shift_right(LABELS, 1))
    expected = minigrad.functional.cross_entropy(logits, LABELS, ignore_index=PAD).item()
    np.testing.assert_allclose(model.loss(SOURCE, LABELS).item(), expected, rtol=1e-13)


def test_a_model_of_ones_own_computes_its_own_logits():
    with minigrad.random.fork(4):
        model = Halved(tiny_config())
    logits = model(SOURCE, shift_right(LABELS, 1))
    expected = minigrad.functional.cross_entropy(logits, LABELS, ignore_index=PAD).item()
    np.testing.assert_allclose(model.loss(SOURCE, LABELS).item(), expected, rtol=1e-6)


def test_a_hook_anywhere_sees_whole_batches_until_it_is_removed():
    model, seen = tiny_model(), []
    handle = model.encoder.layers[0].feed_forward.inner.register_forward_hook(
        lambda module, args, output: seen.append(output.shape))
    model.loss(SOURCE, LABELS)
    assert seen == [(3, 5, 12)]
    assert not is_plain(model)
    handle.remove()
    assert is_plain(model)


def test_labels_of_another_shape_are_refused():
    with pytest.raises(ValueError, match=r"labels and target must be of the same shape, got \(3, 5\) and \(3, 6\)"):
        tiny_model()(SOURCE, shift_right(LABELS, 1), LABELS[:, :5])


def test_hooks_on_the_model_and_its_projection_see_the_logits():
    model, seen = Transformer(tiny_config()), []
    plain = model.loss(SOURCE, LABELS).item()
    model.projection.register_forward_hook(lambda module, args, output: seen.append(output.shape))
    np.testing.assert_allclose(model.loss(SOURCE, LABELS).item(), plain, rtol=1e-6)
    assert seen == [(3, 6, VOCABULARY)]
    model.register_forward_hook(lambda module, args, output: seen.append(output.shape))
    model.loss(SOURCE, LABELS)
    assert seen == [(3, 6, VOCABULARY)] * 3
