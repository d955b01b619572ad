"""HIPS autograd, which differentiates NumPy: the same model, and AdamW in plain NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import autograd.numpy as anp
import numpy as np
from autograd import value_and_grad
from autograd.scipy.special import logsumexp
from safetensors.numpy import load_file
from threadpoolctl import threadpool_limits
from workloads import BETAS, EPSILON, LEARNING_RATE, POSITIONS, Workload, shifted

from peers import Training
from peers.functional_transformer import Library, Model, Parameters

Batch = tuple[np.ndarray, np.ndarray, np.ndarray]  # source, the decoder's input, labels


def log_softmax(x: Any) -> Any:
    """Along the last axis."""
    return x - logsumexp(x, axis=-1, keepdims=True)


AUTOGRAD = Library(anp, lambda x: anp.exp(log_softmax(x)), log_softmax)


@contextmanager
def trainer(workload: Workload, weights: str, threads: int) -> Iterator[Training]:
    """See `peers`."""
    parameters = load_file(weights)
    positions = parameters.pop(POSITIONS)
    first, second = ({name: np.zeros_like(array) for name, array in parameters.items()} for _ in range(2))
    random = np.random.default_rng(0)
    count, p = 0, workload.dropout
    (beta1, beta2) = BETAS

    def drop(x: Any) -> Any:
        kept = random.random(x.shape, np.float32) >= p
        return x * (kept / np.float32(1 - p))

    def loss_of(parameters: Parameters, batch: Batch, training: bool) -> Any:
        dropout = drop if training and p else lambda x: x
        return Model(AUTOGRAD, workload, parameters, positions, dropout).loss(*batch)

    def step(batch: Batch) -> float:
        nonlocal count
        count += 1
        value, gradients = value_and_grad(loss_of)(parameters, batch, True)
        for name, g in gradients.items():
            first[name] = beta1 * first[name] + (1 - beta1) * g
            second[name] = beta2 * second[name] + (1 - beta2) * g * g
            corrected = first[name] / (1 - beta1**count), second[name] / (1 - beta2**count)
            parameters[name] -= LEARNING_RATE * corrected[0] / (np.sqrt(corrected[1]) + EPSILON)
        return float(value)

    def prepare(source: np.ndarray, labels: np.ndarray) -> Batch:
        return source, shifted(labels), labels

    with threadpool_limits(threads):
        yield Training(prepare, step, lambda batch: float(loss_of(parameters, batch, False)))
