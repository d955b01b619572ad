"""How long `import minigrad` and `import transformer` take, against `import torch`.

    python benchmarks/import_time.py

What is timed is the import alone, without starting the interpreter, and with compiled bytecode in place, as after the
first import of an installed package.
"""

from __future__ import annotations

import sys
import tempfile

import page
import paired

OURS = ("minigrad", "transformer")
CODE = """
import json, time
start = time.perf_counter()
import {module}
print(json.dumps({{"import": 1000 * (time.perf_counter() - start)}}))
"""


def main() -> None:
    """Print the comparison, and publish it."""
    options, peer = paired.parsed(paired.parser(__doc__, rounds=15)), "torch"
    paired.require([peer])
    programs = {module: [sys.executable, "-c", CODE.format(module=module)] for module in (*OURS, peer)}
    with tempfile.TemporaryDirectory() as bytecode:  # the round that is not counted fills it
        rounds = paired.alternate(programs, options.rounds, {
            **paired.ONE_THREAD, "PYTHONPYCACHEPREFIX": bytecode, "PYTHONDONTWRITEBYTECODE": ""})
    results = {f"import {module}": paired.compare(
        [{"ours": pair[module], peer: pair[peer]} for pair in rounds], "ours", peer)["import"] for module in OURS}
    page.publish("import_torch", paired.report("time of the import, in a fresh process", "ms", len(rounds), [peer],
                                               results), not options.dry)


if __name__ == "__main__":
    main()
