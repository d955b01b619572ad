"""One model in several threads: what one of them computes does not depend on what the others do with it."""

import threading
from concurrent.futures import ThreadPoolExecutor

import minigrad

from tests.transformer.decoding_models import peaked_model, random_sources
from transformer.decode import beam_search

SOURCES = random_sources(3)
STEPS = 12


def loss_and_gradients(model, step):
    minigrad.random.set_step(step)
    model.zero_grad()
    loss = model.loss(SOURCES, SOURCES % 6)
    loss.backward()
    return [loss.numpy().copy(), *(parameter.grad.numpy().copy() for parameter in model.parameters())]


def test_a_model_that_is_trained_is_decoded_in_another_thread():
    """Dropout stays on in the one, with its masks, and off in the other; losses and gradients keep their bits."""
    model = peaked_model(0, dropout=0.5).train()
    minigrad.manual_seed(1)

    def decode():
        return beam_search(model, SOURCES, 3)

    alone, expected = [loss_and_gradients(model, step) for step in range(STEPS)], decode()
    done, found = threading.Event(), []

    def loop():
        while not done.is_set() or not found:
            found.append(decode())

    with ThreadPoolExecutor(1) as other:
        decoding = other.submit(loop)
        try:
            together = [loss_and_gradients(model, step) for step in range(STEPS)]
        finally:
            done.set()
        decoding.result()
    for arrays, those_alone in zip(together, alone, strict=True):
        assert [array.tobytes() for array in arrays] == [array.tobytes() for array in those_alone]
    assert found == [expected] * len(found)
