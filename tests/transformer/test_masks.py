"""Masks: True = may attend, and how they are made and joined."""

import numpy as np
import pytest

from transformer import causal_mask, padding_mask
from transformer.masks import is_all_real, join


def test_padding_mask_allows_what_is_not_padding():
    mask = padding_mask(np.array([[5, 6, 0], [0, 7, 0]]))
    assert (mask.shape, mask.dtype) == ((2, 1, 1, 3), np.bool_)
    assert mask[:, 0, 0].tolist() == [[True, True, False], [False, True, False]]


def test_padding_mask_with_another_padding_id():
    assert padding_mask(np.array([[0, 9]]), pad_id=9)[0, 0, 0].tolist() == [True, False]


def test_padding_mask_wants_a_batch():
    with pytest.raises(ValueError, match=r"\(batch, length\) expected, got \(3,\)"):
        padding_mask(np.array([5, 6, 0]))


def test_causal_mask_allows_the_past_and_the_present():
    mask = causal_mask(3)
    assert mask.dtype == np.bool_
    assert mask.tolist() == [[True, False, False], [True, True, False], [True, True, True]]


def test_causal_mask_with_cached_keys_is_the_last_rows_of_the_whole():
    for queries in range(6):
        np.testing.assert_array_equal(causal_mask(queries, 5), causal_mask(5)[5 - queries:])


def test_causal_mask_cannot_have_more_queries_than_keys():
    with pytest.raises(ValueError, match="4 queries cannot be the last of 3 keys"):
        causal_mask(4, 3)


def test_masks_are_joined_by_and_and_none_allows_everything():
    padding, causal = padding_mask(np.array([[5, 0, 6], [5, 6, 7]])), causal_mask(3)
    joined = join(causal, None, padding)
    assert joined.shape == (2, 1, 3, 3)
    for b, t, s in np.ndindex(2, 3, 3):
        assert joined[b, 0, t, s] == (s <= t and padding[b, 0, 0, s])
    assert join(None, None) is None
    assert join(None, causal) is causal


def test_masks_are_made_on_the_device_that_is_asked_for(device):
    from minigrad.device import asarray_on, device_of, to_numpy

    for name in {device, device.replace("0", "1")} if device != "cpu" else {device}:
        ids = asarray_on(name, np.array([[5, 0, 6]]))
        joined = join(causal_mask(3, device=name), padding_mask(ids))
        assert device_of(joined) == name
        expected = join(causal_mask(3), padding_mask(to_numpy(ids)))
        np.testing.assert_array_equal(to_numpy(joined), expected)


def test_whether_host_ids_hold_padding():
    assert is_all_real(np.array([[5, 6]]))
    assert not is_all_real(np.array([[5, 0]]))
    assert is_all_real(np.array([[5, 0]]), pad_id=3)


def test_ids_on_a_gpu_are_not_read_back_to_look_for_padding(stand_in):
    ids = stand_in.cupy.asarray(np.array([[5, 6]]))
    assert not is_all_real(ids)
    assert not stand_in.synchronizations
