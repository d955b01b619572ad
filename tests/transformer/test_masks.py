"""Masks: True = may attend, and how they are made and joined."""

import numpy as np
import pytest

import minigrad
from minigrad import Tensor
from minigrad import functional as F
from minigrad.device import asarray_on, device_of, to_numpy

from tests.transformer.tiny import tiny_config
from transformer import MultiHeadAttention, causal_mask, padding_mask
from transformer.model import DecoderLayer, EncoderLayer
from transformer.model.masks import source_mask, target_mask

IDS = np.array([[5, 0, 6], [5, 6, 7]])


def test_a_target_sees_the_real_tokens_up_to_each_of_its_own():
    """And a source the real ones; None is a mask that is True everywhere."""
    for past, pad in ((0, 0), (1, 0), (2, 0), (0, 6), (0, 9), (2, 9)):
        allowed, real = target_mask(IDS, pad, past), np.broadcast_to((pad != IDS)[:, None, None], (2, 1, 3 - past, 3))
        np.testing.assert_array_equal(
            np.broadcast_to(True if allowed is None else allowed, real.shape), real & np.tri(3, dtype=bool)[past:])
        np.testing.assert_array_equal(padding_mask(IDS, pad), real[:, :, :1])
        found = source_mask(IDS, pad)
        assert (allowed is None) == (pad == 9 and past == 2)
        assert found is None if pad == 9 else np.array_equal(found, padding_mask(IDS, pad))
    for queries in range(6):  # the last ones
        np.testing.assert_array_equal(causal_mask(queries, 5), np.tri(5, dtype=bool)[5 - queries:])
    with pytest.raises(ValueError, match=r"\(3,\)"):
        padding_mask(IDS[0])
    with pytest.raises(ValueError, match=r"4 queries .* 3 keys"):
        causal_mask(4, 3)


def test_ids_may_be_tensors_arrays_and_lists_and_masks_are_where_they_are(device):
    for make in (padding_mask, source_mask):
        for given, place in ((Tensor(IDS, device=device), device), (asarray_on(device, IDS), device),
                             (IDS.tolist(), "cpu")):
            mask = make(given)
            assert (device_of(mask), mask.dtype) == (place, bool)
            np.testing.assert_array_equal(to_numpy(mask), make(IDS))


# --- One convention -------------------------------------------------------------------------------


def features(length, seed):
    return Tensor(np.random.default_rng(seed).standard_normal((2, length, 8)))


def made(kind, *arguments):
    with minigrad.random.fork(2):
        return kind(*arguments).to(dtype=np.float64)


def attend_by_function(mask, keys):
    x = keys.reshape(2, -1, 2, 4).swapaxes(1, 2)  # (B, H, S, D/H)
    return F.scaled_dot_product_attention(features(3, 1).reshape(2, 3, 2, 4).swapaxes(1, 2), x, x, mask)


PLACES = {
    "function": attend_by_function,
    "module": lambda mask, keys: made(MultiHeadAttention, 8, 2)(features(3, 1), keys, keys, mask),
    # What another token than the keys that change gets: a layer also passes each token on to itself.
    "encoder layer": lambda mask, keys: made(EncoderLayer, tiny_config())(keys, mask)[:, 1],
    "decoder layer": lambda mask, keys: made(DecoderLayer, tiny_config())(features(3, 1), keys, None, mask),
}


@pytest.mark.parametrize("place", PLACES)
def test_true_means_may_attend_everywhere(place):
    """A key has an influence where the mask is True, and nowhere else: from the function to the layers."""
    keys = features(4, 5).numpy()
    mask = np.array([False, True, False, True])
    before = PLACES[place](mask, Tensor(keys)).numpy()
    for key in range(4):
        changed = keys.copy()
        changed[:, key] += np.arange(8)
        if key != 1 or place != "encoder layer":
            assert np.array_equal(PLACES[place](mask, Tensor(changed)).numpy(), before) != mask[key]
    for wrong in (np.ones((3, 4)), Tensor(np.ones((3, 4), np.int64)), [[True]]):
        with pytest.raises(TypeError, match="boolean"):
            PLACES[place](wrong, Tensor(keys))


# --- A batch with as many examples as queries --------------------------------------------------------

ATTENTIONS = {  # of x (B, T, 4); and the indices that make a mask one of examples, and of all of them
    "module": (lambda x, mask: made(MultiHeadAttention, 4, 2)(x, x, x, mask), ":, None, None, :", "None, None"),
    "function": (lambda x, mask: F.multi_head_attention(x, x, x, 2, mask), ":, None, None, :", "None, None"),
    "function, with weights": (lambda x, mask: F.multi_head_attention(x, x, x, 2, mask, return_weights=True)[0],
                               ":, None, None, :", "None, None"),
    "one head": (lambda x, mask: F.scaled_dot_product_attention(x, x, x, mask), ":, None, :", "None"),
}
INDICES = {":, None, None, :": np.s_[:, None, None], ":, None, :": np.s_[:, None], "None, None": np.s_[None, None],
           "None": np.s_[None]}
every_attention = pytest.mark.parametrize(("attend", "of_examples", "of_all"), ATTENTIONS.values(), ids=ATTENTIONS)
X = Tensor(np.random.default_rng(0).normal(size=(4, 4, 4)))


@every_attention
def test_a_mask_that_may_be_of_padding_or_of_queries_is_refused(attend, of_examples, of_all):
    """It was read as (T, S): for a mask of padding silently wrong."""
    real = np.array([[1, 1, 1, 0], [1, 1, 0, 0], [1, 1, 1, 1], [0, 1, 1, 0]], bool)
    padding = [np.arange(4) < np.array(lengths)[:, None] for lengths in ([3, 4, 3, 4], [2, 2, 4, 4], [4, 3, 3, 4])]
    for mask in (real, Tensor(real), real[:, :1], *padding, *(mask[::-1, ::-1] for mask in padding)):
        with pytest.raises(ValueError, match=r"each example .* each query") as info:
            attend(X, mask)
        for index in (of_examples, of_all):
            assert f"mask[{index}]" in str(info.value)
            assert attend(X, mask[INDICES[index]]).shape == (4, 4, 4)
    for batch in (3, 1):  # with so many, these can only be queries
        assert attend(X[:batch], real).shape == (batch, 4, 4)


@every_attention
def test_masks_that_mean_one_thing_alone_are_not(attend, of_examples, of_all):
    same, whole = np.tile([True, False, True, True], (4, 1)), np.ones((4, 4), bool)
    window, blocks = causal_mask(4) & ~np.tri(4, k=-2, dtype=bool), np.kron(np.eye(2), np.ones((2, 2))) > 0
    for mask in (causal_mask(4), Tensor(causal_mask(4)), same, same[:1], whole, whole[:, :1], window, blocks):
        np.testing.assert_array_equal(attend(X, mask).numpy(), attend(X, mask[INDICES[of_all]]).numpy())


def test_the_last_queries_of_more_keys_have_a_causal_mask_too():
    q, k = Tensor(np.ones((2, 1, 2, 4))), Tensor(np.ones((2, 1, 5, 4)))
    for mask in (causal_mask(2, 5), causal_mask(2, 5) & ~np.tri(2, 5, 1, dtype=bool)):
        assert F.scaled_dot_product_attention(q, k, k, mask).shape == q.shape


def test_a_mask_on_a_gpu_is_not_read(stand_in):
    x = Tensor(np.ones((2, 2, 4)), device="cuda:0")
    mask = Tensor(np.array([[True, False], [False, True]]), device="cuda:0")
    stand_in.clear()
    F.multi_head_attention(x, x, x, 2, mask)
    assert not stand_in.synchronizations
