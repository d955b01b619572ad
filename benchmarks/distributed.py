"""A step of training on several ranks of MPI, against one process, against threads, and against PyTorch DDP on gloo.

    python benchmarks/distributed.py                                     all sizes
    python benchmarks/distributed.py --sizes mid --dropout 0.1 --padding no
    python benchmarks/distributed.py --dry                               one short round, with a tiny model

As root, Open MPI wants OMPI_ALLOW_RUN_AS_ROOT=1 and OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 in the environment.

The step is forward, backward, exchange, clipping, AdamW. All programs train on the same batches, and are left only as
many processors as there are ranks. A process has a processor each: ranks, and the processes of DDP, compute in one
thread. Our ranks are given the whole batch and take their part of it; a process of DDP is given its part. Where PyTorch
has two versions of the model, the faster one in each round counts. What a step costs in communication is measured in
the same turns: scaling.py predicts from it what more hosts would need.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import contest
import page
import paired
import peers
import turns
import workloads
from workloads import Workload

PAGE = paired.ROOT / "docs/distributed_performance.md"
ALONE, HALF, DDP = "1 process", "a rank's share of the batch", "PyTorch DDP"
VERSIONS = ("torch-ddp", "torch-ddp-transformer")  # of the model, in DDP
SETTINGS = paired.KEEP_FREED_MEMORY | paired.ONE_THREAD
PACKAGES = ("mpi4py", "openmpi")


def mpirun(ranks: int) -> list[str]:
    """The beginning of a command that starts so many ranks; SystemExit if there is no mpirun."""
    beside = [str(Path(sys.executable).parent), os.environ.get("PATH", "")]
    found = shutil.which("mpirun", path=os.pathsep.join(beside))
    if found is None:
        raise SystemExit("no mpirun is installed; in the project's folder:  pip install -e '.[mpi]'")
    return [found, "-n", str(ranks), *(["--oversubscribe"] if ranks > (os.cpu_count() or 1) else [])]


def commands(workload: Workload, weights: Path, ranks: int, against: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """The programs: a title, or the name of a version of PyTorch's model, and its command."""
    def command(peer: str, threads: int, trained: Workload = workload) -> list[str]:
        return [sys.executable, str(Path(__file__).with_name("rank_process.py")), "--peer", peer, "--workload",
                trained.to_json(), "--weights", str(weights), "--threads", str(threads)]

    yield ALONE, command("minigrad-process", 1)
    yield HALF, command("minigrad-process", 1, replace(workload, batch=workload.batch // ranks))
    yield f"{ranks} threads", command("minigrad-process", ranks)
    yield f"{ranks} ranks", [*mpirun(ranks), *command("minigrad-ranks", ranks)]
    for peer in against:
        yield peer, command(peer, ranks)


def rounds_of(workload: Workload, options: argparse.Namespace) -> list[paired.Round]:
    """What every program measured, in turns; the losses are compared before."""
    against = [] if options.no_ddp else VERSIONS
    paired.require(["mpi4py", *(peers.RANKED[peer][1] for peer in against)])
    with tempfile.TemporaryDirectory() as folder:
        weights = Path(folder) / "start.safetensors"
        workload.write_weights(weights)
        programs = dict(commands(workload, weights, options.ranks, against))
        with turns.started(programs, SETTINGS) as processes:
            contest.check_losses(workload, {name: process.ready for name, process in processes.items()
                                            if name != HALF}, reference=ALONE)
            rounds = turns.take(processes, options.rounds, options.seconds)
    return paired.fastest(rounds, against, DDP) if against else rounds


def parts(rounds: Sequence[paired.Round], ranks: str) -> dict[str, dict[str, paired.Numbers]]:
    """By program, the spread of every number that it measured.

    Of the `ranks` two more: "share", what calls and waiting are of the step; and "hidden", what is not waited for of
    the time of an exchange alone. Both are fractions, taken within a round.
    """
    found = {name: {key: paired.spread(each[name][key] for each in rounds) for key in rounds[0][name]}
             for name in (ALONE, HALF, ranks)}
    of_ranks = [each[ranks] for each in rounds]
    found[ranks] |= {
        "share": paired.spread((each["calls"] + each["waited"]) / each["ms"] for each in of_ranks),
        "hidden": paired.spread(1 - each["waited"] / each["alone"] for each in of_ranks),
    }
    return found


def table(results: Mapping[str, Any], unit: str) -> str:
    """The `parts` of each workload as a table in Markdown."""
    heads = [f"step ({unit})", "clipping and AdamW", "in calls", "waited", "share of the step", "exchange alone",
             "hidden", "quartiles", "MiB sent"]
    lines = [f"| | {' | '.join(heads)} |", "|---|" + len(heads) * "---:|"]
    for title, programs in results.items():
        row = next(row for name, row in programs.items() if name.endswith(" ranks"))
        cells = [page.number(row[key]["median"]) for key in ("ms", "update", "calls", "waited")]
        hidden = row["hidden"]
        cells += [f"{row['share']['median']:.1%}", page.number(row["alone"]["median"]), f"{hidden['median']:.0%}",
                  f"{hidden['low']:.0%} – {hidden['high']:.0%}", page.number(row["MiB"]["median"])]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return "\n".join(lines)


def installed(packages: Sequence[str]) -> list[str]:
    """Those of the packages that are installed: an MPI may also come with the system."""
    return [name for name in packages if any(importlib.metadata.distributions(name=name))]


def publish(workload: Workload, rounds: Sequence[paired.Round], options: argparse.Namespace) -> None:
    """The rows of one workload, in each table."""
    ours, keep, what = f"{options.ranks} ranks", not options.dry, "time of a training step, float32, "
    packages = installed(PACKAGES)
    others = {"process": ALONE, "threads": f"{options.ranks} threads"} | ({} if options.no_ddp else {"ddp": DDP})
    for short, title in others.items():
        row = paired.compare(rounds, ours, title)["ms"]
        report = paired.report(what + f"{ours} against {title}", "ms", len(rounds),
                               [*packages, *(["torch"] if title == DDP else [])], {workload.title: row})
        page.publish(f"distributed_{short}", report, keep, PAGE)
    report = paired.report("parts of a training step", "ms", len(rounds), packages,
                           {workload.title: parts(rounds, ours)})
    page.publish("distributed_parts", report, keep, PAGE, table)


def main() -> None:
    """Measure one workload after the other, and publish each as soon as it is there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9, help="rounds in which each program has a turn (9)")
    parser.add_argument("--seconds", type=float, default=0.7, help="length of a turn (0.7)")
    parser.add_argument("--ranks", type=int, default=2, help="ranks, threads and processors (2)")
    parser.add_argument("--sizes", nargs="+", choices=list(workloads.SIZES), default=list(workloads.SIZES))
    parser.add_argument("--dropout", nargs="+", type=float, default=[0.0, 0.1])
    parser.add_argument("--padding", nargs="+", choices=["no", "yes"], default=["no", "yes"])
    parser.add_argument("--no-ddp", action="store_true", help="leave PyTorch out")
    parser.add_argument("--dry", action="store_true", help="one short round with a tiny model; write nothing")
    options = parser.parse_args()
    chosen = workloads.variations(options.sizes, options.dropout, [choice == "yes" for choice in options.padding])
    if options.dry:
        options.rounds, options.seconds = 1, 0.01
        chosen = [replace(workloads.DRY, padded=True)]
    paired.confine(options.ranks)
    for workload in chosen:
        publish(workload, rounds_of(workload, options), options)


if __name__ == "__main__":
    main()
