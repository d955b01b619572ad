"""One model in several threads: what one of them computes does not depend on what the others do with it."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import minigrad

from tests.transformer.decoding_models import peaked_model, random_sources
from tests.transformer.digits import PAIRS, SENTENCES
from transformer.decode import beam_search, greedy
from transformer.translator import Translator

SOURCES = random_sources(3)
STEPS = 12


def loss_and_gradients(model, step):
    minigrad.random.set_step(step)
    model.zero_grad()
    loss = model.loss(SOURCES, SOURCES % 6)
    loss.backward()
    return [loss.numpy().copy(), *(parameter.grad.numpy().copy() for parameter in model.parameters())]


@pytest.mark.parametrize("decode", [lambda model: greedy(model, SOURCES), lambda model: beam_search(model, SOURCES, 3)],
                         ids=["greedy", "beam"])
def test_a_model_that_is_trained_is_decoded_in_another_thread(decode):
    """Dropout stays on in the one, with its masks, and off in the other; losses and gradients keep their bits."""
    model = peaked_model(0, dropout=0.5).train()
    minigrad.manual_seed(1)
    alone, expected = [loss_and_gradients(model, step) for step in range(STEPS)], decode(model)
    done, found = threading.Event(), []

    def loop():
        while not done.is_set() or not found:
            found.append(decode(model))

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


def test_eight_threads_share_a_translator(run):
    translator = Translator.load(run)
    lines = SENTENCES[:20]

    def work(_):
        scores = translator.evaluate(*zip(*PAIRS[:10], strict=True))
        return translator.translate(lines, beam=2), scores | {"seconds": 0}

    expected = work(0)
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(16))) == [expected] * 16
