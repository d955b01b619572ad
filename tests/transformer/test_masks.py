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


def test_padding_mask_allows_what_is_not_padding():
    assert padding_mask(np.array([[0, 9]]), pad_id=9)[0, 0, 0].tolist() == [True, False]
    mask = padding_mask(np.array([[5, 6, 0], [0, 7, 0]]))
    assert (mask.shape, mask.dtype) == ((2, 1, 1, 3), np.bool_)
    assert mask[:, 0, 0].tolist() == [[True, True, False], [False, True, False]]


def test_causal_mask_allows_the_past_and_the_present():
    mask = causal_mask(3)
    assert mask.dtype == np.bool_
    assert mask.tolist() == [[True, False, False], [True, True, False], [True, True, True]]
    for queries in range(6):  # the last ones
        np.testing.assert_array_equal(causal_mask(queries, 5), causal_mask(5)[5 - queries:])


def test_shapes_of_no_mask_are_refused():
    with pytest.raises(ValueError, match=r"\(3,\)"):
        padding_mask(np.array([5, 6, 0]))
    with pytest.raises(ValueError, match=r"4 queries .* 3 keys"):
        causal_mask(4, 3)


def test_a_target_sees_the_real_tokens_up_to_each_of_its_own():
    ids = np.array([[5, 0, 6], [5, 6, 7]])
    mask = target_mask(ids)
    assert mask.shape == (2, 1, 3, 3)
    for b, t, s in np.ndindex(2, 3, 3):
        assert mask[b, 0, t, s] == (s <= t and ids[b, s] != 0)
    np.testing.assert_array_equal(target_mask(ids, pad_id=9), causal_mask(3))
    assert target_mask(ids[:, :1]) is None
    np.testing.assert_array_equal(target_mask(ids[:, 1:2]), padding_mask(ids[:, 1:2]))


def test_a_source_without_padding_has_no_mask():
    assert source_mask(np.array([[5, 6]])) is None
    assert source_mask(np.array([[5, 0]]), pad_id=3) is None
    np.testing.assert_array_equal(source_mask(np.array([[5, 0]])), [[[[True, False]]]])


def test_ids_may_be_tensors_arrays_and_lists_and_masks_are_where_they_are(device):
    ids = np.array([[5, 0, 6], [0, 0, 7]])
    for make in (padding_mask, source_mask):
        expected = make(ids)
        for given, place in ((Tensor(ids, device=device), device), (asarray_on(device, ids), device),
                             (ids.tolist(), "cpu")):
            mask = make(given)
            assert device_of(mask) == place
            np.testing.assert_array_equal(to_numpy(mask), expected)


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
EVERYWHERE = pytest.mark.parametrize("place", PLACES)


@EVERYWHERE
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


@EVERYWHERE
def test_what_is_not_boolean_is_refused_everywhere(place):
    for mask in (np.ones((3, 4)), Tensor(np.ones((3, 4), np.int64)), [[True]]):
        with pytest.raises(TypeError, match="boolean"):
            PLACES[place](mask, features(4, 5))


# --- A batch with as many examples as queries --------------------------------------------------------

EXAMPLES = {3: ("[:, None, :]", np.s_[:, None, :]), 4: ("[:, None, None, :]", np.s_[:, None, None, :])}
ALL = {3: ("[None]", np.s_[None]), 4: ("[None, None]", np.s_[None, None])}
ATTENTIONS = {  # of x (B, T, 4); and the axes of the scores
    "module": (lambda x, mask: made(MultiHeadAttention, 4, 2)(x, x, x, mask), 4),
    "function": (lambda x, mask: F.multi_head_attention(x, x, x, 2, mask), 4),
    "function, with weights": (lambda x, mask: F.multi_head_attention(x, x, x, 2, mask, return_weights=True)[0], 4),
    "one head": (lambda x, mask: F.scaled_dot_product_attention(x, x, x, mask), 3),
}


@pytest.mark.parametrize("attention", ATTENTIONS)
def test_a_mask_that_may_be_of_padding_or_of_queries_is_refused(attention):
    """It was read as (T, S): for a mask of padding silently wrong."""
    attend, axes = ATTENTIONS[attention]
    x = Tensor(np.random.default_rng(0).normal(size=(4, 4, 4)))
    real = np.array([[1, 1, 1, 0], [1, 1, 0, 0], [1, 1, 1, 1], [0, 1, 1, 0]], bool)
    padding = [np.arange(4) < np.array(lengths)[:, None] for lengths in ([3, 4, 3, 4], [2, 2, 4, 4], [4, 3, 3, 4])]
    for mask in (real, Tensor(real), real[:, :1], *padding, *(mask[::-1, ::-1] for mask in padding)):
        with pytest.raises(ValueError, match=r"each example .* each query") as info:
            attend(x, mask)
        for written, index in (EXAMPLES[axes], ALL[axes]):
            assert f"mask{written}" in str(info.value)
            assert attend(x, mask[index]).shape == (4, 4, 4)
    assert attend(x[:3], real).shape == (3, 4, 4)  # a batch of 3: these can only be queries
    assert attend(x[:1], real).shape == (1, 4, 4)


@pytest.mark.parametrize("attention", ATTENTIONS)
def test_masks_that_mean_one_thing_alone_are_not(attention):
    attend, axes = ATTENTIONS[attention]
    x = Tensor(np.random.default_rng(0).normal(size=(4, 4, 4)))
    same, whole = np.tile([True, False, True, True], (4, 1)), np.ones((4, 4), bool)
    window, blocks = causal_mask(4) & ~np.tri(4, k=-2, dtype=bool), np.kron(np.eye(2), np.ones((2, 2))) > 0
    for mask in (causal_mask(4), Tensor(causal_mask(4)), same, same[:1], whole, whole[:, :1], window, blocks):
        np.testing.assert_array_equal(attend(x, mask).numpy(), attend(x, mask[ALL[axes][1]]).numpy())


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
