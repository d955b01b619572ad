"""``python -m minigrad.kernels``: make every kernel ready now, so that no later run compiles, and tell the time."""

from __future__ import annotations

import sys

from minigrad.kernels import compile_time, load


def main() -> None:
    """For float32, then for float64."""
    try:
        load()
    except ImportError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    from minigrad.kernels.compiled.kernel import KERNELS, KINDS

    for kind, dtype in KINDS.items():
        before = compile_time()
        for kernel in KERNELS:
            kernel.make_ready(kind)
        seconds, compiled, loaded = (now - then for now, then in zip(compile_time(), before, strict=True))
        print(f"{dtype}: {compiled} kernels compiled, {loaded} loaded from the disk, {seconds:.2f} s")


if __name__ == "__main__":
    main()
