"""A step of training on several ranks of MPI, against one process, against threads, and against PyTorch DDP on gloo.

    python benchmarks/distributed.py                                     all sizes
    python benchmarks/distributed.py --sizes mid --dropout 0.1
    python benchmarks/distributed.py --dry                               one short round, with a tiny model

As root, Open MPI wants OMPI_ALLOW_RUN_AS_ROOT=1 and OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 in the environment.

The step is forward, backward, exchange, clipping, AdamW. All programs train on the same batches, and are left only as
many processors as there are ranks. A process has a processor each: ranks, and the processes of DDP, compute in one
thread. Our ranks are given the whole batch and take their part of it; a process of DDP is given its part.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import shutil
import sys
import tempfile
from pathlib import Path

import page
import paired
import training
import turns
import workloads
from workloads import Workload

PAGE = paired.ROOT / "docs/distributed_performance.md"
ALONE, DDP = "1 process", "PyTorch DDP"
SETTINGS = paired.KEEP_FREED_MEMORY | paired.ONE_THREAD


def mpirun(ranks: int) -> list[str]:
    """The beginning of a command that starts so many ranks; SystemExit if there is no mpirun."""
    beside = [str(Path(sys.executable).parent), os.environ.get("PATH", "")]
    found = shutil.which("mpirun", path=os.pathsep.join(beside))
    if found is None:
        raise SystemExit("no mpirun is installed; in the project's folder:  pip install -e '.[mpi]'")
    return [found, "-n", str(ranks), *(["--oversubscribe"] if ranks > (os.cpu_count() or 1) else [])]


def commands(workload: Workload, weights: Path, options: argparse.Namespace) -> dict[str, list[str]]:
    """The programs, by the titles of a table."""
    def command(peer: str, threads: int) -> list[str]:
        return [sys.executable, str(Path(__file__).with_name("rank_process.py")), "--peer", peer, "--workload",
                workload.to_json(), "--weights", str(weights), "--threads", str(threads)]

    ranks = options.threads
    ours = {f"{ranks} ranks": [*mpirun(ranks), *command("ranks", ranks)], ALONE: command("process", 1),
            f"{ranks} threads": command("process", ranks)}
    return ours if options.no_ddp else ours | {DDP: command(DDP, ranks)}


def rounds_of(workload: Workload, options: argparse.Namespace) -> list[paired.Round]:
    """What every program measured, in turns; the losses are compared before."""
    with tempfile.TemporaryDirectory() as folder:
        weights = Path(folder) / "start.safetensors"
        workload.write_weights(weights)
        with turns.started(commands(workload, weights, options), SETTINGS) as processes:
            training.check_losses(workload, {name: process.ready for name, process in processes.items()}, ALONE)
            return turns.take(processes, options.rounds, options.seconds)


def main() -> None:
    """Measure one workload after the other, and publish each as soon as it is there."""
    parser = paired.parser(__doc__)
    parser.add_argument("--sizes", nargs="+", choices=list(workloads.SIZES), default=list(workloads.SIZES))
    parser.add_argument("--dropout", nargs="+", type=float, default=[0.0, 0.1])
    parser.add_argument("--no-ddp", action="store_true", help="leave PyTorch out")
    options = paired.parsed(parser)
    paired.require(["mpi4py"] if options.no_ddp else ["mpi4py", "torch"])
    paired.confine(options.threads)
    packages = [name for name in ("mpi4py", "openmpi") if any(importlib.metadata.distributions(name=name))]
    for workload in [workloads.DRY] if options.dry else workloads.variations(options.sizes, options.dropout):
        ours, *others = (rounds := rounds_of(workload, options))[0]
        for title in others:
            report = paired.report(
                f"time of a training step, float32, {ours} against {title}", "ms", len(rounds),
                [*packages, *(["torch"] if title == DDP else [])],
                {workload.title: paired.compare(rounds, ours, title)["ms"]})
            page.publish(f"distributed_{title.split()[-1].lower()}", report, not options.dry, PAGE)


if __name__ == "__main__":
    main()
