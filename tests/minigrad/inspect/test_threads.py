"""Every tool around threads that run in copies of its block's context at the same time, as a training's do."""

import contextvars
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, inspect
from minigrad.func import checkpoint

from tests.transformer.tiny import LABELS, SOURCE, tiny_model

THREADS = 3
MODEL = tiny_model(np.float64)


@pytest.fixture(autouse=True)
def _switch_often():
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def work(rounds):
    for _ in range(rounds):
        x = Tensor(np.ones((4, 4)), requires_grad=True)
        checkpoint(lambda y: mg.tanh(y) @ y, x).sum().backward()
        parameters = list(MODEL.parameters())  # .grad is one for all threads: `grad` gives each its own
        mg.grad(MODEL.loss(SOURCE, LABELS), parameters)


def together(function):
    with ThreadPoolExecutor(THREADS) as pool:
        for worker in [pool.submit(contextvars.copy_context().run, function) for _ in range(THREADS)]:
            worker.result()


def test_record_tape():
    with inspect.record_tape() as alone:
        work(1)
    with inspect.record_tape() as tape, mg.detect_anomaly():
        together(lambda: work(2))
    assert len(tape.entries) == 2 * THREADS * len(alone.entries)
    names = Counter(name for number in tape.leaves if (name := tape.name_of(number)))
    assert names == dict.fromkeys((f"Transformer.{name}" for name, _ in MODEL.named_parameters()), 1)
