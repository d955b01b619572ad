"""Seeding, and that every draw is the function of integers it is said to be."""

import contextlib
import contextvars
import json
import textwrap
import threading

import numpy as np
import pytest

from minigrad import parallel, random
from minigrad.device import device_of, to_numpy
from minigrad.random import DropoutKey, bernoulli_mask

from tests.minigrad.test_device import in_a_new_process
from tests.strict_cupy.kernels import philox


@pytest.fixture(autouse=True)
def _forked():
    with random.fork(seed=7):
        yield


def draws():
    """One of each kind of draw."""
    mask = bernoulli_mask(random.next_key(), (3, 5), 0.5)
    return random.generator().random(), mask.tolist(), random.next_generator().random()


def test_a_seed_decides_every_draw():
    """And a state, as JSON leaves it, all later ones."""
    random.manual_seed(1)
    first, state, second = draws(), json.loads(json.dumps(random.get_state())), draws()
    random.manual_seed(1)
    assert [draws(), draws()] == [first, second]
    assert first != second
    random.manual_seed(2)
    assert draws()[0] != first[0]
    random.set_state(state)
    assert draws() == second


def test_the_call_counter_restarts_at_each_step():
    random.manual_seed(3)
    assert [random.next_key() for _ in range(3)] == [(3, 0, 0), (3, 0, 1), (3, 0, 2)]
    random.set_step(10)
    assert [random.next_key() for _ in range(2)] == [(3, 10, 0), (3, 10, 1)]
    with pytest.raises(ValueError, match="step"):
        random.set_step(-1)


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
@pytest.mark.parametrize("key", [DropoutKey(1, 2, 3), DropoutKey(2**64 - 1, 2**40 + 1, 5)])
def test_a_mask_on_a_gpu_is_a_function_of_its_key_alone(shape, key, gpu):
    mask = bernoulli_mask(key, shape, 0.3, gpu)
    assert device_of(mask) == gpu
    expected = philox(key, int(np.prod(shape))).reshape(shape) < round(0.3 * 2**32)
    assert mask.dtype == bool
    np.testing.assert_array_equal(to_numpy(mask), expected)


@pytest.mark.parametrize(("word", "key"), [(0x6627E8D5, DropoutKey(0, 0, 0))])
def test_the_words_are_those_of_the_published_generator(word, key):
    """The first of the known answers that its authors give, of counter and key 0."""
    assert philox(key, 1) == [word]


def test_the_masks_of_earlier_releases_are_drawn_again():
    """Old checkpoints resume bit for bit only while this holds: change it together with their version."""
    mask = bernoulli_mask(DropoutKey(1, 2, 3), 24, 0.5)
    assert "".join("01"[bit] for bit in mask.astype(int)) == "001011010000101100111010"


def test_the_frequency_is_the_probability():
    count, p = 4_000_000, 1 / 3
    frequency = bernoulli_mask(DropoutKey(0, 0, 1), count, p).mean()
    assert abs(frequency - p) < 4 * np.sqrt(p * (1 - p) / count) + 2**-17
    assert bernoulli_mask(DropoutKey(0, 0, 0), 200_000, 1.0).all()


# --- From one process to another


TRAINING = """
    import zlib
    import numpy as np
    import minigrad as mg
    from minigrad import functional as F, nn, optim

    mg.manual_seed(3)
    model = nn.Sequential(nn.Linear(5, 16), nn.GELU(), nn.Dropout(0.3), nn.LayerNorm(16), nn.Linear(16, 3))
    optimizer = optim.AdamW(list(model.parameters()), lr=0.01)
    x, labels = np.random.default_rng(1).normal(size=(8, 5)).astype(np.float32), np.arange(8) % 3
    for _ in range(5):
        optimizer.zero_grad()
        F.cross_entropy(model(mg.Tensor(x)), mg.Tensor(labels)).backward()
        optimizer.step()
    print(zlib.crc32(b"".join(p.numpy().tobytes() for p in model.parameters())))
"""


def test_a_seed_makes_every_run_the_same_bit_for_bit(capsys):
    exec(textwrap.dedent(TRAINING), {})
    assert capsys.readouterr().out.splitlines() == in_a_new_process(TRAINING)
