"""All that a GPU has to show, in one run of a few minutes: is it right, and how fast?

    python benchmarks/on_a_card.py                       everything; figures in benchmarks/results/on_a_card.json
    python benchmarks/on_a_card.py --parts copying steps --sizes toy base --dry
    python benchmarks/on_a_card.py --stand-in            try the script without a GPU: its numbers mean nothing

Each part prints what it finds at once; one that fails does not keep the others from running, and ends the script with
status 1. PyTorch eager runs in float32 on the same GPU. A turn begins and ends with an idle GPU, so it times what was
computed, not what was asked for.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import decoding
import numpy as np
import page
import paired
import training
from training import THEM, US
from workloads import DRY, PAPER, SIZES, Workload

import minigrad.device

from transformer.training.memory import multiplications

RESULTS = page.RESULTS / "on_a_card.json"
STAND_IN = paired.ROOT / "tests/strict_cupy/installed"
COPY = ("--task", "copy", "--steps", "200", "--valid-every", "20", "--dropout", "0")
ROUNDING = 1e-4  # the greatest relative difference of losses of the first 20 updates

Report = dict[str, Any]


@dataclass(frozen=True)
class Plan:
    """What is measured.

    Attributes:
        workloads: that are trained.
        decoded: what is translated.
        theirs: the device of PyTorch.
    """

    workloads: list[Workload]
    decoded: Workload = decoding.WORKLOAD
    theirs: str = "cuda"

    @property
    def devices(self) -> dict[str, str]:
        """The device of each program."""
        return {US: "cuda", THEM: self.theirs, "PyTorch": self.theirs}


TRIED = Plan([replace(DRY, dropout=0.1)], decoding.TINY, "cpu")


def main() -> None:
    """Run the parts, one after the other."""
    parser = paired.parser(__doc__, rounds=5, seconds=0.5)
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--sizes", nargs="+", choices=[*SIZES, PAPER.name], default=[*SIZES, PAPER.name])
    parser.add_argument("--stand-in", action="store_true", help="in place of CuPy; tiny models, PyTorch on the CPU")
    options = paired.parsed(parser)
    if options.stand_in:
        os.environ["PYTHONPATH"] = os.pathsep.join(map(str, (STAND_IN, paired.ROOT)))
        sys.path[:0] = [str(STAND_IN), str(paired.ROOT)]
        plan = TRIED
    else:
        sizes = {**SIZES, PAPER.name: PAPER}
        plan = Plan([replace(sizes[name], dropout=0.1) for name in options.sizes])
    paired.require(["torch"])
    usable = minigrad.device.cuda_status()
    if not usable.devices:
        raise SystemExit(f"no GPU to measure: {usable.reason}")
    report: Report = {"machine": card(), "failed": {}}
    print(json.dumps(report["machine"], indent=2), flush=True)
    for name in options.parts:
        print(f"\n## {name}", flush=True)
        start = time.perf_counter()
        try:
            report[name] = PARTS[name](plan, options)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - minutes with a GPU are few: on to the next part
            traceback.print_exc()
            report["failed"][name] = f"{type(error).__name__}: {error}"
        print(f"({time.perf_counter() - start:.0f} s)", flush=True)
        if not (options.dry or options.stand_in):
            RESULTS.write_text(json.dumps(report, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    if report["failed"]:
        raise SystemExit("\n".join(f"{name} failed: {error}" for name, error in report["failed"].items()))


def card() -> Report:
    """The GPU, its driver, the host, and the versions."""
    found = subprocess.getoutput("nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader")
    return {"gpus": found.splitlines(), "capability": minigrad.device.on_device("cuda:0").compute_capability,
            "cupy": minigrad.device.module_for("cuda:0").__version__, "date": time.strftime("%Y-%m-%d"),
            **paired.machine(["numpy", "torch"])}


# --------------------------------------------------------------------------- the parts


def trained(*arguments: str) -> list[dict[str, float]]:
    """The rows of log.csv of ``transformer train``."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "transformer", "train", "--quiet", "--out", folder, *arguments],
                       env=paired.environment(), stdout=subprocess.DEVNULL, check=True)
        with (Path(folder) / "log.csv").open(encoding="utf-8", newline="") as file:
            return [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]


def ceilings(plan: Plan, options: argparse.Namespace) -> Report:
    """What the GPU does at best in float32: copy, and multiply matrices."""
    cupy = minigrad.device.module_for("cuda:0")
    length, side, found = *((2**10, 64) if options.dry else (2**29, 8192)), {}
    numbers = np.random.default_rng(0)
    x, a = (cupy.asarray(numbers.random(shape, np.float32)) for shape in (length, (side, side)))
    y = cupy.empty_like(x)
    runs = (("TB/s copied", 2 * x.nbytes, lambda: cupy.copyto(y, x)), ("TFLOP/s", 2 * side**3, lambda: a @ a))
    for name, amount, run in runs:
        run()
        minigrad.device.synchronize("cuda:0")
        start = time.perf_counter()
        for _ in range(10):
            run()
        minigrad.device.synchronize("cuda:0")
        found[name] = round(10 * amount / (time.perf_counter() - start) / 1e12, 2)
    print(found, flush=True)
    return found


def copying(plan: Plan, options: argparse.Namespace) -> Report:
    """200 updates of the copy task by the one command, on the GPU and on the host: the flag is all that differs."""
    there, here = (trained(*COPY, "--device", device) for device in ("cuda", "cpu"))
    losses = ("train_loss", "valid_loss")
    table(("step", "loss, GPU", "loss, host", "validation, GPU", "validation, host"),
          [(f"{gpu['step']:.0f}", *(f"{row[name]:.6f}" for name in losses for row in (gpu, host)))
           for gpu, host in zip(there, here, strict=True)])
    apart = max(abs(there[0][name] / here[0][name] - 1) for name in losses)
    if not apart <= ROUNDING:
        raise ValueError(f"after {here[0]['step']:.0f} updates losses differ by {apart:.1e} of themselves: that is "
                         "more than rounding")
    return {"gpu": there, "host": here, "apart": apart}


def steps(plan: Plan, options: argparse.Namespace) -> Report:
    """Time and memory of a step of training, against PyTorch eager."""
    found = {}
    for workload in plan.workloads:
        found[workload.title] = paired.compare(training.times(workload, options, plan.devices), US, THEM)
        for key, unit in {"ms": "ms", "memory": "MiB"}.items():
            print(page.table({workload.title: found[workload.title][key]}, unit), flush=True)
        products = 6 * workload.batch * workload.length * sum(multiplications(workload.config()))  # forward, backward
        rate = round(products / found[workload.title]["ms"][US]["median"] / 1e9, 1)
        found[workload.title]["TFLOP/s"] = rate
        print(f"{rate} TFLOP/s in products", flush=True)
    return found


def decodings(plan: Plan, options: argparse.Namespace) -> Report:
    """Greedy decoding and beam search, against PyTorch with a cache of keys and values."""
    options.workload, options.tokens, found = plan.decoded, plan.decoded.length, {}
    for beam, title in decoding.ROWS.items():
        rounds = decoding.decode(beam, [US, "PyTorch"], options, plan.devices)
        found[title] = paired.compare(rounds, US, "PyTorch")["ms"]
        print(page.table({title: found[title]}, "ms"), flush=True)
    return found


PARTS: dict[str, Callable[[Plan, argparse.Namespace], Report]] = {
    "ceilings": ceilings, "copying": copying, "steps": steps, "decoding": decodings}


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table in Markdown; all columns but the first are numbers."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    print("\n".join(f"| {' | '.join(line)} |" for line in lines), flush=True)


if __name__ == "__main__":
    main()
