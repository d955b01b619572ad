"""Adam and AdamW: one pass over a block of parameters."""

from __future__ import annotations

from math import sqrt

import numpy as np

from minigrad.kernels.bodies import is_jit_on
from minigrad.kernels.compiled.kernel import Number, OutVector, Vector, kernel
from minigrad.kernels.compiled.operands import are_dense
from minigrad.optim.adam import Adam


@kernel
def adam_elements(p: OutVector, g: Vector, m: OutVector, v: OutVector, beta1: Number, rest1: Number, beta2: Number,
                  rest2: Number, epsilon: Number, rate: Number, penalty: Number, shrink: Number):
    # m ← β₁m + (1 − β₁)g,  v ← β₂v + (1 − β₂)g²,  p ← p − rate · m / (√v + ε): see `Adam.update`
    for i in range(p.size):
        before = p[i]
        slope = g[i] + penalty * before
        first = beta1 * m[i] + rest1 * slope
        second = beta2 * v[i] + rest2 * (slope * slope)
        m[i], v[i] = first, second
        p[i] = shrink * before - rate * (first / (np.sqrt(second) + epsilon))


def update(self, block, step, options):
    """`Adam.update` in one pass; False where it does not suit."""
    if not is_jit_on() or type(self).update is not Adam.update:
        return False
    p, g, (m, v) = block.p, block.g, block.state
    if not (are_dense(p, g) and p.dtype == m.dtype == v.dtype):
        return False
    lr, eps, decay = (float(options[name]) for name in ("lr", "eps", "weight_decay"))
    beta1, beta2 = (float(beta) for beta in options["betas"])
    penalty, shrink = (0.0, 1 - lr * decay) if self.decoupled_weight_decay else (decay, 1.0)
    c = sqrt(1 - beta2**step)
    adam_elements(p, g, m, v, beta1, 1 - beta1, beta2, 1 - beta2, c * eps, lr * c / (1 - beta1**step), penalty, shrink)
    return True


Adam.bodies.append(update)
