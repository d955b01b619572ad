"""Seeding, and that every draw is the function of integers it is said to be."""

import contextlib
import contextvars
import json
import threading

import numpy as np
import pytest

from minigrad import parallel, random
from minigrad.device import device_of, to_numpy
from minigrad.random import DropoutKey, bernoulli_mask


@pytest.fixture(autouse=True)
def _forked():
    with random.fork(seed=7):
        yield


def draws():
    """One of each kind of draw."""
    mask = bernoulli_mask(random.next_key(), (3, 5), 0.5)
    return random.generator().random(), mask.tolist(), random.next_generator().random()


def test_a_seed_decides_every_draw():
    random.manual_seed(1)
    first = [draws(), draws()]
    random.manual_seed(1)
    assert [draws(), draws()] == first
    assert first[0] != first[1]
    random.manual_seed(2)
    assert draws()[0] != first[0][0]


def test_the_call_counter_restarts_at_each_step():
    random.manual_seed(3)
    assert [random.next_key() for _ in range(3)] == [(3, 0, 0), (3, 0, 1), (3, 0, 2)]
    random.set_step(10)
    assert [random.next_key() for _ in range(2)] == [(3, 10, 0), (3, 10, 1)]
    with pytest.raises(ValueError, match="step"):
        random.set_step(-1)


def test_the_state_survives_json():
    random.set_step(2)
    draws()
    saved = json.loads(json.dumps(random.get_state()))
    later = [draws(), draws()]
    random.manual_seed(99)
    random.set_state(saved)
    assert [draws(), draws()] == later


def test_a_fork_draws_what_would_have_been_drawn_and_leaves_the_outside_as_it_was():
    random.set_step(3)
    before = random.get_state()
    with contextlib.suppress(KeyError), random.fork():
        inside = draws()
        random.manual_seed(1)
        raise KeyError
    assert random.get_state() == before
    assert draws() == inside
    with random.fork(seed=12):
        inside = draws()
    random.manual_seed(12)
    assert draws() == inside


def test_a_fork_is_local_to_its_context():
    """A bare thread starts from the state of the process, not from its creator's."""
    seeds = []
    with random.fork(seed=987_654_321):  # which nothing else here uses
        for run in (lambda look: look(), contextvars.copy_context().run):
            thread = threading.Thread(target=run, args=(lambda: seeds.append(random.get_state()["seed"]),))
            thread.start()
            thread.join()
    assert seeds[0] != seeds[1] == 987_654_321


def test_threads_never_share_a_key():
    with parallel.threads(4):
        keys = parallel.run([lambda: [random.next_key() for _ in range(2000)]] * 4)
    assert len(set().union(*keys)) == 8000


# --- Masks -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(), 0, 1, 8, 9, (3, 0), (5, 205)])
def test_a_mask_is_a_function_of_its_key_alone_on_every_device(shape, gpu):
    key = DropoutKey(1, 2, 3)
    there, here = bernoulli_mask(key, shape, 0.3, gpu), bernoulli_mask(key, shape, 0.3)
    assert device_of(there) == gpu
    assert there.dtype == here.dtype == bool
    assert there.shape == here.shape == np.zeros(shape).shape
    np.testing.assert_array_equal(to_numpy(there), here)
    random.manual_seed(0)
    np.testing.assert_array_equal(bernoulli_mask(key, shape, 0.3), here)


def test_a_mask_is_sent_as_bits_in_a_length_that_serves_again(stand_in):
    """CuPy keeps page-locked memory for every length: (1, 1000) to (60, 1000) elements are 7 of them, and not 60."""
    lengths = set()
    for rows in range(1, 61):
        stand_in.clear()
        bernoulli_mask(DropoutKey(1, 2, 3), (rows, 1000), 0.5, "cuda")
        lengths.add(stand_in.uploaded_bytes["asarray"])
    assert lengths == {128, 256, 512, 1024, 2048, 4096, 8192}


def test_the_masks_of_earlier_releases_are_drawn_again():
    """Old checkpoints resume bit for bit only while this holds: change it together with their version."""
    mask = bernoulli_mask(DropoutKey(1, 2, 3), 24, 0.5)
    assert "".join("01"[bit] for bit in mask.astype(int)) == "001011010000101100111010"


def test_the_frequency_is_the_probability():
    count, p = 4_000_000, 1 / 3
    frequency = bernoulli_mask(DropoutKey(0, 0, 1), count, p).mean()
    assert abs(frequency - p) < 4 * np.sqrt(p * (1 - p) / count) + 2**-17


def test_the_probabilities_nought_and_one_are_exact():
    key = DropoutKey(0, 0, 0)
    assert not bernoulli_mask(key, 200_000, 0.0).any()
    assert bernoulli_mask(key, 200_000, 1.0).all()
