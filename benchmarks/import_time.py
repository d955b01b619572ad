"""How long `import minigrad` takes, against `import numpy`, which it needs: fresh processes, in turn.

    python benchmarks/import_time.py

What is timed is the import alone, without starting the interpreter, and with compiled bytecode in place, as after the
first import of an installed package.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import paired

CODE = """
import json, time
start = time.perf_counter()
import {module}
print(json.dumps({{"import": 1000 * (time.perf_counter() - start)}}))
"""


def main() -> None:
    """Print the comparison, and write benchmarks/results/import_time.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=41, help="pairs of processes (41)")
    parser.add_argument("--out", type=Path, default=paired.ROOT / "benchmarks/results/import_time.json")
    options = parser.parse_args()
    programs = {module: [sys.executable, "-c", CODE.format(module=module)] for module in ("minigrad", "numpy")}
    with tempfile.TemporaryDirectory() as bytecode:  # the round that is not counted fills it
        rounds = paired.alternate(programs, options.rounds, {
            **paired.ONE_THREAD, "PYTHONPYCACHEPREFIX": bytecode, "PYTHONDONTWRITEBYTECODE": ""})
    results = paired.compare(rounds, "minigrad", "numpy")
    paired.save(options.out, {"what": "time of the import, in a fresh process", "unit": "ms",
                              "machine": paired.machine(["numpy"]), "rounds": len(rounds), "results": results})
    print(paired.table(results, "ms"))


if __name__ == "__main__":
    main()
