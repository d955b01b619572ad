"""A KV cache outside of the modules: the logits of new tokens are those of the whole text."""

import threading

import numpy as np
import pytest

import minigrad
from minigrad import Tensor, nn, no_grad

from tests.transformer.test_language_model import language_model
from tests.transformer.tiny import jitter, tiny_config
from transformer import MultiHeadAttention
from transformer.decode import KeyValueCache
from transformer.model import DecoderLayer, causal_mask

IDS = np.random.default_rng(0).integers(1, 11, (3, 15))


class Captions(nn.Module):
    """A decoder with cross-attention, whose one layer runs twice: ids (B, T) and a memory (B, S, D) → (B, T, V)."""

    def __init__(self, config):
        super().__init__()
        self.table, self.layer = nn.Embedding(11, config.d_model), DecoderLayer(config)

    def forward(self, ids, memory, past=0):
        x, mask = self.table(ids), causal_mask(ids.shape[1], past + ids.shape[1])
        for _ in range(2):
            x = self.layer(x, memory, mask)
        return x @ self.table.weight.mT


def captions():
    with minigrad.random.fork(2):
        model = Captions(tiny_config())
    jitter(model)
    return model.to(dtype=np.float64).eval()


def in_pieces(call, ids, *others):
    """The results for several tokens, for one, for one, and for the rest."""
    return np.concatenate([call(part, *others).numpy() for part in np.split(ids, [4, 5, 6], axis=1)], axis=1)


@pytest.mark.parametrize("options", [
    {}, {"positions": "sinusoidal"}, {"norm": "post", "num_layers": 3}, {"positions": "rotary"}, {"num_kv_heads": 1},
    {"positions": "rotary", "num_heads": 4, "num_kv_heads": 2},
], ids=str)
@pytest.mark.parametrize("fused", [True, False])
def test_the_logits_are_those_of_the_whole_text(options, fused, monkeypatch):
    monkeypatch.setattr("transformer.decode.kv_cache.FIRST_ROOM", 2)
    model = language_model(**options).eval()
    with minigrad.fused(fused):
        cache = KeyValueCache(model)
        np.testing.assert_allclose(in_pieces(cache, IDS), model(IDS).numpy(), rtol=0, atol=1e-12)
    assert cache.length == 15


def test_attention_to_a_memory_keeps_the_keys_and_values_of_the_first_call():
    """In a layer that serves as two: each of its calls has keys and values of its own."""
    model, memory = captions(), Tensor(np.random.default_rng(1).normal(size=(3, 7, 8)))
    cache = KeyValueCache(model)
    np.testing.assert_allclose(in_pieces(cache, IDS, memory), model(IDS, memory).numpy(), rtol=0, atol=1e-12)
    rows = [2, 0, 2, 1]
    cache.select(rows)
    expected = model(np.concatenate([IDS, IDS[:, :2]], axis=1)[rows], memory[np.array(rows)]).numpy()[:, -2:]
    np.testing.assert_allclose(cache(IDS[rows, :2], memory[np.array(rows)]).numpy(), expected, rtol=0, atol=1e-12)


def test_another_memory_is_an_error():
    """Its keys and values would be those of the first one. The same numbers in another tensor are the same memory."""
    model, numbers = captions(), np.random.default_rng(1).normal(size=(3, 7, 8))
    cache = KeyValueCache(model)
    cache(IDS[:, :4], Tensor(numbers))
    cache(IDS[:, 4:5], Tensor(numbers))
    for another in (numbers + 1, numbers[:, :5]):
        with pytest.raises(ValueError, match="than in the first call; `clear` begins anew with another memory"):
            cache(IDS[:, 5:], Tensor(another))
    cache.select([2, 0])
    np.testing.assert_allclose(cache(IDS[[2, 0], 5:], Tensor(numbers[[2, 0]])).numpy(),
                               model(IDS[[2, 0]], Tensor(numbers[[2, 0]])).numpy()[:, 5:], rtol=0, atol=1e-12)


@pytest.mark.parametrize("rows", [[True, False, True], [0.0, 1.0], 1, [[0, 1]]], ids=str)
def test_rows_that_are_no_indices_are_an_error(rows):
    cache = KeyValueCache(language_model().eval())
    cache(IDS)
    with pytest.raises(TypeError, match="rows must be a list of indices"):
        cache.select(rows)


def test_rows_are_chosen_and_the_tokens_forgotten():
    model = language_model().eval()
    cache = KeyValueCache(model)
    for rows in ([0, 1, 2], [1, 0, 2, 2, 0], [4, 3], [0]):
        cache.clear()
        cache(IDS[[0, 1, 2, 1, 0], :4])
        cache.select(rows)
        expected = model(IDS[[0, 1, 2, 1, 0], :6][rows]).numpy()[:, 4:]
        np.testing.assert_allclose(cache(IDS[[0, 1, 2, 1, 0], 4:6][rows]).numpy(), expected, rtol=0, atol=1e-12)


def test_a_call_that_fails_leaves_the_cache_as_it_was():
    model = language_model(num_layers=2).eval()
    cache, expected = KeyValueCache(model), model(IDS).numpy()
    last = model.layers[1].feed_forward
    for start, end in ((0, 4), (4, 9)):
        for ids in (IDS[:, ::-1], IDS[:2]):
            model.layers[1].feed_forward = None
            with pytest.raises((TypeError, ValueError)):
                cache(ids[:, start:end])
            model.layers[1].feed_forward = last
        assert cache.length == start
        np.testing.assert_allclose(cache(IDS[:, start:end]).numpy(), expected[:, start:end], rtol=0, atol=1e-12)


def test_neither_the_model_nor_another_thread_notices():
    model, found = language_model().eval(), {}
    cache, expected = KeyValueCache(model), model(IDS).numpy()
    before = [dict(vars(module)) for module in model.modules()]
    run = model.layers[0].feed_forward.forward

    def forward(x):  # in the middle of a call of the cache, another thread trains the model
        found.setdefault("other", None)
        if found["other"] is None:
            thread = threading.Thread(target=lambda: found.update(other=model.loss(IDS)))
            found["other"] = ...
            thread.start()
            thread.join()
        return run(x)

    model.layers[0].feed_forward.forward = forward
    np.testing.assert_allclose(in_pieces(cache, IDS), expected, rtol=0, atol=1e-12)
    del model.layers[0].feed_forward.forward
    assert [dict(vars(module)) for module in model.modules()] == before
    found["other"].backward()
    assert found["other"].item() == pytest.approx(model.loss(IDS).item(), rel=1e-12)


def test_what_it_returns_has_no_gradient():
    out = KeyValueCache(language_model().eval())(IDS)
    assert not out.requires_grad
    assert minigrad.is_grad_enabled()


def test_tokens_before_these_that_no_cache_has_are_an_error():
    with no_grad(), pytest.raises(ValueError, match=r"\(1, 5\), which does not broadcast"):
        language_model().eval()(IDS[:, 4:5], past=4)


class Adapted(nn.Linear):
    """A linear map that does more than one."""


def changed(change):
    model = language_model()
    change(model.layers[0].self_attention)
    return model


@pytest.mark.parametrize("model", [
    lambda: nn.Linear(2, 2),
    lambda: changed(lambda a: vars(a).pop("key")),
    lambda: changed(lambda a: setattr(a, "key", Adapted(8, 8))),
    lambda: changed(lambda a: setattr(a, "key", a.query)),
], ids=["no past", "no attention", "another class", "shared"])
def test_models_that_it_cannot_serve(model):
    with pytest.raises(ValueError, match=r"must take `past`, .* and attentions must have `nn.Linear` children"):
        KeyValueCache(model())


def test_another_batch_is_an_error():
    cache = KeyValueCache(language_model().eval())
    cache(IDS)
    with pytest.raises(ValueError, match="holds 3 sequences, and the call has 1"):
        cache(IDS[:1, :1])


class Irregular(nn.Module):
    """It attends to a memory alone, or calls its second attention when there is a past."""

    def __init__(self, only_memory):
        super().__init__()
        self.table, self.only_memory = nn.Embedding(11, 8), only_memory
        self.first, self.second = MultiHeadAttention(8, 2), MultiHeadAttention(8, 2)

    def forward(self, ids, past=0):
        x, mask = self.table(ids), causal_mask(ids.shape[1], past + ids.shape[1])
        if self.only_memory:
            return self.first(x, self.table.weight[None], self.table.weight[None])
        x = self.first(x, x, x, mask)
        return self.second(x, x, x, mask) if past else x


@pytest.mark.parametrize(("only_memory", "message"), [(True, "or there are none"), (False, "more attentions")])
def test_what_a_cache_cannot_follow_is_an_error(only_memory, message):
    cache = KeyValueCache(Irregular(only_memory))
    if not only_memory:
        cache(IDS[:1, :3])
    with pytest.raises(ValueError, match=message):
        cache(IDS[:1, :3])
