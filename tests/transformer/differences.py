"""Gradients and Hessians held to central finite differences of fourth order, in float64.

A difference is compared with the largest entry of its parameter's gradient, to one part in a million. The largest
entry is always among those checked, so a gradient that is wrong by a factor of 1.001 fails a thousandfold.
"""

import numpy as np

import minigrad
from minigrad import Tensor

TOLERANCE = 1e-6
ROUNDING = 1e-10  # what remains of a gradient of exactly 0, as a key's bias has
STEPS = (3e-4, 1e-5)  # the second for a relu whose kink lies within the first; a wrong gradient agrees with neither


def frozen(function):
    """``function()`` with the same dropout masks at every call."""
    with minigrad.random.fork(6):
        return function()


def difference(value, parameter, direction, step):
    """The derivative of ``value()``, a number or a list of arrays, as `parameter` moves along `direction`."""
    original = parameter.numpy().copy()

    def at(steps):
        parameter.copy_(original + steps * step * direction)
        return np.asarray(value(), dtype=np.float64)

    try:
        return (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * step)
    finally:
        parameter.copy_(original)


def directions(gradient, rng, entries=2, dense=2, largest=True):
    """Pairs of a name and an array: the gradient's largest entry, random entries, and random signs everywhere."""
    first = [np.unravel_index(abs(gradient).argmax(), gradient.shape)] if largest else []
    picked = [rng.integers(gradient.shape) for _ in range(entries)]
    for index in dict.fromkeys(tuple(int(i) for i in place) for place in (*first, *picked)):
        unit = np.zeros(gradient.shape)
        unit[index] = 1
        yield f"entry {index}", unit
    for number in range(dense):
        signs = rng.choice([-1.0, 1.0], gradient.shape)
        yield f"random direction {number}", signs / np.sqrt(signs.size)


def one_direction(gradient, rng):
    """Random signs everywhere, once: a fifth of the time that `directions` take."""
    return directions(gradient, rng, entries=0, dense=1, largest=False)


def check_gradients(loss, parameters, choose=directions):
    """Hold the gradient of ``loss()``, a scalar Tensor, with respect to each named tensor to finite differences.

    ``choose(gradient, rng)`` gives the directions in which they are taken.
    """
    names, tensors = list(parameters), list(parameters.values())
    assert all(tensor.dtype == np.float64 for tensor in tensors)

    def value():
        with minigrad.no_grad():
            return frozen(loss).item()

    rng = np.random.default_rng(5)
    for name, tensor, gradient in zip(names, tensors, minigrad.grad(frozen(loss), tensors), strict=True):
        gradient = gradient.numpy()
        tolerance = max(TOLERANCE * abs(gradient).max(), ROUNDING)
        for where, direction in choose(gradient, rng):
            analytic = float((gradient * direction).sum())
            numeric = []
            for step in STEPS:
                numeric.append(float(difference(value, tensor, direction, step)))
                if abs(numeric[-1] - analytic) <= tolerance:
                    break
            else:
                raise AssertionError(
                    f"{name}, {where}: the gradient is {analytic:.12g}, finite differences give "
                    f"{' and '.join(f'{n:.12g}' for n in numeric)} (ratio {analytic / numeric[0]:.9g})"
                )


def check_hessian_vector_product(loss, parameters):
    """Hold ``H v``, differentiated twice, to finite differences of the gradient along a random v."""
    names, tensors = list(parameters), list(parameters.values())
    rng = np.random.default_rng(7)
    vectors = [rng.choice([-1.0, 1.0], tensor.shape) for tensor in tensors]
    first = minigrad.grad(frozen(loss), tensors, create_graph=True)
    slopes = [(g * Tensor(v, device=g.device)).sum() for g, v in zip(first, vectors, strict=True)]
    slope = sum(slopes[1:], start=slopes[0])
    second = [h.numpy() for h in minigrad.grad(slope, tensors)]

    originals = [tensor.numpy().copy() for tensor in tensors]

    def gradients_at(steps, step):
        for tensor, original, vector in zip(tensors, originals, vectors, strict=True):
            tensor.copy_(original + steps * step * vector)
        return [g.numpy() for g in minigrad.grad(frozen(loss), tensors)]

    step = STEPS[0]
    one, back, two, back_two = (gradients_at(steps, step) for steps in (1, -1, 2, -2))
    for tensor, original in zip(tensors, originals, strict=True):
        tensor.copy_(original)
    for name, product, a, b, c, d in zip(names, second, one, back, two, back_two, strict=True):
        numeric = (8 * (a - b) - (c - d)) / (12 * step)
        bound = max(TOLERANCE * abs(numeric).max(), 10 * ROUNDING)
        np.testing.assert_allclose(product, numeric, rtol=0, atol=bound, err_msg=name)
