"""The stand-in's kernels: what CuPy compiles, written for NumPy."""

import math

import numpy as np


def philox(key, count):
    """The first words of Philox4x32-10 for the counters (i, call, step), i < count, and the seed as the key."""
    seed, step, call = map(int, key)
    low = np.uint64(2**32 - 1)
    counter = [np.arange(count, dtype=np.uint64), *(np.full(count, word, np.uint64)
                                                    for word in (call, step & 2**32 - 1, step >> 32))]
    for turn in range(10):
        first, second = np.uint64(0xD2511F53) * counter[0], np.uint64(0xCD9E8D57) * counter[2]
        keys = [np.uint64((half + turn * bump) % 2**32)
                for half, bump in ((seed & 2**32 - 1, 0x9E3779B9), (seed >> 32, 0xBB67AE85))]
        counter = [second >> np.uint64(32) ^ counter[1] ^ keys[0], second & low,
                   first >> np.uint64(32) ^ counter[3] ^ keys[1], first & low]
    return counter[0]


def bernoulli(key, calls, threshold, shape):
    """The mask of `minigrad.random`."""
    seed, step, first = map(int, key)
    return (philox((seed, step, first + int(calls)), math.prod(shape)) < threshold).reshape(shape)


KERNELS = {"minigrad_philox": bernoulli}
