"""The compiled kernels under a whole model: its loss and every gradient, in one thread and in several."""

import pytest

from minigrad import jit

from tests.transformer.shards import computed
from tests.transformer.tiny import assert_same, tiny_model

pytest.importorskip("numba", reason="the extra jit is not installed")


@pytest.mark.parametrize(("threads", "options"), [
    (1, {"dropout": 0.2}), (1, {"norm": "post", "activation": "gelu_tanh"}), (2, {"dropout": 0.2}),
], ids=str)
def test_the_loss_and_every_gradient(threads, options):
    model = tiny_model(d_model=24, num_heads=3, d_ff=40, **options)
    (loss,), gradients = computed(model, threads)
    with jit():
        (ours,), our_gradients = computed(model, threads)
    assert ours == pytest.approx(loss, rel=1e-13)
    assert_same(our_gradients, gradients)
