"""What the engine itself costs: forward and backward of elementwise operations on 4×4 float32 arrays.

    python benchmarks/overhead.py                     against PyTorch (pip install -e '.[bench]')
    python benchmarks/overhead.py --peer autograd     against HIPS autograd

On 16 numbers the arithmetic is nothing, so what is timed is the bookkeeping: recording an operation, and calling its
gradient rule. Each program below is a chain of operations; the number reported is microseconds per operation, forward
plus backward, with the start and the end of the backward pass included. Python's garbage collector stays on, as it
is in training. Within a process the best of a few blocks counts, and a process is short, so that both of a pair meet
the machine in the same mood; paired.py tells how they are paired.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import page
import paired

LENGTH = 32  # operations in a chain, but for the mixed ones
BLOCKS, SECONDS = 5, 0.01  # per program: the best of so many blocks, each of about this length

X = np.linspace(0.5, 1.5, 16, dtype=np.float32).reshape(4, 4)
Y = np.linspace(0.9, 1.1, 16, dtype=np.float32).reshape(4, 4)

Program = Callable[[Any, Any], Any]


def chain(step: Callable[[Any, Any], Any], operations: int = 1) -> tuple[Program, int]:
    """The program that applies `step` again and again, and how many operations that makes."""
    def run(x: Any, y: Any) -> Any:
        for _ in range(LENGTH // operations):
            x = step(x, y)
        return x
    return run, LENGTH // operations * operations


def programs(m: Any) -> dict[str, tuple[Program, int]]:
    """Every program, with the functions of `m`. Both x and y require gradients; values stay of ordinary size."""
    def mixed(x: Any, y: Any) -> Any:
        x = m.tanh(x * y + y)
        x = m.exp(-x) / (x * x + 1.0)
        return m.relu(x - 0.25 * y) + m.sigmoid(x)

    return {
        "x + y": chain(lambda x, y: x + y),
        "x - y": chain(lambda x, y: x - y),
        "x * y": chain(lambda x, y: x * y),
        "x / y": chain(lambda x, y: x / y),
        "x * 1.01": chain(lambda x, y: x * 1.01),
        "-x": chain(lambda x, y: -x),
        "0.75 - x ** 2": chain(lambda x, y: 0.75 - x ** 2, 2),
        "exp(-x)": chain(lambda x, y: m.exp(-x), 2),
        "log(x + 2.0)": chain(lambda x, y: m.log(x + 2.0), 2),
        "sqrt": chain(lambda x, y: m.sqrt(x)),
        "tanh": chain(lambda x, y: m.tanh(x)),
        "sigmoid": chain(lambda x, y: m.sigmoid(x)),
        "relu": chain(lambda x, y: m.relu(x)),
        "maximum": chain(lambda x, y: m.maximum(x, y)),
        "mixed": chain(mixed, 13),
    }


# --------------------------------------------------------------------------- the libraries: one forward and backward


def minigrad() -> tuple[Any, Callable[[Program], Callable[[], None]]]:
    """The functions of minigrad, and how it runs a program forwards and backwards."""
    import minigrad as mg

    def runner(program: Program) -> Callable[[], None]:
        x, y = mg.Tensor(X, requires_grad=True), mg.Tensor(Y, requires_grad=True)
        ones = mg.ones((4, 4))

        def once() -> None:
            x.grad = y.grad = None
            program(x, y).backward(ones)
        return once

    return mg, runner


def torch() -> tuple[Any, Callable[[Program], Callable[[], None]]]:
    """The same of PyTorch, eager."""
    import torch as library

    library.set_num_threads(1)

    def runner(program: Program) -> Callable[[], None]:
        x, y = (library.from_numpy(array.copy()).requires_grad_() for array in (X, Y))
        ones = library.ones(4, 4)

        def once() -> None:
            x.grad = y.grad = None
            program(x, y).backward(ones)
        return once

    return library, runner


def autograd() -> tuple[Any, Callable[[Program], Callable[[], None]]]:
    """The same of HIPS autograd, whose gradients are returned."""
    import autograd.numpy as anp
    from autograd import make_vjp

    functions = SimpleNamespace(
        exp=anp.exp, log=anp.log, sqrt=anp.sqrt, tanh=anp.tanh, maximum=anp.maximum,
        relu=lambda x: anp.maximum(x, 0), sigmoid=lambda x: (anp.tanh(x * 0.5) + 1) * 0.5)

    def runner(program: Program) -> Callable[[], None]:
        ones = np.ones((4, 4), np.float32)
        pair = make_vjp(lambda both: program(both[0], both[1]))

        def once() -> None:
            back, _ = pair((X, Y))
            back(ones)
        return once

    return functions, runner


LIBRARIES = {"minigrad": minigrad, "torch": torch, "autograd": autograd}


def best(once: Callable[[], None], seconds: float) -> float:
    """Seconds that `once` takes, by the best of `BLOCKS` blocks of about so many `seconds`."""
    start, calls = time.perf_counter(), 0
    while not calls or time.perf_counter() - start < seconds:
        once()
        calls += 1

    def block() -> float:
        start = time.perf_counter()
        for _ in range(calls):
            once()
        return (time.perf_counter() - start) / calls

    return min(block() for _ in range(BLOCKS))


def measured(library: str, seconds: float = SECONDS) -> dict[str, float]:
    """Microseconds per operation of every program, in this process, by blocks of about so many `seconds`."""
    functions, runner = LIBRARIES[library]()
    return {name: 1e6 * best(runner(program), seconds) / operations
            for name, (program, operations) in programs(functions).items()}


def main() -> None:
    """Compare minigrad with its peer, or, as one of the measured processes, print the numbers of one library."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", choices=["torch", "autograd"], default="torch")
    parser.add_argument("--rounds", type=int, default=15, help="pairs of processes (15)")
    parser.add_argument("--dry", action="store_true", help="print the results, and write nothing")
    parser.add_argument("--measure", choices=list(LIBRARIES), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measured(options.measure)))
        return

    name, peer = "minigrad", options.peer
    paired.require([peer])
    rounds = paired.alternate({library: [sys.executable, __file__, "--measure", library] for library in (name, peer)},
                              options.rounds)
    page.publish(f"overhead_{peer}", paired.report(
        "time per operation, forward and backward, 4x4 float32, one thread", "µs", len(rounds), [peer],
        paired.compare(rounds, name, peer)), not options.dry)


if __name__ == "__main__":
    main()
