"""dropout: unbiased, keyed by integers, and the identity in evaluation."""

import numpy as np
import pytest

from minigrad import Tensor, nn, random
from minigrad import functional as F


@pytest.fixture(autouse=True)
def seeded():
    with random.fork(seed=2017):
        yield


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_the_probability_may_be_a_number_of_numpy_or_of_a_tensor(dtype):
    x = Tensor(np.ones((1, 4, 4), dtype))
    for drop in (lambda p: F.dropout(x, p), lambda p: nn.Dropout(p)(x),
                 lambda p: F.scaled_dot_product_attention(x, x, x, dropout_p=p)):
        drawn = []
        for form in (float, np.float16, np.float32, np.asarray, Tensor):
            random.set_step(3)
            drawn.append(drop(form(0.25)).numpy())
            assert drawn[-1].dtype == dtype
        np.testing.assert_array_equal(drawn[1:], [drawn[0]] * 4)


def test_evaluation_is_the_identity_and_draws_nothing():
    x = Tensor(np.ones((3, 4)))
    before = random.get_state()
    assert F.dropout(x, 0.5, training=False) is x
    assert F.dropout(x, 0.0) is x
    assert random.get_state() == before


def test_a_seed_and_a_step_decide_the_mask(device):
    """Of each call, the same in every dtype."""
    def draw(seed, step, dtype=np.float64):
        random.manual_seed(seed)
        random.set_step(step)
        return [F.dropout(Tensor(np.ones(100, dtype), device=device), 0.5).tolist() for _ in range(2)]

    first = draw(1, 0)
    assert draw(1, 0) == draw(1, 0, np.float32) == first
    assert len({str(mask) for mask in (*first, *draw(1, 7), *draw(2, 0))}) == 6
