"""Faults of a kind, some at a time, each in a process of its own."""

from __future__ import annotations

import importlib
import json
import select
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

from tests.faults.children import Child
from tests.faults.trainings import Base
from tests.faults.verdict import short

KINDS = ("kill", "disk", "writers", "flips", "edits", "commands", "engine", "ranks")
LIMIT = 180.0  # seconds for one fault


def meet(kind: str, indices: Iterable[int], seed: int, jobs: int, base: Base) -> Iterator[dict[str, Any]]:
    """What became of the faults with these indices, in the order in which they end."""
    module = importlib.import_module(f"tests.faults.{kind}")  # here, and so in every process that is forked from this
    left, running = iter(indices), dict[int, tuple[int, Child, Path]]()

    def start() -> None:
        for index in islice(left, 1):
            folder = Path(tempfile.mkdtemp(prefix=f"fault-{kind}-"))
            child = Child(partial(_fault, module, Random(f"{kind} {seed} {index}"), folder, base), folder, group=True)
            running[child.descriptor] = index, child, folder

    try:
        for _ in range(jobs):
            start()
        while running:
            for descriptor in select.select(list(running), [], [], LIMIT)[0] or [next(iter(running))]:
                index, child, folder = running.pop(descriptor)
                yield {"kind": kind, "index": index, **_outcome(child)}
                clear(folder)
                start()
    finally:
        for _, child, folder in running.values():
            child.end()
            clear(folder)


def _fault(module: ModuleType, rng: Random, folder: Path, base: Base) -> int:
    """Meet a fault, in the process made for it; one that needs no folder has ``faults(count, seed)``, an iterator."""
    if hasattr(module, "fault"):
        outcome = module.fault(rng, folder, base)
    else:
        outcome = next(module.faults(1, rng.getrandbits(32)))
    print(json.dumps(outcome))
    return 0


def _outcome(child: Child) -> dict[str, Any]:
    ended = child.wait(0)
    if ended is None:
        return {"fault": "?", "problem": f"it does not end in {LIMIT:.0f} s"}
    if ended.status != 0:
        last = (ended.errors.splitlines() or [""])[-1]
        return {"fault": "?", "problem": f"an exception while it was judged, status {ended.status}: {short(last)}"}
    fault, problem = json.loads(ended.output)
    return {"fault": fault, "problem": problem}


def clear(folder: Path) -> None:
    """Remove the folder of a fault, and what is mounted in it."""
    for line in Path("/proc/mounts").read_text().splitlines():
        if line.split()[1].startswith(f"{folder}/"):
            subprocess.run(["umount", "-l", line.split()[1]], check=True)
    shutil.rmtree(folder)
