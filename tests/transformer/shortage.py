"""Memory that runs out at a chosen place."""

import numpy as np

UNABLE = r"\(Unable to allocate .* for an array with shape \(10000000, 10000000\) and data type float64\)"


def too_much(*arguments, **keywords):
    """More than any machine can address."""
    return np.zeros((10**7, 10**7))


def failing(error):
    """A function that raises it."""
    def fail(*arguments, **keywords):
        raise error

    return fail
