"""The compiled kernels under a whole model: its loss and every gradient, in one thread and in several."""

import numpy as np
import pytest

import minigrad as mg
from minigrad import jit

from transformer import Transformer, TransformerConfig
from transformer.training.parallel_gradients import ParallelGradients

pytest.importorskip("numba", reason="the extra jit is not installed")

SOURCE = np.array([[3, 4, 5, 6, 2], [7, 8, 2, 0, 0], [5, 5, 9, 2, 0], [4, 2, 0, 0, 0]])
LABELS = np.array([[6, 5, 4, 2], [8, 2, 0, 0], [9, 5, 5, 2], [3, 4, 2, 0]])


def model(dropout=0.2, **options):
    mg.manual_seed(0)
    made = Transformer(TransformerConfig(10, 10, d_model=24, num_heads=3, d_ff=40, num_encoder_layers=2,
                                         num_decoder_layers=2, dropout=dropout, **options))
    for p in made.parameters():
        p.data = p.data.astype(np.float64)
    return made


def loss_and_gradients(made):
    mg.random.manual_seed(1)
    made.zero_grad()
    loss = made.loss(SOURCE, LABELS, label_smoothing=0.1)
    loss.backward()
    return loss.item(), {name: p.grad.numpy() for name, p in made.named_parameters()}


@pytest.mark.parametrize("options", [{}, {"norm": "post", "activation": "gelu_tanh", "dropout": 0.0}], ids=str)
def test_the_loss_and_every_gradient(options):
    made = model(**options)
    loss, gradients = loss_and_gradients(made)
    with jit():
        ours, our_gradients = loss_and_gradients(made)
    assert ours == pytest.approx(loss, rel=1e-13)
    for name, gradient in gradients.items():
        np.testing.assert_allclose(our_gradients[name], gradient, rtol=0, atol=1e-12 * max(1, np.abs(gradient).max()),
                                   err_msg=name)


def test_in_threads_they_compute_what_they_compute_in_one():
    made = model()

    def summed(threads):
        mg.random.manual_seed(1)
        made.zero_grad()
        with ParallelGradients(made, threads) as gradients:
            total = gradients(SOURCE, LABELS, denominator=11)
        return float(total), {name: p.grad.numpy() for name, p in made.named_parameters()}

    total, expected = summed(2)
    with jit():
        ours, gradients = summed(2)
    assert ours == pytest.approx(total, rel=1e-13)
    for name, gradient in expected.items():
        np.testing.assert_allclose(gradients[name], gradient, rtol=0, atol=1e-12 * max(1, np.abs(gradient).max()))
