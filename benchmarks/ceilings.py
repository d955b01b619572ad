"""What a GPU can do at most: the rate of matrix products, and of copies. By CuPy alone, as one line of JSON.

    python benchmarks/ceilings.py --device cuda

No step is faster than its products at this rate, nor an operation than what it reads and writes at the rate of a copy.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable

import numpy as np

from minigrad.device import asarray_on, on_device, synchronize

CALLS, WARM_UP = 30, 3


def seconds(call: Callable[[], object], device: str) -> float:
    """What a call takes on average."""
    for _ in range(WARM_UP):
        call()
    synchronize(device)
    start = time.perf_counter()
    for _ in range(CALLS):
        call()
    synchronize(device)
    return (time.perf_counter() - start) / CALLS


def measured(device: str, side: int) -> dict[str, float]:
    """10¹² additions and multiplications a second by precision, and 10⁹ bytes a second that a copy reads and writes."""
    random = np.random.default_rng(0)
    with on_device(device):
        a, b = (asarray_on(device, random.standard_normal((side, side), np.float32)) for _ in range(2))
        products = 2e-12 * side**3
        found = {"float32": products / seconds(lambda: a @ b, device)}
        c, d = a.astype(np.float16), b.astype(np.float16)
        found["float16"] = products / seconds(lambda: c @ d, device)
        found["copy"] = 1e-9 * 2 * a.nbytes / seconds(a.copy, device)
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", help="a GPU (cuda)")
    parser.add_argument("--side", type=int, default=8192, help="rows and columns of the matrices (8192: 256 MiB each)")
    options = parser.parse_args()
    print(json.dumps(measured(options.device, options.side)))


if __name__ == "__main__":
    main()
