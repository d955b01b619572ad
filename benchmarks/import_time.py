"""How long `import minigrad` takes, against `import numpy`, which it needs: fresh processes, in turn.

    python benchmarks/import_time.py

What is timed is the import alone, without starting the interpreter, and with compiled bytecode in place, as after the
first import of an installed package.
"""

from __future__ import annotations

import argparse
import sys
import tempfile

import paired

CODE = """
import json, time
start = time.perf_counter()
import {module}
print(json.dumps({{"import": 1000 * (time.perf_counter() - start)}}))
"""


def main() -> None:
    """Print the comparison, and publish it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=41, help="pairs of processes (41)")
    options = parser.parse_args()
    programs = {module: [sys.executable, "-c", CODE.format(module=module)] for module in ("minigrad", "numpy")}
    with tempfile.TemporaryDirectory() as bytecode:  # the round that is not counted fills it
        rounds = paired.alternate(programs, options.rounds, {
            **paired.ONE_THREAD, "PYTHONPYCACHEPREFIX": bytecode, "PYTHONDONTWRITEBYTECODE": ""})
    results = paired.compare(rounds, "minigrad", "numpy")
    paired.publish("import_time", {"what": "time of the import, in a fresh process", "unit": "ms",
                              "machine": paired.machine(["numpy"]), "rounds": len(rounds), "results": results})


if __name__ == "__main__":
    main()
