"""JAX: the whole step, gradients and AdamW included, as one jitted function whose buffers are given to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import jax
import numpy as np
from jax import numpy as jnp
from safetensors.numpy import load_file
from workloads import BETAS, EPSILON, LEARNING_RATE, POSITIONS, Workload, shifted

from peers import Training
from peers.functional_transformer import Library, Model, Parameters

JAX = Library(jnp, jax.nn.softmax, jax.nn.log_softmax)
Batch = tuple[Any, ...]  # source, the decoder's input, labels


def dropout(p: float, key: Any) -> Any:
    """A function that drops with probability `p`, each time with fresh randomness from `key`."""
    def drop(x: Any) -> Any:
        nonlocal key
        if p == 0:
            return x
        key, used = jax.random.split(key)
        return jnp.where(jax.random.bernoulli(used, 1 - p, x.shape), x / (1 - p), 0)
    return drop


def adamw(parameters: Parameters, gradients: Parameters, state: Any) -> tuple[Parameters, Any]:
    """One update without weight decay; `state` is the number of updates so far and both moments."""
    count, first, second = state
    count, (beta1, beta2) = count + 1, BETAS
    first = jax.tree.map(lambda m, g: beta1 * m + (1 - beta1) * g, first, gradients)
    second = jax.tree.map(lambda v, g: beta2 * v + (1 - beta2) * g * g, second, gradients)
    c1, c2 = 1 - beta1**count, 1 - beta2**count
    parameters = jax.tree.map(lambda p, m, v: p - LEARNING_RATE * (m / c1) / (jnp.sqrt(v / c2) + EPSILON),
                              parameters, first, second)
    return parameters, (count, first, second)


@contextmanager
def trainer(workload: Workload, weights: str, threads: int) -> Iterator[Training]:
    """See `peers`. The threads are those of the processors that this process may use: the driver sees to that."""
    jax.config.update("jax_default_prng_impl", "rbg")  # the fast generator
    parameters = {name: jnp.asarray(array) for name, array in load_file(weights).items()}
    positions = parameters.pop(POSITIONS)
    zeros = partial(jax.tree.map, jnp.zeros_like)
    state = (jnp.float32(0), zeros(parameters), zeros(parameters))
    key = jax.random.key(0)

    def loss_of(parameters: Parameters, batch: Batch, key: Any, p: float) -> Any:
        return Model(JAX, workload, parameters, positions, dropout(p, key)).loss(*batch)

    @partial(jax.jit, donate_argnums=(0, 1, 2))
    def update(parameters: Parameters, state: Any, key: Any, batch: Batch) -> tuple[Any, ...]:
        key, used = jax.random.split(key)
        value, gradients = jax.value_and_grad(loss_of)(parameters, batch, used, workload.dropout)
        return value, *adamw(parameters, gradients, state), key

    def step(batch: Batch) -> float:
        nonlocal parameters, state, key
        value, parameters, state, key = jax.block_until_ready(update(parameters, state, key, batch))
        return float(value)

    def loss(batch: Batch) -> float:
        return float(jax.jit(partial(loss_of, p=0.0))(parameters, batch, key))

    def prepare(source: np.ndarray, labels: np.ndarray) -> Batch:
        return tuple(jnp.asarray(ids, jnp.int32) for ids in (source, shifted(labels), labels))

    yield Training(prepare, step, loss)
