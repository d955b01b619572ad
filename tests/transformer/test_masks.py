"""Masks: True = may attend, and how they are made and joined."""

import numpy as np
import pytest

import minigrad
from minigrad import Tensor
from minigrad import functional as F
from minigrad.device import asarray_on, to_numpy

from tests.transformer.tiny import tiny_config
from transformer import MultiHeadAttention, causal_mask, padding_mask
from transformer.model import DecoderLayer, EncoderLayer
from transformer.model.attention import source_mask, target_mask

IDS = np.array([[5, 0, 6], [5, 6, 7]])


def test_ids_of_every_kind_have_masks(device):
    """None is one that is True everywhere. That of a model's target is tested with the model."""
    for ids in (Tensor(IDS, device=device), asarray_on(device, IDS), IDS.tolist()):
        np.testing.assert_array_equal(to_numpy(padding_mask(ids)), (IDS != 0)[:, None, None])
    assert source_mask(IDS, 9) is target_mask(IDS, 9, 2) is None
    with pytest.raises(ValueError, match=r"\(3,\)"):
        padding_mask(IDS[0])
    with pytest.raises(ValueError, match=r"4 queries .* 3 keys"):
        causal_mask(4, 3)


# --- One convention -------------------------------------------------------------------------------


def made(kind, *arguments):
    with minigrad.random.fork(2):
        return kind(*arguments).to(dtype=np.float64)


QUERY, KEYS = (Tensor(np.random.default_rng(length).standard_normal((2, length, 8))) for length in (3, 4))
PLACES = {
    "function": lambda mask, keys: F.scaled_dot_product_attention(QUERY, keys, keys, mask),
    "module": lambda mask, keys: made(MultiHeadAttention, 8, 2)(QUERY, keys, keys, mask),
    # What another token than the keys that change gets: a layer also passes each token on to itself.
    "encoder layer": lambda mask, keys: made(EncoderLayer, tiny_config())(keys, mask)[:, 1],
    "decoder layer": lambda mask, keys: made(DecoderLayer, tiny_config())(QUERY, keys, None, mask),
}


@pytest.mark.parametrize("attend", PLACES.values(), ids=PLACES)
def test_true_means_may_attend_everywhere(attend):
    """A key has an influence where the mask is True, and nowhere else: from the function to the layers."""
    mask = np.array([False, True, False, True])
    before = attend(mask, KEYS).numpy()
    for key in (0, 2, 3):
        changed = KEYS.numpy() + np.arange(8) * (np.arange(4) == key)[:, None]
        assert np.array_equal(attend(mask, Tensor(changed)).numpy(), before) != mask[key]
    for wrong in (np.ones((3, 4)), Tensor(np.ones((3, 4), np.int64)), [[True]]):
        with pytest.raises(TypeError, match="boolean"):
            attend(wrong, KEYS)


# --- A batch with as many examples as queries --------------------------------------------------------

ATTENTIONS = {  # of x (B, T, 4); and the axes between those of the batch and of the queries
    "module": (lambda x, mask: made(MultiHeadAttention, 4, 2)(x, x, x, mask), 2),
    "one head": (lambda x, mask: F.scaled_dot_product_attention(x, x, x, mask), 1),
}
every_attention = pytest.mark.parametrize(("attend", "axes"), ATTENTIONS.values(), ids=ATTENTIONS)
X = Tensor(np.random.default_rng(0).normal(size=(4, 4, 4)))


@every_attention
def test_a_mask_that_may_be_of_padding_or_of_queries_is_refused(attend, axes):
    """It was read as (T, S): for a mask of padding silently wrong."""
    real = np.array([[1, 1, 1, 0], [1, 1, 0, 0], [1, 1, 1, 1], [0, 1, 1, 0]], bool)
    growing = np.arange(4) < np.array([[2], [2], [4], [4]])
    for mask in (real, Tensor(real), real[:, :1], growing, growing[::-1, ::-1]):
        with pytest.raises(ValueError, match=r"each example .* each query") as info:
            attend(X, mask)
        new = ", None" * axes
        assert f"mask[:{new}, :]" in str(info.value)
        assert f"mask[{new[2:]}]" in str(info.value)
        for index in ((slice(None), *[None] * axes), (None,) * axes):
            assert attend(X, mask[index]).shape == (4, 4, 4)
    for batch in (3, 1):  # with so many, these can only be queries
        assert attend(X[:batch], real).shape == (batch, 4, 4)


@every_attention
def test_masks_that_mean_one_thing_alone_are_not(attend, axes):
    same = np.tile([True, False, True, True], (4, 1))
    window, blocks = causal_mask(4) & ~np.tri(4, k=-2, dtype=bool), np.kron(np.eye(2), np.ones((2, 2))) > 0
    for mask in (causal_mask(4), same, same[:1], window, blocks):
        np.testing.assert_array_equal(attend(X, mask).numpy(), attend(X, mask[(None,) * axes]).numpy())
    more = minigrad.concatenate([X, X[:, :2]], axis=1)
    mask = causal_mask(4, 6) & ~np.tri(4, 6, 1, dtype=bool)  # the last of more keys
    assert F.scaled_dot_product_attention(X, more, more, mask).shape == X.shape


def test_a_mask_on_a_gpu_is_not_read(stand_in):
    x, mask = (Tensor(array, device="cuda:0") for array in (np.ones((2, 2, 4)), np.eye(2) > 0))
    stand_in.clear()
    F.multi_head_attention(x, x, x, 2, mask)
    assert not stand_in.synchronizations
